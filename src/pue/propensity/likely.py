"""Labeled rows among rows that are likely positive: what tells them apart is the labeling, not the class.

Labels show P(labeled | x) = e(x) f(x), f(x) = P(positive | x); who divides the two wrongly gives enormous weights to
the labeled rows that look negative. Here f only has to *choose* rows, as many as the prior allows. In each round:

    g   PU least squares with the weights 1/e, out of fold, averaged over each row's nearest rows (structure)
    +   the rows of the highest g, a share π of the population
    e   labeled rows per positive one among the nearest hundred of both, in the view of the graph

Three rounds, from e = const. The ridge of g is chosen by held-out rows. For features in which classes form regions:
a self-supervised encoder's, or a table's columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pue.core.data import Features, PUData, Scenario, population_rows, select
from pue.core.folds import content_folds, row_hash
from pue.errors import InvalidInput
from pue.persistence import kept
from pue.propensity.crossfit import possible_folds
from pue.propensity.features import Reduction, fit_reduction
from pue.propensity.graph import nearest
from pue.propensity.protocol import PropensityModel
from pue.propensity.structure import graph_rows, network_of
from pue.propensity.views import View

RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Of the least squares, on columns of variance one."""
ROWS = 10
"""So many rows of the common rate are counted with the nearest, for a hundred may hold no labeled one."""
HOPS = 2
"""How often scores are averaged over neighbors."""
Array = NDArray[np.float64]
Rows = NDArray[np.int64]


@kept
@dataclass(frozen=True)
class Likely:
    """ê of labeled rows against those rows of the population that are likely positive."""

    rounds: int = 3
    folds: int = 4
    components: int = 200
    """Principal components of a wider table."""
    neighbors: int = 10
    counted: int = 100
    """Of labeled and likely rows, how many around a row say what its e is."""

    def __post_init__(self) -> None:
        if min(self.rounds, self.components, self.neighbors, self.counted) < 1 or self.folds < 2:
            raise InvalidInput(
                f"rounds, components, neighbors and counted must be at least 1, folds at least 2; got {self}."
            )

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> LikelyModel:
        rows = graph_rows(data.x, population_rows(data.labels, data.scenario))
        network = network_of(select(data.x, rows), self.neighbors)
        reduction = fit_reduction(data.x, columns=self.components, seed=seed)
        fold = content_folds(data.x, data.labels, min(self.folds, possible_folds(data)), seed=seed)
        problem = _Problem.of(data, rows, reduction, fold, prior)
        labeled = select(data.x, data.labeled)
        order = np.argsort(row_hash(labeled), kind="stable")  # a row and its copies are equally near: content decides
        own = tuple(view(labeled)[torch.from_numpy(order)] for view in network.views)
        e = np.full(len(problem.labeled), problem.rate)
        for _ in range(self.rounds):
            chosen = problem.likely(smoothed(problem.scores(e), network.near))
            around = Around.of(network.views, own, network.points, order, chosen, problem, self.counted)
            e[order] = around.held_out()
        return LikelyModel(around, torch.from_numpy(e))


@kept
@dataclass(frozen=True, eq=False)
class Around:
    """Labeled rows, the first `n_labeled`, and likely positives, as points of each view."""

    views: tuple[View, ...]
    points: tuple[Tensor, ...]
    mass: Array
    n_labeled: int
    rate: float
    """The common one."""
    odds: bool
    """Whether labeled rows are none of the population, so that likely ones are all positives (case-control)."""
    counted: int

    def __post_init__(self) -> None:
        """A model may come from a folder that somebody altered: a neighbor must be a row that has a mass."""
        fits = all(len(points) == len(self.mass) for points in self.points)
        if not (fits and 0 <= self.n_labeled <= len(self.mass) and self.counted >= 1):
            raise InvalidInput("the points of labeled and likely rows do not fit their masses. Fit the model again.")

    @classmethod
    def of(
        cls,
        views: tuple[View, ...],
        own: tuple[Tensor, ...],
        points: tuple[Tensor, ...],
        order: Rows,
        chosen: NDArray[np.bool_],
        problem: _Problem,
        counted: int,
    ) -> Around:
        likely = torch.from_numpy(chosen)
        both = tuple(torch.cat([mine, others[likely]]) for mine, others in zip(own, points, strict=True))
        mass = np.concatenate([problem.labeled_mass[order], problem.mass[chosen]])
        return cls(views, both, mass, len(problem.labeled), problem.rate, problem.odds, counted)

    def held_out(self) -> Array:
        """e of the labeled rows, none of which counts itself."""
        first = slice(self.n_labeled)
        return self.share([nearest(points[first], points, self.counted, themselves=True) for points in self.points])

    def at(self, x: Features) -> Array:
        pairs = zip(self.views, self.points, strict=True)
        return self.share([nearest(view(x), points, self.counted) for view, points in pairs])

    def share(self, near: Sequence[Tensor]) -> Array:
        """(labeled + 10 · rate) / (positive + 10) among the rows `near`, each view's counted alike.

        >>> around = Around((), (), np.ones(4), 1, 0.5, True, 2)
        >>> around.share([torch.tensor([[0, 1], [2, 3]])])
        array([0.54545455, 0.41666667])
        """
        index = torch.cat(list(near), dim=1).numpy()
        mass = self.mass[index] / len(near)
        labeled = (mass * (index < self.n_labeled)).sum(1)
        positive = mass.sum(1) - labeled if self.odds else mass.sum(1)
        found: Array = np.minimum((labeled + ROWS * self.rate) / (positive + ROWS), 1.0)
        return found


