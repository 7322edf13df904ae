"""The "6-layer MLP" of the nnPU line of work: five weight layers, the input counted as the sixth."""

from __future__ import annotations

from itertools import pairwise

from torch import nn

from pue.backbones.inputs import InputSpec, kaiming


def mlp(spec: InputSpec, *, width: int = 300, depth: int = 4) -> nn.Module:
    """input → [Linear without bias → BatchNorm → ReLU] × depth → Linear.

    >>> sum(p.numel() for p in mlp(InputSpec((784,))).parameters())
    507901
    """
    sizes = [spec.size, *[width] * depth]
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs, bias=False), nn.BatchNorm1d(outputs), nn.ReLU()]
    return kaiming(nn.Sequential(*layers, nn.Linear(width, 1)))
