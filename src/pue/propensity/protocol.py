"""What a propensity estimator is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from torch import Tensor

from pue.data import Features, PUData

PropensityModel = Callable[[Features], Tensor]
"""Features → ê of every row, float64, not yet clipped."""


@runtime_checkable
class PropensityEstimator(Protocol):
    """Anything with this `fit`; values, not objects that change."""

    def fit(self, data: PUData, *, prior: float) -> PropensityModel: ...
