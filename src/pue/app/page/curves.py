"""Lines: precision and recall by threshold, weights, calibration, training history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from pue.app.page.formats import finite
from pue.app.page.svg import Scale, band, horizontal, line, padded_range, percent, plain, plot, signed, tag, vertical

MOST_EPOCHS = 400
LETTER = 7.6
"""A digit is at most this wide, so the axis leaves room for its longest number."""
ACROSS, UP = horizontal(0, 1), vertical(0, 1)


def curve_at(point: Mapping[str, Any], name: str) -> float | None:
    """The coordinate of a point's threshold, or of one of its estimates; None where it is not known."""
    value = finite(point.get(name))
    return None if value is None else (ACROSS if name == "threshold" else UP)(value)


def threshold_curve(points: Sequence[Mapping[str, Any]], marks: Markup) -> Markup:
    """Precision and recall, each with its interval, against the threshold."""
    return plot(
        "curve",
        "Estimated precision and recall by threshold",
        "Two lines with their intervals, from a threshold of 0 at the left to 1 at the right.",
        (UP, "estimate and its interval", percent),
        (ACROSS, "threshold", plain),
        *(_estimate(points, name, class_) for name, class_ in (("recall", "second"), ("precision", "first"))),
        marks,
    )


def _estimate(points: Sequence[Mapping[str, Any]], name: str, class_: str) -> Markup:
    x, low, middle, high = (
        [curve_at(point, each) for point in points] for each in ("threshold", f"{name}_low", name, f"{name}_high")
    )
    return band(zip(x, low, high, strict=True), f"{class_} band") + line(zip(x, middle, strict=True), class_)


def weight_curve(points: Iterable[Sequence[object]]) -> Markup | None:
    """The share of the weight that a share of the labeled rows carries, against the diagonal of equal weights."""
    known = [(a, b) for a, b in (map(finite, point[:2]) for point in points) if a is not None and b is not None]
    if not known:
        return None
    return plot(
        "weight-curve",
        "How evenly the weight is spread over the labeled rows",
        "The share of the weight against the share of the rows; the diagonal is equal weights.",
        (UP, "share of the weight", percent),
        (ACROSS, "share of the labeled rows", percent),
        line([(ACROSS(0), UP(0)), (ACROSS(1), UP(1))], "diagonal"),
        line([(ACROSS(a), UP(b)) for a, b in known], "first"),
    )


def calibration(bins: Sequence[Mapping[str, Any]]) -> Markup | None:
    """Estimated shares of positives against predicted ones; a dot's area grows with the bin's share of rows."""
    height = 300.0
    y = vertical(0, 1, height)
    dots = [_calibrated(each, y) for each in bins]
    if not any(dots):
        return None
    return plot(
        "calibration-chart",
        "Predicted against estimated shares of positives",
        "Dots with vertical intervals; on the diagonal, predictions mean what they say.",
        (y, "estimated share of positives", percent),
        (ACROSS, "predicted P(positive)", percent),
        line([(ACROSS(0), y(0)), (ACROSS(1), y(1))], "diagonal"),
        *dots,
        height=height,
    )


def _calibrated(each: Mapping[str, Any], y: Scale) -> Markup:
    names = ("predicted", "estimated", "low", "high", "share")
    predicted, estimated, low, high, rows = (finite(each.get(name)) for name in names)
    if predicted is None or estimated is None:
        return Markup("")
    whisker = [(ACROSS(predicted), None if end is None else y(end)) for end in (low, high)]
    radius = min(3 + 9 * max(rows or 0.0, 0.0) ** 0.5, 9.0)
    dot = tag("circle", cx=ACROSS(predicted), cy=y(estimated), r=radius, class_="first dot")
    return line(whisker, "first whisker") + dot


def history(epochs: Sequence[Mapping[str, Any]]) -> Markup | None:
    """The risk of every epoch, and the validation risk where rows were held out."""
    epochs = epochs[:: 1 + len(epochs) // MOST_EPOCHS]
    lines = {
        class_: [(finite(each.get("epoch")), finite(each.get(name))) for each in epochs]
        for name, class_ in (("validation", "second"), ("risk", "first"))
    }
    known = [(a, b) for points in lines.values() for a, b in points if a is not None and b is not None]
    if not known:
        return None
    y = vertical(*padded_range([b for _, b in known]))
    left = 12 + LETTER * max(len(signed(tick)) for tick in y.ticks(4))
    x = horizontal(*padded_range([a for a, _ in known], 0.0), left)
    return plot(
        "history-chart",
        "Risk by epoch",
        "The risk that training minimized, and the validation risk where rows were held out.",
        (y, "risk", signed),
        (x, "epoch", plain),
        *(line([_place(x, y, *point) for point in points], class_) for class_, points in lines.items()),
    )


def _place(x: Scale, y: Scale, a: float | None, b: float | None) -> tuple[float | None, float | None]:
    return (None, None) if a is None or b is None else (x(a), y(b))
