"""Networks of fully connected layers: a linear score, the MLP of the papers, and a small one for tables."""

from __future__ import annotations

from itertools import pairwise

from torch import nn

from pue.backbones.inputs import InputSpec, Standardize, kaiming


def linear(spec: InputSpec) -> nn.Module:
    """g(x) = wᵀz + b with z the standardised input, starting at zero.

    >>> sum(p.numel() for p in linear(InputSpec((10,))).parameters())
    11
    """
    layer = nn.Linear(spec.size, 1)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return nn.Sequential(Standardize(spec), nn.Flatten(), layer)


def mlp(spec: InputSpec, *, width: int = 300, depth: int = 4) -> nn.Module:
    """input → [Linear without bias → BatchNorm → ReLU] × depth → Linear: the "6-layer MLP" of the nnPU line of work,
    which has five weight layers and counts the input as the sixth.

    >>> sum(p.numel() for p in mlp(InputSpec((784,))).parameters())
    507901
    """
    sizes = [spec.size, *[width] * depth]
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs, bias=False), nn.BatchNorm1d(outputs), nn.ReLU()]
    return kaiming(nn.Sequential(*layers, nn.Linear(width, 1)))


def tabular(spec: InputSpec, *, width: int = 128, depth: int = 2) -> nn.Module:
    """standardise → [Linear → ReLU] × depth → Linear; no batch norm, so a row's score never depends on its neighbours.

    >>> sum(p.numel() for p in tabular(InputSpec((10,))).parameters())
    18049
    """
    sizes = [spec.size, *[width] * depth]
    layers: list[nn.Module] = [Standardize(spec), nn.Flatten()]
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return kaiming(nn.Sequential(*layers, nn.Linear(width, 1)))
