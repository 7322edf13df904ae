"""Which groups are called positive: those of the highest rates of labels, as many as the prior allows."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pue.propensity.structure import Structure
from pue.propensity.tally import Tally

CLEAR = 2.0
"""Standard errors between the last groups that are accepted and the first that are not."""
NEXT = 0.05
"""Share of the rows that is compared on either side of the cut."""


def accepted(structure: Structure, counted: Tally, prior: float) -> tuple[Tensor, bool]:
    """In how many of the runs each row of the graph is called positive, and whether the cut is clear in most."""
    calls, clear = [], []
    for run, member in enumerate(structure.member.T):
        chosen, certain = named_groups(counted, run, prior)
        calls.append(torch.from_numpy(chosen)[member].double())
        clear.append(certain)
    return torch.stack(calls).mean(0), float(np.mean(clear)) > 0.5


def named_groups(counted: Tally, run: int, prior: float) -> tuple[NDArray[np.bool_], bool]:
    """`first_groups` of a run."""
    return first_groups(counted.rates(run), counted.labels[run], counted.rows[run], prior)


def first_groups(
    rate: NDArray[np.float64], labels: NDArray[np.float64], rows: NDArray[np.float64], prior: float
) -> tuple[NDArray[np.bool_], bool]:
    """Which groups are positive: those of the highest rates, until their size is nearest to π n; and whether the rates
    on both sides of the cut differ by more than chance.

    >>> labels, rows = np.array([9.0, 0, 8]), np.array([30.0, 50, 20])
    >>> first_groups(labels / rows, labels, rows, 0.45)[0].tolist()
    [True, False, True]
    """
    order = np.argsort(-rate, kind="stable")
    size = np.concatenate([[0.0], rows[order].cumsum()])
    cut = max(1, int(np.abs(size - prior * rows.sum()).argmin()))
    chosen = np.zeros(len(rate), dtype=bool)
    chosen[order[:cut]] = True
    sides = [_around(order[:cut][::-1], rows), _around(order[cut:], rows)]
    counts, sizes = ([values[side].sum() for side in sides] for values in (labels, rows))
    if not min(sizes) > 0:
        return chosen, False
    ratio = math.log((counts[0] + 0.5) / sizes[0]) - math.log((counts[1] + 0.5) / sizes[1])
    return chosen, ratio >= CLEAR * math.sqrt(1 / (counts[0] + 0.5) + 1 / (counts[1] + 0.5))


def _around(order: NDArray[np.int64], rows: NDArray[np.float64]) -> NDArray[np.int64]:
    """The groups next to the cut: the first, and more until they are 5 % of all rows."""
    before = np.concatenate([[0.0], rows[order].cumsum()])[:-1]
    next_ones: NDArray[np.int64] = order[before < NEXT * rows.sum()]
    return next_ones
