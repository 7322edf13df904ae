"""What an estimator of the prior is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pue.data import PUData, Scenario
from pue.priors.evidence import Evidence, as_evidence


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
    scenarios: tuple[Scenario, ...] = tuple(Scenario)

    def __call__(self, data: PUData | Evidence) -> float:
        """π̂ of `data`, inside the range the data allow."""
        return self.estimate(self.prepare(as_evidence(data)))
