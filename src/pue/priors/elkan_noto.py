"""Elkan and Noto's prior (2008): how often is a held-out labeled row recognised as labeled?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pue.core.data import PUData, Scenario
from pue.priors.evidence import Evidence, held_out_probability
from pue.priors.shares import held_inside, lowest_prior


def elkan_noto(data: PUData | Evidence, *, folds: int | None = None) -> float:
    """π̂ from a cross-fitted q(x) = P(labeled | x), a logistic one unless the evidence has its own.

    It assumes SCAR and classes that hardly overlap. Single sample: c = mean of q over held-out labeled rows,
    π = P(labeled) / c. Case-control: mean_U q / mean_P q. Under biased labeling it is too low: in a separable single
    sample it tends to π·ē² / E[e²].
    """
    rows = data if isinstance(data, Evidence) else scores_only(data, *held_out_probability(data, folds=folds))
    on_labeled = _mean(rows, rows.labeled)
    if rows.scenario is Scenario.CASE_CONTROL:
        return held_inside(_mean(rows, rows.unlabeled) / on_labeled, rows, "Elkan-Noto")
    return held_inside(lowest_prior(rows) / on_labeled, rows, "Elkan-Noto")


def scores_only(data: PUData, q: Tensor, fold: Tensor) -> Evidence:
    """Evidence without features: principal components of images would be computed for nothing."""
    return Evidence(
        data.labels.numpy(), data.scenario, data.mass.numpy(), q.numpy(), np.empty((len(q), 0)), fold.numpy()
    )


def _mean(rows: Evidence, mask: NDArray[np.bool_]) -> float:
    return float(np.average(rows.q[mask], weights=rows.mass[mask]))
