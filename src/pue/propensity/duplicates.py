"""Families of near-identical rows: slices of one scan, photographs of one scene, a row typed in twice.

A family is a component of the graph that links rows nearer than a distance. The distance is chosen without a label or
a class: the largest at which no family holds more than 1 % of the rows. Up to it, rows that belong together find each
other; beyond it, chains of ever less similar rows join strangers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from pue.core.data import Features, is_bytes, is_image
from pue.propensity.features import fit_reduction
from pue.propensity.graph import nearest
from pue.propensity.views import looks

LINKS = 10
"""Neighbors of a row that it may be linked to."""
LARGEST = 0.01
WHOLE = 10_000
"""Images up to which all pixels are compared (without brightness and contrast); of more, 200 principal components."""
FAMILIES = 0.5
"""From this share of rows in families of two or more on, data are made of families. Where they are not, the links
reach 1 % in one chain through the densest region, and most rows are alone."""


@dataclass(frozen=True, eq=False)
class Families:
    """The family of every row, and how near its rows are."""

    family: NDArray[np.int64]
    distance: float

    @property
    def share(self) -> float:
        """Of the rows, how many have a near-identical one, those of the largest family not counted."""
        sizes = np.bincount(self.family)
        related = sizes[sizes > 1].sum() - (sizes.max() if sizes.max() > 1 else 0)
        return float(related / len(self.family))

    @property
    def found(self) -> bool:
        return self.share >= FAMILIES


def families(x: Features, *, largest: float = LARGEST, seed: int = 0) -> Families:
    """Groups of near-identical rows; rows of one family are no independent evidence, and folds should not part them.

    >>> generator = torch.Generator().manual_seed(0)
    >>> people = torch.randn(150, 1, 20, generator=generator)
    >>> scans = (people + 0.05 * torch.randn(150, 4, 20, generator=generator)).flatten(0, 1)
    >>> found = families(scans)
    >>> found.found, len(set(found.family[:4])), len(set(found.family))
    (True, 1, 150)
    """
    points = _points(x, seed)
    near = nearest(points, points, LINKS, themselves=True)
    away = torch.stack([(points[column] - points).norm(dim=1) for column in near.T], dim=1).numpy()
    links = near.numpy()
    ordered = np.sort(away.ravel())
    low, high = -1, len(ordered) - 1  # bisection: families only grow with the distance
    while low < high:
        middle = (low + high + 1) // 2
        if np.bincount(_linked(away, links, ordered[middle])).max() <= max(2, largest * len(links)):
            low = middle
        else:
            high = middle - 1
    distance = float(ordered[low]) if low >= 0 else -1.0
    return Families(_linked(away, links, distance), max(distance, 0.0))


def _linked(away: NDArray[np.float32], links: NDArray[np.int64], distance: float) -> NDArray[np.int64]:
    n = len(links)
    row, column = np.nonzero(away <= distance)
    graph = sparse.csr_matrix((np.ones(len(row)), (row, links[row, column])), (n, n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def _points(x: Features, seed: int) -> Tensor:
    pixels = is_image(x) or is_bytes(x)
    if pixels and x.shape[0] <= WHOLE:
        return looks(x)
    values = looks(x) if pixels else x
    return fit_reduction(values, columns=200, seed=seed, one_scale=pixels)(values)
