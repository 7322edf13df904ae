"""Values with their intervals, the bars of a table, and the samples of a legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from pue.app.page.formats import finite, share
from pue.app.page.svg import BOTTOM, Scale, horizontal, percent, picture, tag, x_axis

ROW, NAMES = 34.0, 118.0
"""Height of a metric's row in the forest plot, and the room for its name."""

Row = tuple[str, Mapping[str, Any], Mapping[str, Any]]


def forest(rows: Sequence[Row], description: str) -> Markup | None:
    """A dot and its interval for each metric, below it the SCAR version."""
    ends = [part.get(end) for _, *parts in rows for part in parts for end in ("low", "value", "high")]
    values = [value for each in ends if (value := finite(each)) is not None]
    if not values:
        return None
    height = 8 + ROW * len(rows) + BOTTOM
    x = horizontal(max(0, int(10 * min(values) - 0.3)) / 10, max(1.0, *values), NAMES)
    grid = [tag("line", x1=x(t), x2=x(t), y1=8, y2=height - BOTTOM, class_="rule") for t in x.ticks(5)]
    drawn = [_metric(row, x, 8 + ROW * (place + 0.5)) for place, row in enumerate(rows)]
    axis = x_axis(x, "", percent, height - BOTTOM)
    return picture("forest", "Metrics with their intervals", description, *grid, *drawn, axis, height=height)


def _metric(row: Row, x: Scale, middle: float) -> Markup:
    name, estimate, scar = row
    apart = 6 if scar else 0
    whiskers = whisker(x, scar, middle + apart, "second") + whisker(x, estimate, middle - apart, "first")
    return tag("text", name, x=0, y=middle + 4, class_="label") + whiskers


def whisker(x: Scale, part: Mapping[str, Any], y: float, class_: str) -> Markup:
    low, value, high = (finite(part.get(end)) for end in ("low", "value", "high"))
    line = dot = Markup("")
    if low is not None and high is not None:
        line = tag("line", x1=x(low), x2=x(high), y1=y, y2=y, class_=f"{class_} whisker")
    if value is not None:
        dot = tag("circle", cx=x(value), cy=y, r=4, class_=f"{class_} dot")
    return line + dot


def prior_range(prior: Mapping[str, Any]) -> Markup | None:
    """The prior and its interval between none and all."""
    if finite(prior.get("value")) is None:
        return None
    height = 66.0
    x = horizontal(0, 1, 16)
    return picture(
        "prior-range",
        "The share of positives",
        f"{share(prior.get('value'))}, from {share(prior.get('low'))} to {share(prior.get('high'))}.",
        whisker(x, prior, 12, "first"),
        x_axis(x, "share of all rows that are positive", percent, height - BOTTOM),
        height=height,
    )


def bar(value: object, largest: float) -> Markup:
    """A bar of one row of a table, from the middle to the right or to the left; the number stands beside it."""
    length = 58 * (finite(value) or 0.0) / largest
    side = "first" if length >= 0 else "second"
    area = tag("rect", x=min(60.0, 60 + length), y=2, width=abs(length), height=10, class_=f"{side} area")
    middle = tag("line", x1=60, x2=60, y1=0, y2=14, class_="axis")
    return tag("svg", area, middle, viewBox="0 0 120 14", aria_hidden="true", class_="bar")


def swatch(class_: str) -> Markup:
    """A legend's sample: an area, a dot or a line."""
    if "filled" in class_:
        drawn = tag("rect", x=1, y=2, width=20, height=10, class_=class_)
    elif "dot" in class_:
        drawn = tag("circle", cx=11, cy=7, r=4, class_=class_)
    else:
        drawn = tag("line", x1=1, x2=21, y1=7, y2=7, class_=class_)
    return tag("svg", drawn, viewBox="0 0 22 14", aria_hidden="true", class_="swatch")


def in_words(found: Sequence[Mapping[str, Any]]) -> str:
    """
    >>> ends = [{"prior": 0.1, "called": 0.08, "best": 100, "shared": 97}, {"prior": 0.2, "called": 0.2, "best": 100,
    ...         "shared": 100}, {"prior": 0.5, "called": 0.55, "best": 100, "shared": 91}]
    >>> in_words(ends)
    'Between its ends 8 to 55 % of the rows are called positive; of the best 100 rows 91 stay the best.'
    """
    called, shared = [row["called"] for row in found], min(row["shared"] for row in found)
    return (
        f"Between its ends {100 * min(called):.0f} to {100 * max(called):.0f} % of the rows are called positive; of "
        f"the best {found[0]['best']} rows {shared} stay the best."
    )
