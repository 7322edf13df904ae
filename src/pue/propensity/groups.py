"""Labels counted: SCAR, with one propensity for all, the label frequency, or within each of a few known groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pue.core.data import Features, PUData, population_rows
from pue.errors import InvalidInput
from pue.persistence import kept
from pue.propensity.known import column
from pue.propensity.latent import row_mass
from pue.propensity.protocol import PropensityModel


@kept
@dataclass(frozen=True)
class Constant:
    """ê = labeled rows / expected positives, n_P / (π n). With normalised weights its value does not matter.

    >>> data = PUData(torch.zeros(8, 1), torch.tensor([1, 0, 0, 0, 0, 0, 0, 0]))
    >>> Constant().fit(data, prior=0.5)(data.x[:2])
    tensor([0.2500, 0.2500], dtype=torch.float64)
    """

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> PropensityModel:
        mass = data.mass
        positives = prior * mass[population_rows(data.labels, data.scenario)].sum()
        frequency = min(1.0, float(mass[data.labeled].sum() / positives))
        return ConstantModel(frequency)


@kept
@dataclass(frozen=True)
class ConstantModel(PropensityModel):
    frequency: float

    def __call__(self, x: Features) -> Tensor:
        return torch.full((x.shape[0],), self.frequency, dtype=torch.float64)


@kept
@dataclass(frozen=True)
class Groups:
    """ê_g = labeled rows / expected positives of the group, n_P,g / (π_g n_g).

    A group's labels per row are e_g π_g: they say nothing about e_g alone, so every group needs its prior. Without
    `priors` all groups have the same, and ê_g is wrong by the factor π_g / π where they do not. n_g counts rows of the
    population: all of a single sample, the unlabeled ones in case-control. A group that has none of these, or was not
    seen at all, gets the ê of all rows together.

    >>> data = PUData(torch.tensor([[0.0], [0], [0], [0], [1], [1]]), torch.tensor([1, 0, 0, 0, 1, 0]))
    >>> Groups(0, {0: 0.5, 1: 1.0}).fit(data, prior=0.6)(torch.tensor([[0.0], [1], [7]]))
    tensor([0.5000, 0.5000, 0.5000], dtype=torch.float64)
    """

    by: Callable[[Features], Tensor] | int
    """The column that holds the group, or a function from features to a number for each row."""
    priors: Mapping[float, float] | None = None
    """π_g of every group."""

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> PropensityModel:
        mass = row_mass(data)
        groups, member = np.unique(_groups(self.by, data.x), return_inverse=True)
        population = population_rows(data.labels, data.scenario).numpy()
        labeled = np.bincount(member, mass * data.labeled.numpy(), len(groups))
        positives = np.bincount(member, mass * population, len(groups)) * self._priors(groups, prior)
        overall = labeled.sum() / positives.sum()
        found = np.divide(labeled, positives, out=np.full(len(groups), overall), where=positives > 0)
        return GroupModel(self.by, groups, found, float(overall))

    def _priors(self, groups: NDArray[np.float64], prior: float) -> NDArray[np.float64]:
        if self.priors is None:
            return np.full(len(groups), prior)
        missing = [f"{group:g}" for group in groups if group not in self.priors]
        if missing:
            raise InvalidInput(f"priors has no entry for group {', '.join(missing[:5])}. Give π of every group.")
        values = np.array([self.priors[group] for group in groups], dtype=np.float64)
        if not ((values > 0) & (values <= 1)).all():
            raise InvalidInput("each of priors must lie in (0, 1]. Leave rows of a group without positives out.")
        return values


@kept
@dataclass(frozen=True, eq=False)
class GroupModel(PropensityModel):
    by: Callable[[Features], Tensor] | int
    groups: NDArray[np.float64]
    """In ascending order."""
    propensity: NDArray[np.float64]
    overall: float

    def __call__(self, x: Features) -> Tensor:
        wanted = _groups(self.by, x)
        place = np.searchsorted(self.groups, wanted).clip(max=len(self.groups) - 1)
        found = np.where(self.groups[place] == wanted, self.propensity[place], self.overall)
        return torch.from_numpy(found)


def _groups(by: Callable[[Features], Tensor] | int, x: Features) -> NDArray[np.float64]:
    values = torch.as_tensor(by(x)) if callable(by) else column(x, by)
    groups: NDArray[np.float64] = values.double().numpy()
    return groups
