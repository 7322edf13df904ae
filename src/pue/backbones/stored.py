"""An encoder that was trained already: how it is kept, what it gives for images, and how a network begins with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Self

import torch
from torch import Tensor, nn

from pue.backbones.encoder import Encoder, require_images
from pue.backbones.inputs import InputSpec
from pue.core.data import as_float
from pue.errors import InvalidInput
from pue.persistence import NetworkParts, kept_with_network

BLOCK = 500
"""Images at a time."""


def _build(widths: tuple[int, ...], spec: InputSpec, *, seed: int) -> nn.Module:
    return Encoder(spec.shape[0], widths)


@kept_with_network(NetworkParts("encoder", "widths", "spec", _build))
@dataclass(frozen=True, eq=False)
class StoredEncoder:
    """Images of one kind → features, (n, widths[-1]) float32."""

    encoder: nn.Module
    widths: tuple[int, ...]
    spec: InputSpec
    """Of the images it was trained on; others may have another height and width."""
    mirror: bool
    """Whether features are the mean of those of the image and of its mirror image."""
    key: str
    """Hash of the images and settings it came from."""
    facts: dict[str, str | float] = field(default_factory=dict)
    """What made it and what it cost, for people."""

    @torch.no_grad()
    def __call__(self, images: Tensor) -> Tensor:
        """Features of images (n, channels, height, width), bytes or floats in [0, 1]."""
        require_images(images)
        if images.shape[1] != self.spec.shape[0]:
            raise InvalidInput(
                f"this encoder was trained on images of {self.spec.shape[0]} channel(s); these have {images.shape[1]}."
            )
        encoder = self.encoder.eval()
        found = torch.empty(len(images), self.widths[-1])
        for start in range(0, len(images), BLOCK):
            x = as_float(images[start : start + BLOCK]).contiguous(memory_format=torch.channels_last)
            seen = encoder(x)
            found[start : start + BLOCK] = (seen + encoder(x.flip(3))) / 2 if self.mirror else seen
        return found


def load_encoder(folder: str | PathLike[str]) -> StoredEncoder:
    """What `pue features fit` wrote."""
    from pue.persistence.model import load  # when it is needed: a classifier is imported without it

    found = load(folder)
    if not isinstance(found, StoredEncoder):
        raise InvalidInput(f"{folder} holds a {type(found).__name__}, no encoder. Make one with `pue features fit`.")
    return found


@dataclass(frozen=True)
class Pretrained:
    """A network that begins with a stored encoder and ends in one linear layer: `backbone=Pretrained("features/")`.

    Frozen, only that layer learns; features then are computed anew in every epoch, and it is far quicker to compute
    them once and to train on the table. A classifier that is to be saved takes the folder's name, "features/", and is
    loaded with `pue.load(path, backbone=Pretrained("features/"))`.
    """

    folder: str
    frozen: bool = False

    def __call__(self, spec: InputSpec) -> nn.Module:
        spec.image_channels(str(self.folder))
        return StartedFrom(load_encoder(Path(self.folder)).encoder, frozen=self.frozen)


class StartedFrom(nn.Module):
    """An encoder and a linear score."""

    def __init__(self, encoder: nn.Module, *, frozen: bool) -> None:
        super().__init__()
        assert isinstance(encoder, Encoder)
        self.encoder, self.frozen = encoder.requires_grad_(not frozen), frozen
        self.norm = nn.BatchNorm1d(encoder.width)
        self.head = nn.Linear(encoder.width, 1)

    def train(self, mode: bool = True) -> Self:
        """What is frozen keeps its statistics too."""
        super().train(mode)
        self.encoder.train(mode and not self.frozen)
        return self

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.head(self.norm(self.encoder(x)))
        return scores[:, 0]
