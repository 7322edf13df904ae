"""Estimators of the propensity e(x) = P(labeled | x, positive), one file each.

An estimator is a frozen value with `fit(data, prior=…, seed=…) -> model`; a model maps features to ê. `PROPENSITIES`
names them.
"""

from __future__ import annotations

from pue.errors import InvalidInput, UnknownName
from pue.propensity.anchor import Anchor
from pue.propensity.auto import Auto
from pue.propensity.boosted import Boosted
from pue.propensity.constant import Constant
from pue.propensity.crossfit import CrossFit
from pue.propensity.double_logistic import DoubleLogistic
from pue.propensity.examine import examine
from pue.propensity.groups import Groups
from pue.propensity.known import Known
from pue.propensity.lbe import LBE
from pue.propensity.local_certainty import LocalCertainty
from pue.propensity.logistic import Logistic
from pue.propensity.neighbors import Neighbors
from pue.propensity.network import Network
from pue.propensity.patches import Patches
from pue.propensity.pool import Pool
from pue.propensity.process import PropensityReport, process
from pue.propensity.protocol import (
    PropensityEstimator,
    PropensityModel,
    negatives_for_positives,
    training_propensity,
)
from pue.propensity.sarem import SAREM
from pue.propensity.sarem_deep import DeepSAREM

PROPENSITIES: dict[str, PropensityEstimator] = {
    "anchor": Anchor(),
    "auto": Auto(),
    "boosted": Boosted(),
    "constant": Constant(),
    "double_logistic": DoubleLogistic(),
    "lbe": LBE(),
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
        if chosen not in PROPENSITIES:
            raise UnknownName("propensity", chosen, [*PROPENSITIES, "known"])
        return PROPENSITIES[chosen]
    if not isinstance(chosen, PropensityEstimator):
        raise InvalidInput(f"propensity must be a name or have a method fit(data, prior=…, seed=…); got {chosen!r}.")
    return chosen


__all__ = [
    "LBE",
    "PROPENSITIES",
    "SAREM",
    "Anchor",
    "Auto",
    "Boosted",
    "Constant",
    "CrossFit",
    "DeepSAREM",
    "DoubleLogistic",
    "Groups",
    "Known",
    "LocalCertainty",
    "Logistic",
    "Neighbors",
    "Network",
    "Patches",
    "Pool",
    "PropensityEstimator",
    "PropensityModel",
    "PropensityReport",
    "examine",
    "find_propensity",
    "negatives_for_positives",
    "process",
    "training_propensity",
]
