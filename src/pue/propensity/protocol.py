"""What a propensity estimator is, and what its fitted model can be asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Protocol, runtime_checkable

import torch
from torch import Tensor

from pue.core.data import Features, PUData, Scenario


class PropensityModel(ABC):
    """Features → ê of every row, float64, not yet clipped. A model writes the call; all else has a default."""

    @abstractmethod
    def __call__(self, x: Features) -> Tensor: ...

    @property
    def candidates(self) -> tuple[str, ...]:
        """Names of the columns. Most models have one estimate a row; `Neighbors` has one for every k."""
        return ("",)

    def columns(self, x: Features) -> Tensor:
        """(n, candidates): ê of every candidate."""
        return self(x)[:, None]

    @property
    def held_out(self) -> Tensor | None:
        """ê of the labeled rows it was fitted on, in order, each from a model that has not seen the row."""
        return None

    @property
    def reference(self) -> Tensor | None:
        """ê of `crossfit.reference_rows`, a sample of the population, each from a model that has not seen the row."""
        return None

    @property
    def unseen(self) -> Tensor | None:
        """Mask of the labeled rows that were held out of its training, where some were."""
        return None

    def readings(self, x: Features) -> Tensor:
        """(n, readings): ê of every account of the labels that they leave possible; most models have one. What they
        disagree about is doubt that no number of rows removes."""
        return self(x)[:, None]

    @property
    def hidden_bias(self) -> tuple[float, float]:
        """Log of the factor by which clear positives are labeled more often than others without a sign of it, and how
        far it may be off; see `estimate_metrics(hidden=…)`."""
        return 0.0, 0.0

    def few(self, n: int) -> PropensityModel:
        """A cheaper one for rows that it has not seen: n of its models instead of all."""
        return self

    @property
    def description(self) -> str:
        """What was chosen, for the report; empty: the estimator's name says it all."""
        return ""


class FunctionModel(PropensityModel):
    """A plain function of the features, as a user's own estimator may return it; a saved model cannot hold it."""

    def __init__(self, function: Callable[[Features], Tensor]) -> None:
        self.function = function

    def __call__(self, x: Features) -> Tensor:
        return self.function(x)


@runtime_checkable
class PropensityEstimator(Protocol):
    """Anything with this `fit`; values, not objects that change.

    The scale of ê is that of e: labels per row of the population. An estimator that learns from labeled and unlabeled
    rows pooled turns its probabilities into odds in case-control, where the labeled rows stand beside the population.
    """

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> Callable[[Features], Tensor]: ...


@runtime_checkable
class SharedEstimator(PropensityEstimator, Protocol):
    """An estimator whose folds the processes of a group share out, so that all of them must call it."""

    shares_out: ClassVar[bool]


def fit_estimator(estimator: PropensityEstimator, data: PUData, *, prior: float, seed: int = 0) -> PropensityModel:
    """The fitted model of an estimator."""
    found = estimator.fit(data, prior=prior, seed=seed)
    return found if isinstance(found, PropensityModel) else FunctionModel(found)


def negatives_for_positives(data: PUData) -> PUData:
    """The data as the propensity of its labeled *negatives* is estimated: they are labeled, the rest is not.

    Positives collected beside the sample are no part of it; in a single sample they are rows like others.
    """
    flipped = (data.labels == -1).to(data.labels.dtype)
    rows = ~data.labeled if data.scenario is Scenario.CASE_CONTROL else torch.ones_like(data.labeled)
    return PUData(data.x, flipped, data.scenario, data.sample_weight).take(rows)
