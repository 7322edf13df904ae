"""Labeled rows against rows that are likely positive: what tells them apart is the labeling, not the class.

Labels show P(labeled | x) = e(x) f(x), f(x) = P(positive | x); who divides the two wrongly gives enormous weights to
the labeled rows that look negative. Here f only has to *choose* rows, as many as the prior allows. In each round:

    g   PU least squares with the weights 1/e, out of fold, averaged over each row's nearest rows (structure)
    +   the rows of the highest g, a share π of the population
    e   a logistic regression of labeled rows against those, out of fold

Three rounds, from e = const. All strengths are chosen by held-out rows and labels. For features in which classes form
regions that lines can part: a self-supervised encoder's, or a table's columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pue.core.data import Features, PUData, Scenario, population_rows, select
from pue.core.folds import content_folds
from pue.errors import InvalidInput
from pue.persistence import kept
from pue.propensity.crossfit import possible_folds
from pue.propensity.features import Reduction, fit_reduction
from pue.propensity.newton import Array, Regression, Solution, probability
from pue.propensity.protocol import PropensityModel
from pue.propensity.structure import graph_rows, network_of

RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Of the least squares, on columns of variance one."""
STRENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1)
"""Of the logistic regression, as scikit-learn's C."""
SHARES = (0.1, 0.2, 0.4, 0.7, 1.0)
"""Of the common rate in ê, so that a labeled row which looks like no likely positive gets no enormous weight."""
HOPS = 2
"""How often scores are averaged over neighbors."""
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

    def __post_init__(self) -> None:
        if self.rounds < 1 or self.folds < 2 or self.components < 1 or self.neighbors < 1:
            raise InvalidInput(f"rounds, components and neighbors must be at least 1, folds at least 2; got {self}.")

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> LikelyModel:
        rows = graph_rows(data.x, population_rows(data.labels, data.scenario))
        near = network_of(select(data.x, rows), self.neighbors).near
        reduction = fit_reduction(data.x, columns=self.components, seed=seed)
        fold = content_folds(data.x, data.labels, min(self.folds, possible_folds(data)), seed=seed)
        problem = _Problem.of(data, rows, reduction, fold, prior)
        e = np.full(len(problem.labeled), problem.rate)
        for _ in range(self.rounds):
            score = smoothed(problem.scores(e), near)
            betas, share, e = problem.labeling(problem.likely(score))
        return LikelyModel(reduction, betas, problem.odds, share, problem.rate, torch.from_numpy(e))


@kept
@dataclass(frozen=True, eq=False)
class LikelyModel(PropensityModel):
    """ê of new rows: that of the mean of the folds' regressions."""

    reduction: Reduction
    betas: Array
    """(folds, columns + 1)."""
    odds: bool
    share: float
    """Of the common rate in ê."""
    common: float
    held_out: Tensor | None = None

    def __call__(self, x: Features) -> Tensor:
        found = probability(torch.from_numpy(_with_one(self.reduction(x)) @ self.betas.mean(0)), self.odds)
        return (1 - self.share) * found + self.share * self.common

    @property
    def description(self) -> str:
        return f"labeled against likely positives (common rate {self.share:.0%})"


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

    def labeling(self, likely: NDArray[np.bool_]) -> tuple[Array, float, Array]:
        """The regressions of the folds, the share of the common rate, and ê of the labeled rows out of fold."""
        z = np.asfortranarray(np.concatenate([self.labeled, self.population[likely]]))
        n, s = len(self.labeled), np.arange(len(z)) < len(self.labeled)
        mass = np.concatenate([self.labeled_mass, self.mass[likely]])
        fold = np.concatenate([self.labeled_fold, self.fold[likely]])
        e, betas = np.empty((len(STRENGTHS), len(z))), []
        for k in range(int(self.fold.max()) + 1):
            path = _path(z, mass * s * (fold != k), mass * ~s * (fold != k))
            e[:, fold == k] = [self._chance(found.margin[fold == k]) for found in path]
            betas.append([found.beta for found in path])
        common = self.rate
        mixed = np.stack([(1 - share) * e + share * common for share in SHARES])
        level = (mixed[:, :, n:] @ mass[n:] / mass[n:].sum())[:, :, None]
        surprise = np.log(mixed[:, :, :n] / level) @ mass[:n]
        share, best = np.unravel_index(int(surprise.argmax()), surprise.shape)
        return np.array([path[best] for path in betas]), SHARES[share], mixed[share, best, :n]

    def _chance(self, margin: Array) -> Array:
        found: Array = probability(torch.from_numpy(margin), self.odds).numpy()
        return found


def smoothed(score: Array, near: Sequence[Tensor]) -> Array:
    """Scores averaged over each row's nearest rows, twice.

    >>> smoothed(np.array([0.0, 4.0, 0.0]), [torch.tensor([[1], [0], [1]])])
    array([0., 4., 0.])
    """
    index = torch.cat(list(near), dim=1).numpy()
    for _ in range(HOPS):
        score = score[index].mean(axis=1)
    return score


def _path(z: Array, positive: Array, negative: Array) -> list[Solution]:
    """The solutions for all strengths, each started at the one before."""
    found: list[Solution] = []
    at = None
    for strength in STRENGTHS:
        regression = Regression(z, C=strength)
        at = regression.solve(positive, negative, at or regression.start(), tol=1e-9)
        found.append(at)
    return found


def _mean(rows: Array, weight: Array) -> Array:
    found: Array = weight @ rows / weight.sum()
    return found


def _with_one(z: Tensor) -> Array:
    return np.hstack([z.numpy().astype(np.float64), np.ones((len(z), 1))])
