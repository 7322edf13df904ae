"""What two tools share where the same method is timed: network, epochs, batches of 256 labeled and 256 other rows."""

from __future__ import annotations

from itertools import pairwise

from torch import nn

EPOCHS = 10
BATCH = 256


def six_layers(columns: int) -> nn.Module:
    """The nnPU papers' "6-layer MLP", 300 wide, without batch norm."""
    sizes = [columns, 300, 300, 300, 300]
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], 1))