@kept
@dataclass(frozen=True, eq=False)
class LikelyModel(PropensityModel):
    """ê of a row: labeled rows per positive one around it."""

    around: Around
    held_out: Tensor | None = None

    def __call__(self, x: Features) -> Tensor:
        return torch.from_numpy(self.around.at(x))

    @property
    def description(self) -> str:
        return f"labeled among the nearest {self.around.counted} likely positives"


@dataclass(frozen=True, eq=False)
class _Problem:
    """Rows of the population and labeled rows, as matrices whose last column is one."""

    labeled: Array
    labeled_mass: Array
    labeled_fold: Rows
    population: Array
    mass: Array
    fold: Rows
    known: NDArray[np.bool_]
    """Rows of the population that are labeled themselves: positive, whatever their score."""
    prior: float
    odds: bool

    @classmethod
    def of(cls, data: PUData, rows: Tensor, reduction: Reduction, fold: Rows, prior: float) -> _Problem:
        own = torch.nonzero(data.labeled)[:, 0]
        scale = data.mass[population_rows(data.labels, data.scenario)].sum() / data.mass[rows].sum()
        return cls(
            _with_one(reduction(select(data.x, own))), data.mass[own].numpy(), fold[own.numpy()],
            _with_one(reduction(select(data.x, rows))), (data.mass[rows] * scale).numpy(), fold[rows.numpy()],
            data.labeled[rows].numpy(), prior, data.scenario is Scenario.CASE_CONTROL,
        )  # fmt: skip

    @property
    def rate(self) -> float:
        """e, if all positives had the same."""
        return min(1.0, float(self.labeled_mass.sum() / (self.prior * self.mass.sum())))

    def scores(self, e: Array) -> Array:
        """g of the population, each row by least squares that did not see it; the ridge of the smallest PU risk."""
        weight = self.labeled_mass / e
        found, risks = np.empty((len(RIDGES), len(self.mass))), np.zeros(len(RIDGES))
        for k in range(int(self.fold.max()) + 1):
            here, own = self.fold == k, self.labeled_fold == k
            mass, z = self.mass * ~here, self.population
            square, target = (z * mass[:, None]).T @ z / mass.sum(), mass @ z / mass.sum()
            target = 2 * self.prior * _mean(self.labeled[~own], weight[~own]) - target
            for i, ridge in enumerate(RIDGES):
                beta = np.linalg.solve(square + ridge * np.eye(len(square)), target)
                g = found[i, here] = z[here] @ beta
                gain = 4 * self.prior * weight[own] @ (self.labeled[own] @ beta) / weight.sum()
                risks[i] += self.mass[here] @ (g**2 + 2 * g) / self.mass.sum() - gain
        best: Array = found[int(risks.argmin())]
        return best

    def likely(self, score: Array) -> NDArray[np.bool_]:
        """The unlabeled rows of the highest scores that, with labeled ones, make up a share π of the population."""
        wanted = self.prior * self.mass.sum() - self.mass[self.known].sum()
        order = np.argsort(-np.where(self.known, -np.inf, score), kind="stable")
        free = np.where(self.known, 0.0, self.mass)[order]
        chosen = np.zeros(len(score), dtype=bool)
        chosen[order[(free.cumsum() - free < wanted) & (free > 0)]] = True
        return chosen


def smoothed(score: Array, near: Sequence[Tensor]) -> Array:
    """Scores averaged over each row's nearest rows, twice.

    >>> smoothed(np.array([0.0, 4.0, 0.0]), [torch.tensor([[1], [0], [1]])])
    array([0., 4., 0.])
    """
    index = torch.cat(list(near), dim=1).numpy()
    for _ in range(HOPS):
        score = score[index].mean(axis=1)
    return score


def _mean(rows: Array, weight: Array) -> Array:
    found: Array = weight @ rows / weight.sum()
    return found


def _with_one(z: Tensor) -> Array:
    return np.hstack([z.numpy().astype(np.float64), np.ones((len(z), 1))])
