"""A pool of cross-fitted estimators, weighted by what held-out labels say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from pue.core.data import Features, PUData, Scenario, select
from pue.persistence import kept
from pue.propensity.crossfit import CrossFit, CrossFitted, reference_rows
from pue.propensity.features import fit_reduction
from pue.propensity.protocol import PropensityModel
from pue.propensity.smooth import smooth_over_labeled

SMALLEST = 1e-12
NEGLIGIBLE = 0.01
"""A smaller share of the pool buys nothing, and a search among neighbors for it would cost most of the time."""


@kept
@dataclass(frozen=True)
class Pool:
    """p̂ = Σ_m λ_m p̂_m with λ on the simplex that make the held-out labels most likely; p is P(labeled | x).

    So the pool itself chooses how much to trust a network, over how many neighbors to smooth and how far to shrink,
    without a single true class. And because it is linear, a member that calls a labeled row nearly impossible cannot
    give it an enormous weight alone: ê ≥ λ_m ê_m for every member.
    """

    shares_out: ClassVar = True
    members: Mapping[str, CrossFit]
    smooth: bool = True
    """Whether the labeled rows' ê are averaged over their nearest labeled rows, see `smooth_over_labeled`."""
    overlap: bool = False
    """Whether classes may overlap: ê is then kept at or above `certain_floor`."""

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> Pooled:
        fitted = {name: member.fit(data, prior=prior, seed=seed) for name, member in self.members.items()}
        labeled = torch.cat([member.labeled_columns for member in fitted.values()], dim=1)
        reference = torch.cat([member.reference_columns for member in fitted.values()], dim=1)
        shares = _shares(data, labeled, reference)
        names = [name for member, model in fitted.items() for name in _column_names(member, model)]
        held_out, neighbors = _pool(labeled, shares, data.scenario), 0
        if self.smooth:
            reduction = fit_reduction(data.x, seed=seed)
            held_out, neighbors = smooth_over_labeled(
                held_out, reduction(select(data.x, data.labeled)), data.mass[data.labeled]
            )
        population = _pool(reference, shares, data.scenario)
        floor = certain_floor(population, prior, data.mass[reference_rows(data)]) if self.overlap else 0.0
        of_candidates = dict(zip(names, shares.tolist(), strict=True))
        held_out = held_out.clamp(min=floor)
        return Pooled(fitted, of_candidates, data.scenario, held_out, population, neighbors, floor)


@kept
@dataclass(frozen=True, eq=False)
class Pooled(PropensityModel):
    """Members and their shares."""

    members: dict[str, CrossFitted]
    shares: dict[str, float]
    """λ of every candidate."""
    scenario: Scenario
    held_out: Tensor | None = None
    reference: Tensor | None = None
    """Neither smoothed nor kept above a floor: its sum is the number of labels."""
    neighbors: int = 0
    """Over how many other labeled rows `held_out` was smoothed."""
    floor: float = 0.0
    """No ê is below; see `certain_floor`."""

    def __call__(self, x: Features) -> Tensor:
        columns, shares = [], []
        for name, member in self.members.items():
            own = [self.shares[column] for column in _column_names(name, member)]
            if any(own):
                columns.append(member.columns(x))
                shares += own
        pooled = _pool(torch.cat(columns, dim=1), torch.tensor(shares, dtype=torch.float64), self.scenario)
        return pooled.clamp(min=self.floor)

    def few(self, n: int) -> Pooled:
        """The same with n models of every member, see `CrossFitted.few`."""
        return replace(self, members={name: member.few(n) for name, member in self.members.items()})

    @property
    def description(self) -> str:
        counted = sorted(self.shares.items(), key=lambda item: -item[1])
        text = "cross-fitted " + ", ".join(f"{name} {share:.0%}" for name, share in counted if share >= 0.005)
        text += f"; smoothed over {self.neighbors} labeled neighbors" if self.neighbors else ""
        return text + (f"; at least {self.floor:.3g}" if self.floor else "")


