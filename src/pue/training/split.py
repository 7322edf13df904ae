"""Training rows and held-out rows, and what a weighting becomes on a part of the rows."""

from __future__ import annotations

import torch
from torch import Tensor

from pue.data import PUData
from pue.folds import content_holdout
from pue.weights import RowWeights


def split_rows(data: PUData, share: float, seed: int) -> tuple[Tensor, Tensor | None]:
    """Training rows and, where a share is to be held out, the held-out rows; copies of a row stay together."""
    if not share:
        return torch.arange(data.n_rows), None
    held_out = torch.from_numpy(content_holdout(data.x, data.labels, share, seed=seed))
    return torch.nonzero(~held_out)[:, 0], torch.nonzero(held_out)[:, 0]


def restrict(weights: RowWeights, labels: Tensor, rows: Tensor) -> RowWeights:
    """The weights of some rows; in each stratum w⁺ and the background keep the mass they had."""
    positive, background = weights.positive[rows], weights.background[rows]
    for value in (1, 0, -1):
        here, everywhere = labels[rows] == value, labels == value
        positive[here] *= _ratio(weights.positive[everywhere].sum(), positive[here].sum())
        background[here] *= _ratio(weights.background[everywhere].sum(), background[here].sum())
    return RowWeights(positive, background - positive)


def _ratio(whole: Tensor, part: Tensor) -> float:
    return float(whole / part) if part else 1.0
