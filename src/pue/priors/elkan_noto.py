"""Elkan and Noto's prior (2008): how often is a held-out labeled row recognised as labeled?"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from pue.data import PUData, Scenario, labeled_share, select
from pue.errors import PueWarning
from pue.folds import content_folds, most_folds
from pue.propensity.logistic import labeled_probability


def elkan_noto(data: PUData, *, folds: int = 5, C: float = 1.0) -> float:
    """π̂ from a cross-fitted logistic q(x) = P(labeled | x). It assumes SCAR and classes that hardly overlap.

    Single sample: c = mean of q over held-out labeled rows, π = P(labeled) / c. Case-control: mean_U q / mean_P q.
    Under biased labeling it is too low: in a separable single sample it tends to π·ē² / E[e²].
    """
    q = _held_out(data, folds, C)
    mass = torch.ones_like(q) if data.sample_weight is None else data.sample_weight.double()
    on_labeled = _mean(q, mass, data.labeled)
    if data.scenario is Scenario.CASE_CONTROL:
        lowest, estimate = 0.0, _mean(q, mass, data.unlabeled) / on_labeled
    else:
        lowest = labeled_share(data.labels, data.sample_weight)
        estimate = lowest / on_labeled
    if not lowest < estimate < 1:
        warnings.warn(
            f"Elkan-Noto's prior came out as {estimate:.3g}; it is held inside ({lowest:.3g}, 0.99). Labeled rows are "
            "hard to recognise here: pass the prior if you know it.",
            PueWarning,
            stacklevel=2,
        )
    return min(max(estimate, lowest + 1e-6), 0.99)


def _held_out(data: PUData, folds: int, C: float) -> Tensor:
    """q of every row, from a model that has seen neither the row nor a copy of it."""
    folds = min(folds, most_folds(data.x, data.labels))
    if folds < 2:
        warnings.warn(
            "too few distinct rows to hold any out: the prior is estimated on the rows the model was fitted to and "
            "will be too low. Pass the prior if you know it.",
            PueWarning,
            stacklevel=3,
        )
        return labeled_probability(data.x, data.labeled, data.sample_weight, C=C)(data.x)
    fold = torch.from_numpy(content_folds(data.x, data.labels, folds))
    q = torch.empty(data.n_rows, dtype=torch.float64)
    for k in range(folds):
        rest, held = fold != k, fold == k
        weight = None if data.sample_weight is None else data.sample_weight[rest]
        q[held] = labeled_probability(select(data.x, rest), data.labeled[rest], weight, C=C)(select(data.x, held))
    return q


def _mean(values: Tensor, mass: Tensor, mask: Tensor) -> float:
    return float((values * mass)[mask].sum() / mass[mask].sum())
