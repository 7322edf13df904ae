"""Local certainty (Gerych et al. 2022): where classes do not overlap, P(labeled | x) *is* the propensity."""

from __future__ import annotations

from dataclasses import dataclass, field

from pue.data import PUData
from pue.propensity.logistic import Logistic
from pue.propensity.protocol import PropensityEstimator, PropensityModel


@dataclass(frozen=True)
class LocalCertainty:
    """ê = r̂, r(x) = P(labeled | x): the base estimator as it is, with the assumption in its name.

    r = e · P(positive | x), so ê is right on positives that could not be negatives, and too small elsewhere.
    """

    base: PropensityEstimator = field(default_factory=Logistic)
    """An estimator of r, not of e."""

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> PropensityModel:
        return self.base.fit(data, prior=prior, seed=seed)
