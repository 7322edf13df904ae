"""What a page shows of probabilities without negatives: precision and recall by threshold, and reliability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pue.core.weights import RowWeights

Array = NDArray[np.float64]
Figures = Callable[[NDArray[np.int64] | None], Array]
"""Rows counted so many times → numbers."""
BINS = 10


@dataclass(frozen=True, eq=False)
class ThresholdCurve:
    """Estimates at each threshold, (values, lows, highs); flagged has no interval worth drawing."""

    thresholds: Array
    precision: tuple[Array, Array, Array]
    recall: tuple[Array, Array, Array]
    f1: Array
    flagged: Array


def threshold_curve(
    probabilities: Tensor, weights: RowWeights, *, thresholds: Array | None = None, draws: int = 200, seed: int = 0
) -> ThresholdCurve:
    """Precision, recall, F1 and the share called positive at ascending thresholds from 0 (None: each hundredth)."""
    thresholds = np.linspace(0, 1, 101) if thresholds is None else thresholds
    place = np.searchsorted(thresholds, probabilities.double().numpy(), side="right") - 1
    cells, prior = Cells(place, len(thresholds), weights), float(weights.positive.sum())

    def figures(times: NDArray[np.int64] | None) -> Array:
        recall, flagged = (np.minimum(part[::-1].cumsum()[::-1], 1.0) for part in cells(times))
        return np.stack([_ratio(prior * recall, flagged, np.nan), recall, flagged])

    values, lows, highs = _resampled(figures, len(place), draws, seed)
    precision, recall, _ = zip(values, lows, highs, strict=True)
    return ThresholdCurve(thresholds, precision, recall, 2 * prior * values[1] / (prior + values[2]), values[2])


@dataclass(frozen=True)
class Bin:
    """Rows of similar probability: what was predicted on average and what the labels say."""

    predicted: float
    estimated: float
    low: float
    high: float
    share: float


def reliability(probabilities: Tensor, weights: RowWeights, *, draws: int = 200, seed: int = 0) -> list[Bin]:
    """Predicted against estimated share of positives, in bins of equally many rows of the population."""
    p = probabilities.double().numpy()
    background = weights.background.clamp(min=0).numpy()
    edges = np.unique(np.quantile(p[background > 0], np.linspace(0, 1, BINS + 1)[1:-1]))
    place, n = np.searchsorted(edges, p, side="right"), len(edges) + 1
    mass = np.bincount(place, background, n)
    predicted = np.bincount(place, background * p, n) / np.maximum(mass, 1e-300)
    cells, prior = Cells(place, n, weights), float(weights.positive.sum())

    def share(times: NDArray[np.int64] | None) -> Array:
        positive, background = cells(times)
        return _ratio(prior * positive, background, 0.0)

    rows = zip(predicted, *_resampled(share, len(p), draws, seed), mass, strict=True)
    return [Bin(*map(float, row)) for row in rows if row[-1] > 0]


@dataclass(frozen=True, eq=False)
class Cells:
    """Shares of the positives and of the population in each cell, for rows counted so many times.

    A resampling then costs two sums over the rows and no sort.
    """

    place: NDArray[np.intp]
    """The cell of every row."""
    n: int
    weights: RowWeights

    def __call__(self, times: NDArray[np.int64] | None = None, positive: Array | None = None) -> tuple[Array, Array]:
        """`positive`: w⁺ of another reading of the labels."""
        own = self.weights.positive.numpy() if positive is None else positive
        masses = (own, self.weights.background.clamp(min=0).numpy())
        counted = (np.bincount(self.place, mass if times is None else mass * times, self.n) for mass in masses)
        positive, background = (cells / max(cells.sum(), 1e-300) for cells in counted)
        return positive, background


def _ratio(part: Array, whole: Array, otherwise: float) -> Array:
    found = np.divide(part, whole, out=np.full_like(part, otherwise), where=whole > 0)
    return np.asarray(np.clip(found, 0, 1), dtype=np.float64)


def _resampled(figures: Figures, n_rows: int, draws: int, seed: int) -> tuple[Array, Array, Array]:
    """The figures of all rows, and the ends of their 95 % intervals."""
    rng = np.random.default_rng(seed)
    value = figures(None)
    drawn = np.array([figures(rng.poisson(1.0, n_rows)) for _ in range(draws)])
    return value, *around(value, drawn, 0.95)


def around(value: Array, drawn: Array, level: float) -> tuple[Array, Array]:
    """The interval of each value by what resampled rows gave instead; it holds the value itself."""
    known = np.where(np.isnan(drawn), value, drawn)
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.fmin(low, value), np.fmax(high, value)
