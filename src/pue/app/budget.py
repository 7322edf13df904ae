"""A budget of K rows to look at: which ones, and how many of them should be positive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pue.errors import InvalidInput

Array = NDArray[np.float64]
DRAWS = 2_000
NORMAL = 1.959964
"""Standard deviations from the middle to an end of a 95 % interval."""
EDGE = 1e-9
"""Keeps a ratio from a division by zero."""
Doubt = tuple[float, float]
"""What is left of the hits at the low end of a 95 % interval, and of the misses at its high end, as shares of what is
expected; (1, 1): the chances are right."""


@dataclass(frozen=True)
class Hits:
    """Positives among the chosen rows, with a 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Chosen:
    """The rows that a budget is spent on."""

    rows: NDArray[np.bool_]
    """Of all rows."""
    threshold: float
    """The lowest probability among them."""
    known: int
    """Rows that had a label and were passed over."""
    tied: int
    """Rows of the lowest probability between which the lot decided."""
    hits: Hits

    def as_dict(self) -> dict[str, Any]:
        return {"known": self.known, "tied": self.tied, "expected_hits": asdict(self.hits)}


def spend(
    probabilities: Array,
    k: int,
    *,
    known: NDArray[np.bool_] | None = None,
    chances: Array | None = None,
    doubt: Doubt = (1.0, 1.0),
    seed: int = 0,
) -> Chosen:
    """The K most probable rows of those that are not `known`; between equal ones the lot decides.

    `chances` are those of a positive among rows without a label, if they are not the probabilities; `doubt` is how far
    they may be off.

    >>> found = spend(np.array([0.9, 0.8, 0.2, 0.1]), 2, known=np.array([True, False, False, False]))
    >>> found.rows.tolist(), found.hits.value
    ([False, True, True, False], 1.0)
    """
    if k < 1:
        raise InvalidInput(f"a budget is a number of rows, at least 1; got {k}.")
    free = np.arange(len(probabilities)) if known is None else np.flatnonzero(~known)
    if len(free) == 0:
        raise InvalidInput("every row has a label already: there is nothing to spend a budget on. Pass other rows.")
    p = probabilities[free]
    if len(free) > k and p.min() == p.max():
        raise InvalidInput(
            f"all {len(free):,} rows have the same probability, {p[0]:.3f}: a budget would be a lottery. Check that "
            "these rows have the columns the model was trained on, filled in."
        )
    order = np.lexsort((np.random.default_rng(seed).random(len(p)), -p))[:k]
    lowest = float(p[order[-1]])
    rows = np.zeros(len(probabilities), dtype=bool)
    rows[free[order]] = True
    cut = int((p == lowest).sum())
    tied = cut if cut > int((p[order] == lowest).sum()) else 0
    q = (probabilities if chances is None else chances)[rows]
    return Chosen(rows, lowest, len(probabilities) - len(free), tied, expected_hits(q, doubt, seed))


def expected_hits(chances: Array, doubt: Doubt = (1.0, 1.0), seed: int = 0) -> Hits:
    """Σ q, and an interval: hits, or misses, may be fewer by a factor drawn from a normal of two halves whose 2.5 %
    ends are `doubt`, and rows are positive or not by chance.

    >>> expected_hits(np.full(100, 0.5))
    Hits(value=50.0, low=40.0, high=60.0)
    >>> expected_hits(np.full(100, 0.99), (0.5, 1.0)).low < 60
    True
    """
    rng = np.random.default_rng(seed)
    step = rng.standard_normal(DRAWS) / NORMAL
    left = np.clip(1 - np.abs(step) * (1 - np.where(step < 0, *doubt)), 0, 1)
    q = np.clip(chances, 0, 1)
    hits, misses = (_sum(left, part) for part in (q, 1 - q))
    mean, variance = np.where(step < 0, hits, (len(q) - misses[0], misses[1]))
    drawn = np.clip(np.round(mean + np.sqrt(variance) * rng.standard_normal(DRAWS)), 0, len(chances))
    low, high = np.quantile(drawn, [0.025, 0.975], method="nearest")
    value = float(chances.sum())
    return Hits(value, min(abs(float(low)), value), max(float(high), value))  # abs: zero has no sign here


def _sum(left: Array, chances: Array) -> tuple[Array, Array]:
    """Mean and variance of the number of events whose chances are `left` times these."""
    return left * chances.sum(), np.maximum(left * chances.sum() - left**2 * (chances**2).sum(), 0)


def doubt_of(metrics: Mapping[str, Any] | None) -> Doubt:
    """How far a model's chances may be off: as its estimated precision may be, in proportion. (Not in log-odds: where
    chances are near 1 no shift of them says that a third may be wrong.)

    >>> low, high = doubt_of({"values": {"precision": {"value": 0.8, "low": 0.5, "high": 0.9}}})
    >>> round(low, 3), round(high, 3)
    (0.625, 0.5)
    """
    found = ((metrics or {}).get("values") or {}).get("precision") or {}
    value, low, high = (found.get(name) for name in ("value", "low", "high"))
    if value is None or low is None or high is None:
        return 1.0, 1.0
    return min(low / max(value, EDGE), 1.0), min((1 - high) / max(1 - value, EDGE), 1.0)
