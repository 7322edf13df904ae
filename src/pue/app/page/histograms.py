"""Distributions: two densities over one axis, the shares above each value, and the SCAR test's null."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from pue.app.page.formats import finite, number
from pue.app.page.svg import FLOOR, TOP, Scale, horizontal, line, padded_range, percent, plain, plot, tag, vertical

LABELED, UNLABELED = "first", "second filled"
"""The classes of the two series: an outline over an area, so that color is not the only difference."""
NULL_BINS = 24
CUT = 3.0
"""A series more than this many times as high as the other is cut, or the other would be a line on the floor."""

Bin = tuple[float, float, float]


def bins(edges: Sequence[object] | None, density: Sequence[object] | None) -> list[Bin]:
    """(left, right, density) of every bin that is known."""
    edges = edges or []
    read = zip(map(finite, edges), map(finite, edges[1:]), map(finite, density or []), strict=False)
    return [(a, b, high) for a, b, high in read if a is not None and b is not None and high is not None and a < b]


def both(labeled: Mapping[str, Any] | None, unlabeled: Mapping[str, Any] | None) -> dict[str, list[Bin]]:
    parts = {LABELED: labeled or {}, UNLABELED: unlabeled or {}}
    return {class_: bins(part.get("edges"), part.get("density")) for class_, part in parts.items()}


def histogram(
    name: str,
    title: str,
    description: str,
    series: dict[str, list[Bin]],
    label: str,
    *,
    ends: tuple[float, float] | None = None,
    mark: Markup | None = None,
    y_label: str = "density",
) -> Markup | None:
    """Densities over one axis; `series` maps a class to bins, `mark` lies on top."""
    every = [each for known in series.values() for each in known]
    if not every:
        return None
    x = horizontal(*(ends or (min(left for left, _, _ in every), max(right for _, right, _ in every))))
    peaks = [max((high for _, _, high in known), default=0.0) for known in series.values()]
    top = min(max(peaks), CUT * min((peak for peak in peaks if peak > 0), default=1.0)) or 1.0
    y = vertical(0, 1.04 * top)
    outlines = [_outline(known, top, x, y, class_) for class_, known in reversed(series.items())]
    y_label += "" if max(peaks) <= top else " (the tallest bars are cut)"
    return plot(name, title, description, (y, y_label, None), (x, label, plain), *outlines, mark or "")


def _outline(known: Sequence[Bin], top: float, x: Scale, y: Scale, class_: str) -> Markup:
    if not known:
        return Markup("")
    steps = [(x(end), y(min(high, top))) for left, right, high in known for end in (left, right)]
    return line([(steps[0][0], y(0)), *steps, (steps[-1][0], y(0))], class_)


def upright(at: float, class_: str = "own") -> Markup:
    """A vertical line through the whole plot."""
    return tag("line", x1=at, x2=at, y1=TOP, y2=FLOOR, class_=class_)


def shares_above(series: Mapping[str, Sequence[Bin]], mark: Markup) -> Markup | None:
    """The share of rows at or above each score, read off the bins."""
    if not any(series.values()):
        return None
    x, y = horizontal(0, 1), vertical(0, 1)
    points = {class_.split()[0]: [(x(at), y(above)) for at, above in tails(known)] for class_, known in series.items()}
    lines = [line(each, class_) for class_, each in points.items()]
    return plot(
        "scores-above",
        "Share of the rows at or above each score",
        "Two falling lines, one for the labeled and one for the unlabeled rows.",
        (y, "share of the rows at or above", percent),
        (x, "estimated P(positive)", plain),
        *lines,
        mark,
    )


def tails(known: Sequence[Bin]) -> list[tuple[float, float]]:
    """(value, share of the rows at or above it) at both ends of every bin.

    >>> tails([(0.0, 0.5, 1.5), (0.5, 1.0, 0.5)])
    [(0.0, 1.0), (0.5, 0.25), (1.0, 0.0)]
    """
    masses = [(right - left) * high for left, right, high in known]
    total = sum(masses)
    if not total:
        return []
    above = [sum(masses[k:]) / total for k in range(len(masses) + 1)]
    return list(zip([known[0][0], *(right for _, right, _ in known)], above, strict=True))


def null_histogram(values: Iterable[object], statistic: object) -> Markup | None:
    """The statistic of artificial fair labelings, and the observed one."""
    known, observed = [value for each in values if (value := finite(each)) is not None], finite(statistic)
    if not known:
        return None
    ends = padded_range([*known, *([] if observed is None else [observed])])
    return histogram(
        "null",
        "The test statistic against chance",
        f"{len(known)} values under a fair labeling; the observed one is {number(statistic)}.",
        {UNLABELED: _counted(known)},
        "test statistic",
        ends=ends,
        mark=None if observed is None else _observed(horizontal(*ends), observed),
        y_label="how often chance gives it",
    )


def _counted(values: Sequence[float]) -> list[Bin]:
    low, high = padded_range(values, 0.0)
    width = (high - low) / NULL_BINS
    counts = Counter(min(int((value - low) / width), NULL_BINS - 1) for value in values)
    return [(low + k * width, low + (k + 1) * width, float(counts[k])) for k in range(NULL_BINS)]


def _observed(x: Scale, value: float) -> Markup:
    late = x(value) > (x.start + x.end) / 2
    at, anchor = (x(value) - 6, "label end") if late else (x(value) + 6, "label")
    return upright(x(value), "observed") + tag("text", "observed", x=at, y=TOP + 10, class_=anchor)
