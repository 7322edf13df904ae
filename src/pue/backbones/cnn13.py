"""The "13-layer CNN" of the nnPU line of work for 32×32 images: nine convolutions and three linear layers."""

from __future__ import annotations

from torch import nn

from pue.backbones.inputs import InputSpec, kaiming

_CONVOLUTIONS = [*[(96, 3, 1)] * 2, (96, 3, 2), *[(192, 3, 1)] * 2, (192, 3, 2), (192, 3, 1), (192, 1, 1), (10, 1, 1)]
"""Channels, kernel and stride of each."""


def cnn13(spec: InputSpec) -> nn.Module:
    """Convolutions with bias, each followed by batch norm and ReLU, then 1000-1000-1.

    >>> sum(p.numel() for p in cnn13(InputSpec((3, 32, 32))).parameters())
    3015255
    """
    channels = spec.image_channels("cnn13")
    layers: list[nn.Module] = []
    for outputs, kernel, stride in _CONVOLUTIONS:
        convolution = nn.Conv2d(channels, outputs, kernel, stride, padding=kernel // 2)
        layers += [convolution, nn.BatchNorm2d(outputs), nn.ReLU()]
        channels = outputs
    height, width = (-(-side // 4) for side in spec.shape[1:])  # two strides of two
    features = channels * height * width
    head = [nn.Linear(features, 1000), nn.ReLU(), nn.Linear(1000, 1000), nn.ReLU(), nn.Linear(1000, 1)]
    return kaiming(nn.Sequential(*layers, nn.Flatten(), *head))
