"""Estimators of the propensity e(x) = P(labeled | x, positive), one file each.

An estimator is a frozen value with `fit(data, prior=…, seed=…) -> model`; a model maps features to ê. `PROPENSITIES`
names them.
"""

from __future__ import annotations

from pue.propensity.constant import Constant
from pue.propensity.logistic import Logistic
from pue.propensity.process import PropensityReport, process
from pue.propensity.protocol import PropensityEstimator, PropensityModel, training_propensity

PROPENSITIES: dict[str, PropensityEstimator] = {
    "auto": Logistic(),
    "constant": Constant(),
    "logistic": Logistic(),
}

__all__ = [
    "PROPENSITIES",
    "Constant",
    "Logistic",
    "PropensityEstimator",
    "PropensityModel",
    "PropensityReport",
    "process",
    "training_propensity",
]
