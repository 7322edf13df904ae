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
