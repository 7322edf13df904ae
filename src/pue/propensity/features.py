"""Few comparable features from anything: standardised columns of a narrow table, principal components of the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
import torch
from scipy import sparse
from sklearn.utils import gen_batches
from torch import Tensor

from pue.core.data import Features, as_matrix, is_bytes, is_image, select
from pue.core.folds import row_hash
from pue.persistence import kept

FIT_ROWS = 10_000
"""Scales and components are those of at most so many rows."""


@kept
@dataclass(frozen=True, eq=False)
class Reduction:
    """x → (n, few) float32: distances between rows mean something."""

    scaler: sklearn.preprocessing.StandardScaler | None
    components: sklearn.decomposition.PCA | sklearn.decomposition.TruncatedSVD | None

    def __call__(self, x: Features) -> Tensor:
        # Piece by piece: all pixels as floats would take four times the data.
        pieces = [self._reduce(as_matrix(x[rows])) for rows in gen_batches(x.shape[0], 8192)]
        return torch.from_numpy(np.concatenate(pieces).astype(np.float32, copy=False))

    def _reduce(self, matrix: Any) -> Any:
        if self.scaler is not None:
            matrix = self.scaler.transform(matrix)
        if self.components is not None:
            return self.components.transform(matrix)
        return matrix.toarray() if sparse.issparse(matrix) else matrix


def fit_reduction(x: Features, *, columns: int = 50, seed: int = 0, one_scale: bool = False) -> Reduction:
    """Standardised columns where there are at most `columns`; else so many principal components, pixels unscaled, and
    so is what has `one_scale`.

    >>> fit_reduction(torch.arange(12.0).reshape(6, 2))(torch.zeros(3, 2)).shape
    torch.Size([3, 2])
    """
    # Rows chosen by content, so that the order of the table does not matter.
    some = torch.from_numpy(np.sort(np.argsort(row_hash(x, seed=seed), kind="stable")[:FIT_ROWS]))
    sample = as_matrix(select(x, some))
    one_scale = one_scale or is_bytes(x) or is_image(x)  # as pixels have
    scaler = (
        None if one_scale else sklearn.preprocessing.StandardScaler(with_mean=not sparse.issparse(sample)).fit(sample)
    )
    if sample.shape[1] <= columns:
        return Reduction(scaler, None)
    kind = sklearn.decomposition.TruncatedSVD if sparse.issparse(sample) else sklearn.decomposition.PCA
    components = kind(min(columns, len(some) - 1), random_state=seed % 2**32)
    return Reduction(scaler, components.fit(sample if scaler is None else scaler.transform(sample)))
