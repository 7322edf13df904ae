"""A slow copy of a network, for methods whose rows are taught by one."""

from __future__ import annotations

import torch
from torch import nn


@torch.no_grad()
def follow(slow: nn.Module, quick: nn.Module, decay: float) -> None:
    """slow ← decay · slow + (1 − decay) · quick, batch norm's statistics included; counts are copied.

    >>> slow, quick = nn.Linear(1, 1), nn.Linear(1, 1)
    >>> _ = nn.init.zeros_(slow.weight), nn.init.ones_(quick.weight)
    >>> follow(slow, quick, 0.75)
    >>> slow.weight.item()
    0.25
    """
    source = quick.state_dict()
    for name, tensor in slow.state_dict().items():
        if tensor.is_floating_point():
            tensor.lerp_(source[name], 1 - decay)
        else:
            tensor.copy_(source[name])
