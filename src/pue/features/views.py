"""Random views of images, a whole batch at once: a crop, mirrored or not, in other colors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from pue.errors import InvalidInput

_YIQ = torch.tensor([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
"""Brightness and two colors from red, green and blue."""


@dataclass(frozen=True)
class Views:
    """How much a view may differ from its image.

    >>> Views(size=16)(torch.rand(5, 3, 32, 32), torch.Generator()).shape
    torch.Size([5, 3, 16, 16])
    """

    size: int = 24
    """Pixels a side of a view. Small ones are cheap; features are later those of the whole image."""
    smallest: float = 0.2
    """Share of the image that a crop shows at least."""
    flip: bool = True
    color: float = 0.4
    """Brightness, contrast and saturation change by up to this share, in four of five views."""
    hue: float = 0.1
    """Colors turn by up to this share of the circle."""
    gray: float = 0.2
    """Share of views without color."""

    def __post_init__(self) -> None:
        if self.size < 16 or not 0 < self.smallest <= 1 or not 0 <= self.color < 1:
            raise InvalidInput(f"views have at least 16 pixels a side, show a share and keep some color; got {self}.")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        return recolor(crop(x, self, generator), self, generator)


def crop(x: Tensor, views: Views, generator: torch.Generator) -> Tensor:
    """A random part of each image, between 3:4 and 4:3, in the size of a view (bilinear)."""
    draw = torch.rand(5, len(x), generator=generator).to(x.device)
    area = views.smallest + (1 - views.smallest) * draw[0]
    ratio = torch.exp((2 * draw[1] - 1) * math.log(4 / 3))
    width, height = (area * ratio).sqrt().clamp(max=1), (area / ratio).sqrt().clamp(max=1)
    across, down = (2 * draw[2] - 1) * (1 - width), (2 * draw[3] - 1) * (1 - height)
    mirrored = torch.where(draw[4] < 0.5, -width, width) if views.flip else width
    zero = torch.zeros_like(width)
    theta = torch.stack([mirrored, zero, across, zero, height, down], dim=1).view(-1, 2, 3).to(x)
    grid = functional.affine_grid(theta, [len(x), x.shape[1], views.size, views.size], align_corners=False)
    return functional.grid_sample(x, grid, padding_mode="reflection", align_corners=False)


def recolor(x: Tensor, views: Views, generator: torch.Generator) -> Tensor:
    """Brightness, contrast, saturation and hue of each image changed at once, by one matrix and one offset."""
    draw = torch.rand(6, len(x), generator=generator).to(x)
    change = torch.where(draw[0] < 0.8, 1.0, 0.0) * (2 * draw[1:5] - 1)
    bright, contrast, saturation = 1 + views.color * change[:3]
    if x.shape[1] == 3:
        colors = torch.where(draw[5] < views.gray, 0.0, saturation)
        matrix = _turned(colors, 2 * math.pi * views.hue * change[3]) * (bright * contrast)[:, None, None]
        level = x.mean((2, 3)) @ _YIQ[0].to(x)
    else:
        matrix = torch.eye(x.shape[1]).to(x) * (bright * contrast)[:, None, None]
        level = x.mean((1, 2, 3))
    offset = ((1 - contrast) * bright * level)[:, None, None]
    mixed = torch.baddbmm(offset.expand(len(x), x.shape[1], 1), matrix, x.flatten(2))
    return mixed.view(x.shape).clamp_(0, 1)


def _turned(saturation: Tensor, angle: Tensor) -> Tensor:
    """(n, 3, 3): the colors turned and scaled, brightness kept."""
    turn = torch.zeros(len(angle), 3, 3, dtype=angle.dtype, device=angle.device)
    turn[:, 0, 0] = 1
    turn[:, 1, 1] = turn[:, 2, 2] = saturation * angle.cos()
    turn[:, 2, 1] = saturation * angle.sin()
    turn[:, 1, 2] = -turn[:, 2, 1]
    there = _YIQ.to(turn)
    back: Tensor = torch.linalg.inv(there)
    return back @ turn @ there
