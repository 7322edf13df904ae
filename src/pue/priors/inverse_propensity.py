"""The prior that known or estimated propensities imply: each labeled row stands for 1/e positives."""

from __future__ import annotations

from typing import Any

import numpy as np

from pue.core.data import PUData, Scenario
from pue.errors import InvalidInput
from pue.priors.evidence import Evidence, Floats, as_evidence
from pue.priors.shares import held_inside
from pue.propensity.clipping import FLOOR


def inverse_propensity(data: PUData | Evidence, propensity: Any = None) -> float:
    """π̂ = Σ_P (1/e) / n, n the mass of the rows drawn from p(x); e of the labeled rows, in order.

    Without `propensity`, e is the rate of labels around the row, q, or in case-control the odds q / (1 − q). That is
    e(x)·P(positive | x): right where the classes do not overlap, and then under any bias. Where they do overlap it
    tends to the mass of all places where a label can occur, which is too high.
    """
    rows = as_evidence(data)
    e = label_rate(rows) if propensity is None else np.asarray(propensity, dtype=np.float64)
    if e.shape != (int(rows.labeled.sum()),):
        raise InvalidInput(f"propensity must have one entry for each of the {rows.labeled.sum()} labeled rows.")
    population = rows.mass.sum() if rows.scenario is Scenario.SINGLE_SAMPLE else rows.unlabeled_mass
    positives = (rows.mass[rows.labeled] / np.clip(e, FLOOR, 1)).sum()
    return held_inside(float(positives / population), rows, "the inverse propensities'")


def label_rate(rows: Evidence) -> Floats:
    """Labels per row of the population around each labeled row."""
    q = rows.q[rows.labeled]
    return q if rows.scenario is Scenario.SINGLE_SAMPLE else q / np.maximum(1 - q, 1e-12)
