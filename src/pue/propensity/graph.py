"""A graph of nearest neighbors and the communities it falls into. Nothing here looks at a label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from pue.errors import require

BLOCK = 2**25
"""Distances in memory at once: 128 MB."""
Members = NDArray[np.int64]


def nearest(points: Tensor, among: Tensor, k: int, *, themselves: bool = False) -> Tensor:
    """(n, k): which of `among` lie nearest to each point, nearest first; `themselves`: a point is not its own neighbor.

    >>> nearest(torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([[0.0], [1.0], [5.0]]), 1, themselves=True)[:, 0]
    tensor([1, 0, 1])
    """
    k = min(k, len(among) - themselves)
    found = torch.empty(len(points), k, dtype=torch.int64)
    squares, size = among.square().sum(1), max(1, BLOCK // max(1, len(among)))
    for start in range(0, len(points), size):
        block = points[start : start + size]
        away = squares - 2 * block @ among.T  # but for the block's own squares, which change no order
        if themselves:
            away[torch.arange(len(block)), torch.arange(start, start + len(block))] = torch.inf
        found[start : start + size] = away.topk(k, largest=False, sorted=True).indices
    return found


def neighbor_graph(near: Sequence[Tensor]) -> Any:
    """Rows as nodes, an edge where one is among the other's nearest in a view; its weight: neighbors they share there.

    `near` holds the nearest rows of every row, one table for each view; views add up. A row counts as its own neighbor,
    so that an edge weighs at least one.

    >>> points = torch.tensor([[0.0], [0.1], [5.0], [5.2]])
    >>> neighbor_graph([nearest(points, points, 1, themselves=True)]).toarray()
    array([[0., 2., 0., 0.],
           [2., 0., 0., 0.],
           [0., 0., 0., 2.],
           [0., 0., 2., 0.]])
    """
    return sum(_shared(view.numpy()) for view in near)


def _shared(near: NDArray[np.int64]) -> Any:
    n, k = near.shape
    rows = np.repeat(np.arange(n), k)
    near_or_same = sparse.csr_matrix((np.ones(n * k), (rows, near.ravel())), (n, n)) + sparse.identity(n, format="csr")
    either = sparse.triu(near_or_same + near_or_same.T, 1).tocoo()
    shared = np.asarray(near_or_same[either.row].multiply(near_or_same[either.col]).sum(1)).ravel()
    half = sparse.csr_matrix((shared, (either.row, either.col)), (n, n))
    return (half + half.T).tocsr()


def communities(graph: Any, resolution: float, *, seed: int = 0) -> Members:
    """The community of every node (Leiden; Traag et al. 2019), numbered from the largest; more where `resolution` is
    higher.

    >>> points = torch.tensor([[0.0], [0.1], [0.2], [5.0], [5.2], [5.3]])
    >>> found = communities(neighbor_graph([nearest(points, points, 2, themselves=True)]), 1.0)
    >>> len(set(found[:3])), len(set(found[3:])), bool(found[0] != found[3])
    (1, 1, True)
    """
    require("communities", "sknetwork")
    from sknetwork.clustering import Leiden

    order = np.random.default_rng(seed).permutation(graph.shape[0])  # its own shuffling uses a generator of its module
    found = np.empty(graph.shape[0], dtype=np.int64)
    found[order] = Leiden(resolution, random_state=seed % 2**32).fit_predict(graph[order][:, order])
    return found


def agreement(one: Members, other: Members) -> float:
    """The adjusted Rand index of two partitions: 1 where they are the same, about 0 where they agree by chance.

    >>> agreement(np.array([0, 0, 1, 1]), np.array([5, 5, 2, 2]))
    1.0
    """
    counts = sparse.csr_matrix((np.ones(len(one)), (one, other)))
    pairs, rows, columns = (
        (values * (values - 1) / 2).sum()
        for values in (counts.data, *(np.asarray(counts.sum(axis)).ravel() for axis in (1, 0)))
    )
    expected = rows * columns / max(len(one) * (len(one) - 1) / 2, 1)
    most = (rows + columns) / 2
    return float((pairs - expected) / (most - expected)) if most > expected else 1.0
