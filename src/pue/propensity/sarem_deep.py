"""SAR-EM (Bekker, Robberechts and Davis 2019) with networks in place of logistic regressions."""

from __future__ import annotations

from dataclasses import dataclass

from pue.propensity.em import NetworkEM, Pair


@dataclass(frozen=True)
class DeepSAREM(NetworkEM):
    """`SAREM` with any backbone, by gradient steps.

    It starts as SAR-EM does: f from labels against the rest, both sides weighing the same; then e from the labels,
    unlabeled rows weighing f.
    """

    def _start(self, pair: Pair) -> None:
        s, mass = pair.s, pair.mass
        share = mass @ s / mass.sum()
        pair.teach(pair.f, mass * s * (1 - share), mass * (1 - s) * share, self.steps)
        pair.teach_propensity(pair.class_probability(), self.steps)
