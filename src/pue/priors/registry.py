"""The estimators of the prior by name."""

from __future__ import annotations

from pue.priors.bbe import bbe
from pue.priors.clustered import from_denoised
from pue.priors.dedpul import dedpul
from pue.priors.denoise import denoised
from pue.priors.elkan_noto import elkan_noto
from pue.priors.inverse_propensity import inverse_propensity
from pue.priors.km2 import km2
from pue.priors.protocol import PriorEstimator
from pue.priors.tice import tice

PRIORS: dict[str, PriorEstimator] = {
    "bbe": PriorEstimator(bbe, "SCAR", "ratio of U to P at the top of the scores"),
    "clustered": PriorEstimator(
        from_denoised, "SCAR inside clusters", "best bins inside clusters of the labeled rows", prepare=denoised
    ),
    "dedpul": PriorEstimator(dedpul, "SCAR", "fixed point of the posterior from a ratio of score densities"),
    "elkan_noto": PriorEstimator(elkan_noto, "SCAR", "mean score of U over that of P"),
    "inverse_propensity": PriorEstimator(
        inverse_propensity, "classes do not overlap", "each labeled row stands for 1/e positives"
    ),
    "km2": PriorEstimator(km2, "SCAR", "how much of P can be taken out of U, by kernel mean embeddings"),
    "tice": PriorEstimator(tice, "SCAR", "largest rate of labels in a box, by trees"),
}
