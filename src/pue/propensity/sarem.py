"""SAR-EM (Bekker, Robberechts and Davis 2019): who is positive, and who gets a label, in turn."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pue.core.data import PUData, Scenario
from pue.core.regression import Array, Regression, Solution, sigmoid
from pue.persistence import kept
from pue.propensity.latent import expectation, row_mass
from pue.propensity.newton import Design, LinearModel
from pue.propensity.protocol import PropensityModel


@kept
@dataclass(frozen=True)
class SAREM:
    """f and e, both logistic in the standardised features, by expectation maximisation of Σ log P(s | x).

    E: q = s + (1 − s) f(1 − e) / (1 − f e). M: e regresses s with weights q; f regresses the soft target q.

    Start, window and thresholds are the authors'. Differences: the intercept is not penalised (liblinear does), and
    the gain that stops the search is that of the penalised log-likelihood, which EM never lowers; the authors watch its
    expected complete-data part, which can fall. The M-steps go on from the last solution. Case-control: see `latent`.

    Where labels are rare the authors' thresholds stop long before ê has settled; 1e-6 for both, or `DoubleLogistic`,
    which climbs the same hill faster, gets to the top.
    """

    C: float = 1.0
    """Inverse strength of the penalty, as in scikit-learn."""
    iterations: int = 500
    window: int = 10
    slope: float = 1e-4
    """Stop when ê of the unlabeled rows moves less than this an iteration, on average over the window …"""
    gain: float = 1e-4
    """… and the mean log-likelihood gained less than this over the window."""

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> PropensityModel:
        design = Design.of(data.x, data.sample_weight)
        found = self.maximize(design(data.x), data.labeled.numpy().astype(np.float64), row_mass(data))
        return LinearModel(design, found.e.beta, odds=data.scenario is Scenario.CASE_CONTROL)

    def maximize(self, z: Any, s: Array, mass: Array) -> Fitted:
        """EM on the matrix `z` (its last column is ones), labels `s` and row weights `mass`."""
        regression = Regression(z, C=self.C)
        f, e = initial(regression, s, mass)
        f_ahead, e_ahead = f, e
        history: list[float] = []
        recent: deque[Array] = deque(maxlen=self.window)
        for iteration in range(self.iterations + 1):
            q, log_p = expectation(f.margin, e.margin, s)
            penalty = regression.penalty @ (f.beta**2 + e.beta**2) / 2
            history.append(float((mass @ log_p - penalty) / mass.sum()))
            recent.append(sigmoid(e.margin))
            if iteration == self.iterations or self._settled(history, recent, mass * (1 - s)):
                break
            e_before, e = e, regression.solve(mass * s, mass * (1 - s) * q, e_ahead)
            f_before, f = f, regression.solve(mass * q, mass * (1 - q), f_ahead)
            e_ahead, f_ahead = _extrapolate(e_before, e), _extrapolate(f_before, f)
        return Fitted(f, e, history)

    def _settled(self, history: list[float], recent: deque[Array], mass: Array) -> bool:
        if len(history) < self.window + 3 or history[-1] - history[-self.window] >= self.gain:
            return False
        time = np.arange(self.window) - (self.window - 1) / 2
        slopes = np.tensordot(time / (time @ time), np.stack(recent), 1)
        return bool(mass @ np.abs(slopes) < self.slope * mass.sum())


@dataclass(frozen=True, eq=False)
class Fitted:
    """Both regressions, and the penalised mean log-likelihood after every iteration."""

    f: Solution
    e: Solution
    history: list[float]


def initial(regression: Regression, s: Array, mass: Array) -> tuple[Solution, Solution]:
    """f from labels against the rest, both sides weighing the same; e from the labels, unlabeled rows weighing f."""
    share = mass @ s / mass.sum()
    f = regression.solve(mass * s * (1 - share), mass * (1 - s) * share, regression.start())
    q, _ = expectation(f.margin, np.full_like(f.margin, -np.inf), s)  # nobody labeled yet: q is f on unlabeled rows
    return f, regression.solve(mass * s, mass * (1 - s) * q, regression.start())


def _extrapolate(before: Solution, now: Solution) -> Solution:
    """EM moves smoothly: the next solution lies about as far ahead as the last one lies behind."""
    return replace(now, beta=2 * now.beta - before.beta, margin=2 * now.margin - before.margin)
