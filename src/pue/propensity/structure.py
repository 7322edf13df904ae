"""Groups that rows form by themselves, found without labels; labels only say which grouping tells most about them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pue.core.data import Features, PUData, is_image, population_rows, select
from pue.core.folds import row_hash
from pue.errors import PueWarning
from pue.persistence import kept
from pue.propensity.duplicates import WHOLE, families
from pue.propensity.features import Reduction
from pue.propensity.graph import Members, agreement, communities, nearest, neighbor_graph
from pue.propensity.tally import Tally, tally
from pue.propensity.views import View, fit_views

RESOLUTIONS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
MOST_ROWS = 60_000
"""Larger samples are thinned to so many rows of the graph; all others join their neighbors."""
STABLE = 0.5
"""A grouping that another seed finds again with less agreement than this is chance."""
RUNS = 3
"""Runs of the search that decide together."""


@kept
@dataclass(frozen=True, eq=False)
class Structure:
    """The rows of the graph and their communities, once for each run."""

    views: tuple[View, ...]
    points: tuple[Tensor, ...]
    """Of the rows of the graph, in each view."""
    member: Tensor
    """(rows of the graph, runs)."""
    neighbors: int
    """That a row asks, in each view."""
    description: str = ""

    def near(self, x: Features) -> Tensor:
        """(n, views × neighbors): the rows of the graph that are nearest to each row, in every view."""
        return near_in(self.views, self.points, x, self.neighbors)

    def join(self, x: Features) -> Tensor:
        """(n, runs): the community that most of its neighbors belong to."""
        return joined(self.member, self.near(x))


def near_in(views: Sequence[View], points: Sequence[Tensor], x: Features, k: int) -> Tensor:
    """(n, views × k): which of the points are nearest to each row, in every view."""
    return torch.cat([nearest(view(x), among, k) for view, among in zip(views, points, strict=True)], dim=1)


def joined(member: Tensor, near: Tensor) -> Tensor:
    """(n, runs): the community of most of the rows `near`, the first of those that are equally frequent."""
    return torch.stack([run[near].mode(dim=1).values for run in member.T], dim=1)


Found = tuple[Structure, Tally]
"""A grouping, and its labels counted."""


def find_structure(data: PUData, *, neighbors: int = 10, resolution: float | None = None) -> Found:
    """The grouping of `data` and its labels counted; without a `resolution` the coarsest whose held-out labels are as
    likely as those of the best, up to one standard error. Groupings that another run does not find again are left out.
    No seed changes it, nor the order of the rows.
    """
    rows = graph_rows(data.x, population_rows(data.labels, data.scenario))
    network = network_of(select(data.x, rows), neighbors)
    labeled = select(data.x, data.labeled)
    near = network.structure(1.0, 1).near(labeled)

    def found(structure: Structure, near: Tensor) -> Found:
        return structure, tally(data, rows, structure.member, joined(structure.member, near))

    if resolution is not None:
        return found(network.structure(resolution, RUNS), near)
    stable = [value for value in RESOLUTIONS if network.stability(value) >= STABLE]
    if not stable:
        warnings.warn(
            "no grouping of the rows is found again by another run: they form no communities. Use propensity='auto'.",
            PueWarning,
            stacklevel=5,
        )
    candidates = [found(network.structure(value, RUNS), near) for value in stable or [1.0]]
    if network.has_families:
        relatives = network.families
        candidates.append(found(relatives, relatives.near(labeled)))
    return choose(candidates)


def graph_rows(x: Features, population: Tensor) -> Tensor:
    """Which rows are nodes of the graph: those of the population, in the order of their content."""
    order = torch.from_numpy(np.argsort(row_hash(x), kind="stable"))
    return order[population[order]][:MOST_ROWS]


class Network:
    """The graph of some rows and its communities, each found once."""

    def __init__(self, x: Features, neighbors: int) -> None:
        self.x, self.neighbors = x, neighbors
        self.views = fit_views(x)
        self.points = tuple(view(x) for view in self.views)
        self.near = tuple(nearest(points, points, neighbors, themselves=True) for points in self.points)
        """Of every row its nearest, in each view."""
        self.has_families = is_image(x) and x.shape[0] <= WHOLE
        self._runs: dict[tuple[float, int], Members] = {}

    def near_to(self, x: Features) -> Tensor:
        """(n, views × neighbors): of other rows, the nearest of these, in each view."""
        return near_in(self.views, self.points, x, self.neighbors)

    @cached_property
    def graph(self) -> Any:
        return neighbor_graph(self.near)

    def run(self, resolution: float, number: int) -> Members:
        if (resolution, number) not in self._runs:
            self._runs[resolution, number] = communities(self.graph, resolution, seed=number)
        return self._runs[resolution, number]

    def stability(self, resolution: float) -> float:
        """How well two runs agree."""
        return agreement(self.run(resolution, 0), self.run(resolution, 1))

    def structure(self, resolution: float, runs: int) -> Structure:
        member = np.stack([self.run(resolution, number) for number in range(runs)], axis=1)
        name = f"communities at resolution {resolution:g}"
        return Structure(self.views, self.points, torch.from_numpy(member), self.neighbors, name)

    @cached_property
    def families(self) -> Structure:
        """Near-identical rows: what is alike to the pixel asks one row alone."""
        member = torch.from_numpy(families(self.x).family)[:, None]
        view = View("looks", Reduction(None, None))
        return Structure((view,), (view(self.x),), member, 1, "families of near-identical rows")


_LAST: dict[tuple[int, bytes], Network] = {}
"""The last one: labels change from fit to fit, rows seldom do."""


def network_of(x: Features, neighbors: int) -> Network:
    """The network of these rows; that of the last rows is kept."""
    key = neighbors, row_hash(x).tobytes()
    if key not in _LAST:
        _LAST.clear()
        _LAST[key] = Network(x, neighbors)
    return _LAST[key]


def choose(found: Sequence[Found]) -> Found:
    """The coarsest whose held-out labels are as likely as those of the best, up to one standard error."""
    best = max(found, key=lambda one: float(one[1].surprise.mean()))
    for one in sorted(found, key=lambda one: int(one[0].member.max())):
        gap = best[1].surprise - one[1].surprise
        if float(gap.mean()) <= float(gap.std()) / len(gap) ** 0.5:
            return one
    return best
