"""Few comparable features from anything: standardised columns of a narrow table, principal components of the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.preprocessing import StandardScaler
from sklearn.utils import gen_batches
from torch import Tensor

from pue.data import Features, as_matrix, select
from pue.folds import row_hash

FIT_ROWS = 10_000
"""Scales and components are those of at most so many rows."""


@dataclass(frozen=True, eq=False)
class Reduction:
    """x → (n, few) float32: distances between rows mean something."""

    scaler: StandardScaler | None
    components: PCA | TruncatedSVD | None

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


def fit_reduction(x: Features, *, columns: int = 50, seed: int = 0) -> Reduction:
    """Standardised columns where there are at most `columns`; else so many principal components, pixels unscaled.

    >>> fit_reduction(torch.arange(12.0).reshape(6, 2))(torch.zeros(3, 2)).shape
    torch.Size([3, 2])
    """
    # Rows chosen by content, so that the order of the table does not matter.
    some = torch.from_numpy(np.sort(np.argsort(row_hash(x, seed=seed), kind="stable")[:FIT_ROWS]))
    sample = as_matrix(select(x, some))
    pixels = isinstance(x, Tensor) and (x.dtype == torch.uint8 or x.ndim > 2)  # one scale for all of them
    scaler = None if pixels else StandardScaler(with_mean=not sparse.issparse(sample)).fit(sample)
    if sample.shape[1] <= columns:
        return Reduction(scaler, None)
    parts = min(columns, len(some) - 1)
    components = (
        TruncatedSVD(parts, random_state=seed % 2**32)
        if sparse.issparse(sample)
        else PCA(parts, random_state=seed % 2**32)
    )
    return Reduction(scaler, components.fit(sample if scaler is None else scaler.transform(sample)))
