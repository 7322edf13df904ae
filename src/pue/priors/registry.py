"""What an estimator of the prior is, and all of them by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pue.core.data import PUData
from pue.priors.bbe import bbe
from pue.priors.clustered import denoised, from_denoised
from pue.priors.communities import from_groups, grouped, span
from pue.priors.dedpul import dedpul
from pue.priors.elkan_noto import elkan_noto
from pue.priors.evidence import Evidence, as_evidence
from pue.priors.inverse_propensity import inverse_propensity
from pue.priors.km2 import km2
from pue.priors.tice import tice


def _as_it_is(rows: Evidence) -> Evidence:
    return rows


@dataclass(frozen=True)
class PriorEstimator:
    """A function of the evidence, and what must hold for it to be right."""

    estimate: Callable[[Evidence], float]
    assumption: str
    summary: str
    prepare: Callable[[Evidence], Evidence] = _as_it_is
    """Done once, however many bootstrap samples follow."""
    span: Callable[[Evidence], tuple[float, float]] | None = None
    """What else the evidence leaves possible, beside chance."""
    scored: bool = True
    """Whether it looks at the chances of a label, which take a model."""

    def __call__(self, data: PUData | Evidence) -> float:
        """π̂ of `data`, inside the range the data allow."""
        return self.estimate(self.prepare(as_evidence(data)))


PRIORS: dict[str, PriorEstimator] = {
    "bbe": PriorEstimator(bbe, "SCAR", "ratio of U to P at the top of the scores"),
    "clustered": PriorEstimator(
        from_denoised, "SCAR inside clusters", "best bins inside clusters of the labeled rows", prepare=denoised
    ),
    "communities": PriorEstimator(
        from_groups,
        "groups of similar rows are of one class, and all kinds of positives get labels",
        "size of the groups above the gap between rates of labels",
        prepare=grouped,
        span=span,
        scored=False,
    ),
    "dedpul": PriorEstimator(dedpul, "SCAR", "fixed point of the posterior from a ratio of score densities"),
    "elkan_noto": PriorEstimator(elkan_noto, "SCAR", "mean score of U over that of P"),
    "inverse_propensity": PriorEstimator(
        inverse_propensity, "classes do not overlap", "each labeled row stands for 1/e positives"
    ),
    "km2": PriorEstimator(km2, "SCAR", "how much of P can be taken out of U, by kernel mean embeddings"),
    "tice": PriorEstimator(tice, "SCAR", "largest rate of labels in a box, by trees"),
}
