"""Counts among neighbors: how many labels there are around a row, per row of the population."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pue.data import Features, PUData, population_rows, select
from pue.errors import InvalidInput
from pue.folds import row_hash
from pue.propensity.protocol import PropensityModel
from pue.reduction import Reduction, fit_reduction

MOST_ROWS = 50_000
"""Larger samples are thinned to so many rows a side, which bounds time and memory."""
BLOCK = 2**24
"""Distances in memory at once: 64 MB."""


@dataclass(frozen=True)
class Neighbors:
    """ê = (labeled rows in the ball + ½) / (population rows in the ball + ½ / rate), rate = labels per population row.

    The ball is that of the k nearest population rows, and k is such that it holds `labels` of them on average. Several
    sizes give several candidates; as an estimator on its own it takes their mean.

    It learns nothing, so it cannot memorise: out of fold it is an honest count however rare a kind of positive is
    among the labels, for the ball is made of *population* rows, where that kind is as frequent as it is. It needs
    features in which near means alike; wide tables and images are reduced to 50 principal components. Larger balls
    are less noisy but mix kinds of positives that are labeled differently often.
    """

    labels: tuple[float, ...] = (1, 2, 4)

    def __post_init__(self) -> None:
        if not self.labels or min(self.labels) <= 0:
            raise InvalidInput(f"labels must hold positive numbers of labels in a ball; got {self.labels}.")

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> PropensityModel:
        reduction = fit_reduction(data.x, seed=seed)
        mass = data.mass
        order = torch.from_numpy(np.argsort(row_hash(data.x, seed=seed), kind="stable"))
        sides = []
        for rows in (data.labeled, population_rows(data.labels, data.scenario)):
            chosen = order[rows[order]][:MOST_ROWS]
            share = mass[chosen] * (mass[rows].sum() / mass[chosen].sum())
            sides.append((reduction(select(data.x, chosen)), share.float()))
        (labeled, labels), (population, rows) = sides
        rate = float(mass[data.labeled].sum() / mass[population_rows(data.labels, data.scenario)].sum())
        thinning = min(1.0, MOST_ROWS / int(population_rows(data.labels, data.scenario).sum()))
        k = tuple(min(len(population), max(1, round(size * thinning / rate))) for size in self.labels)
        return NeighborsModel(k, reduction, labeled, labels, population, rows)


@dataclass(frozen=True, eq=False)
class NeighborsModel:
    k: tuple[int, ...]
    reduction: Reduction
    labeled: Tensor
    labeled_mass: Tensor
    population: Tensor
    population_mass: Tensor

    def __call__(self, x: Features) -> Tensor:
        return self.columns(x).mean(1)

    def columns(self, x: Features) -> Tensor:
        """(n, number of k): one estimate for every k, all from one search."""
        z = self.reduction(x)
        size = max(1, BLOCK // (len(self.population) + len(self.labeled)))
        parts = [self._counts(block) for block in torch.split(z, size)]
        return torch.cat(parts) if parts else torch.empty(0, len(self.k), dtype=torch.float64)

    def _counts(self, z: Tensor) -> Tensor:
        rate = self.labeled_mass.double().sum() / self.population_mass.double().sum()
        distance, nearest = torch.cdist(z, self.population).topk(max(self.k), largest=False, sorted=True)
        mass = self.population_mass[nearest].double().cumsum(1)
        to_labeled = torch.cdist(z, self.labeled)
        found = []
        for k in self.k:
            labels = (to_labeled <= distance[:, k - 1 : k]).to(self.labeled_mass.dtype) @ self.labeled_mass
            found.append((labels.double() + 0.5) / (mass[:, k - 1] + 0.5 / rate))
        return torch.stack(found, dim=1)
