"""Estimators of the propensity e(x) = P(labeled | x, positive), one file each.

An estimator is a frozen value with `fit(data, prior=…, seed=…) -> model`; a model maps features to ê. `PROPENSITIES`
names them.
"""

from __future__ import annotations

from pue.errors import InvalidInput, lookup
from pue.propensity.anchor import Anchor, LocalCertainty
from pue.propensity.auto import Auto
from pue.propensity.boosted import Boosted
from pue.propensity.clipping import FLOOR, PropensityReport, clip_propensity
from pue.propensity.communities import Communities
from pue.propensity.crossfit import CrossFit
from pue.propensity.double_logistic import DoubleLogistic
from pue.propensity.em import LBE, DeepSAREM
from pue.propensity.estimate import LabeledPropensity, estimate_propensity, judge_propensity, training_propensity
from pue.propensity.groups import Constant, Groups
from pue.propensity.known import Known
from pue.propensity.likely import Likely
from pue.propensity.logistic import Logistic
from pue.propensity.neighbors import Neighbors
from pue.propensity.network import Network
from pue.propensity.patches import Patches
from pue.propensity.pool import Pool
from pue.propensity.protocol import PropensityEstimator, PropensityModel, fit_estimator, negatives_for_positives
from pue.propensity.sarem import SAREM

PROPENSITIES: dict[str, PropensityEstimator] = {
    "anchor": Anchor(),
    "auto": Auto(),
    "boosted": Boosted(),
    "communities": Communities(),
    "constant": Constant(),
    "double_logistic": DoubleLogistic(),
    "lbe": LBE(),
    "likely": Likely(),
    "local_certainty": LocalCertainty(),
    "logistic": Logistic(),
    "neighbors": CrossFit(Neighbors(), 10),
    "network": Network(),
    "patches": Patches(),
    "sarem": SAREM(),
    "sarem_deep": DeepSAREM(),
}


def find_propensity(chosen: str | PropensityEstimator) -> PropensityEstimator:
    """An estimator by name, or the given one; anything else is an error.

    >>> find_propensity("logistic")
    Logistic(C=1.0)
    """
    if isinstance(chosen, str):
        return lookup("propensity", chosen, PROPENSITIES, "known")
    if not isinstance(chosen, PropensityEstimator):
        raise InvalidInput(f"propensity must be a name or have a method fit(data, prior=…, seed=…); got {chosen!r}.")
    return chosen


__all__ = [
    "FLOOR", "LBE", "PROPENSITIES", "SAREM", "Anchor", "Auto", "Boosted", "Communities", "Constant", "CrossFit",
    "DeepSAREM", "DoubleLogistic", "Groups", "Known", "LabeledPropensity", "Likely", "LocalCertainty", "Logistic",
    "Neighbors", "Network", "Patches", "Pool", "PropensityEstimator", "PropensityModel", "PropensityReport",
    "clip_propensity", "estimate_propensity", "find_propensity", "fit_estimator", "judge_propensity",
    "negatives_for_positives", "training_propensity",
]  # fmt: skip
