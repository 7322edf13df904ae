"""A small MLP for tables, standardisation inside; no batch norm, so a row's score never depends on its neighbours."""

from __future__ import annotations

from itertools import pairwise

from torch import nn

from pue.backbones.inputs import InputSpec, Standardize, kaiming


def tabular(spec: InputSpec, *, width: int = 128, depth: int = 2) -> nn.Module:
    """standardise → [Linear → ReLU] × depth → Linear.

    >>> sum(p.numel() for p in tabular(InputSpec((10,))).parameters())
    18049
    """
    sizes = [spec.size, *[width] * depth]
    layers: list[nn.Module] = [Standardize(spec), nn.Flatten()]
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return kaiming(nn.Sequential(*layers, nn.Linear(width, 1)))
