"""Propensities that are known: a formula, or a column of the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pue.core.data import Features, PUData, gather, require_propensity, select
from pue.errors import InvalidInput
from pue.persistence import kept
from pue.propensity.protocol import PropensityModel


@kept
@dataclass(frozen=True)
class Known:
    """ê = e, given as a function of the features or as the index of the column that holds it.

    In case-control e counts labels per row of the population. A function must be importable to be pickled.

    >>> data = PUData(torch.tensor([[0.2, 1.0], [0.4, 2.0]]), torch.tensor([1, 0]))
    >>> Known(0).fit(data, prior=0.5)(data.x)
    tensor([0.2000, 0.4000], dtype=torch.float64)
    """

    e: Callable[[Features], Tensor] | int

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> PropensityModel:
        model = KnownModel(self.e)
        require_propensity(model(select(data.x, data.labeled)), data.n_labeled)
        return model


@kept
@dataclass(frozen=True)
class KnownModel(PropensityModel):
    e: Callable[[Features], Tensor] | int

    def __call__(self, x: Features) -> Tensor:
        values = self.e(x) if callable(self.e) else column(x, self.e)
        return torch.as_tensor(values).double()


def column(x: Features, index: int) -> Tensor:
    """One column of a table, dense."""
    if len(x.shape) != 2 or not -x.shape[1] <= index < x.shape[1]:
        raise InvalidInput(
            f"there is no column {index} in rows of shape {tuple(x.shape[1:])}. Pass the index of a column of a table, "
            "or a function of the features."
        )
    return x[:, index] if isinstance(x, Tensor) else gather(x[:, [index]], torch.arange(x.shape[0]))[:, 0]
