"""The prior with its uncertainty: a line through several clues, or one estimator with a Bayesian bootstrap."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scipy import sparse
from scipy.stats import norm

from pue.core.data import PUData, Scenario, is_image, possible_prior, select
from pue.core.folds import row_hash
from pue.core.inputs import as_problem
from pue.errors import InvalidInput, PueWarning, UnknownName
from pue.judging.notebooks import as_html
from pue.persistence import kept
from pue.priors.clues import from_clues
from pue.priors.clustered import clustered
from pue.priors.dedpul import dedpul
from pue.priors.elkan_noto import elkan_noto
from pue.priors.evidence import Evidence, Floats, evidence
from pue.priors.registry import PRIORS, PriorEstimator
from pue.priors.shares import lowest_prior

ESTIMATE = "estimate"
"""Asks for the prior to be estimated in the way that is safest on the data at hand."""
BIASED_SAFE = "clustered"
FEWEST = 10
"""Rows of either kind below which neither an estimate nor a bootstrap means anything."""
VAGUE = 0.3
"""An interval wider than this says little."""
MOST = 8_000
"""Rows of a table that a prior is estimated from."""


@kept
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
    readings: dict[str, float] = field(default_factory=dict)
    """What follows from single assumptions: name → π."""

    @classmethod
    def given(cls, value: float) -> PriorEstimate:
        """A prior that is known: the interval is a point."""
        return cls(value, value, value, 1.0, "given", "nothing", 0)

    @property
    def is_given(self) -> bool:
        return self.method == "given"

    def interval(self, level: float) -> tuple[float, float]:
        """The interval at another level, of the same shape."""
        shrink = norm.ppf((1 + level) / 2) / norm.ppf((1 + self.level) / 2)
        return self.value - shrink * (self.value - self.low), self.value + shrink * (self.high - self.value)

    def __str__(self) -> str:
        if self.is_given:
            return f"{self.value:.3g} (given)"
        interval = f"{100 * self.level:g} % interval {self.low:.3f} to {self.high:.3f}; "
        return f"{self.value:.3f} ({interval if self.low < self.high else ''}{self.method}, assumes {self.assumption})"

    def _repr_html_(self) -> str:
        return as_html("Share of positives", {"estimate": self, **(self.readings or {})})

    def __float__(self) -> float:
        return self.value


def estimate_prior(
    X: Any,
    s: Any = None,
    *,
    method: str = ESTIMATE,
    scenario: str = "single_sample",
    level: float = 0.95,
    n_boot: int = 50,
    seed: int = 0,
) -> PriorEstimate:
    """The prior of features `X` and PU labels `s`, or of a `PUData`, with a bootstrap interval; `n_boot=0` gives the
    value alone.

    `method` is a name in `PRIORS`, or "estimate", which means the same wherever a prior can be asked for. For tables it
    weighs several clues by what they were worth on tables whose truth is known (`clues`); the interval is as wide as
    they were wrong there. It says what single assumptions give instead (`readings`). For images: "clustered", which
    stands biased labels, and where its interval says little, the mean of it and of "dedpul", which assumes SCAR. With
    fewer than 10 rows of a kind: "elkan_noto", between the smallest prior there can be and one.

    The intervals of single estimators show chance alone, not whether what they assume is true. Of tables with more than
    8,000 rows so many are drawn, labeled ones first.
    """
    if method != ESTIMATE and method not in PRIORS:
        raise UnknownName("prior", method, [ESTIMATE, *PRIORS])
    if not 0 < level < 1 or n_boot < 0 or n_boot == 1:
        raise InvalidInput(
            f"level must lie in (0, 1) and n_boot be 0 or at least 2; got {level} and {n_boot}. 0.99 and 50 are usual."
        )
    data = as_problem(X, s, scenario)
    few = min(data.n_labeled, int(data.unlabeled.sum())) < FEWEST
    if few and method != ESTIMATE:
        raise InvalidInput(
            f"estimating the prior needs at least {FEWEST} labeled and {FEWEST} unlabeled rows; there are "
            f"{data.n_labeled} and {int(data.unlabeled.sum())}. Label more rows, or pass the prior if you know it."
        )
    if few:  # warns where it cannot hold rows out; a bootstrap would mean nothing
        lowest = possible_prior(0.0, data.labels, data.scenario, data.sample_weight)
        return PriorEstimate(elkan_noto(data), lowest, 1.0, level, "elkan_noto", PRIORS["elkan_noto"].assumption, 0)
    if method != ESTIMATE:
        return _estimate(evidence(data, scored=PRIORS[method].scored, seed=seed), method, level, n_boot, seed)
    if is_image(data.x):
        return _hedged(evidence(data, seed=seed), level, n_boot, seed)
    return _weighed(evidence(_drawn(data), forest=not sparse.issparse(data.x), seed=seed), level)


def _weighed(rows: Evidence, level: float) -> PriorEstimate:
    """The clues of a table, weighed; beside it what single assumptions give."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PueWarning)  # a clue may lie at an end; the line knows what it is worth there
        value, low, high = from_clues(rows, float(norm.ppf((1 + level) / 2)))
        readings = {
            "no label is missing": lowest_prior(rows),
            "labels are unbiased (dedpul)": dedpul(rows),
            "labels are unbiased inside clusters": clustered(rows),
        }
    if rows.scenario is Scenario.CASE_CONTROL:
        del readings["no label is missing"]
    return PriorEstimate(value, low, high, level, "several clues", "a table like those it was tried on", 0, readings)


