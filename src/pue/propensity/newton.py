"""What a logistic regression of labels looks at, and what it says: the solver itself is `core/regression.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
import torch
from scipy import sparse
from torch import Tensor

from pue.core.data import Features, as_matrix, is_bytes
from pue.core.regression import Array
from pue.errors import InvalidInput
from pue.persistence import kept
from pue.propensity.protocol import PropensityModel

MOST_COLUMNS = 5000
"""A Newton step solves a system of this many equations: 0.2 GB."""


@kept
@dataclass(frozen=True, eq=False)
class Design:
    """From features to the matrix of a regression: standardised columns (bytes become shares of 255) and a one."""

    scaler: sklearn.preprocessing.StandardScaler | None

    @classmethod
    def of(cls, x: Features, sample_weight: Tensor | None) -> Design:
        columns = int(np.prod(x.shape[1:]))
        if columns > MOST_COLUMNS:
            raise InvalidInput(
                f"this regression solves for all columns at once, at most {MOST_COLUMNS}; got {columns}. Select or "
                "project columns first, or use a network: DeepSAREM or LBE."
            )
        if is_bytes(x):
            return cls(None)
        weight = None if sample_weight is None else sample_weight.numpy()
        scaler = sklearn.preprocessing.StandardScaler(with_mean=not sparse.issparse(x))
        return cls(scaler.fit(_float64(x), None, weight))

    def __call__(self, x: Features) -> Any:
        matrix = _float64(x)
        if self.scaler is not None:
            matrix = self.scaler.transform(matrix)
        one = np.ones((matrix.shape[0], 1))
        if sparse.issparse(matrix):
            return sparse.hstack([matrix, one], format="csr")
        return np.asfortranarray(np.hstack([matrix, one]))


@kept
@dataclass(frozen=True, eq=False)
class LinearModel(PropensityModel):
    """x → sigmoid(zᵀβ), or the odds of that, exp(zᵀβ)."""

    design: Design
    coefficient: Array
    odds: bool = False

    def __call__(self, x: Features) -> Tensor:
        return probability(torch.from_numpy(self.design(x) @ self.coefficient), self.odds)


def probability(scores: Tensor, odds: bool) -> Tensor:
    """sigmoid(g), or its odds exp(g), kept finite: an outlier among new rows is to be clipped, not refused.

    >>> probability(torch.zeros(1), odds=False), probability(torch.zeros(1), odds=True)
    (tensor([0.5000], dtype=torch.float64), tensor([1.], dtype=torch.float64))
    """
    return scores.double().clamp(max=700).exp() if odds else scores.double().sigmoid()


def _float64(x: Features) -> Any:
    return as_matrix(x).astype(np.float64, copy=False)
