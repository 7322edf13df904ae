"""What a page shows of probabilities without negatives: precision and recall by threshold, and reliability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pue.core.weights import RowWeights
from pue.errors import InvalidInput
from pue.judging.worlds import Chance, World, Worlds

Array = NDArray[np.float64]
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
    probabilities: Tensor,
    weights: RowWeights,
    *,
    worlds: Worlds | None = None,
    thresholds: Array | None = None,
    draws: int = 200,
    seed: int = 0,
) -> ThresholdCurve:
    """Precision, recall, F1 and the share called positive at ascending thresholds from 0 (None: each hundredth), over
    these worlds; None: what chance does."""
    thresholds = np.linspace(0, 1, 101) if thresholds is None else thresholds
    worlds = Chance(weights) if worlds is None else worlds
    place = np.searchsorted(thresholds, probabilities.double().numpy(), side="right") - 1
    cells, prior = Cells(place, len(thresholds), weights), worlds.center.prior

    def figures(world: World) -> Array:
        recall, flagged = (np.minimum(part[::-1].cumsum()[::-1], 1.0) for part in cells(world))
        recall = possible_recall(recall, world.prior, flagged)
        return np.stack([_ratio(world.prior * recall, flagged, np.nan), recall, flagged])

    values, lows, highs = over(worlds, figures, draws, seed)
    precision, recall, _ = zip(values, lows, highs, strict=True)
    return ThresholdCurve(thresholds, precision, recall, 2 * prior * values[1] / (prior + values[2]), values[2])


def possible_recall(recall: Array, prior: float, flagged: Array) -> Array:
    """The recall, moved to where the positives that are called so are no more than the rows called, and those that are
    not no more than the others.

    >>> possible_recall(np.array([0.9, 0.1]), 0.5, np.array([0.3, 0.8]))
    array([0.6, 0.6])
    """
    most, least = np.minimum(1.0, flagged / prior), np.maximum(0.0, (prior + flagged - 1) / prior)
    return np.asarray(np.clip(recall, least, most), dtype=np.float64)


@dataclass(frozen=True)
class Bin:
    """Rows of similar probability: what was predicted on average and what the labels say."""

    predicted: float
    estimated: float
    low: float
    high: float
    share: float


def reliability(
    probabilities: Tensor, weights: RowWeights, *, worlds: Worlds | None = None, draws: int = 200, seed: int = 0
) -> list[Bin]:
    """Predicted against estimated share of positives, in bins of equally many rows of the population."""
    worlds = Chance(weights) if worlds is None else worlds
    p = probabilities.double().numpy()
    background = weights.background.clamp(min=0).numpy()
    edges = np.unique(np.quantile(p[background > 0], np.linspace(0, 1, BINS + 1)[1:-1]))
    place, n = np.searchsorted(edges, p, side="right"), len(edges) + 1
    mass = np.bincount(place, background, n)
    predicted = np.bincount(place, background * p, n) / np.maximum(mass, 1e-300)
    cells = Cells(place, n, weights)

    def share(world: World) -> Array:
        positive, background = cells(world)
        return _ratio(world.prior * positive, background, 0.0)

    rows = zip(predicted, *over(worlds, share, draws, seed), mass, strict=True)
    return [Bin(*map(float, row)) for row in rows if row[-1] > 0]


@dataclass(frozen=True, eq=False)
class Cells:
    """Shares of the positives and of the population in each cell, in any world.

    A resampling then costs two sums over the rows and no sort.
    """

    place: NDArray[np.intp]
    """The cell of every row."""
    n: int
    weights: RowWeights

    def __call__(self, world: World) -> tuple[Array, Array]:
        masses = (world.positive, self.weights.background.clamp(min=0).numpy())
        counted = (
            np.bincount(self.place, mass if world.times is None else mass * world.times, self.n) for mass in masses
        )
        positive, background = (cells / max(cells.sum(), 1e-300) for cells in counted)
        return positive, background


def _ratio(part: Array, whole: Array, otherwise: float) -> Array:
    found = np.divide(part, whole, out=np.full_like(part, otherwise), where=whole > 0)
    return np.asarray(np.clip(found, 0, 1), dtype=np.float64)


def over(
    worlds: Worlds, figures: Callable[[World], Array], draws: int, seed: int, level: float = 0.95
) -> tuple[Array, Array, Array]:
    """The figures of the center, and the ends of their intervals: these hold the center, and of every family of other
    worlds all but its outermost."""
    if draws < 1:
        raise InvalidInput(f"an interval needs resampled rows: draws must be at least 1; got {draws}.")
    value = figures(worlds.center)
    low = high = value
    for family in worlds.families(draws, seed):
        drawn = np.array([figures(world) for world in family])
        known = np.where(np.isnan(drawn), value, drawn)
        lowest, highest = np.quantile(known, [(1 - level) / 2, (1 + level) / 2], axis=0)
        low, high = np.fmin(low, lowest), np.fmax(high, highest)
    return value, low, high