def _drawn(data: PUData) -> PUData:
    """At most `MOST` rows of a table, chosen by content; at most half of them labeled. Each then stands for several."""
    if data.n_rows <= MOST or is_image(data.x):
        return data
    order = torch.from_numpy(np.argsort(row_hash(data.x, seed=3), kind="stable"))
    mass, rows, room = data.mass.clone(), [], MOST
    for label, most in ((1, MOST // 2), (-1, MOST // 4), (0, MOST)):
        own = order[(data.labels == label)[order]]
        chosen = own[: min(most, room)]
        mass[chosen] *= mass[own].sum() / mass[chosen].sum() if len(chosen) else 1.0
        room -= len(chosen)
        rows.append(chosen)
    kept = torch.cat(rows).sort().values
    return PUData(select(data.x, kept), data.labels[kept], data.scenario, mass[kept])


def _estimate(rows: Evidence, method: str, level: float, n_boot: int, seed: int) -> PriorEstimate:
    estimator = PRIORS[method]
    rows = estimator.prepare(rows)
    value = estimator.estimate(rows)
    low, high = _interval(value, _bootstrap(rows, estimator, n_boot, seed), level) if n_boot else (value, value)
    if estimator.span is not None:
        others = estimator.span(rows)
        low, high = min(low, others[0]), max(high, others[1])
    bounds = max(low, lowest_prior(rows)), min(high, 1.0)
    return PriorEstimate(value, *bounds, level, method, estimator.assumption, n_boot)


def _hedged(rows: Evidence, level: float, n_boot: int, seed: int) -> PriorEstimate:
    """The estimator that stands biased labels; where its interval says little, the mean of it and of one for SCAR.

    Under biased labels the second is too low, and the first, where classes overlap, often too high.
    """
    first = _estimate(rows, BIASED_SAFE, level, n_boot, seed)
    if first.high - first.low <= VAGUE:
        return first
    second = _estimate(rows, "dedpul", level, n_boot, seed)
    value, low, high = (first.value + second.value) / 2, min(first.low, second.low), max(first.high, second.high)
    method = f"mean of {first.method} and {second.method}"
    return PriorEstimate(value, low, high, level, method, "that their errors differ in sign", n_boot)


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
    single = rows.scenario is Scenario.SINGLE_SAMPLE
    strata = np.zeros_like(rows.labels) if single else rows.labels
    for stratum in (strata == label for label in np.unique(strata)):
        mass[stratum] *= rows.mass[stratum].sum() / mass[stratum].sum()
    return mass
