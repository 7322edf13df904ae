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
from pue.propensity.protocol import PropensityModel


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
    """A fitted regression: x → P(labeled | x) in the rows it saw, or the odds of that."""

    scaler: StandardScaler | None
    regression: LogisticRegression
    odds: bool = False

    def __call__(self, x: Features) -> Tensor:
        probability = self.regression.predict_proba(_scale(as_matrix(x), self.scaler))[:, 1]
        p = torch.from_numpy(probability.astype(np.float64))
        return p / (1 - p).clamp(min=torch.finfo(p.dtype).tiny) if self.odds else p


def labeled_probability(x: Features, labeled: Tensor, sample_weight: Tensor | None, *, C: float) -> LogisticModel:
    """The regression of `labeled` on the rows as they are."""
    matrix = as_matrix(x)
    # Newton's method is exact to the last digits, so that weights and repeated rows agree; it needs few columns, and
    # double precision. Many columns (images) stay float32, which spares eight bytes a pixel.
    few = matrix.shape[1] <= 500
    if few:
        matrix = matrix.astype(np.float64, copy=False)
    weight = None if sample_weight is None else sample_weight.numpy()
    # Pixels share one scale; standardising those that are almost always black would make noise loud.
    with np.errstate(invalid="ignore"):  # the variance of a constant may come out as −1e-20; its scale is one then
        scaler = (
            None if _is_bytes(x) else StandardScaler(with_mean=not sparse.issparse(matrix)).fit(matrix, None, weight)
        )
    solver = "lbfgs" if not few else "newton-cg" if sparse.issparse(matrix) else "newton-cholesky"
    regression = LogisticRegression(C=C, solver=solver, tol=1e-8 if few else 1e-4, max_iter=1000)
    return LogisticModel(scaler, regression.fit(_scale(matrix, scaler), labeled.numpy(), sample_weight=weight))


def _is_bytes(x: Features) -> bool:
    return isinstance(x, Tensor) and x.dtype == torch.uint8


def _scale(matrix: Any, scaler: StandardScaler | None) -> Any:
    return matrix if scaler is None else scaler.transform(matrix)
