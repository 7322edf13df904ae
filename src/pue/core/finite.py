"""Numbers that no model can use: infinite ones, and those so large that scores overflow on the way."""

from __future__ import annotations

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from pue.core.data import Features
from pue.errors import ScoreIsNoNumber

LARGEST = 1e30
"""No measurement is larger; markers of missing values are (±3.4e38 in rasters). Products of such numbers leave float32,
and their squares come close to it."""


def large_cells(x: Features) -> tuple[list[int], list[int]]:
    """Rows and columns of numbers beyond `LARGEST`; NaN and infinity do not count.

    >>> large_cells(torch.tensor([[0.0, 1.0], [-3.4e38, float("nan")]]))
    ([1], [0])
    """
    if sparse.issparse(x):
        found = x.tocoo()
        large = (abs(found.data) > LARGEST) & np.isfinite(found.data)
        return np.unique(found.row[large]).tolist(), np.unique(found.col[large]).tolist()
    if not x.is_floating_point() or x.numel() == 0:
        return [], []
    low, high = torch.aminmax(x)  # NaN where one is NaN, which is in no range
    if float(low) >= -LARGEST and float(high) <= LARGEST:
        return [], []
    flat = x.flatten(1)
    places = torch.nonzero(((flat > LARGEST) | (flat < -LARGEST)) & torch.isfinite(flat))
    return np.unique(places[:, 0].numpy()).tolist(), np.unique(places[:, 1].numpy()).tolist()


def non_finite_rows(x: Features, *, missing: bool = False) -> list[int]:
    """Rows that hold infinity or, unless values may be `missing`, NaN.

    >>> non_finite_rows(torch.tensor([[0.0], [float("nan")]])), non_finite_rows(torch.tensor([[1.0]]))
    ([1], [])
    """
    if sparse.issparse(x):
        found = x.tocoo()
        bad = np.isinf(found.data) if missing else ~np.isfinite(found.data)
        rows: list[int] = np.unique(found.row[bad]).tolist()
        return rows
    wrong = torch.isinf(x) if missing else ~torch.isfinite(x)
    return [int(row) for row in torch.nonzero(wrong.flatten(1).any(dim=1))[:, 0]]


def require_finite_scores(scores: Tensor, first: int = 0) -> None:
    """No decision rests on NaN, which is neither above nor below a threshold; `first` is the number of the first row.

    >>> require_finite_scores(torch.tensor([0.5, -2.0]))
    """
    if not bool(torch.isfinite(scores).all()):
        wrong = ~torch.isfinite(scores).reshape(len(scores), -1).all(dim=1)
        raise ScoreIsNoNumber([first + int(row) for row in torch.nonzero(wrong)[:, 0]])
