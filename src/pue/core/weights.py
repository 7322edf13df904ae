"""Row weights: the second axis of a PU risk, Σ w⁺ ℓ(g) ⊕ Σ w⁻ ℓ(−g).

w⁺ stands for the positives and lies on labeled rows only; the *background* is a sample of p(x) of mass one, and
w⁻ = background − w⁺. SCAR, PUe and the oracle differ only in w⁺; the two sampling scenarios only in the
background. All weights are global: computed once over the whole sample, and a mini-batch rescales them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pue.core.data import (
    Scenario,
    population_rows,
    require_prior,
    require_propensity,
    require_sample_weight,
    require_vector,
)
from pue.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class RowWeights:
    """The weight of every row in the positive and in the negative part of the risk.

    >>> w = uniform(torch.tensor([1, 1, 0, 0]), prior=0.5)
    >>> w.positive, w.negative
    (tensor([0.2500, 0.2500, 0.0000, 0.0000], dtype=torch.float64),
     tensor([0.0000, 0.0000, 0.2500, 0.2500], dtype=torch.float64))
    """

    positive: Tensor
    negative: Tensor

    @property
    def background(self) -> Tensor:
        """w⁺ + w⁻: for every weighting but PUbN's a sample of p(x), with mass one."""
        return self.positive + self.negative

    def take(self, index: Tensor, factor: Tensor) -> RowWeights:
        """The weights of some rows, each scaled by how much of the sample it now stands for."""
        return RowWeights(self.positive[index] * factor, self.negative[index] * factor)

    def to(self, device: torch.device, dtype: torch.dtype) -> RowWeights:
        return RowWeights(self.positive.to(device, dtype), self.negative.to(device, dtype))


def background(labels: Tensor, scenario: Scenario, sample_weight: Tensor | None = None) -> Tensor:
    """The rows that are a draw from p(x), with mass one: all of a single sample; U alone in case-control.

    >>> background(torch.tensor([1, 0, 0]), Scenario.CASE_CONTROL)
    tensor([0.0000, 0.5000, 0.5000], dtype=torch.float64)
    """
    return _normalized(_row_mass(labels, sample_weight) * population_rows(labels, scenario), "population")


def uniform(
    labels: Tensor,
    *,
    prior: float,
    scenario: Scenario = Scenario.SINGLE_SAMPLE,
    sample_weight: Tensor | None = None,
) -> RowWeights:
    """w⁺ = π / n_P on each labeled row: uPU and nnPU, which assume SCAR."""
    require_prior(prior, labels, scenario, sample_weight)
    mass = _row_mass(labels, sample_weight) * (labels == 1)
    return _against_background(prior * _normalized(mass, "labeled"), labels, scenario, sample_weight)


def normalized_inverse_propensity(
    labels: Tensor,
    propensity: Tensor,
    *,
    prior: float,
    scenario: Scenario = Scenario.SINGLE_SAMPLE,
    sample_weight: Tensor | None = None,
) -> RowWeights:
    """w⁺ = π ω, ω = (1/e) / Σ_P (1/e): PUe's weights (Eqs. 6, 7). `propensity` is that of the labeled rows, in order.

    A constant propensity gives `uniform`; a common factor on all propensities changes nothing. An infinite propensity
    marks a row that was trimmed: it gets no weight.

    >>> w = normalized_inverse_propensity(torch.tensor([1, 1, 0, 0, 0]), torch.tensor([0.3, 0.1]), prior=0.4)
    >>> w.positive[:2]
    tensor([0.1000, 0.3000], dtype=torch.float64)
    """
    require_prior(prior, labels, scenario, sample_weight)
    mass = _inverse(labels, propensity, sample_weight)
    return _against_background(prior * _normalized(mass, "labeled"), labels, scenario, sample_weight)


def pu(
    labels: Tensor,
    propensity: Tensor | None,
    *,
    prior: float,
    scenario: Scenario = Scenario.SINGLE_SAMPLE,
    sample_weight: Tensor | None = None,
) -> RowWeights:
    """`normalized_inverse_propensity` where propensities are given, else `uniform`: PUe, or SCAR."""
    if propensity is None:
        return uniform(labels, prior=prior, scenario=scenario, sample_weight=sample_weight)
    return normalized_inverse_propensity(
        labels, propensity, prior=prior, scenario=scenario, sample_weight=sample_weight
    )


def inverse_propensity(
    labels: Tensor,
    propensity: Tensor,
    *,
    scenario: Scenario = Scenario.SINGLE_SAMPLE,
    sample_weight: Tensor | None = None,
) -> RowWeights:
    """w⁺ = 1 / (n e) (Bekker et al. 2019): unbiased, needs no prior, but its mass is π only in expectation.

    n counts the rows of the background, so in case-control e is a labeling probability per row of U (a
    propensity estimated on the pooled rows must be turned into odds first).
    """
    mass = _inverse(labels, propensity, sample_weight)
    n = (_row_mass(labels, sample_weight) * population_rows(labels, scenario)).sum()
    return _against_background(mass / n, labels, scenario, sample_weight)


def unlabeled_as_negative(labels: Tensor, sample_weight: Tensor | None = None) -> RowWeights:
    """1/n on every row, unlabeled rows taken for negatives: the naive baseline. It is biased.

    >>> unlabeled_as_negative(torch.tensor([1, 0])).negative
    tensor([0.0000, 0.5000], dtype=torch.float64)
    """
    return supervised(labels == 1, sample_weight)


