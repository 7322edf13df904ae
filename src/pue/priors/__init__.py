"""Estimators of the class prior π = P(positive), one file each: `PRIORS`. `estimate_prior` adds an interval."""

from __future__ import annotations

from pue.priors.bbe import bbe
from pue.priors.clustered import clustered
from pue.priors.dedpul import dedpul
from pue.priors.elkan_noto import elkan_noto
from pue.priors.evidence import Evidence, evidence
from pue.priors.interval import ESTIMATE, PriorEstimate, estimate_prior
from pue.priors.inverse_propensity import inverse_propensity
from pue.priors.km2 import km2
from pue.priors.registry import PRIORS, PriorEstimator
from pue.priors.tice import tice

__all__ = [
    "ESTIMATE", "PRIORS", "Evidence", "PriorEstimate", "PriorEstimator", "bbe", "clustered", "dedpul", "elkan_noto",
    "estimate_prior", "evidence", "inverse_propensity", "km2", "tice",
]  # fmt: skip
