"""From r(x) = P(labeled | x) to e(x) (Gerych et al. 2022): local certainty, where classes do not overlap and r *is* e,
and the probabilistic gap, where rows that look positive are labeled more often, in proportion."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from pue.core.data import Features, PUData, population_rows
from pue.errors import InvalidInput
from pue.persistence import kept
from pue.propensity.latent import row_mass
from pue.propensity.logistic import Logistic
from pue.propensity.protocol import PropensityEstimator, PropensityModel, fit_estimator


@kept
@dataclass(frozen=True)
class LocalCertainty:
    """ê = r̂, r(x) = P(labeled | x): the base estimator as it is, with the assumption in its name.

    r = e · P(positive | x), so ê is right on positives that could not be negatives, and too small elsewhere.
    """

    base: PropensityEstimator = field(default_factory=Logistic)
    """An estimator of r, not of e."""

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> PropensityModel:
        return fit_estimator(self.base, data, prior=prior, seed=seed)


@kept
@dataclass(frozen=True)
class Anchor:
    """ê = √(k r̂), assuming e(x) = k · P(positive | x) and an anchor x* that is surely positive.

    Then r(x) = P(labeled | x) = k · P(positive | x)², and k = r(x*), the largest r there is.
    """

    base: PropensityEstimator = field(default_factory=Logistic)
    """An estimator of r, not of e."""
    quantile: float = 0.999
    """k is this quantile of r̂ over the rows drawn from p(x); 1 is their maximum, which a single outlier decides."""

    def __post_init__(self) -> None:
        if not 0 < self.quantile <= 1:
            raise InvalidInput(f"quantile must lie in (0, 1]; got {self.quantile}. 1 takes the maximum.")

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> PropensityModel:
        base = fit_estimator(self.base, data, prior=prior, seed=seed)
        drawn = population_rows(data.labels, data.scenario)
        return AnchorModel(
            base, weighted_quantile(base(data.x)[drawn], torch.from_numpy(row_mass(data))[drawn], self.quantile)
        )


@kept
@dataclass(frozen=True, eq=False)
class AnchorModel(PropensityModel):
    base: PropensityModel
    k: float

    def __call__(self, x: Features) -> Tensor:
        return (self.k * self.base(x)).sqrt()


def weighted_quantile(values: Tensor, mass: Tensor, share: float) -> float:
    """The smallest value that at least this share of the mass does not exceed.

    >>> weighted_quantile(torch.tensor([3.0, 1.0, 2.0]), torch.tensor([1.0, 1.0, 2.0]), 0.75)
    2.0
    """
    order = values.argsort()
    reach = mass[order].double().cumsum(0)
    place = int(torch.searchsorted(reach, share * reach[-1] * (1 - 1e-12)))  # less a rounding of the sum
    return float(values[order[min(place, len(values) - 1)]])
