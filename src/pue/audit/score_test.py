"""Intervals of ratios of totals from a stratified sample: all values that a score test does not reject.

A quantity is θ = (n₀ + Σ nₕ Yₕ) / (d₀ + Σ dₕ Yₕ), Yₕ the positives of stratum h, so that "θ is the truth" is one linear
statement about the shares pₕ = Yₕ / Nₕ,

    Σ aₕ pₕ = t,    aₕ = Nₕ (nₕ − θ dₕ),    t = θ d₀ − n₀.

The test compares Σ aₕ p̂ₕ − t with its standard deviation *under the statement*: at the shares p̃ of highest likelihood
among those that fulfil it. A stratum in which no positive was found has p̂ = 0, and an estimated variance of zero with
it, but not p̃ = 0 where the statement asks for more: so small counts do no harm. With one stratum this is Wilson's
interval, with two and a difference Miettinen and Nurminen's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CENSUS = 1e12
"""Worth of a stratum that was looked at as a whole: nothing is left to chance."""
FREE = 0.5
"""How much of an answer a free share takes. One would be right at p̂; p̃ fulfils the statement and errs on the safe side
already. Settled on development tables (docs/lab/audit.md)."""
STEPS, FINE = 32, 18
"""Halvings of the search for a multiplier, and for an end of an interval."""


@dataclass(frozen=True, eq=False)
class Ratio:
    """θ as a function of the positives in the strata."""

    over: Array
    """nₕ, strata in the last axis."""
    under: Array
    """dₕ"""
    over_known: Array | float
    """n₀"""
    under_known: Array | float
    """d₀"""

    @staticmethod
    def stacked(ratios: Iterable[Ratio]) -> Ratio:
        """Several quantities as one, in an axis before that of the samples."""
        over, under, over_known, under_known = zip(
            *((r.over, r.under, r.over_known, r.under_known) for r in ratios), strict=True
        )
        return Ratio(*(np.array(v)[:, None] for v in (over, under, over_known, under_known)))

    def of(self, totals: Array) -> Array:
        """θ, given the positives of the strata (last axis); not a number where nothing stands below the line."""
        above = self.over_known + (totals * self.over).sum(-1)
        below = self.under_known + (totals * self.under).sum(-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(below > 0, above / below, np.nan))

    def statement(self, theta: Array, size: Array) -> tuple[Array, Array]:
        """(a, t) of Σ aₕ pₕ = t, which says that the quantity is θ."""
        a = size * (self.over - theta[..., None] * self.under)
        return a, np.asarray(theta * self.under_known - self.over_known)


def effective(n: Array, size: Array) -> Array:
    """How many rows drawn *with* replacement n rows without are worth: n (N − 1) / (N − n).

    >>> effective(np.array([10.0, 5.0]), np.array([1001.0, 5.0])).round(2)
    array([1.009e+01, 1.000e+12])
    """
    left = np.maximum(size - n, 0)
    return np.where(left > 0, np.minimum(n * (size - 1) / np.maximum(left, 1e-300), CENSUS), CENSUS)


def constrained(n: Array, yes: Array, pull: Array) -> Array:
    """p̃ at a multiplier: the root in [0, 1] of y/p − (n − y)/(1 − p) = pull, pull = λ a."""
    b = n + pull
    root = np.sqrt(np.maximum(b * b - 4 * pull * yes, 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(b >= 0, 2 * yes / (b + root), (b - root) / (2 * pull))
    return np.asarray(np.clip(np.nan_to_num(p), 0, 1))


def statistic(a: Array, t: Array, n: Array, yes: Array, worth: Array | None = None) -> Array:
    """z of the statement Σ aₕ pₕ = t; infinite where no shares fulfil it. Strata with n = 0 may hold any share.

    The variance of a stratum is p̃ (1 − p̃) / worth; by default worth = n.
    """
    seen = n > 0
    free = np.where(seen, 0, a)
    share = np.where(seen, yes / np.maximum(n, 1e-300), 0)
    surplus = (a * share).sum(-1) - t
    # what was not looked at takes as much of the difference as it can
    surplus = surplus + np.clip(-surplus, np.minimum(free, 0).sum(-1), np.maximum(free, 0).sum(-1))
    target = (a * share).sum(-1) - surplus
    a = np.where(seen, a, 0)
    possible = (target >= np.minimum(a, 0).sum(-1) - 1e-9) & (target <= np.maximum(a, 0).sum(-1) + 1e-9)
    p = _fulfilling(a, target, n, yes)
    sd = np.sqrt((a * a * p * (1 - p) / np.maximum(n if worth is None else worth, 1e-300)).sum(-1))
    scale = 1e-9 * np.maximum(np.abs(a).sum(-1), 1e-300)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = surplus / sd
    z = np.where(possible & ~np.isnan(z), z, np.copysign(np.inf, surplus))
    return np.asarray(np.where(np.abs(surplus) <= scale, 0, z))


def _fulfilling(a: Array, target: Array, n: Array, yes: Array) -> Array:
    """The shares of highest likelihood with Σ a p = target: bisection on the multiplier, for Σ a p falls with it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = np.where(a != 0, n / np.abs(a), 0)
    unit = np.maximum(np.where(n < CENSUS, unit, 0).max(-1), 1e-12)
    low, high = np.full(target.shape, -1.0), np.full(target.shape, 1.0)
    for _ in range(STEPS):
        middle = (low + high) / 2
        multiplier = unit * middle / (1 - np.abs(middle))
        above = (a * constrained(n, yes, multiplier[..., None] * a)).sum(-1) > target
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    middle = (low + high) / 2
    multiplier = unit * middle / (1 - np.abs(middle))
    return constrained(n, yes, multiplier[..., None] * a)


