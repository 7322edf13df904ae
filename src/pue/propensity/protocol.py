"""What a propensity estimator is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from torch import Tensor

from pue.data import Features, PUData, select

PropensityModel = Callable[[Features], Tensor]
"""Features → ê of every row, float64, not yet clipped."""


@runtime_checkable
class PropensityEstimator(Protocol):
    """Anything with this `fit`; values, not objects that change.

    The scale of ê is that of e: labels per row of the population. An estimator that learns from labeled and unlabeled
    rows pooled turns its probabilities into odds in case-control, where the labeled rows stand beside the population.
    """

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> PropensityModel: ...


def training_propensity(model: PropensityModel, data: PUData) -> Tensor:
    """ê of the labeled rows the model was fitted on: out of fold, where the model kept those."""
    kept: Tensor | None = getattr(model, "held_out", None)
    return model(select(data.x, data.labeled)) if kept is None else kept
