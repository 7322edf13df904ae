"""The prior with its uncertainty: a Bayesian bootstrap over the rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from pue.data import PUData, Scenario
from pue.errors import InvalidInput, PueWarning, UnknownName
from pue.priors.evidence import Evidence, Floats, evidence
from pue.priors.protocol import PriorEstimator
from pue.priors.registry import PRIORS
from pue.priors.shares import lowest_prior

FEWEST = 10
"""Rows of either kind below which neither an estimate nor a bootstrap means anything."""


@dataclass(frozen=True)
class PriorEstimate:
    """π̂, an interval around it, and what both rest on.

    >>> print(PriorEstimate(0.412, 0.38, 0.45, 0.9, "bbe", "SCAR", 100))
    0.412 (90 % interval 0.380 to 0.450; bbe, assumes SCAR)
    """

    value: float
    low: float
    high: float
    level: float
    method: str
    assumption: str
    n_boot: int

    def __str__(self) -> str:
        interval = f"{100 * self.level:g} % interval {self.low:.3f} to {self.high:.3f}; " if self.n_boot else ""
        return f"{self.value:.3f} ({interval}{self.method}, assumes {self.assumption})"

    def __float__(self) -> float:
        return self.value


def estimate_prior(
    data: PUData,
    method: str = "clustered",
    *,
    level: float = 0.99,
    n_boot: int = 50,
    seed: int = 0,
    q: Any = None,
    fold: Any = None,
    embedding: Any = None,
) -> PriorEstimate:
    """The prior by a method in `PRIORS`, with a bootstrap interval; `n_boot=0` gives the value alone.

    The level is nominal, and the estimators are biased: at 0.99 the intervals held the truth in 94 % to 100 % of small
    samples of seven kinds, at 0.95 in 86 % to 100 %.

    "clustered" stands biased labels; the other methods come out too low under them. `q`, `fold` and `embedding` are
    those of `evidence`: for images pass the out-of-fold probabilities of a network.
    """
    estimator = _find(method)
    if not 0 < level < 1 or n_boot < 0 or n_boot == 1:
        raise InvalidInput(
            f"level must lie in (0, 1) and n_boot be 0 or at least 2; got {level} and {n_boot}. 0.99 and 50 are usual."
        )
    fewest = min(data.n_labeled, int(data.unlabeled.sum()))
    if fewest < FEWEST:
        raise InvalidInput(
            f"estimating the prior needs at least {FEWEST} labeled and {FEWEST} unlabeled rows; there are "
            f"{data.n_labeled} and {int(data.unlabeled.sum())}. Label more rows, or pass the prior if you know it."
        )
    rows = estimator.prepare(evidence(data, q=q, fold=fold, embedding=embedding, seed=seed))
    value = estimator.estimate(rows)
    low, high = _interval(value, _bootstrap(rows, estimator, n_boot, seed), level) if n_boot else (value, value)
    bounds = max(low, lowest_prior(rows)), min(high, 1.0)
    return PriorEstimate(value, *bounds, level, method, estimator.assumption, n_boot)


def _find(method: str) -> PriorEstimator:
    if method not in PRIORS:
        raise UnknownName("prior", method, PRIORS)
    return PRIORS[method]


def _interval(value: float, draws: Floats, level: float) -> tuple[float, float]:
    """Normal, from π̂ − z·sd to π̂ + z·sd, one end moved out by the bootstrap's estimate of the bias.

    Estimators that minimise over thresholds are too low in small samples, and again too low in samples drawn from
    them. Percentiles would count that bias twice: at 90 % they covered the truth in 3 of 50 samples. The bias is only
    allowed for, not taken off: where negatives look like positives, errors in the other direction make up for it.
    """
    reach = float(norm.ppf((1 + level) / 2)) * float(draws.std(ddof=1))
    unbiased = 2 * value - float(draws.mean())
    return min(value, unbiased) - reach, max(value, unbiased) + reach


def _bootstrap(rows: Evidence, estimator: PriorEstimator, n_boot: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PueWarning)
        return np.array([estimator.estimate(rows.reweighted(_draw(rows, rng))) for _ in range(n_boot)])


def _draw(rows: Evidence, rng: np.random.Generator) -> Floats:
    """New weights for every row with the old ones as mean: rows repeated k times and rows of weight k draw alike.

    Exponential weights never vanish, so that no row is lost and equal rows need not be torn apart.
    """
    mass = rng.gamma(rows.mass)
    strata = (
        [np.ones_like(mass, dtype=bool)]
        if rows.scenario is Scenario.SINGLE_SAMPLE
        else [rows.labels == label for label in np.unique(rows.labels)]
    )
    for stratum in strata:
        mass[stratum] *= rows.mass[stratum].sum() / mass[stratum].sum()
    return mass
