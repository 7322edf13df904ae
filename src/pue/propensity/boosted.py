"""Boosted trees of "labeled" on the columns of a table, calibrated on rows they have not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from pue.core.data import Features, PUData, Scenario, as_matrix
from pue.core.folds import content_folds, held_out_values, most_folds
from pue.core.regression import Array, Regression
from pue.errors import InvalidInput
from pue.judging.calibration import Sigmoid
from pue.persistence import kept
from pue.propensity.latent import row_mass
from pue.propensity.protocol import PropensityModel


@kept
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
            return BoostedModel((CalibratedTrees(self._grow(matrix, s, mass if weighted else None, seed)),), odds)
        fold = content_folds(data.x, data.labels, folds, seed=seed)
        models = [self._calibrated(matrix, s, mass, fold == k, seed, weighted) for k in range(folds)]
        kept = held_out_values(torch.from_numpy(fold), lambda k: models[k](matrix[fold == k]), folds)
        return BoostedModel(models, odds, _odds(kept, odds)[data.labeled])

    def _calibrated(
        self, x: Any, s: Array, mass: Array, held: NDArray[np.bool_], seed: int, weighted: bool
    ) -> CalibratedTrees:
        # Equal weights are no weights: with them scikit-learn's binning sorts each column once for every bin.
        seen_mass, held_mass = (mass[~held], mass[held]) if weighted else (None, None)
        trees = self._grow(x[~held], s[~held], seen_mass, seed, (x[held], s[held], held_mass))
        return CalibratedTrees(trees, platt(trees.decision_function(x[held]), s[held], mass[held]))

    def _grow(self, x: Any, s: Array, mass: Array | None, seed: int, held: Sequence[Any] | None = None) -> Any:
        trees = sklearn.ensemble.HistGradientBoostingClassifier(
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


def platt(margin: Array, s: Array, mass: Array) -> Sigmoid:
    """A logistic regression of s on the margin, its targets kept off 0 and 1 (Platt 1999).

    The labels are what is predicted here, so both classes are known. `judging.calibration.platt` has the same curve for
    the true classes, of which it knows no negatives.
    """
    labeled, others = float(mass @ s), float(mass @ (1 - s))
    target = np.where(s > 0, (labeled + 1) / (labeled + 2), 1 / (others + 2))
    regression = Regression(np.column_stack([margin, np.ones_like(margin)]), C=np.inf)
    slope, intercept = regression.solve(mass * target, mass * (1 - target), regression.start()).beta
    return Sigmoid(float(slope), float(intercept))


@kept
@dataclass(frozen=True, eq=False)
class CalibratedTrees:
    """P(labeled | x): the calibrated margin of a classifier."""

    classifier: Any
    curve: Sigmoid = Sigmoid(1.0, 0.0)  # noqa: RUF009 (immutable)

    def __call__(self, matrix: Any) -> Tensor:
        return self.curve(torch.from_numpy(self.classifier.decision_function(matrix)))


@kept
@dataclass(frozen=True, eq=False)
class BoostedModel(PropensityModel):
    models: Sequence[CalibratedTrees]
    odds: bool
    held_out: Tensor | None = None

    def __call__(self, x: Features) -> Tensor:
        matrix = as_matrix(x)
        return _odds(torch.from_numpy(np.mean([model(matrix).numpy() for model in self.models], axis=0)), self.odds)


def _odds(p: Tensor, odds: bool) -> Tensor:
    return p / (1 - p).clamp(min=torch.finfo(p.dtype).tiny) if odds else p
