"""`Boosting`: LightGBM's trees on the gradient of the PU risk, stopped where rows held out say so.

The rows are dealt out into folds, and for each fold a sum of trees grows on the others, all of them round by round.
They stop together, where the held-out PU risk, added up over the folds, is least. The score of a row is the mean of the
sums: that was measured better than one sum grown anew on all rows with the number of rounds found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from joblib import effective_n_jobs
from numpy.typing import NDArray
from torch import Tensor

from pue.core.data import Features, PUData, select
from pue.core.folds import content_folds, most_folds, row_hash
from pue.core.randomness import derive
from pue.core.weights import RowWeights
from pue.errors import InvalidInput, require
from pue.persistence import kept
from pue.trees.boosted import BoostedTrees, read_lightgbm
from pue.trees.gradient import Floats, Weighted
from pue.trees.nodes import dense
from pue.trees.rounds import Sum, Table
from pue.trees.thresholds import prior_threshold, start_of

WORK = 200_000
"""About so many rows are gone through in a round by all folds together."""


@kept
@dataclass(frozen=True)
class Boosting:
    """Boosted trees that lower the logistic PU risk, kept non-negative among rows of about the same score.

    Thresholds of splits are random (LightGBM's `extra_trees`): the best ones fit few labeled rows too well.

    >>> from pue.core.weights import uniform
    >>> data = PUData(torch.arange(90.0)[:, None], torch.tensor([0] * 65 + [1] * 25))
    >>> trees = Boosting().fit(data, uniform(data.labels, prior=0.4), seed=0)
    >>> low, high = trees.log_odds([[0.0], [89.0]])
    >>> bool(low < -1 and high > 1)
    True
    """

    called: ClassVar[str] = "boosting"

    rounds: int = 300
    """At most; a round adds one tree to each sum."""
    learning_rate: float = 0.4
    leaves: int = 31
    """At most, in a tree."""
    min_leaf: float = 2
    """Least Σ p (1 − p) over the rows of a leaf: eight rows where p is ½, more where it is surer."""
    l2: float = 10
    """So many rows' curvature pulls the value of a leaf to zero."""
    max_features: float = 0.5
    """The share of the features that a node may ask for."""
    folds: int | Literal["auto"] = "auto"
    """Sums of trees. "auto": 10; on more than 20,000 rows fewer, down to 4. Never more than there are labeled rows."""
    patience: int = 10
    """Rounds without a smaller held-out risk after which none is added."""
    jobs: int = 1
    """Threads; -1: one for each core. The trees are the same."""

    def __post_init__(self) -> None:
        least = {"rounds": 1, "leaves": 2, "patience": 1, **({} if self.folds == "auto" else {"folds": 2})}
        for name, bound in least.items():
            if not (isinstance(vars(self)[name], Integral) and vars(self)[name] >= bound):
                raise InvalidInput(f"{name} must be a whole number, at least {bound}; got {vars(self)[name]!r}.")
        for name in ("learning_rate", "max_features"):
            if not 0 < vars(self)[name] <= 1:
                raise InvalidInput(f"{name} must lie in (0, 1]; got {vars(self)[name]!r}.")
        for name in ("min_leaf", "l2"):
            if not (math.isfinite(vars(self)[name]) and vars(self)[name] >= 0):
                raise InvalidInput(f"{name} must be a number, at least 0; got {vars(self)[name]!r}.")
        if self.jobs == 0:
            raise InvalidInput("jobs must be a number of threads, or -1 for one on each core; got 0.")

    def fit(self, data: PUData, weights: RowWeights, seed: int) -> BoostedTrees:
        """The trees of these rows."""
        return self.learn(data, weights, seed)[0]

    def learn(self, data: PUData, weights: RowWeights, seed: int) -> tuple[BoostedTrees, float]:
        """The trees, and the threshold at which they decide: that of the held-out scores, which no tree has fitted."""
        require("boosting")
        rows = _distinct(data, weights)
        folds = min(self._folds(len(rows.labels)), most_folds(rows.x, rows.labels))
        if folds < 2:  # nothing can be held out
            return self._alone(rows, seed)
        fold = content_folds(rows.x, rows.labels, folds, seed=seed)
        table, start = Table(rows.matrix, self._settings()), start_of(rows.weights)
        sums = [Sum(table, rows.weighted, fold == k, start, derive(seed, k)) for k in range(folds)]
        counts, held_out = self._grow(sums)
        scores = np.empty(len(fold))
        for k, found in enumerate(held_out):
            scores[fold == k] = found
        texts = [each.text(count) for each, count in zip(sums, counts, strict=True)]
        return read_lightgbm(texts, rows.matrix.shape[1], start), prior_threshold(scores, rows.weights)

    def _alone(self, rows: _Rows, seed: int) -> tuple[BoostedTrees, float]:
        """A few rounds on all rows."""
        start = start_of(rows.weights)
        alone = Sum(Table(rows.matrix, self._settings()), rows.weighted, np.zeros(len(rows.labels), bool), start, seed)
        for _ in range(min(self.patience, self.rounds)):
            alone.step()
        trees = read_lightgbm([alone.text(alone.n_trees)], rows.matrix.shape[1], start)
        return trees, prior_threshold(trees.log_odds(rows.matrix), rows.weights)

    def _grow(self, sums: list[Sum]) -> tuple[list[int], list[Floats]]:
        """Round after round until the held-out risk has not fallen for some; the best round's trees and scores."""
        best, since, counts = math.inf, 0, [0] * len(sums)
        scores: list[Floats] = []
        for _ in range(self.rounds):
            for each in sums:
                each.step()
            held_out = [each.held_out() for each in sums]
            risk, since = sum(found for _, found in held_out), since + 1
            if risk < best:
                best, since = risk, 0
                counts, scores = [each.n_trees for each in sums], [found for found, _ in held_out]
            if since >= self.patience:
                break
        return counts, scores

    def _folds(self, n_rows: int) -> int:
        return min(10, max(4, WORK // n_rows)) if self.folds == "auto" else self.folds

    def _settings(self) -> dict[str, Any]:
        """In LightGBM's words."""
        return {
            "learning_rate": self.learning_rate,
            "num_leaves": self.leaves,
            "min_sum_hessian_in_leaf": self.min_leaf,
            "lambda_l2": self.l2,
            "feature_fraction_bynode": self.max_features,
            "extra_trees": True,
            "num_threads": effective_n_jobs(self.jobs),
        }


@dataclass(frozen=True, eq=False)
class _Rows:
    """Distinct rows in an order of their own, each with the weights of its copies: so neither the order of the table
    nor a weight instead of copies changes a tree."""

    x: Features
    labels: Tensor
    """1 where one of the copies is labeled."""
    matrix: NDArray[Any]
    weights: RowWeights
    n: float
    """Rows, copies included."""

    @property
    def weighted(self) -> Weighted:
        """In rows: LightGBM's bounds on leaves then mean what they say."""
        return Weighted(self.n * self.weights.positive.numpy(), self.n * self.weights.background.numpy())


def _distinct(data: PUData, weights: RowWeights) -> _Rows:
    positive, background = weights.positive.numpy(), weights.background.clamp(min=0).numpy()
    used = np.flatnonzero((positive > 0) | (background > 0))  # the others teach nothing
    x = select(data.x, torch.from_numpy(used))
    matrix = dense(x)
    _, first, copy = np.unique(row_hash(x), return_index=True, return_inverse=True)
    labels = np.full(len(first), -1)
    np.maximum.at(labels, copy, data.labels.numpy()[used])
    a, b = (torch.from_numpy(np.bincount(copy, each[used])) for each in (positive, background))
    mass = float(data.mass.numpy()[used].sum())
    return _Rows(x[first], torch.from_numpy(labels), matrix[first], RowWeights(a, b - a), mass)
