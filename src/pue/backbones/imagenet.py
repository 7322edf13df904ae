"""The paper's image networks behind the scaling of its code: gray becomes three equal channels, then ImageNet's mean
and spread."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from pue.backbones.cnn13 import cnn13
from pue.backbones.inputs import InputSpec
from pue.backbones.resnet50 import resnet50
from pue.errors import InvalidInput


class ImageNetScaling(nn.Module):
    """Images in [0, 1] with one or three channels → three channels, less ImageNet's mean, over its spread."""

    mean: Tensor
    std: Tensor

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406], dtype=dtype)[:, None, None])
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225], dtype=dtype)[:, None, None])

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.std  # one channel broadcasts to three


def cnn13_imagenet(spec: InputSpec) -> nn.Module:
    """`cnn13` on images scaled as in Dist-PU's code.

    >>> sum(p.numel() for p in cnn13_imagenet(InputSpec((3, 32, 32))).parameters())
    3015255
    """
    return nn.Sequential(ImageNetScaling(spec.dtype), cnn13(_three_channels(spec, "cnn13_imagenet")))


def resnet50_imagenet(spec: InputSpec) -> nn.Module:
    """`resnet50` on images scaled as in Dist-PU's code; not pretrained.

    >>> sum(p.numel() for p in resnet50_imagenet(InputSpec((1, 224, 224))).parameters())
    23510081
    """
    return nn.Sequential(ImageNetScaling(spec.dtype), resnet50(_three_channels(spec, "resnet50_imagenet")))


def _three_channels(spec: InputSpec, name: str) -> InputSpec:
    channels = spec.image_channels(name)
    if channels not in (1, 3):
        raise InvalidInput(f"backbone {name!r} needs images with one or three channels; these have {channels}.")
    return replace(spec, shape=(3, *spec.shape[1:]))
