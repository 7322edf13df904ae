"""The interactive threshold: what the page says and where its markers stand, for every point of the curve.

All words and coordinates are made here and sent along as JSON, so that numbers read the same with and without a script.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from pue.app.page.curves import ACROSS, curve_at, threshold_curve
from pue.app.page.formats import NOTHING, count, finite, interval, number, share
from pue.app.page.histograms import Bin, both, histogram, upright
from pue.app.page.svg import FLOOR, LEFT, RIGHT, TOP, WIDTH, coordinate, join, tag

MIDDLE = 0.5
"""Where the slider stands if the model names no threshold of its own."""


def threshold_section(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """None without a threshold and a curve; a threshold alone is said, a curve makes it interactive."""
    threshold = summary.get("threshold") or {}
    own, rule = finite(threshold.get("value")), str(threshold.get("rule") or "")
    points = [point for point in summary.get("curve") or [] if finite(point.get("threshold")) is not None]
    if not points:
        return None if own is None else {"own": number(own), "rule": rule, "points": 0}
    aim = MIDDLE if own is None else own
    start = min(range(len(points)), key=lambda k: abs(points[k]["threshold"] - aim))
    notes = _notes(own, rule, points[start]["threshold"])
    states = [_state(point, summary.get("n_score_rows"), notes[k != start]) for k, point in enumerate(points)]
    here = states[start]
    return {
        "own": None if own is None else number(own),
        "rule": rule,
        "points": len(points),
        "start": start,
        "words": here["words"],
        "json": embedded_json({"start": start, "points": states}),
        "scores": score_histogram(summary, "threshold-scores", _score_marks(here["at"], own)),
        "curve": threshold_curve(points, _curve_marks(here["at"], own)),
    }


def embedded_json(value: object) -> Markup:
    """JSON that can stand inside a script element: <, >, & and line separators are written as \\u escapes.

    >>> embedded_json("</script>\\u2028")
    Markup('"\\\\u003c/script\\\\u003e\\\\u2028"')
    """
    return htmlsafe_json_dumps(value, separators=(",", ":"), allow_nan=False)


def score_histogram(summary: Mapping[str, Any], name: str, mark: Markup | None) -> Markup | None:
    return histogram(
        name,
        "Scores of labeled and unlabeled rows",
        "The labeled rows are an outline, the unlabeled ones an area; further right is more likely positive.",
        score_bins(summary),
        "estimated P(positive)",
        ends=(0.0, 1.0),
        mark=mark,
    )


def score_bins(summary: Mapping[str, Any]) -> dict[str, list[Bin]]:
    scores = summary.get("scores") or {}
    return both(*({"edges": scores.get("edges"), "density": scores.get(kind)} for kind in ("labeled", "unlabeled")))


def own_line(own: object) -> Markup:
    """The model's own threshold as a line through a plot from 0 to 1."""
    value = finite(own)
    return Markup("") if value is None else upright(ACROSS(value))


def _state(point: Mapping[str, Any], n_rows: object, note: str) -> dict[str, Any]:
    flagged, rows = finite(point.get("flagged")), finite(n_rows)
    words = {
        "threshold": number(point["threshold"]),
        "f1": number(point.get("f1")),
        "flagged": NOTHING if flagged is None or rows is None else count(flagged * rows),
        "flagged_share": f"{share(flagged)} of {count(rows)} rows",
        "note": note,
    }
    for name in ("precision", "recall"):
        words[name] = share(point.get(name))
        words[f"{name}_interval"] = interval(point.get(f"{name}_low"), point.get(f"{name}_high"), share)
    places = {name: curve_at(point, name) for name in ("threshold", "precision", "recall")}
    return {"words": words, "at": {name: None if at is None else round(at, 1) for name, at in places.items()}}


def _notes(own: float | None, rule: str, nearest: object) -> tuple[str, str]:
    """What is said of the model's own threshold where the slider starts, and elsewhere."""
    if own is None:
        return "", ""
    what = f"the model’s own threshold of {number(own)}"
    why = f" ({rule})" if rule else ""
    close = number(own) == number(nearest)
    return f"This is {what if close else f'the point nearest to {what}'}{why}.", f"Dotted: {what}{why}."


def _score_marks(at: Mapping[str, float | None], own: float | None) -> Markup:
    """The flagged side in a window as large as the plot, and the marker."""
    width, height = WIDTH - LEFT - RIGHT, FLOOR - TOP
    side = tag("rect", x=0, y=TOP, width=WIDTH, height=height, class_="flagged", **_placed(at, "threshold"))
    view = " ".join(map(coordinate, (LEFT, TOP, width, height)))
    window = tag("svg", side, x=LEFT, y=TOP, width=width, height=height, viewBox=view)
    return join([window, own_line(own), _line(at)])


def _curve_marks(at: Mapping[str, float | None], own: float | None) -> Markup:
    dots = [
        tag("circle", r=5, class_=f"{class_} dot", **_placed(at, "threshold", name))
        for name, class_ in (("recall", "second"), ("precision", "first"))
    ]
    return join([own_line(own), _line(at), *dots])


def _line(at: Mapping[str, float | None]) -> Markup:
    return tag("line", y1=TOP - 4, y2=FLOOR, class_="marker", **_placed(at, "threshold"))


def _placed(at: Mapping[str, float | None], x: str, y: str | None = None) -> dict[str, str]:
    """Attributes that put a part where the start is, and tell the script which coordinates move it."""
    across, down = at[x], 0.0 if y is None else at[y]
    told = {"data_x": x} if y is None else {"data_x": x, "data_y": y}
    if across is None or down is None:
        return {**told, "visibility": "hidden"}
    return {**told, "transform": f"translate({coordinate(across)} {coordinate(down)})"}
