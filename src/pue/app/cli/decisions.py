"""What a decision rests on, in words: a budget's expected hits, a target precision's evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pue.app.model import PUModel

ABOVE = 20
"""Labels worth fewer rows above a threshold say little about its precision."""


def budget_lines(done: Mapping[str, Any]) -> Iterator[str]:
    """Of a budget: how many hits to expect, which rows were passed over, whether the lot decided."""
    if "expected_hits" not in done:
        return
    hits = done["expected_hits"]
    yield (
        f"Expected hits: {hits['value']:.0f} of {done['positive']:,}, 95% interval {hits['low']:.0f} to "
        f"{hits['high']:.0f}, if the model's estimates hold for these rows"
    )
    if done["known"]:
        yield f"Passed over: {done['known']:,} rows that have a label already"
    if done["tied"]:
        yield f"The lot decided between {done['tied']:,} rows of the lowest probability, {done['threshold']:.3f}"


def precision_line(model: PUModel) -> str:
    """What the estimated precision at the model's threshold relies on; its interval is that of the page's curve."""
    import numpy as np
    import torch

    from pue.core.weights import effective_sample_size
    from pue.judging.curves import threshold_curve

    held_out, at, drawn = model.held_out, model.threshold, model.summary["curve"]
    thresholds = np.unique([0.0, at])
    p, weights = torch.from_numpy(held_out.probabilities), held_out.believed_weights
    value = float(threshold_curve(p, weights, thresholds=thresholds, draws=1).precision[0][-1])
    known = [point for point in drawn if None not in (point["precision_low"], point["precision_high"])]
    places = [point["threshold"] for point in known]
    ends = ([point[f"precision_{end}"] for point in known] for end in ("low", "high"))
    low, high = (float(np.interp(at, places, end)) for end in ends) if known else (0.0, 1.0)
    low, high = min(low, value), max(high, value)
    above = held_out.positive[(held_out.positive > 0) & (held_out.probabilities >= at)]
    worth = float(effective_sample_size(torch.from_numpy(above))) if len(above) else 0.0
    prior = model.summary["prior"]
    share = f"{prior['value']:.3f}" + (
        "" if prior["method"] == "given" else f" (estimated, {prior['low']:.3f} to {prior['high']:.3f})"
    )
    chances = "labels are a random sample of the positives" if model.summary.get("propensity") is None else (
        "the chances of a label are as estimated"
    )  # fmt: skip
    few = " They are few: take it as a guess." if worth < ABOVE else ""
    return (
        f"Precision at {at:.3f}: {value:.1%} [{low:.1%}, {high:.1%}], from {len(above):,} labeled rows above it, worth "
        f"{worth:.0f}. It relies on the share of positives being {share}, and on this: {chances}.{few}"
    )
