"""Scores of many rows, batch by batch."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from pue.core.data import Features, as_float, gather


@torch.no_grad()
def score(network: nn.Module, x: Features, rows: Tensor | None = None) -> Tensor:
    """Scores of all rows (or of some) in eval mode, on the CPU, in batches of at most 16 million numbers."""
    network.eval()
    like = next(network.parameters())
    order = layout(network) if x.ndim == 4 else torch.contiguous_format
    rows = torch.arange(x.shape[0]) if rows is None else rows
    size = max(1, min(4096, 2**24 // max(1, math.prod(x.shape[1:]))))
    parts = [
        network(as_float(gather(x, part).to(like.device), like.dtype).contiguous(memory_format=order)).cpu()
        for part in torch.split(rows, size)
    ]
    return torch.cat(parts) if parts else torch.empty(0, dtype=like.dtype)


def layout(network: nn.Module) -> torch.memory_format:
    """How images lie in memory: convolutions are faster by a fifth where a pixel's channels are neighbors."""
    convolves = any(isinstance(module, nn.Conv2d) for module in network.modules())
    return torch.channels_last if convolves else torch.contiguous_format
