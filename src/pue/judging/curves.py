"""What a page shows of probabilities without negatives: precision and recall by threshold, and reliability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pue.weights import RowWeights

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ThresholdCurve:
    """Estimates at each threshold, (values, lows, highs); flagged has no interval worth drawing."""

    thresholds: Array
    precision: tuple[Array, Array, Array]
    recall: tuple[Array, Array, Array]
    f1: Array
    flagged: Array


def threshold_curve(
    probabilities: Tensor,
    weights: RowWeights,
    *,
    thresholds: Array | None = None,
    level: float = 0.95,
    draws: int = 200,
    seed: int = 0,
) -> ThresholdCurve:
    """Precision, recall, F1 and the share called positive at ascending thresholds from 0 (None: each hundredth)."""
    thresholds = np.linspace(0, 1, 101) if thresholds is None else thresholds
    points = len(thresholds)
    place = np.searchsorted(thresholds, probabilities.double().numpy(), side="right") - 1
    prior = float(weights.positive.sum())
    cells = _Cells(place, points, weights)
    recall, flagged = _above(cells())
    rng = np.random.default_rng(seed)
    drawn = [_above(cells(rng.poisson(1.0, len(place)))) for _ in range(draws)]
    recalls, flags = (np.array([pair[k] for pair in drawn]) for k in (0, 1))
    ends = [(1 - level) / 2, (1 + level) / 2]
    return ThresholdCurve(
        thresholds,
        (precision := _precision(prior, recall, flagged), *_around(precision, _precision(prior, recalls, flags), ends)),
        (recall, *_around(recall, recalls, ends)),
        2 * prior * recall / (prior + flagged),
        flagged,
    )


@dataclass(frozen=True)
class Bin:
    """Rows of similar probability: what was predicted on average and what the labels say."""

    predicted: float
    estimated: float
    low: float
    high: float
    share: float


def reliability(
    probabilities: Tensor, weights: RowWeights, *, bins: int = 10, level: float = 0.95, draws: int = 200, seed: int = 0
) -> list[Bin]:
    """Predicted against estimated share of positives, in bins of equally many rows of the population."""
    p = probabilities.double().numpy()
    background = weights.background.clamp(min=0).numpy()
    edges = np.unique(np.quantile(p[background > 0], np.linspace(0, 1, bins + 1)[1:-1]))
    place, n = np.searchsorted(edges, p, side="right"), len(edges) + 1
    mass = np.bincount(place, background, n)
    predicted = np.bincount(place, background * p, n) / np.maximum(mass, 1e-300)
    cells, prior = _Cells(place, n, weights), float(weights.positive.sum())
    rng = np.random.default_rng(seed)
    value = _share(prior, *cells())
    drawn = np.array([_share(prior, *cells(rng.poisson(1.0, len(place)))) for _ in range(draws)])
    low, high = _around(value, drawn, [(1 - level) / 2, (1 + level) / 2])
    rows = zip(predicted, value, low, high, mass, strict=True)
    return [Bin(*map(float, row)) for row in rows if row[-1] > 0]


@dataclass(frozen=True, eq=False)
class _Cells:
    """Shares of the positives and of the population in each cell, for rows counted so many times."""

    place: NDArray[np.intp]
    n: int
    weights: RowWeights

    def __call__(self, times: NDArray[np.int64] | None = None) -> tuple[Array, Array]:
        masses = (self.weights.positive.numpy(), self.weights.background.clamp(min=0).numpy())
        counted = (np.bincount(self.place, mass if times is None else mass * times, self.n) for mass in masses)
        positive, background = (cells / max(cells.sum(), 1e-300) for cells in counted)
        return positive, background


def _above(cells: tuple[Array, Array]) -> tuple[Array, Array]:
    positive, background = cells
    return np.minimum(positive[::-1].cumsum()[::-1], 1.0), np.minimum(background[::-1].cumsum()[::-1], 1.0)


def _precision(prior: float, recall: Array, flagged: Array) -> Array:
    found = np.divide(prior * recall, flagged, out=np.full_like(recall, np.nan), where=flagged > 0)
    return np.asarray(np.clip(found, 0, 1), dtype=np.float64)


def _share(prior: float, positive: Array, background: Array) -> Array:
    found = np.divide(prior * positive, background, out=np.zeros_like(positive), where=background > 0)
    return np.asarray(np.clip(found, 0, 1), dtype=np.float64)


def _around(value: Array, drawn: Array, ends: list[float]) -> tuple[Array, Array]:
    known = np.where(np.isnan(drawn), value, drawn)
    low, high = np.quantile(known, ends, axis=0)
    return np.fmin(low, value), np.fmax(high, value)