def certain_floor(r: Tensor, prior: float, mass: Tensor | None = None) -> float:
    """τ of ê = max(r, τ), given r(x) = P(labeled | x) of rows of the population.

    Labels show r = e f alone, f = P(positive | x). Where classes overlap ê = r is too small: 1/r makes the labeled
    rows look like the whole population. Of all splits with e ≥ r take f = min(1, r/τ), e = max(r, τ), and the τ with
    which f has the mean it must have, the prior:

        E min(1, r/τ) = π.

    Classes that never overlap give a τ below every e, hence ê = r; labels without bias give τ = c, hence ê = c. Both
    are met exactly. In between, rows are taken to be as certainly positive as the prior allows.

    >>> round(certain_floor(torch.tensor([0.0, 0.1, 0.2, 0.4]), prior=0.25), 6)
    0.7
    >>> round(certain_floor(torch.tensor([0.0, 0.1, 0.2, 0.4]), prior=0.625), 6)
    0.2
    """
    r, order = r.double().sort()
    weight = torch.full_like(r, 1 / len(r)) if mass is None else mass.double()[order] / mass.double().sum()
    weight, r = weight[r > 0], r[r > 0]
    # With τ = r_k the rows from k on have f = 1 and those before r / r_k. E f falls as τ grows: find the last τ = r_k
    # where it is still π or more; between it and the next, τ solves a linear equation.
    product = weight * r
    below, certain = product.cumsum(0) - product, weight.flip(0).cumsum(0).flip(0)
    k = int((below / r + certain >= prior).sum())
    if k == 0:
        return 0.0  # fewer rows can be labeled at all than there are positives
    if k == len(r):
        return float(product.sum() / prior)
    return float(below[k] / (prior - certain[k]))


def label_probability(propensity: Tensor, scenario: Scenario) -> Tensor:
    """P(labeled | x) among the pooled rows: ê itself in a single sample, ê / (1 + ê) in case-control."""
    p = propensity / (1 + propensity) if scenario is Scenario.CASE_CONTROL else propensity
    return p.clamp(SMALLEST, 1 - 1e-9)


def mixture_shares(like: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """argmax over the simplex of Σ_i weight_i log Σ_m λ_m like_im, a concave problem.

    >>> mixture_shares(np.array([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]]), np.ones(3)).round(3)
    array([0.708, 0.292])
    """
    members = like.shape[1]
    weight = weight / weight.sum()

    def objective(shares: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        mixed = np.maximum(like @ shares, SMALLEST)
        return -float(weight @ np.log(mixed)), -(weight / mixed) @ like

    found = minimize(
        objective,
        np.full(members, 1 / members),
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * members,
        constraints={"type": "eq", "fun": lambda s: s.sum() - 1, "jac": lambda s: np.ones_like(s)},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    shares = np.clip(found.x, 0, None)
    return np.asarray(shares / shares.sum(), dtype=np.float64)


def _shares(data: PUData, labeled: Tensor, reference: Tensor) -> Tensor:
    """Labeled rows, and the unlabeled ones among the reference rows in place of all that are not labeled."""
    if labeled.shape[1] == 1:
        return torch.ones(1, dtype=torch.float64)
    mass, rows = data.mass, reference_rows(data)
    others = ~data.labeled[rows]
    scale = mass[~data.labeled].sum() / mass[rows[others]].sum()
    like = torch.cat(
        [label_probability(labeled, data.scenario), 1 - label_probability(reference[others], data.scenario)]
    )
    weight = torch.cat([mass[data.labeled], mass[rows[others]] * scale])
    shares = mixture_shares(like.numpy(), weight.numpy())
    shares[shares < NEGLIGIBLE] = 0.0
    return torch.from_numpy(shares / shares.sum())


def _pool(columns: Tensor, shares: Tensor, scenario: Scenario) -> Tensor:
    p = label_probability(columns, scenario) @ shares
    return p / (1 - p) if scenario is Scenario.CASE_CONTROL else p


def _column_names(member: str, model: CrossFitted) -> list[str]:
    return [f"{member} {candidate}".strip() for candidate in model.candidates]
