"""Points whose neighbors look alike: the columns of a table, or of images their pixels and their edges."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from pue.core.data import Features, as_float, is_image
from pue.persistence import kept
from pue.propensity.features import Reduction, fit_reduction

CELLS, DIRECTIONS = 7, 8
SMALLEST = 8
"""Images of fewer pixels a side have no edges worth a view of their own."""
BLOCK = 1_000


@kept
@dataclass(frozen=True, eq=False)
class View:
    """x → (n, few) float32, of the values themselves or of their edges."""

    of_edges: bool
    reduction: Reduction

    def __call__(self, x: Features) -> Tensor:
        return self.reduction(edges(x) if self.of_edges else x)


def fit_views(x: Features, *, seed: int = 0) -> tuple[View, ...]:
    """What rows are compared by: values, and beside them the edges of images. What is near in both is alike.

    >>> len(fit_views(torch.rand(20, 1, 12, 12))), len(fit_views(torch.rand(20, 3)))
    (2, 1)
    """
    values = View(False, fit_reduction(x, seed=seed))
    if not (is_image(x) and x.ndim == 4 and min(x.shape[2:]) >= SMALLEST):
        return (values,)
    return values, View(True, fit_reduction(edges(x), seed=seed, one_scale=True))


def edges(x: Tensor) -> Tensor:
    """How strong the edges of every direction are in each of about 7 × 7 overlapping cells; length one (Dalal, Triggs
    2005, without their blocks)."""
    return torch.cat([_edges(block) for block in torch.split(x, BLOCK)])


def _edges(x: Tensor) -> Tensor:
    gray = functional.pad(as_float(x).mean(1, keepdim=True), (1, 1, 1, 1), mode="replicate")
    across = gray[:, :, 1:-1, 2:] - gray[:, :, 1:-1, :-2]
    down = gray[:, :, 2:, 1:-1] - gray[:, :, :-2, 1:-1]
    angles = [2 * math.pi * k / DIRECTIONS for k in range(DIRECTIONS)]
    strength = torch.cat([torch.relu(across * math.cos(a) + down * math.sin(a)) for a in angles], dim=1)
    cell = [max(1, round(side / CELLS)) for side in x.shape[2:]]
    pooled = functional.avg_pool2d(
        strength, [2 * side for side in cell], cell, [side // 2 for side in cell], count_include_pad=False
    )
    return functional.normalize(pooled.flatten(1), dim=1)
