"""Logistic regression of "labeled" on the features (LRe)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from pue.data import Features, PUData, Scenario, as_matrix
from pue.propensity.newton import Design, LinearModel, Regression, probability
from pue.propensity.protocol import PropensityModel

FEW_COLUMNS = 500


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


@dataclass(frozen=True, eq=False)
class LogisticModel:
    """A fitted regression of many columns: x → P(labeled | x) in the rows it saw, or the odds of that."""

    scaler: StandardScaler | None
    regression: LogisticRegression
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
    with np.errstate(invalid="ignore"):
        scaler = (
            None if _is_bytes(x) else StandardScaler(with_mean=not sparse.issparse(matrix)).fit(matrix, None, weight)
        )
    fitted = LogisticRegression(C=C, max_iter=1000).fit(_scale(matrix, scaler), labeled.numpy(), sample_weight=weight)
    return LogisticModel(scaler, fitted)


def _is_bytes(x: Features) -> bool:
    return isinstance(x, Tensor) and x.dtype == torch.uint8


def _scale(matrix: Any, scaler: StandardScaler | None) -> Any:
    return matrix if scaler is None else scaler.transform(matrix)
