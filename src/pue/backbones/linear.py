"""A linear score: standardised inputs, one weight each, one bias."""

from __future__ import annotations

from torch import nn

from pue.backbones.inputs import InputSpec, Standardize


def linear(spec: InputSpec) -> nn.Module:
    """g(x) = wᵀz + b with z the standardised input, starting at zero.

    >>> sum(p.numel() for p in linear(InputSpec((10,))).parameters())
    11
    """
    layer = nn.Linear(spec.size, 1)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return nn.Sequential(Standardize(spec), nn.Flatten(), layer)
