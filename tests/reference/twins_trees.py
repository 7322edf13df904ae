"""Slow twins of what trees minimise, in plain loops."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence


def leaf_risk(positive: Sequence[float], negative: Sequence[float], *, steps: int = 20_000) -> float:
    """min over v in [0, 1] of Σ w⁺ (1 − v)² + max(0, Σ w⁻) v²: nnPU with the squared loss, by trying values of v."""
    a, b = sum(positive), max(0.0, sum(negative))
    return min(a * (1 - v) ** 2 + b * v**2 for v in (step / steps for step in range(steps + 1)))


def gini_gain(positive: Sequence[float], negative: Sequence[float]) -> float:
    """What scikit-learn adds up over both children and maximises: −t · (1 − Σ_class share²), no sign looked at."""
    a, b = sum(positive), sum(negative)
    total = a + b
    return -total * (1 - (a * a + b * b) / (total * total)) if total else math.nan


def splits(x: Sequence[float], min_leaf: int) -> list[float]:
    """Thresholds between neighbors that leave so many rows on both sides."""
    ordered = sorted(set(x))
    middles = [(low + high) / 2 for low, high in itertools.pairwise(ordered)]
    return [t for t in middles if min(sum(v <= t for v in x), sum(v > t for v in x)) >= min_leaf]


def side(values: Sequence[float], x: Sequence[float], threshold: float, *, left: bool) -> list[float]:
    return [value for value, where in zip(values, x, strict=True) if (where <= threshold) == left]


def split_risk(x: Sequence[float], positive: Sequence[float], negative: Sequence[float], threshold: float) -> float:
    """The risk of both children."""
    return sum(
        leaf_risk(side(positive, x, threshold, left=left), side(negative, x, threshold, left=left))
        for left in (True, False)
    )


def logistic_pu_risk(scores: Sequence[float], positive: Sequence[float], background: Sequence[float]) -> float:
    """Σ w⁺ log(1 + e^−g) + Σ (b − w⁺) log(1 + e^g), row by row: no correction."""
    rows = zip(scores, positive, background, strict=True)
    return sum(a * math.log(1 + math.exp(-g)) + (b - a) * math.log(1 + math.exp(g)) for g, a, b in rows)


def banded_gradient(
    scores: Sequence[float], positive: Sequence[float], background: Sequence[float], bands: int
) -> list[float]:
    """The gradient of the two parts, row by row; the negative one is left out in bands of the probability in which w⁺
    outweighs the background."""
    probability = [1 / (1 + math.exp(-g)) for g in scores]
    band = [min(int(p * bands), bands - 1) for p in probability]
    rest = [sum(b - a for a, b, own in zip(positive, background, band, strict=True) if own == k) for k in range(bands)]
    return [
        -a * (1 - p) + ((b - a) * p if rest[own] >= 0 else 0.0)
        for a, b, p, own in zip(positive, background, probability, band, strict=True)
    ]


def missing_split_risk(
    x: Sequence[float], positive: Sequence[float], negative: Sequence[float], threshold: float, *, missing_left: bool
) -> float:
    """The risk of both children of a split where rows without the feature go to one side."""
    left = [missing_left if math.isnan(where) else where <= threshold for where in x]
    return sum(
        leaf_risk(
            [a for a, own in zip(positive, left, strict=True) if own == side],
            [b for b, own in zip(negative, left, strict=True) if own == side],
        )
        for side in (True, False)
    )
