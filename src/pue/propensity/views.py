"""Points whose neighbors look alike: the columns of a table, or of images their pixels and their edges."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

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
    """x → (n, few) float32, of the values themselves, of the edges of images, or of their looks."""

    of: Literal["values", "edges", "looks"]
    reduction: Reduction

    def __call__(self, x: Features) -> Tensor:
        seen = {"values": lambda rows: rows, "edges": edges, "looks": looks}[self.of](x)
        return self.reduction(seen)


def fit_views(x: Features, *, seed: int = 0) -> tuple[View, ...]:
    """What rows are compared by: values, and beside them the edges of images. What is near in both is alike.

    >>> len(fit_views(torch.rand(20, 1, 12, 12))), len(fit_views(torch.rand(20, 3)))
    (2, 1)
    """
    values = View("values", fit_reduction(x, seed=seed))
    if not has_edges(x):
        return (values,)
    return values, View("edges", fit_reduction(edges(x), seed=seed, one_scale=True))


def has_edges(x: Features) -> bool:
    return is_image(x) and x.ndim == 4 and min(x.shape[2:]) >= SMALLEST


def looks(x: Tensor) -> Tensor:
    """What tells one image from all others: pixels without brightness and contrast, and edges where there are some."""
    pixels = contrast(x)
    return torch.cat([pixels, edges(x)], dim=1) if has_edges(x) else pixels


def contrast(x: Tensor) -> Tensor:
    """Pixels of every image, brightness and contrast taken out: mean zero, length one.

    >>> contrast(torch.tensor([[[[0.0, 2.0]]], [[[5.0, 6.0]]]]))
    tensor([[-0.7071,  0.7071],
            [-0.7071,  0.7071]])
    """
    rows = as_float(x).flatten(1)
    return functional.normalize(rows - rows.mean(1, keepdim=True), dim=1)


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
