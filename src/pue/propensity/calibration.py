"""Held-out estimates, set right against the held-out labels: how many labels are there per row of the population?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from torch import Tensor

Fit = Callable[[Tensor, Tensor, Tensor], "Power | Steps"]


@dataclass(frozen=True)
class Power:
    """ê ← min(1, factor · ê^exponent): a line in the logarithm, so two numbers whatever n is (Platt 1999)."""

    exponent: float
    factor: float

    def __call__(self, e: Tensor) -> Tensor:
        return (self.factor * e.pow(self.exponent)).clamp(max=1.0)


@dataclass(frozen=True, eq=False)
class Steps:
    """ê ← a monotone curve through `knots`; outside them it is level (isotonic, Zadrozny and Elkan 2002)."""

    knots: Tensor
    values: Tensor

    def __call__(self, e: Tensor) -> Tensor:
        return torch.from_numpy(np.interp(e.numpy(), self.knots.numpy(), self.values.numpy()))


def fit_power(e: Tensor, labeled: Tensor, mass: Tensor) -> Power:
    line = LogisticRegression(C=np.inf, solver="newton-cholesky").fit(
        e.log()[:, None].numpy(), labeled.numpy(), mass.numpy()
    )
    return Power(float(line.coef_[0, 0]), float(np.exp(line.intercept_[0])))


def fit_steps(e: Tensor, labeled: Tensor, mass: Tensor) -> Steps:
    curve = IsotonicRegression().fit(e.numpy(), labeled.double().numpy(), mass.numpy())
    share = torch.from_numpy(curve.y_thresholds_)
    lowest = share[share > 0].min()  # a new row below every label is rare, not impossible
    odds = (share.clamp(min=float(lowest)) / (1 - share)).clamp(max=1.0)
    return Steps(torch.from_numpy(curve.X_thresholds_), odds)


CALIBRATIONS: dict[str, Fit] = {"platt": fit_power, "isotonic": fit_steps}


def fit_calibration(
    kind: str, labeled: Tensor, reference: Tensor, *, labeled_mass: Tensor, reference_mass: Tensor
) -> Power | Steps:
    """The map from held-out estimates to labels per row of the population.

    Labels are set against rows of the population (`reference`, whose mass is that of the whole population). The odds of
    the two are the rate e · P(positive) in a single sample as in case-control: the reference rows stand for the
    population, not for the unlabeled.

    >>> e = torch.tensor([0.1, 0.4], dtype=torch.float64)
    >>> one = torch.ones(2, dtype=torch.float64)
    >>> power = fit_calibration("platt", e, e, labeled_mass=one * torch.tensor([1, 4]), reference_mass=10 * one)
    >>> round(power.exponent, 3), round(power.factor, 3)
    (1.0, 1.0)
    """
    e = torch.cat([labeled, reference]).clamp(min=torch.finfo(torch.float64).tiny)
    target = torch.cat([torch.ones(len(labeled)), torch.zeros(len(reference))])
    return CALIBRATIONS[kind](e, target, torch.cat([labeled_mass, reference_mass]))
