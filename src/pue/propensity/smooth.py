"""Averaging ê over the nearest labeled rows: over as many as the estimates ask for, or over others alone."""

from __future__ import annotations

import torch
from torch import Tensor

SIZES = (0, 1, 2, 3, 5, 8, 12, 20, 40)
BLOCK = 2**24
OTHERS = 10


def smooth_over_labeled(propensity: Tensor, z: Tensor, mass: Tensor | None = None) -> tuple[Tensor, int]:
    """Geometric mean of ê over each row and its k nearest ones, and k; `z` are features of these rows.

    An out-of-fold ê is noisy, and 1/ê of a row that happens to come out low swamps the rest. How much of the scatter
    is noise shows in how well the *others* predict a row: k minimises the leave-one-out error

        Σ_i ω_i (log ê_i − mean of log ê over the k nearest other rows)²,      ω ∝ mass / ê,

    weighted like the rows will be, so that kinds of positives count by how many there are and not by how often they
    were labeled. When no k predicts better than the overall mean, these features know nothing about ê, and it is left
    as it is: k = 0.
    """
    n = len(propensity)
    sizes = [k for k in SIZES if k < n]
    log_e = propensity.double().clamp(min=1e-12).log()
    weight = (torch.ones_like(log_e) if mass is None else mass.double()) / propensity.double().clamp(min=1e-12)
    weight = weight / weight.sum()
    sums = log_e[_nearest(z, max(sizes))].cumsum(1)
    guesses = {0: weight @ log_e, **{k: sums[:, k - 1] / k for k in sizes[1:]}}
    best = min(guesses, key=lambda k: float(weight @ (log_e - guesses[k]) ** 2))
    if best == 0:
        return propensity, 0
    return torch.exp((log_e + sums[:, best - 1]) / (best + 1)), best


def from_others(propensity: Tensor, z: Tensor, k: int = OTHERS) -> Tensor:
    """Mean of ê over the k nearest *other* labeled rows: the weights that judge a model.

    A labeled row that looks unlike the others gets a low ê of its own and so a large weight; and it is on such rows
    that a classifier errs. Judged by their own ê, classifiers look worse than they are. What its neighbors say about a
    row does not know how odd the row itself is.

    >>> from_others(torch.tensor([0.1, 0.3, 0.3, 0.02]), torch.tensor([[0.0], [1.0], [2.0], [9.0]]), k=2)
    tensor([0.3000, 0.2000, 0.2000, 0.3000], dtype=torch.float64)
    """
    k = min(k, len(propensity) - 1)
    return propensity.double()[_nearest(z, k)].mean(1) if k > 0 else propensity.double()


def _nearest(z: Tensor, k: int) -> Tensor:
    """The k nearest other rows of every row, nearest first."""
    found = torch.empty(len(z), k, dtype=torch.long)
    for rows in torch.split(torch.arange(len(z)), max(1, BLOCK // len(z))):
        distance = torch.cdist(z[rows], z)
        distance[torch.arange(len(rows)), rows] = torch.inf
        found[rows] = distance.topk(k, largest=False, sorted=True).indices
    return found
