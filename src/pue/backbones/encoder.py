"""A small network for images of 20 to 64 pixels a side whose output is a vector: what self-supervision trains.

Its first layer is not learnt: it whitens 2 × 2 pixels, as in Jordan's speed records on CIFAR-10 (2024). Three groups of
convolutions follow, the first of each before its pooling; the vector is the mean over what is left of the image.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from pue.errors import InvalidInput

SMALLEST = 16
"""Pixels a side that three halvings leave something of."""
FIT_IMAGES = 5_000


class Encoder(nn.Module):
    """Images (n, channels, height, width) in [0, 1] → (n, widths[-1]).

    >>> Encoder(3, (8, 16, 32))(torch.rand(2, 3, 24, 24)).shape
    torch.Size([2, 32])
    """

    def __init__(self, channels: int, widths: tuple[int, ...] = (32, 128, 256)) -> None:
        super().__init__()
        self.whitening = Whitening(channels)
        sizes = [8 * channels, *widths]
        self.groups = nn.Sequential(*(_Group(*pair) for pair in zip(sizes, widths, strict=False)))
        self.width = widths[-1]

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.groups(self.whitening(x)).mean((2, 3))
        return found


class Whitening(nn.Module):
    """Directions of 2 × 2 pixels and their opposites, scaled to variance one; fixed once it has seen images."""

    weight: Tensor
    bias: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.zeros(8 * channels, channels, 2, 2))
        self.register_buffer("bias", torch.zeros(8 * channels))

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):  # large weights that nearly cancel need all their digits
            return functional.relu(functional.conv2d(x, self.weight, self.bias))

    def fit(self, images: Tensor, *, ridge: float = 5e-4) -> None:
        """Learn the directions from images in [0, 1]; `ridge` keeps noise from being blown up."""
        pixels = functional.unfold(images[:FIT_IMAGES], 2).transpose(1, 2).flatten(0, 1)
        mean = pixels.mean(0)
        strength, direction = torch.linalg.eigh(torch.cov(pixels.T))
        rows = (direction * (strength.clamp(min=0) + ridge).rsqrt()).T.flip(0)
        both = torch.cat([rows, -rows])
        self.weight.copy_(both.reshape(self.weight.shape))
        self.bias.copy_(-both @ mean)


class _Group(nn.Module):
    """Two convolutions; pooling comes before norm and ReLU, nearly the same function at a quarter of the work."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)])

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.norms[0](functional.max_pool2d(self.first(x), 2)))
        return functional.relu(self.norms[1](self.second(x)))


def require_images(x: Tensor) -> None:
    """Refuse what an encoder cannot look at."""
    if x.ndim != 4 or min(x.shape[2:]) < SMALLEST:
        raise InvalidInput(
            f"an encoder needs images (n, channels, height, width) of at least {SMALLEST} pixels a side; these have "
            f"shape {tuple(x.shape)}. Enlarge them, or use the columns of a table as they are."
        )
