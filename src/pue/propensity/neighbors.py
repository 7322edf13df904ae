"""Counts among neighbors: how many labels there are around a row, per row of the population."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pue.core.data import Features, PUData, Scenario, population_rows, select
from pue.core.folds import row_hash
from pue.errors import InvalidInput
from pue.persistence import kept
from pue.propensity.features import Reduction, fit_reduction
from pue.propensity.protocol import PropensityModel

MOST_ROWS = 50_000
"""Larger samples are thinned to so many rows a side, which bounds time and memory."""
BLOCK = 2**24
"""Distances in memory at once: 64 MB."""


@kept
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
        order = torch.from_numpy(np.argsort(row_hash(data.x, seed=seed), kind="stable"))
        members = population_rows(data.labels, data.scenario)
        population, mass = _thinned(data, order, members)
        rate = float(data.mass[data.labeled].sum() / data.mass[members].sum())
        density = len(population) / int(members.sum())
        k = tuple(min(len(population), max(1, round(size * density / rate))) for size in self.labels)
        z = reduction(select(data.x, population))
        if data.scenario is Scenario.SINGLE_SAMPLE:  # the labeled rows are in the ball or not, no need to measure
            return NeighborsModel(k, rate, reduction, z, mass, mass * data.labeled[population])
        labeled, labeled_mass = _thinned(data, order, data.labeled)
        return NeighborsModel(k, rate, reduction, z, mass, labeled_mass, reduction(select(data.x, labeled)))


@kept
@dataclass(frozen=True, eq=False)
class NeighborsModel(PropensityModel):
    k: tuple[int, ...]
    rate: float
    reduction: Reduction
    population: Tensor
    mass: Tensor
    labeled_mass: Tensor
    """Of the labeled rows, if they stand beside the population; else of the population, zero where not labeled."""
    labeled: Tensor | None = None

    def __call__(self, x: Features) -> Tensor:
        return self.columns(x).mean(1)

    @property
    def candidates(self) -> tuple[str, ...]:
        return tuple(f"k={k}" for k in self.k)

    def columns(self, x: Features) -> Tensor:
        """(n, number of k): one estimate for every k, all from one search."""
        z = self.reduction(x)
        size = max(1, BLOCK // (len(self.population) + len(self.labeled_mass)))
        # Written in place: small results kept between two large blocks would nibble at the space the last one left, and
        # the next would need new space, gigabytes in the end.
        found = torch.empty(len(z), len(self.k), dtype=torch.float64)
        for start in range(0, len(z), size):
            found[start : start + size] = self._counts(z[start : start + size])
        return found

    def _counts(self, z: Tensor) -> Tensor:
        distance, nearest = torch.cdist(z, self.population).topk(max(self.k), largest=False, sorted=True)
        ends = torch.tensor(self.k) - 1
        rows = self.mass[nearest].cumsum(1)[:, ends]
        if self.labeled is None:
            labels = self.labeled_mass[nearest].cumsum(1)[:, ends]
        else:
            away = torch.cdist(z, self.labeled)
            inside = [(away <= distance[:, end : end + 1]).double() @ self.labeled_mass for end in ends.tolist()]
            labels = torch.stack(inside, dim=1)
        return (labels + 0.5) / (rows + 0.5 / self.rate)


def _thinned(data: PUData, order: Tensor, members: Tensor) -> tuple[Tensor, Tensor]:
    """At most `MOST_ROWS` of the member rows, chosen by content, and what mass each stands for."""
    chosen = order[members[order]][:MOST_ROWS]
    mass = data.mass
    return chosen, mass[chosen] * (mass[members].sum() / mass[chosen].sum())
