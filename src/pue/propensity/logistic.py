"""Logistic regression of "labeled" on the features (LRe)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sklearn
import torch
from scipy import sparse
from torch import Tensor

from pue.core.data import Features, PUData, Scenario, as_matrix, is_bytes
from pue.core.regression import Regression
from pue.persistence import kept
from pue.propensity.newton import Design, LinearModel, probability
from pue.propensity.protocol import PropensityModel

FEW_COLUMNS = 500


@kept
@dataclass(frozen=True)
class Logistic:
    """ê from an L2-regularised logistic regression of s on standardised features; labeled negatives count as unlabeled.

    It estimates r(x) = P(labeled | x) = e(x) P(positive | x), which is e(x) only where classes do not overlap. In
    case-control the pooled probability p is turned into odds, p / (1 − p): the labeled rows stand *beside* the sample.
    """

    C: float = 1.0
    """Inverse strength of the penalty, as in scikit-learn."""

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> PropensityModel:
        odds = data.scenario is Scenario.CASE_CONTROL
        return replace(labeled_probability(data.x, data.labeled, data.sample_weight, C=self.C), odds=odds)


@kept
@dataclass(frozen=True, eq=False)
class LogisticModel(PropensityModel):
    """A fitted regression of many columns: x → P(labeled | x) in the rows it saw, or the odds of that."""

    scaler: sklearn.preprocessing.StandardScaler | None
    regression: sklearn.linear_model.LogisticRegression
    odds: bool = False

    def __call__(self, x: Features) -> Tensor:
        scores = self.regression.decision_function(_scale(as_matrix(x), self.scaler))
        return probability(torch.from_numpy(scores), self.odds)


def labeled_probability(
    x: Features, labeled: Tensor, sample_weight: Tensor | None, *, C: float
) -> LogisticModel | LinearModel:
    """The regression of `labeled` on the rows as they are.

    Newton's method is exact to the last digits, so that weights and repeated rows agree; it needs few columns, and
    double precision. Many columns (images) stay float32, which spares eight bytes a pixel.
    """
    if int(np.prod(x.shape[1:])) <= FEW_COLUMNS:
        with np.errstate(invalid="ignore"):  # the variance of a constant may come out as −1e-20; its scale is one then
            design = Design.of(x, sample_weight)
        s = labeled.numpy().astype(np.float64)
        mass = np.ones_like(s) if sample_weight is None else sample_weight.numpy()
        regression = Regression(design(x), C=C)
        found = regression.solve(mass * s, mass * (1 - s), regression.start(), tol=1e-14)
        return LinearModel(design, found.beta)
    matrix, weight = as_matrix(x), None if sample_weight is None else sample_weight.numpy()
    # Pixels share one scale; standardising those that are almost always black would make noise loud.
    scaler = None if is_bytes(x) else sklearn.preprocessing.StandardScaler(with_mean=not sparse.issparse(matrix))
    if scaler is not None:
        with np.errstate(invalid="ignore"):
            scaler.fit(matrix, None, weight)
    regression = sklearn.linear_model.LogisticRegression(C=C, max_iter=1000)
    return LogisticModel(scaler, regression.fit(_scale(matrix, scaler), labeled.numpy(), sample_weight=weight))


def _scale(matrix: Any, scaler: sklearn.preprocessing.StandardScaler | None) -> Any:
    return matrix if scaler is None else scaler.transform(matrix)
