"""What the answers prove: shares of positives, precision, recall, accuracy and F1, each with a design-based interval.

Nothing is assumed about labels or model. The rows of a stratum were drawn at random, so p̂ₕ = yes / answers estimates
its share without bias, the total Σ Nₕ p̂ₕ is Horvitz and Thompson's, and every quantity is a ratio of such totals and
of counts that are known.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from pue.audit.design import QUANTITIES, Array, ratios
from pue.audit.plans import Plan
from pue.audit.score_test import Ratio, interval, wilson
from pue.errors import InvalidInput
from pue.judging.estimates import Estimate


@dataclass(frozen=True)
class Group:
    """Rows of similar scores: what the model expects of them, and what was found."""

    low: float
    high: float
    called: bool
    size: int
    answered: int
    yes: int
    expected: float
    found: Estimate | None
    """Share of positives; None where nothing was answered."""


@dataclass(frozen=True)
class Findings:
    """What an audit found."""

    prior: Estimate
    precision: Estimate | None
    """None: no row is called positive."""
    recall: Estimate
    accuracy: Estimate
    f1: Estimate
    calibration: Estimate
    """Share of positives found among unlabeled rows, minus the share the model expects there."""
    groups: tuple[Group, ...]
    n_planned: int
    n_answered: int
    n_yes: int
    n_unknown: int
    """Rows that were looked at without a verdict, or not at all."""
    bounds: dict[str, tuple[float, float]]
    """Name → the lowest and highest end of the interval, whatever the missing answers are."""
    level: float

    def quantities(self) -> dict[str, Estimate]:
        found = {name: getattr(self, name) for name in QUANTITIES}
        return {name: estimate for name, estimate in found.items() if estimate is not None}

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def read(plan: Plan, answers: Any, *, level: float = 0.95, look: int | None = None) -> Findings:
    """What follows from the answers, one for each row of the plan: 1 yes, 0 no, not a number where there is none.

    A missing answer is taken to be missing at random inside its stratum; `bounds` holds what follows if it is not.
    `look` k: the interval of the k-th look at growing answers, at level 1 − (1 − level) / (k (k + 1)), so that all
    looks together hold with probability `level` and one may stop at any of them. None: there is one look.

    >>> from pue.audit import plan
    >>> drawn = plan(np.linspace(0, 1, 500), n=40)
    >>> found = read(drawn, drawn.rows >= 250)
    >>> found.precision.value, found.recall.value
    (1.0, 1.0)
    """
    given = np.asarray(answers, dtype=np.float64)
    if given.shape != plan.rows.shape or not np.isin(given[~np.isnan(given)], (0, 1)).all():
        raise InvalidInput(
            f"answers must be one for each of the plan's {len(plan.rows)} rows: 1 yes, 0 no, nan where there is none."
        )
    if not 0 < level < 1 or (look is not None and look < 1):
        raise InvalidInput(f"level must lie in (0, 1) and look be at least 1; got {level} and {look}.")
    if np.isnan(given).all():
        raise InvalidInput("no row is answered yes or no yet: there is nothing to estimate from. Answer some rows.")
    z = _quantile(level, look)
    size = np.array([s.size for s in plan.strata], float)
    expected = np.array([s.expected for s in plan.strata])
    samples = np.stack([given, *_fillings(plan, given)])
    n, yes = _counts(plan, samples)
    quantities = {**asked_of(plan, size), "calibration": _unlabeled_share(size)}
    value, low, high = interval(Ratio.stacked(quantities.values()), size, n, yes, z)
    found = {
        name: Estimate(float(value[k, 0]), float(low[k, 0]), float(high[k, 0])) for k, name in enumerate(quantities)
    }
    ends = {name: (float(low[k].min()), float(high[k].max())) for k, name in enumerate(quantities)}
    del ends["calibration"]
    return Findings(
        **{name: found.get(name) for name in QUANTITIES},  # type: ignore[arg-type]
        calibration=_shifted(found["calibration"], float(expected.sum() / size.sum())),
        groups=tuple(_group(plan, k, int(n[0, k]), int(yes[0, k]), z) for k in range(len(size))),
        n_planned=len(given),
        n_answered=int(n[0].sum()),
        n_yes=int(yes[0].sum()),
        n_unknown=int(np.isnan(given).sum()),
        bounds=ends if np.isnan(given).any() else {},
        level=level,
    )


def _quantile(level: float, look: int | None) -> float:
    """Σ 1 / (k (k + 1)) = 1: the looks share the error between them."""
    spent = (1 - level) / (1 if look is None else look * (look + 1))
    return NormalDist().inv_cdf(1 - spent / 2)


def asked_of(plan: Plan, size: Array) -> dict[str, Ratio]:
    """What a plan can tell: precision only where a row is called positive."""
    found = ratios(plan.known, np.array([s.called for s in plan.strata]), size)
    return {name: ratio for name, ratio in found.items() if name != "precision" or plan.known.called > 0}


def _counts(plan: Plan, samples: Array) -> tuple[Array, Array]:
    """Answers and yeses of the strata, sample by sample."""
    inside = (plan.stratum[:, None] == np.arange(len(plan.strata))).astype(float)
    return (~np.isnan(samples)) @ inside, np.nan_to_num(samples) @ inside


def _fillings(plan: Plan, given: Array) -> list[Array]:
    """The extremes of the missing answers: within called and within other rows all yes or all no."""
    missing = np.isnan(given)
    if not missing.any():
        return []
    called = np.array([s.called for s in plan.strata])[plan.stratum]
    return [
        np.where(missing, np.where(called, inside, outside), given) for inside in (0.0, 1.0) for outside in (0.0, 1.0)
    ]


def _unlabeled_share(size: Array) -> Ratio:
    return Ratio(np.ones(len(size)), np.zeros(len(size)), 0.0, float(size.sum()))


def _shifted(found: Estimate, by: float) -> Estimate:
    return Estimate(found.value - by, found.low - by, found.high - by)


def _group(plan: Plan, k: int, n: int, yes: int, z: float) -> Group:
    s = plan.strata[k]
    found = Estimate(*wilson(s.size, n, yes, z)) if n else None
    return Group(s.low, s.high, s.called, s.size, n, yes, s.expected / s.size, found)
