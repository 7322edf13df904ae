"""The verdict: can this be trusted, in a word and a color, and what would help most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pue.app.page.formats import count, finite, share

FEW = 30
"""Labels worth fewer rows than this support no number."""
NARROW, WIDE = 0.2, 0.45
"""Widths of the interval of the precision: a number, a rough number, hardly one."""
DOUBTED = 1.5
"""How many times the lower end of the prior's interval the upper one is before it is what to settle first."""

TITLES = {
    "good": "Its numbers can be used.",
    "careful": "Trust its ranking; take its numbers as rough.",
    "poor": "Do not rely on its numbers yet.",
}


def trust(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """None for a page without metrics: a diagnosis judges no model."""
    metrics = summary.get("metrics") or {}
    if not metrics.get("values"):
        return None
    doubts = list(_doubts(summary))
    level = "poor" if any(grave for grave, _ in doubts) else "careful" if doubts else "good"
    why = [text for _, text in doubts] or ["Enough labels stand behind them, and the intervals are narrow."]
    return {"level": level, "title": TITLES[level], "why": " ".join(why), "next": _next(summary)}


def _doubts(summary: Mapping[str, Any]) -> Iterator[tuple[bool, str]]:
    """Whether it is grave, and what it is."""
    metrics, worth = summary["metrics"], _worth(summary)
    if metrics.get("trivial"):
        yield True, "The model treats all rows alike."
    if metrics.get("contradiction"):
        yield True, f"Its numbers contradict each other: {metrics['contradiction']}."
    if worth is not None and worth < FEW:
        yield True, f"After weighting, the labels are worth {count(worth)} rows."
    precision = metrics["values"].get("precision") or {}
    low, high = finite(precision.get("low")), finite(precision.get("high"))
    if low is None or high is None:
        yield False, "Its precision cannot be estimated."
    elif high - low > NARROW:
        yield high - low > WIDE, f"Its precision may be anything from {share(low)} to {share(high)}."
    if (summary.get("propensity") or {}).get("alarm"):
        yield False, "The chances of a label were hard to learn."


def _next(summary: Mapping[str, Any]) -> str:
    """What would help most."""
    prior, worth = summary.get("prior") or {}, _worth(summary)
    if worth is not None and worth < FEW:
        return "Label more positives, above all such as are rarely labeled now."
    low, high = finite(prior.get("low")), finite(prior.get("high"))
    if prior.get("method") != "given" and low is not None and high is not None and high > DOUBTED * low:
        return (
            "Look at a hundred rows (pue audit plan says which): the share of positives, on which all numbers rest, "
            f"is now anywhere from {share(low)} to {share(high)}."
        )
    drivers = list(summary.get("drivers") or [])
    scar = summary.get("scar") or {}
    if (scar.get("rejected") or scar.get("or_fewer")) and drivers:
        rare = "low" if (finite(drivers[0].get("difference")) or 0.0) > 0 else "high"
        return f"Label positives with {rare} {drivers[0].get('name')}: they are rare among the labels."
    return "Look at the first of the top rows below: they are the quickest check of the model."


def _worth(summary: Mapping[str, Any]) -> float | None:
    found = finite((summary.get("propensity") or {}).get("effective_sample_size"))
    return found if found is not None else finite((summary.get("metrics") or {}).get("n_labeled"))
