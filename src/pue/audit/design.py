"""Which rows to look at: strata by score, how many rows of each, and the chance of every row to be among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pue.audit.score_test import Ratio
from pue.errors import UnknownName

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

QUANTITIES = {
    "prior": "share of positives",
    "precision": "precision",
    "recall": "recall",
    "accuracy": "accuracy",
    "f1": "F1",
}
PURPOSES = ("all", "prior", "precision", "recall", "accuracy", "model")
DESIGNS = ("stratified", "random")
DOUBT = 0.15
"""The allocation believes the model's shares so much less: this part of a stratum's share is taken to be one half."""
LEAST = 3
"""Rows drawn from every stratum that has them."""
ROWS_A_STRATUM = 12
MOST_STRATA = 8
WORTH = {"prior": 1.0, "precision": 1.5, "recall": 1.0}
"""What a plan for all quantities weighs; accuracy asks for what the prior does. Precision hangs on the rows that are
called, often few: at this weight it and recall gain alike. Settled, as is DOUBT, on development tables."""


@dataclass(frozen=True)
class Stratum:
    """Unlabeled rows whose scores lie in [low, high)."""

    low: float
    high: float
    called: bool
    """Does the model call them positive?"""
    size: int
    expected: float
    """Positives among them, if the model is right."""
    drawn: int = 0
    before: int = 0
    """Drawn by the plans that this one tops up."""

    @property
    def probability(self) -> float:
        """The chance of each of its rows to be drawn, by this plan or one before it."""
        return (self.drawn + self.before) / self.size


@dataclass(frozen=True)
class Known:
    """Rows that need no answer, and how many rows there are."""

    rows: int
    """All rows of the population."""
    called: int
    """Those that the model calls positive."""
    positives: int
    """Labeled positive."""
    positives_called: int
    negatives: int
    """Labeled negative."""
    negatives_called: int


def ratios(known: Known, called: NDArray[np.bool_], size: Array) -> dict[str, Ratio]:
    """Every quantity as a function of the positives in the strata."""
    ones, inside = np.ones(len(size)), called.astype(float)
    rejected = known.negatives - known.negatives_called + float(size[~called].sum())
    return {
        "prior": Ratio(ones, 0 * ones, known.positives, known.rows),
        "precision": Ratio(inside, 0 * ones, known.positives_called, known.called),
        "recall": Ratio(inside, ones, known.positives_called, known.positives),
        "accuracy": Ratio(2 * inside - ones, 0 * ones, known.positives_called + rejected, known.rows),
        "f1": Ratio(2 * inside, ones, 2 * known.positives_called, known.called + known.positives),
    }


def edges(scores: Array, importance: Array, threshold: float, n: int) -> list[float]:
    """Bounds of the strata: the threshold, and on either side cuts that share out the rows' importance evenly (Dalenius
    and Hodges' rule for the smallest variance under Neyman's allocation)."""
    wanted = int(np.clip(n // ROWS_A_STRATUM, 2, MOST_STRATA))
    called = scores >= threshold
    total = importance.sum()
    cuts = {threshold}
    for side in (called, ~called):
        if importance[side].sum() > 0:
            cuts |= _cuts(scores[side], importance[side], max(1, round(wanted * importance[side].sum() / total)))
    return [-np.inf, *sorted(cuts), np.inf]


def _cuts(scores: Array, importance: Array, parts: int) -> set[float]:
    order = np.argsort(scores, kind="stable")
    reached = importance[order].cumsum() / importance.sum()
    places = np.searchsorted(reached, np.arange(1, parts) / parts)
    return {float(cut) for cut in scores[order][places] if cut > scores.min()}


def spread_of(expected: Array) -> Array:
    """√(p (1 − p)) with some doubt about p, so that it is nowhere zero."""
    p = (1 - DOUBT) * expected + DOUBT / 2
    return np.asarray(np.sqrt(p * (1 - p)))


def importance(purpose: str, known: Known, strata: list[Stratum]) -> Array:
    """How much a row's answer tells, stratum by stratum: an allocation in proportion to size × importance is Neyman's.

    The error of a quantity θ is Σ cₕ² Nₕ² σₕ² / nₕ with cₕ = ∂θ/∂Yₕ where the model is right: nₕ ∝ Nₕ |cₕ| σₕ.
    "model" is the expected length of the log loss's gradient, E|y − p| = 2 p (1 − p) (Settles 2009).
    """
    spread = spread_of(np.array([s.expected / s.size for s in strata]))
    if purpose == "model":
        return spread**2
    return stakes(purpose, known, strata)[[int(s.called) for s in strata]] * spread


def stakes(purpose: str, known: Known, strata: list[Stratum]) -> Array:
    """|c| of rows that are not called, and of those that are: all that a quantity asks of a row is its call.

    For all quantities together the variances, each relative to that of a random sample, are added by their worth.
    """
    if purpose not in PURPOSES:
        raise UnknownName("purpose", purpose, PURPOSES)
    if purpose == "model":
        return np.ones(2)
    sides = [[s for s in strata if s.called is called] for called in (False, True)]
    size = np.array([float(sum(s.size for s in side)) for side in sides])
    totals = np.array([sum(s.expected for s in side) for side in sides])
    spread = spread_of(totals / np.maximum(size, 1))
    changes = slopes(ratios(known, np.array([False, True]), size), totals)
    total = np.zeros(2)
    for name, worth in (WORTH if purpose == "all" else {purpose: 1.0}).items():
        square = changes[name] ** 2
        random = float((square * size * spread**2).sum())
        total += worth * square / random if random > 0 else 0
    return np.asarray(np.sqrt(total))


def slopes(quantities: Mapping[str, Ratio], totals: Array) -> dict[str, Array]:
    """∂θ/∂Yₕ at these totals: (nₕ − θ dₕ) / below."""
    found = {}
    for name, ratio in quantities.items():
        below = float(ratio.under_known + totals @ ratio.under)
        theta = float(ratio.of(totals)) if below > 0 else 0.0
        found[name] = (ratio.over - theta * ratio.under) / max(below, 1e-12)
    return found


def allocate(room: Integers, wish: Array, n: int, least: int = LEAST) -> Integers:
    """n rows over strata with so much room, in proportion to the wish, at least a few of each, none over its room.

    >>> allocate(np.array([1000, 50, 4]), np.array([10.0, 10.0, 80.0]), 40)
    array([18, 18,  4])
    """
    n = min(n, int(room.sum()))
    least = min(least, n // max(len(room), 1))
    low, high = np.minimum(room, least), room.astype(float)
    wish = np.maximum(wish, 1e-12 * max(float(wish.max()), 1e-300))
    small, large = 0.0, n / float(wish.min()) + 1
    for _ in range(200):  # the common factor that uses up n, between the bounds of each stratum
        factor = (small + large) / 2
        small, large = (factor, large) if np.clip(factor * wish, low, high).sum() < n else (small, factor)
    ideal = np.clip(large * wish, low, high)
    whole = np.floor(ideal + 1e-9).astype(np.int64)
    for stratum in np.argsort(whole - ideal, kind="stable"):
        if whole.sum() < n and whole[stratum] < room[stratum]:
            whole[stratum] += 1
    return whole
