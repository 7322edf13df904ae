"""What a page shows of probabilities without negatives: precision and recall by threshold, and reliability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
    fold: Any = None,
    draws: int = 200,
    seed: int = 0,
) -> ThresholdCurve:
    """Precision, recall, F1 and the share called positive at ascending thresholds from 0 (None: each hundredth), over
    these worlds; None: what chance does. `fold`: see `estimate_metrics`."""
    thresholds = np.linspace(0, 1, 101) if thresholds is None else thresholds
    worlds = Chance(weights) if worlds is None else worlds
    calls, prior = Calls.of(probabilities, weights, thresholds, fold), worlds.center.prior

    def figures(world: World) -> Array:
        recall, flagged = calls(world)
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

    @classmethod
    def of(cls, scores: Tensor, weights: RowWeights) -> Cells:
        """One for each of the distinct scores, in ascending order."""
        values, place = np.unique(scores.double().numpy(), return_inverse=True)
        return cls(place, len(values), weights)

    def __call__(self, world: World) -> tuple[Array, Array]:
        masses = (world.positive, self.weights.background.clamp(min=0).numpy())
        counted = (
            np.bincount(self.place, mass if world.times is None else mass * world.times, self.n) for mass in masses
        )
        positive, background = (cells / max(cells.sum(), 1e-300) for cells in counted)
        return positive, background


@dataclass(frozen=True, eq=False)
class Calls:
    """Recall and share called positive at some thresholds, in any world."""

    cells: Cells
    """One for each of the distinct scores, in ascending order."""
    lowest: NDArray[np.intp]
    """At each threshold the lowest cell that is called positive."""
    spread: Array
    """At each threshold the standard deviation, from model to model, of the share that is called positive."""

    @classmethod
    def of(cls, scores: Tensor, weights: RowWeights, thresholds: Array, fold: Any = None) -> Calls:
        g = scores.double().numpy()
        values, place = np.unique(g, return_inverse=True)
        none = np.zeros(len(thresholds))
        spread = none if fold is None else spread_between(g, thresholds, weights, np.asarray(fold))
        return cls(Cells(place, len(values), weights), np.searchsorted(values, thresholds), spread)

    def __call__(self, world: World) -> tuple[Array, Array]:
        return self.of_cells(world, *self.cells(world))

    def of_cells(self, world: World, positive: Array, background: Array) -> tuple[Array, Array]:
        """The same, for whoever has counted the cells already."""
        recalls, flags = (np.append(0.0, np.minimum(part[::-1].cumsum(), 1.0)) for part in (positive, background))
        recall, flagged = (upward[self.cells.n - self.lowest] for upward in (recalls, flags))
        if world.model and self.spread.any():
            moved = self.spread > 0
            flagged = np.where(moved, np.clip(flagged + world.model * self.spread, 0, 1), flagged)
            recall = np.where(moved, np.interp(flagged, flags, recalls), recall)
        return possible_recall(recall, world.prior, flagged), flagged


def spread_between(scores: Array, thresholds: Array, weights: RowWeights, fold: NDArray[Any]) -> Array:
    """Standard deviation, between the models of these folds, of the share of rows they call positive. Chance in which
    rows they met is in it too: few models do not tell the two apart."""
    background = weights.background.clamp(min=0).numpy()
    shares = []
    for value in np.unique(fold):
        own, mass = scores[fold == value], background[fold == value]
        if mass.sum() > 0:
            order = np.argsort(own, kind="stable")
            below = np.append(0.0, mass[order].cumsum())[np.searchsorted(own[order], thresholds)]
            shares.append(1 - below / mass.sum())
    return np.std(shares, axis=0, ddof=1) if len(shares) > 1 else np.zeros(len(thresholds))


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
