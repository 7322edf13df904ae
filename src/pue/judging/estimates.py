"""Metrics without negatives: from labeled positives, a sample of everything, and the share of positives π.

With TPR from the labeled rows, each weighted by its inverse propensity, and F = P(called positive) from the sample,

    precision = π TPR / F,   F1 = 2π TPR / (π + F),   accuracy = 1 − π − F + 2π TPR,

and, because a row of the sample is a positive with probability π,

    AUC = (P(g(positive) > g(row)) − π/2) / (1 − π),   AP = Σ (R_k − R_{k−1}) π R_k / F_k.

All of them are **estimates**: they are right as far as the propensities and π are. The intervals carry both doubts as
far as they are told of them: other priors, and other readings of the labels, that is other propensities. Where the
estimated share of rows that are positive *and* called so, π TPR, is more than can be (F, or π) or less (π + F − 1), it
is moved there, and all metrics follow from the moved one, so that no row of them contradicts another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pue.core.data import Scenario, as_labels, require_scores
from pue.core.decisions import ZERO
from pue.core.weights import RowWeights, effective_sample_size
from pue.errors import InvalidInput
from pue.judging.curves import Calls, Cells, over, possible_recall
from pue.judging.sensitivity import worst_case
from pue.judging.truth import METRICS
from pue.judging.worlds import Doubts, World

Array = NDArray[np.float64]

ESTIMATED = {**METRICS, "flagged": "called positive"}
"""Name → title of what is estimated, in the order in which it is shown."""
DRAWS = 300


@dataclass(frozen=True)
class Estimate:
    """A number and the interval in which it lies with the stated probability."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.value:5.1f} %  [{100 * self.low:.1f}, {100 * self.high:.1f}]"


