"""SCAR: one propensity for all, the label frequency."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pue.data import Features, PUData, population_rows
from pue.propensity.protocol import PropensityModel


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


@dataclass(frozen=True)
class ConstantModel:
    frequency: float

    def __call__(self, x: Features) -> Tensor:
        return torch.full((x.shape[0],), self.frequency, dtype=torch.float64)
