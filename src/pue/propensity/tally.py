"""Labels and rows of every community, counted; rates are shrunk by empirical Bayes where counts are small."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import gammaln
from torch import Tensor

from pue.core.data import PUData, population_rows
from pue.core.folds import content_folds, most_folds
from pue.persistence import kept

FOLDS = 10
STRENGTHS = np.geomspace(1e-2, 1e7, 91)
"""Rows that the common rate is worth, as tried."""
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@kept
@dataclass(frozen=True, eq=False)
class Tally:
    """What the communities say about labels, run by run."""

    labels: tuple[Floats, ...]
    """Mass of the labeled rows in every community."""
    rows: tuple[Floats, ...]
    """Mass of the population there."""
    strength: tuple[float, ...]
    own: Tensor
    """(labeled rows, runs): the community of the labeled rows, in order."""
    held_out: Tensor
    """(labeled rows, runs): the rate there, from the labels of other folds."""
    evidence: float
    """How much likelier the labels are with a rate for each community than with one for all: logarithm, per run."""

    @property
    def common(self) -> float:
        """Labels per row of the population."""
        return float(self.labels[0].sum() / self.rows[0].sum())

    def rates(self, run: int) -> Floats:
        """Labels per row of the population in each community, shrunk to the common rate."""
        return shrunk(self.labels[run], self.rows[run], self.strength[run], self.common)

    @property
    def surprise(self) -> Tensor:
        """log(ê / common rate) of the labeled rows, out of fold: the higher, the better the labels were foretold."""
        return (self.held_out.mean(1) / self.common).log()


def tally(data: PUData, rows: Tensor, member: Tensor, labeled_member: Tensor) -> Tally:
    """Counts by community: `member` (of the rows of the graph, `rows` of the data) and `labeled_member` (of the labeled
    rows) have a column for each run."""
    mass, population = data.mass, population_rows(data.labels, data.scenario)
    weight = (mass[rows] * (mass[population].sum() / mass[rows].sum())).numpy()
    labeled_mass = mass[data.labeled].numpy()
    k = min(FOLDS, most_folds(data.x, data.labels))
    fold = content_folds(data.x, data.labels, k)[data.labeled.numpy()] if k > 1 else None
    runs = [
        _run(of.numpy(), own.numpy(), weight, labeled_mass, fold)
        for of, own in zip(member.T, labeled_member.T, strict=True)
    ]
    labels, sizes, strengths, gains, held_out = zip(*runs, strict=True)
    rates = torch.from_numpy(np.stack(held_out, axis=1))
    return Tally(labels, sizes, strengths, labeled_member, rates, float(np.mean(gains)))


def _run(
    member: Indices, own: Indices, weight: Floats, labeled_mass: Floats, fold: Indices | None
) -> tuple[Floats, Floats, float, float, Floats]:
    """Labels, rows, strength, gain and rates of held-out labels of one run."""
    n = int(member.max()) + 1
    size, count = counted(member, weight, n), counted(own, labeled_mass, n)
    strength, gain = fit_strength(count, size)
    return count, size, strength, gain, _without_own_fold(count, size, strength, own, labeled_mass, fold)


def counted(member: Indices, mass: Floats, n: int) -> Floats:
    """The mass of each of n groups.

    >>> counted(np.array([0, 2, 2]), np.array([1.0, 2.0, 3.0]), 3).tolist()
    [1.0, 0.0, 5.0]
    """
    return np.bincount(member, mass, n).astype(np.float64)


def shrunk(labels: Floats, rows: Floats, strength: float, common: float) -> Floats:
    """(labels + strength · common) / (rows + strength): the mean of a Gamma law after Poisson counts.

    >>> shrunk(np.array([4.0, 0.0]), np.array([10.0, 0.0]), 10.0, 0.2).tolist()
    [0.3, 0.2]
    """
    found: Floats = (labels + strength * common) / (rows + strength)
    return found


def fit_strength(labels: Floats, rows: Floats) -> tuple[float, float]:
    """The strength under which the counts are likeliest when rates follow a Gamma law around the common one (a negative
    binomial likelihood), and how much likelier they are than with one rate for all."""
    common = labels.sum() / rows.sum()
    a, b = STRENGTHS * common, STRENGTHS
    likelihood = (
        gammaln(labels[:, None] + a) - gammaln(a) + a * np.log(b) - (labels[:, None] + a) * np.log(rows[:, None] + b)
    ).sum(axis=0)
    alike = float((labels * np.log(common) - rows * common).sum())
    best = int(likelihood.argmax())
    return float(STRENGTHS[best]), float(likelihood[best] - alike)


def _without_own_fold(
    labels: Floats, rows: Floats, strength: float, own: Indices, mass: Floats, fold: Indices | None
) -> Floats:
    """ê of each labeled row from the labels of the other folds, scaled to all of them."""
    common, found = labels.sum() / rows.sum(), np.empty(len(own))
    if fold is None:
        return shrunk(labels, rows, strength, common)[own]
    for k in np.unique(fold):
        here = fold == k
        others = labels - counted(own[here], mass[here], len(labels))
        scale = labels.sum() / max(others.sum(), np.finfo(np.float64).tiny)
        found[here] = shrunk(others * scale, rows, strength, common)[own[here]]
    return found