@dataclass(frozen=True)
class EstimatedMetrics:
    """Metrics as estimated from PU data; each with an interval."""

    accuracy: Estimate
    precision: Estimate
    recall: Estimate
    f1: Estimate
    auc: Estimate
    ap: Estimate
    flagged: Estimate
    """Share of the population that is called positive."""
    prior: float
    n_labeled: int
    effective_labeled: float
    """How many equally weighted labeled rows these are worth."""
    n_population: int
    level: float
    assumption: str
    """What has to hold: "labels are a random sample of the positives" or "the chances of a label are right"."""
    trivial: str | None = None
    """Set where the predictor does not tell rows apart: "calls every row positive", …"""
    contradiction: str | None = None
    """Set where prior, propensities and scores cannot all be right, in words."""
    bounds: dict[float, dict[str, tuple[float, float]]] = field(default_factory=dict)
    """Γ → recall, precision, F1 and accuracy if every propensity may be wrong by a factor up to Γ."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def estimate_metrics(
    scores: Any,
    labels: Any,
    *,
    prior: float,
    propensity: Any = None,
    scenario: str | Scenario = Scenario.SINGLE_SAMPLE,
    threshold: float = ZERO,
    sample_weight: Any = None,
    prior_interval: tuple[float, float] | None = None,
    readings: Sequence[Any] = (),
    hidden: tuple[float, float] = (0.0, 0.0),
    fold: Any = None,
    deciding: Any = None,
    gammas: tuple[float, ...] = (),
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> EstimatedMetrics:
    """Metrics of `scores` for rows the model was not trained on, from their PU labels (1, 0, −1) alone.

    `propensity` is e(x) of the labeled rows, in order, up to a common factor; None: labels are a random sample of the
    positives (SCAR). Rows labeled −1 belong to the population of a single sample and are otherwise not used. Intervals
    are percentiles over resampled rows (`draws` times; 0: none), over priors if `prior_interval`, the 95 % interval of
    π, is given, and over `readings`, other propensities of the labeled rows that the labels do not rule out: each draw
    believes one of them. `hidden` is a bias that overlap hides from every test; see `Doubts`. `fold` of each row: folds
    were scored by models of their own, in place of one that is kept; how unlike shares of rows these call positive is
    then a part of the intervals. `deciding`: what the threshold is compared with, if not the scores. `gammas`: also the
    worst case over propensities that are wrong by such a factor.

    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(4000) < 0.5
    >>> scores, s = rng.normal(size=4000) + 2 * y - 1, y & (rng.random(4000) < 0.3)
    >>> found = estimate_metrics(scores, s, prior=0.5)
    >>> bool(abs(found.accuracy.value - np.mean((scores >= 0) == y)) < 0.03)
    True
    """
    g = torch.tensor(np.asarray(scores, dtype=np.float64))  # a copy, as below: what pandas gives may be read-only
    s = as_labels(np.array(np.asarray(labels)))
    require_scores(g, len(s))
    if not 0 < level < 1 or draws < 0:
        raise InvalidInput(f"level must lie in (0, 1) and draws must not be negative; got {level} and {draws}.")
    scenario = Scenario.parse(scenario)
    mass = None if sample_weight is None else torch.tensor(np.asarray(sample_weight, dtype=np.float64))
    e = None if propensity is None else torch.tensor(np.asarray(propensity, dtype=np.float64))
    decided = g if deciding is None or deciding is scores else torch.tensor(np.asarray(deciding, dtype=np.float64))
    require_scores(decided, len(s))
    doubts = Doubts(g, s, prior, scenario, e, mass, prior_interval, readings, hidden)
    weights = doubts.weights
    sample = _Sample.of(g, decided, weights, threshold, fold)
    if draws:
        point, low, high = over(doubts, sample.figures, draws, seed, level)
    else:
        point = low = high = sample.figures(doubts.center)
    chosen = s == 1
    worth, believed = weights.positive[chosen], torch.from_numpy(doubts.center.positive)[chosen]
    called = decided[chosen] >= threshold
    lowest = prior if prior_interval is None else prior_interval[0]
    return EstimatedMetrics(
        **{name: Estimate(*map(float, row)) for name, *row in zip(ESTIMATED, point, low, high, strict=True)},
        prior=prior,
        n_labeled=int(chosen.sum()),
        effective_labeled=effective_sample_size(worth),
        n_population=int((weights.background > 0).sum()),
        level=level,
        assumption="labels are a random sample of the positives" if e is None else "the chances of a label are right",
        trivial=describe_trivial(g, float(point[6])),
        contradiction=describe_excess(*sample.plainly(weights), lowest, prior, effective_sample_size(worth), len(g)),
        bounds={gamma: dict(_worst(called, believed, prior, point[6], gamma)) for gamma in gammas},
    )


def describe_trivial(scores: Tensor, flagged: float) -> str | None:
    """In words, if a predictor does not tell rows apart."""
    if len(scores) and bool((scores == scores[0]).all()):
        return "gives every row the same score"
    if flagged >= 1 - 1e-12:
        return "calls every row positive"
    return "calls no row positive" if flagged <= 1e-12 else None


def describe_excess(
    found: float, flagged: float, lowest: float, prior: float, labels: float, rows: float
) -> str | None:
    """In words, if the positives that are called so would be more than the rows called, or those that are not called
    more than the others, by more than chance does: even at the lowest prior, and by two standard errors.

    `found` is the recall as the labeled rows have it, worth so many `labels`.

    >>> describe_excess(0.9, 0.4, 0.3, 0.3, labels=100, rows=1000) is None
    True
    >>> print(describe_excess(0.9, 0.1, 0.3, 0.3, labels=100, rows=1000)[:60])
    at a share of 30 % positives, those that are called so would
    """
    recall = (found * labels + 1) / (labels + 2)
    error = 2 * np.sqrt(lowest**2 * recall * (1 - recall) / labels + flagged * (1 - flagged) / rows)
    for part, share, whole in (("called", found, flagged), ("not called", 1 - found, 1 - flagged)):
        if lowest * share - whole > error:
            return (
                f"at a share of {100 * prior:.3g} % positives, those that are {part} so would be "
                f"{100 * prior * share:.1f} % of all rows, but only {100 * whole:.1f} % are {part}. The share of "
                "positives is lower, or the propensities are wrong"
            )
    return None


@dataclass(frozen=True, eq=False)
class _Sample:
    """Rows by score, and the threshold at which they are called positive."""

    calls: Calls
    ranks: Cells
    """One for each of the distinct scores, in ascending order."""

    @classmethod
    def of(cls, scores: Tensor, decided: Tensor, weights: RowWeights, threshold: float, fold: Any) -> _Sample:
        calls = Calls.of(decided, weights, np.array([threshold]), fold)
        return cls(calls, calls.cells if decided is scores else Cells.of(scores, weights))

    def plainly(self, weights: RowWeights) -> tuple[float, float]:
        """The recall that these weights give, whether it can be or not, and the share called positive."""
        own, first = np.asarray(weights.positive.numpy(), dtype=np.float64), int(self.calls.lowest[0])
        positive, background = self.calls.cells(World(float(own.sum()), own))
        return float(positive[first:].sum()), float(background[first:].sum())

    def figures(self, world: World) -> Array:
        """All metrics in this world, in the order of `ESTIMATED`."""
        prior = world.prior
        positive, background = self.calls.cells(world)
        recall, flagged = (float(part[0]) for part in self.calls.of_cells(world, positive, background))
        if self.ranks is not self.calls.cells:
            positive, background = self.ranks(world)
        below = background.cumsum() - background / 2
        auc = (float(positive @ below) - prior / 2) / (1 - prior)
        recalls, flags = positive[::-1].cumsum(), background[::-1].cumsum()
        precisions = np.clip(prior * recalls / np.maximum(flags, 1e-300), 0, 1)
        ap = float(positive[::-1] @ precisions)
        precision = prior * recall / flagged if flagged else 0.0
        accuracy = 1 - prior - flagged + 2 * prior * recall
        f1 = 2 * prior * recall / (prior + flagged)
        figures = np.array([accuracy, precision, recall, f1, auc, ap, flagged])
        return np.asarray(np.clip(figures, 0, 1), dtype=np.float64)


def _worst(
    called: Tensor, weight: Tensor, prior: float, flagged: float, gamma: float
) -> Iterator[tuple[str, tuple[float, float]]]:
    """The ranges of the recall, exact, and of what follows from it."""
    kept = weight > 0
    low, high = worst_case(called[kept].double(), weight[kept].min() / weight[kept], gamma)
    recalls = possible_recall(np.array([low, high]), prior, np.full(2, flagged))
    for name, values in (
        ("recall", recalls),
        ("precision", prior * recalls / flagged if flagged else np.zeros(2)),
        ("f1", 2 * prior * recalls / (prior + flagged)),
        ("accuracy", 1 - prior - flagged + 2 * prior * recalls),
    ):
        lowest, highest = np.clip(values, 0, 1).tolist()
        yield name, (lowest, highest)


def _lines(m: EstimatedMetrics) -> Iterator[str]:
    if m.trivial:
        yield f"This predictor {m.trivial}: the numbers below say nothing about it."
    if m.contradiction:
        yield f"These numbers contradict each other: {m.contradiction}."
    yield (
        f"Estimated without negatives from {m.n_labeled} labeled rows (worth {m.effective_labeled:.0f}) among "
        f"{m.n_population} at prior {m.prior:.3g}, if {m.assumption}; {m.level:.0%} intervals:"
    )
    for name in ESTIMATED:
        yield f"  {name:9} {getattr(m, name)}"
    for gamma, ranges in m.bounds.items():
        low, high = ranges["recall"]
        yield f"  recall if propensities are wrong by up to {gamma:g}: {100 * low:.1f} to {100 * high:.1f} %"