def interval(ratio: Ratio, size: Array, n: Array, yes: Array, z: float) -> tuple[Array, Array, Array]:
    """θ̂ and the ends of the values with |statistic| ≤ z, for counts with the strata in the last axis.

    >>> share = Ratio(np.ones(1), np.zeros(1), 0.0, 1e9)
    >>> value, low, high = interval(share, np.array([1e9]), np.array([10.0]), np.array([0.0]), 1.96)
    >>> float(value), float(low), float(high.round(3))
    (0.0, 0.0, 0.278)
    """
    share = np.where(n > 0, yes / np.maximum(n, 1e-300), 0.5)
    value = ratio.of(share * size)
    drawn = np.where(n > 0, effective(n, size), 0)
    # k shares fitted under one statement leave k − 1 free: each takes its part of an answer from the variance
    k = np.maximum(((ratio.over != 0) | (ratio.under != 0)).sum(-1, keepdims=True), 1)
    worth = drawn * np.maximum(1 - FREE * (1 - 1 / k) / np.maximum(n, 1), 0.5)

    def kept(theta: Array) -> NDArray[np.bool_]:
        return np.asarray(np.abs(statistic(*ratio.statement(theta, size), drawn, drawn * share, worth)) <= z)

    inside = np.stack([np.nan_to_num(value, nan=0.5)] * 2)
    extreme = np.stack([np.zeros(np.shape(value)), np.ones(np.shape(value))])
    outside = extreme
    for _ in range(FINE):
        middle = (inside + outside) / 2
        inner = kept(middle)
        inside, outside = np.where(inner, middle, inside), np.where(inner, outside, middle)
    low, high = np.where(kept(extreme), extreme, inside)
    return value, low, high


def wilson(size: float, n: float, yes: float, z: float) -> tuple[float, float, float]:
    """The same for the share of one stratum, in closed form.

    >>> [round(v, 3) for v in wilson(1e9, 10, 0, 1.96)]
    [0.0, 0.0, 0.278]
    """
    worth, p = float(effective(np.array(n), np.array(size))), yes / n
    center, scale = p + z * z / (2 * worth), 1 + z * z / worth
    half = z * np.sqrt(p * (1 - p) / worth + z * z / (4 * worth * worth))
    return p, max(0.0, float((center - half) / scale)), min(1.0, float((center + half) / scale))
