"""What a propensity estimator is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from pue.data import Features, PUData, Scenario, select

PropensityModel = Callable[[Features], Tensor]
"""Features → ê of every row, float64, not yet clipped."""


@runtime_checkable
class PropensityEstimator(Protocol):
    """Anything with this `fit`; values, not objects that change.

    The scale of ê is that of e: labels per row of the population. An estimator that learns from labeled and unlabeled
    rows pooled turns its probabilities into odds in case-control, where the labeled rows stand beside the population.
    """

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> PropensityModel: ...


def negatives_for_positives(data: PUData) -> PUData:
    """The data as the propensity of its labeled *negatives* is estimated: they are labeled, the rest is not.

    Positives collected beside the sample are no part of it; in a single sample they are rows like others.
    """
    flipped = (data.labels == -1).to(data.labels.dtype)
    rows = ~data.labeled if data.scenario is Scenario.CASE_CONTROL else torch.ones_like(data.labeled)
    return PUData(data.x, flipped, data.scenario, data.sample_weight).take(rows)


def training_propensity(model: PropensityModel, data: PUData) -> Tensor:
    """ê of the labeled rows the model was fitted on: out of fold, where the model kept those."""
    kept: Tensor | None = getattr(model, "held_out", None)
    return model(select(data.x, data.labeled)) if kept is None else kept