def supervised(y: Tensor, sample_weight: Tensor | None = None) -> RowWeights:
    """1/n on every row by its true class: the ceiling that needs the truth.

    >>> supervised(torch.tensor([1, 0])).positive
    tensor([0.5000, 0.0000], dtype=torch.float64)
    """
    mass = _normalized(_row_mass(y, sample_weight), "given")
    return RowWeights(mass * (y == 1), mass * (y != 1))


def biased_negatives(
    labels: Tensor, *, rho: float, propensity: Tensor | None = None, sample_weight: Tensor | None = None
) -> Tensor:
    """ρ ω on the rows labeled −1, ω normalised over these rows alone (PUbN; with a propensity: PUbNe).

    >>> biased_negatives(torch.tensor([1, 0, -1, -1]), rho=0.2)
    tensor([0.0000, 0.0000, 0.1000, 0.1000], dtype=torch.float64)
    """
    chosen = labels == -1
    if not chosen.any():
        raise InvalidInput("no row is labeled negative. Mark known negatives with -1, or use PUbN without them.")
    if not 0 < rho < 1:
        raise InvalidInput(f"rho must lie in (0, 1); got {rho}. Pass the share of negatives that could be labeled.")
    mass = _row_mass(labels, sample_weight) * chosen
    if propensity is not None:
        require_propensity(propensity, int(chosen.sum()))
        mass[chosen] /= propensity.to(mass)
    return rho * _normalized(mass, "labeled negative")


def pubn_region(weights: RowWeights, negatives: Tensor | None = None) -> RowWeights:
    """PUbN's first step: P and the biased negatives together are "positive", so that the score learns σ.

    σ(x) = P(x lies in the region from which labels come).
    """
    if negatives is None:
        return weights
    return RowWeights(weights.positive + negatives, weights.negative - negatives)


def pubn(weights: RowWeights, sigma: Tensor, *, eta: float, negatives: Tensor | None = None) -> RowWeights:
    """PUbN's last step (Hsieh et al. 2019), every weight non-negative:

        π·E_P[ℓ(g) + k ℓ(−g)] + ρ·E_bN[(1 + k) ℓ(−g)] + E_p[1{σ ≤ η} (1 − σ) ℓ(−g)],   k = 1{σ > η} (1 − σ) / σ

    `sigma` is P(in the labeled region | x) of every row, `negatives` the weights of the biased negatives; without
    them this is PUbN\\N. With propensity weights inside `weights` and `negatives` it is PUbNe.
    """
    require_vector("sigma", sigma, len(weights.positive))
    if not 0 <= eta <= 1:
        raise InvalidInput(f"eta must lie in [0, 1]; got {eta}. pubn_threshold gives one.")
    if not bool(((sigma >= 0) & (sigma <= 1)).all()):
        raise InvalidInput("sigma must hold probabilities in [0, 1]. Pass the scores through a sigmoid.")
    sigma = sigma.to(weights.positive)
    labeled_region = sigma > eta
    odds = torch.where(labeled_region, (1 - sigma) / sigma.clamp(min=torch.finfo(sigma.dtype).tiny), 0.0)
    far = torch.where(labeled_region, 0.0, 1 - sigma)
    negative = weights.positive * odds + weights.background * far
    if negatives is not None:
        negative = negative + negatives * (1 + odds)
    return RowWeights(weights.positive, negative)


def pubn_threshold(sigma: Tensor, *, prior: float, rho: float = 0.0, tau: float = 0.9) -> float:
    """η: the τ(1 − π − ρ) quantile of σ on rows drawn from p(x), interpolated (the authors' code takes whole percents).

    >>> pubn_threshold(torch.arange(5.0), prior=0.5, tau=0.5)
    1.0
    """
    if not (0 < tau <= 1 and prior > 0 and rho >= 0 and prior + rho < 1):
        raise InvalidInput(f"tau must lie in (0, 1] and prior + rho below 1; got tau={tau}, prior={prior}, rho={rho}.")
    require_vector("sigma", sigma)
    if len(sigma) == 0:
        raise InvalidInput("sigma is empty. Pass the values of rows drawn from p(x).")
    ordered = sigma.double().sort().values
    # torch.quantile refuses more than 2²⁴ values; linear interpolation by hand does not.
    position = tau * (1 - prior - rho) * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return float(torch.lerp(ordered[low], ordered[high], position - low))


def effective_sample_size(weights: Tensor) -> float:
    """Kish's (Σw)² / Σw²: how many equally weighted rows would be as informative.

    >>> effective_sample_size(torch.tensor([0.25, 0.75]))
    1.6
    """
    weights = weights.double()
    return float(weights.sum().square() / weights.square().sum())


def _row_mass(labels: Tensor, sample_weight: Tensor | None) -> Tensor:
    require_vector("labels", labels)
    if sample_weight is None:
        return torch.ones(len(labels), dtype=torch.float64)
    require_sample_weight(sample_weight, len(labels))
    return sample_weight.double()


def _normalized(mass: Tensor, rows: str) -> Tensor:
    total = mass.sum()
    if not total > 0:
        raise InvalidInput(f"the {rows} rows have no weight at all: there are none, or all have sample_weight 0.")
    return mass / total


def _inverse(labels: Tensor, propensity: Tensor, sample_weight: Tensor | None) -> Tensor:
    labeled = labels == 1
    require_propensity(propensity, int(labeled.sum()), trimmed=True)
    mass = torch.zeros(len(labels), dtype=torch.float64)
    mass[labeled] = _row_mass(labels, sample_weight)[labeled] / propensity.double()
    return mass


def _against_background(
    positive: Tensor, labels: Tensor, scenario: Scenario, sample_weight: Tensor | None
) -> RowWeights:
    return RowWeights(positive, background(labels, scenario, sample_weight) - positive)
