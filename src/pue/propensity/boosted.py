"""Boosted trees of "labeled" on the columns of a table, calibrated on rows they have not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from torch import Tensor

from pue.data import Features, PUData, Scenario, as_matrix
from pue.errors import InvalidInput
from pue.folds import content_folds, most_folds
from pue.propensity.latent import row_mass
from pue.propensity.newton import Array, Regression, sigmoid
from pue.propensity.protocol import PropensityModel


@dataclass(frozen=True)
class Boosted:
    """ê = r̂ = P(labeled | x) from scikit-learn's histogram gradient boosting, one model for each fold, averaged.

    A fold that a model has not seen decides when it stops and calibrates it (Platt 1999). Folds go by content, so a
    labeled row and its unlabeled copy are never on two sides. Of the labeled rows the estimates out of their own fold
    are kept. In case-control the pooled probability is turned into odds. Sample weights enter the loss; the smallest
    leaf still counts rows. With too few distinct rows to hold any out, one model is taken as it is.
    """

    folds: int = 5
    iterations: int = 200
    """Trees at most; a model stops when ten more have not helped."""
    learning_rate: float = 0.1
    leaves: int = 15
    smallest_leaf: int = 20

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> PropensityModel:
        if sparse.issparse(data.x):
            raise InvalidInput(
                "boosted trees need a dense table; got a sparse one. Pass X.toarray(), or use Logistic, which takes "
                "sparse tables."
            )
        matrix, s, mass = as_matrix(data.x), data.labeled.numpy().astype(np.float64), row_mass(data)
        weighted = data.sample_weight is not None
        odds = data.scenario is Scenario.CASE_CONTROL
        folds = min(self.folds, most_folds(data.x, data.labels))
        if folds < 2:
            return BoostedModel((Platt(self._grow(matrix, s, mass if weighted else None, seed)),), odds)
        fold = content_folds(data.x, data.labels, folds, seed=seed)
        models = [self._calibrated(matrix, s, mass, fold == k, seed, weighted) for k in range(folds)]
        kept = np.empty(data.n_rows)
        for k, model in enumerate(models):
            kept[fold == k] = model(matrix[fold == k])
        return BoostedModel(models, odds, _odds(kept, odds)[data.labeled])

    def _calibrated(self, x: Any, s: Array, mass: Array, held: NDArray[np.bool_], seed: int, weighted: bool) -> Platt:
        # Equal weights are no weights: with them scikit-learn's binning sorts each column once for every bin.
        seen_mass, held_mass = (mass[~held], mass[held]) if weighted else (None, None)
        trees = self._grow(x[~held], s[~held], seen_mass, seed, (x[held], s[held], held_mass))
        return Platt(trees, *platt(trees.decision_function(x[held]), s[held], mass[held]))

    def _grow(self, x: Any, s: Array, mass: Array | None, seed: int, held: Sequence[Any] | None = None) -> Any:
        trees = HistGradientBoostingClassifier(
            learning_rate=self.learning_rate,
            max_iter=self.iterations,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=self.smallest_leaf,
            early_stopping=held is not None,
            random_state=seed % 2**32,
        )
        if held is None:
            return trees.fit(x, s, mass)
        return trees.fit(x, s, mass, X_val=held[0], y_val=held[1], sample_weight_val=held[2])


def platt(margin: Array, s: Array, mass: Array) -> tuple[float, float]:
    """Slope and intercept of a logistic regression of s on the margin, its targets kept off 0 and 1 (Platt 1999)."""
    labeled, others = float(mass @ s), float(mass @ (1 - s))
    target = np.where(s > 0, (labeled + 1) / (labeled + 2), 1 / (others + 2))
    regression = Regression(np.column_stack([margin, np.ones_like(margin)]), C=np.inf)
    slope, intercept = regression.solve(mass * target, mass * (1 - target), regression.start()).beta
    return float(slope), float(intercept)


@dataclass(frozen=True, eq=False)
class Platt:
    """sigmoid(slope · margin + intercept) of a classifier's margin."""

    classifier: Any
    slope: float = 1.0
    intercept: float = 0.0

    def __call__(self, matrix: Any) -> Array:
        return sigmoid(self.slope * self.classifier.decision_function(matrix) + self.intercept)


@dataclass(frozen=True, eq=False)
class BoostedModel:
    models: Sequence[Platt]
    odds: bool
    held_out: Tensor | None = None
    """ê of the labeled rows it was fitted on, each by the one model that has not seen it."""

    def __call__(self, x: Features) -> Tensor:
        matrix = as_matrix(x)
        return _odds(np.mean([model(matrix) for model in self.models], axis=0), self.odds)


def _odds(probability: Array, odds: bool) -> Tensor:
    p = torch.from_numpy(probability)
    return p / (1 - p).clamp(min=torch.finfo(p.dtype).tiny) if odds else p
