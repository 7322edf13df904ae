"""Rows by their relatives: how near each one is to every family of near-identical training rows. No label is used."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pue.errors import InvalidInput
from pue.propensity.duplicates import families
from pue.propensity.views import looks

SHARPNESS = 8.0
"""Found on slices that were held out of the training scans of Alzheimer: docs/lab/tuning.md."""
BLOCK = 1_000


@dataclass(frozen=True, eq=False)
class Relatives:
    """x → (n, families), each row's shares sum to one: softmax of −(distance to the nearest image of a family) / h.

    h is an eighth of the typical distance between an image and the image nearest to it, so that an image like one
    family alone has nearly all its share there, and one that is like several is divided among them.
    """

    points: Tensor
    family: Tensor
    width: float
    own: Tensor
    """The shares of the training rows; each is compared with all rows but itself, as a new row would be."""

    @classmethod
    def fit(cls, x: Tensor) -> Relatives:
        """
        >>> generator = torch.Generator().manual_seed(0)
        >>> people = torch.rand(150, 1, 1, 12, 12, generator=generator)
        >>> scans = (people + 0.02 * torch.rand(150, 4, 1, 12, 12, generator=generator)).flatten(0, 1)
        >>> found = Relatives.fit(scans)
        >>> found(scans[:3]).shape, len(found.own[:4].argmax(1).unique())
        (torch.Size([3, 150]), 1)
        """
        found = families(x)
        if not found.found:
            raise InvalidInput(
                f"{found.share:.0%} of these images have a near-identical one: they do not form families. Use another "
                "recipe of features."
            )
        points, family = looks(x), torch.from_numpy(found.family)
        away = _distances(points, points, family, themselves=True)
        width = float(away.min(1).values.median()) / SHARPNESS
        return cls(points, family, width, torch.softmax(-away / width, 1))

    def __call__(self, x: Tensor) -> Tensor:
        return torch.softmax(-_distances(looks(x), self.points, self.family) / self.width, 1)


def _distances(points: Tensor, among: Tensor, family: Tensor, *, themselves: bool = False) -> Tensor:
    """(n, families): how far the nearest row of each family is; `themselves`: a row is not its own relative."""
    nearest = torch.full((len(points), int(family.max()) + 1), torch.inf)
    for start in range(0, len(points), BLOCK):
        away = torch.cdist(points[start : start + BLOCK], among)
        if themselves:
            away[torch.arange(len(away)), torch.arange(start, start + len(away))] = torch.inf
        nearest[start : start + BLOCK].scatter_reduce_(1, family.expand(len(away), -1), away, "amin")
    return nearest
