"""Augmentation of whole batches: one vectorised operation each, no loop over images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from pue.core.weights import RowWeights
from pue.errors import InvalidInput
from pue.persistence import kept
from pue.training.processes import Part

ALONE = Part()


@kept
@dataclass(frozen=True)
class Augmentation:
    """What is done to a training batch.

    >>> batch = torch.rand(4, 1, 8, 8)
    >>> Augmentation(shift=2, flip=True, rotate=10.0).images(batch, torch.Generator()).shape
    torch.Size([4, 1, 8, 8])
    """

    shift: int = 0
    """Up to so many pixels in each direction, zeros come in."""
    flip: bool = False
    """Left and right swapped for half of the images."""
    rotate: float = 0.0
    """Up to so many degrees."""
    mixup: float = 0.0
    """α of the Beta(α, α) law of mixup; works for tables too."""

    def __post_init__(self) -> None:
        if self.shift < 0 or self.rotate < 0 or self.mixup < 0:
            raise InvalidInput(f"augmentation strengths must not be negative; got {self}.")

    def images(self, x: Tensor, generator: torch.Generator, part: Part = ALONE) -> Tensor:
        if not (self.shift or self.flip or self.rotate):
            return x
        if x.ndim != 4:
            raise InvalidInput(
                f"shift, flip and rotate need images (n, channels, height, width); a batch has shape {tuple(x.shape)}. "
                "For tables only mixup applies."
            )
        if self.flip:
            x = flip(x, generator, part)
        if self.rotate:
            x = rotate(x, self.rotate, generator, part)
        return shift(x, self.shift, generator, part) if self.shift else x


def shift(x: Tensor, pixels: int, generator: torch.Generator, part: Part = ALONE) -> Tensor:
    """Each image moved by whole pixels, uniformly in −pixels … pixels in both directions."""
    n, channels, height, width = x.shape
    down, right = part.of(torch.randint(0, 2 * pixels + 1, (2, part.total(n)), generator=generator).T).T.to(x.device)
    padded = functional.pad(x, (pixels,) * 4)
    rows = down[:, None] + torch.arange(height, device=x.device)
    columns = right[:, None] + torch.arange(width, device=x.device)
    padded = padded.gather(2, rows[:, None, :, None].expand(n, channels, height, padded.shape[3]))
    return padded.gather(3, columns[:, None, None, :].expand(n, channels, height, width))


def flip(x: Tensor, generator: torch.Generator, part: Part = ALONE) -> Tensor:
    """Half of the images mirrored."""
    coin = part.of(torch.rand(part.total(len(x)), generator=generator)).to(x.device) < 0.5
    return torch.where(coin[:, None, None, None], x.flip(3), x)


def rotate(x: Tensor, degrees: float, generator: torch.Generator, part: Part = ALONE) -> Tensor:
    """Each image turned about its center, uniformly in ±degrees, bilinear."""
    turn = part.of(torch.rand(part.total(len(x)), generator=generator))
    angle = (2 * turn - 1) * (degrees * torch.pi / 180)
    cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    aspect = x.shape[2] / x.shape[3]  # the grid runs from −1 to 1 along both sides, whatever their lengths
    theta = torch.stack([cos, -sin * aspect, zero, sin / aspect, cos, zero], dim=1).view(-1, 2, 3).to(x)
    grid = functional.affine_grid(theta, list(x.shape), align_corners=False)
    return functional.grid_sample(x, grid, align_corners=False)


def mixup(
    x: Tensor, weights: RowWeights, alpha: float, generator: torch.Generator, part: Part = ALONE
) -> tuple[Tensor, RowWeights]:
    """Each row blended with a partner, λx + (1 − λ)x', and so are its weights: λ ~ Beta(α, α), one for the batch.

    Every PU risk is linear in the weights, so this is mixup with soft labels for all of them; total mass is unchanged.
    """
    blend = draw_blend(x, alpha, generator, part)
    return blend(x), RowWeights(blend(weights.positive), blend(weights.negative))


def draw_blend(x: Tensor, alpha: float, generator: torch.Generator, part: Part = ALONE) -> Callable[[Tensor], Tensor]:
    """λv + (1 − λ)v' for any values v of the rows of x: one λ ~ Beta(α, α) and one partner a row for all of them."""
    share = draw_beta(alpha, generator)
    partner = draw_partners(len(x), generator, part).to(x.device)

    def blend(values: Tensor) -> Tensor:
        return share * values + (1 - share) * part.whole(values)[partner]

    return blend


def draw_partners(own: int, generator: torch.Generator, part: Part = ALONE) -> Tensor:
    """For each of a process's `own` rows, where in the whole batch its partner stands."""
    return part.of(torch.randperm(part.total(own), generator=generator))


def draw_beta(alpha: float, generator: torch.Generator) -> float:
    gammas = torch._standard_gamma(torch.full((2,), alpha, dtype=torch.float64), generator=generator)
    return float(gammas[0] / gammas.sum())
