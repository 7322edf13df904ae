"""Structure first: rows form groups by themselves, and labels only have to name them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pue.core.data import Features, PUData
from pue.errors import InvalidInput, PueWarning, require
from pue.persistence import kept
from pue.propensity.naming import named_groups
from pue.propensity.protocol import PropensityModel
from pue.propensity.structure import Structure, find_structure
from pue.propensity.tally import Tally

SEPARATED = 2.0
"""Below this gain in the logarithm of the likelihood, the labels are as likely with one rate for all communities (the
level of a test at 2.5 %, on the boundary)."""


@kept
@dataclass(frozen=True)
class Communities:
    """ê = labels per row of the population in a row's community, shrunk to the common rate where counts are small.

    That is for the communities of the highest rates, as many as make up a share π of the rows: there rows are positive.
    Positives in other communities are strays, whose rate would be that of the negatives around them: they get the mean
    of all positives, labels / (π n).

    Communities are those of a graph of nearest neighbors (values of a table; pixels and edges of images), or families
    of near-identical images where those foretell held-out labels better. They are found without labels, so that the
    rate at a labeled row need only leave out the labels of its own fold. Needs `pip install "pue[communities]"`.
    """

    neighbors: int = 10
    resolution: float | None = None
    """None: the coarsest that foretells held-out labels as well as any."""

    def __post_init__(self) -> None:
        if self.neighbors < 1 or (self.resolution is not None and self.resolution <= 0):
            raise InvalidInput(
                f"neighbors must be at least 1 and resolution above 0; got {self.neighbors} and {self.resolution}."
            )

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> CommunitiesModel:
        structure, counted = self.find(data)
        named = tuple(named_groups(counted, run, prior)[0] for run in range(len(counted.rows)))
        return CommunitiesModel(structure, counted, named, min(1.0, counted.common / prior))

    def find(self, data: PUData) -> tuple[Structure, Tally]:
        """The communities and their labels; warns where their rates of labels do not differ."""
        require("communities")
        structure, counted = find_structure(data, neighbors=self.neighbors, resolution=self.resolution)
        if counted.evidence < SEPARATED:
            warnings.warn(
                "communities of similar rows do not differ in their rate of labels: labels are spread evenly, there "
                'are too few of them, or what rows look like says nothing about the class. Use propensity="auto".',
                PueWarning,
                stacklevel=4,
            )
        return structure, counted


@kept
@dataclass(frozen=True, eq=False)
class CommunitiesModel(PropensityModel):
    structure: Structure
    tally: Tally
    named: tuple[NDArray[np.bool_], ...]
    """Of every run, which communities are called positive."""
    stray: float
    """ê of a positive in the others."""

    def __call__(self, x: Features) -> Tensor:
        member = self.structure.join(x)
        rates = [torch.from_numpy(self.tally.rates(run))[own] for run, own in enumerate(member.T)]
        return self._at(torch.stack(rates, dim=1), member)

    def _at(self, rates: Tensor, member: Tensor) -> Tensor:
        """The mean over the runs of the rates of a row's communities, or of strays."""
        named = torch.stack([torch.from_numpy(names)[own] for names, own in zip(self.named, member.T, strict=True)], 1)
        return torch.where(named, rates, self.stray).mean(1)

    @property
    def held_out(self) -> Tensor:
        return self._at(self.tally.held_out, self.tally.own)

    @property
    def description(self) -> str:
        return self.structure.description
