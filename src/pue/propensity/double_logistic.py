"""Joint maximum likelihood with f and e both logistic (Furmańczyk, Mielniczuk, Rejchel and Teisseyre 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize

from pue.core.data import PUData, Scenario
from pue.core.regression import Array, Regression, sigmoid
from pue.errors import InvalidInput
from pue.persistence import kept
from pue.propensity.latent import expectation, pooled_prior, row_mass
from pue.propensity.newton import Design, LinearModel
from pue.propensity.protocol import PropensityModel
from pue.propensity.sarem import initial


@kept
@dataclass(frozen=True)
class DoubleLogistic:
    """max of Σ s log(f e) + (1 − s) log(1 − f e) − (|β_f|² + |β_e|²) / (2C), by L-BFGS from several starts.

    The sum is the one that `SAREM` climbs, here without its one start and its slow last iterations. Exchanging f and e
    leaves it unchanged; of the two readings, f is the one whose mean is nearer to the prior. Where π and the mean of e
    are alike, that is a toss of a coin: look at both. Case-control: see `latent`.
    """

    C: float = 1.0
    """Inverse strength of the penalty, as in scikit-learn; intercepts are not penalised."""
    starts: int = 5
    """The first is SAR-EM's, the others are random. The highest sum wins."""

    def __post_init__(self) -> None:
        if self.starts < 1:
            raise InvalidInput(f"starts must be at least 1; got {self.starts}.")

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> PropensityModel:
        design, mass, s = Design.of(data.x, data.sample_weight), row_mass(data), data.labeled.numpy().astype(np.float64)
        z = design(data.x)
        regression, rng = Regression(z, C=self.C), np.random.default_rng(seed)
        points = [np.concatenate([solution.beta for solution in initial(regression, s, mass)])]
        points += [rng.standard_normal(2 * z.shape[1]) for _ in range(self.starts - 1)]
        options = {"maxiter": 1000, "maxcor": 20, "ftol": 1e-15, "gtol": 1e-9}
        settled = (z, s, mass, regression.penalty)
        climb = partial(minimize, negative_log_likelihood, args=settled, jac=True, method="L-BFGS-B", options=options)
        best = min(map(climb, points), key=lambda result: float(result.fun))
        readings = np.split(best.x, 2)
        wanted = pooled_prior(data, prior)
        gaps = [abs(float(mass @ sigmoid(z @ beta)) / mass.sum() - wanted) for beta in readings]
        beta = readings[1] if gaps[0] <= gaps[1] else readings[0]
        return LinearModel(design, beta, odds=data.scenario is Scenario.CASE_CONTROL)


def negative_log_likelihood(beta: Array, z: Any, s: Array, mass: Array, penalty: Array) -> tuple[float, Array]:
    """−(Σ log P(s | x) − penalty) / Σ mass and its gradient; `beta` holds β_f, then β_e.

    By Fisher's identity the gradient needs only q = P(positive | x, s): Σ (q − f) z and Σ q (s − e) z.
    """
    f_beta, e_beta = np.split(beta, 2)
    f_margin, e_margin = z @ f_beta, z @ e_beta
    q, log_p = expectation(f_margin, e_margin, s)
    value = penalty @ (f_beta**2 + e_beta**2) / 2 - mass @ log_p
    f_gradient = penalty * f_beta - z.T @ (mass * (q - sigmoid(f_margin)))
    e_gradient = penalty * e_beta - z.T @ (mass * q * (s - sigmoid(e_margin)))
    total = mass.sum()
    return float(value / total), np.concatenate([f_gradient, e_gradient]) / total
