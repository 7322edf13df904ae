"""What a classifier learns from answers: a small unbiased sample of both classes beside a large biased one.

Rows drawn with probability d and answered are labels with a known propensity d, and rows that are labeled already have
a known class for certain. Their risk,

    R_A(g) = 1/N [ Σ_known ℓ(± g) + Σ_answered ℓ(± g) / d ],

is unbiased for the risk under all true classes, whatever the labeling: the draw is all that is random. So is the PU
risk R_P if its propensities are right. Then (1 − α) R_P + α R_A is unbiased too, for every fixed α, and it is a PU risk
again: its weights are those of `core.weights` with these row masses and propensities (see `combine`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from pue.audit.design import Array, Integers
from pue.errors import InvalidInput

STIFF = 4.0
"""How firmly the recalibration of ê holds to "no change", in answers."""
DOUBT = 0.15
"""Relative error of estimated inverse propensities that does not average out; settled on development tables."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """Answered rows of a table."""

    rows: Integers
    yes: NDArray[np.bool_]
    chance: Array
    """Of each row to be answered: answers in its stratum over rows there."""

    def __post_init__(self) -> None:
        if not len(self.rows) == len(self.yes) == len(self.chance):
            raise InvalidInput("every answered row has one answer and one chance: three vectors of one length.")
        if len(set(self.rows.tolist())) < len(self.rows) or not bool(((self.chance > 0) & (self.chance <= 1)).all()):
            raise InvalidInput("answered rows must differ, and their chances lie in (0, 1].")

    def positives(self, labels: NDArray[np.int64]) -> float:
        """Horvitz and Thompson's number of positives: the labeled ones, and 1/d for every yes."""
        return float((labels == 1).sum() + (self.yes / self.chance).sum())


@dataclass(frozen=True, eq=False)
class Combined:
    """Labels, masses and propensities of the combined risk, for whatever learns from PU data."""

    labels: NDArray[np.int64]
    """Answered positives are labeled positives."""
    mass: Array
    """How many rows of p(x) each stands for: (1 − α), and α more for a known row, α/d for an answered one."""
    propensity: Array
    """Of the rows labeled positive, in order, up to a common factor."""
    share: float
    """α"""


def combine(
    labels: NDArray[np.int64],
    propensity: Array | None,
    lesson: Lesson,
    share: float | None = None,
    *,
    doubt: float = DOUBT,
) -> Combined:
    """The PU problem whose risk is (1 − α) R_P + α R_A; `propensity` is ê of the labeled rows (None: constant).

        w⁺ = (1 − α) π ω + α/N [labeled] + α/(N d) [answered yes],    background = mass / Σ mass,
        mass = 1 − α + α [labeled] + α/d [answered],    e = mass / (N w⁺) up to a factor.

    π is Horvitz and Thompson's, so that both parts of w⁺ have mass π. Without `share`, α minimises the mean squared
    error; `doubt` is that of the propensities, zero where they are known.

    >>> lesson = Lesson(np.array([2, 3]), np.array([True, False]), np.array([0.5, 0.5]))
    >>> found = combine(np.array([1, 1, 0, 0, 0, 0]), None, lesson, share=0.5)
    >>> found.labels.tolist(), found.mass.tolist()
    ([1, 1, 1, 0, 0, 0], [1.0, 1.0, 1.5, 1.5, 0.5, 0.5])
    """
    _require_unlabeled(labels, lesson)
    n, labeled = len(labels), labels == 1
    prior = lesson.positives(labels) / n
    inverse = np.ones(int(labeled.sum())) if propensity is None else 1 / propensity
    omega = inverse / inverse.sum()
    alpha = best_share(prior, omega, lesson, n, doubt) if share is None else share
    answered = np.zeros(n)
    answered[lesson.rows] = 1 / lesson.chance
    found = labels.copy()
    found[lesson.rows[lesson.yes]] = 1
    positive = np.where(found == 1, alpha / n * np.where(labeled, 1, answered), 0)
    positive[labeled] += (1 - alpha) * prior * omega
    mass = 1 - alpha + alpha * np.where(labels != 0, 1, answered)
    e = mass[found == 1] / positive[found == 1]
    return Combined(found, mass, e / e.max(), alpha)


def best_share(prior: float, omega: Array, lesson: Lesson, n: int, doubt: float = 0.0) -> float:
    """α that minimises the squared error of (1 − α) R_P + α R_A, the two taken as independent: E_P / (E_P + V_A).

    For the 0/1 loss with error rate q in both classes, ℓ(g) − ℓ(−g) is ±1, so V_P = 4 π² q (1 − q) Σ ω²; and a stratum
    of N_h rows with n_h answers adds (N_h/N)² q (1 − q) / n_h to V_A: in all Σ (1/(N d))² over the answers. q cancels.
    Weights ω that are wrong by a relative error δ which rows of a kind share are not put right by more rows: they add
    4 π² q (1 − q) δ², and E_P = V_P + that.
    """
    biased = 4 * prior**2 * (float((omega**2).sum()) + doubt**2)
    unbiased = float((1 / (n * lesson.chance) ** 2).sum())
    return biased / (biased + unbiased)


def recalibrate(labeled: Array, answered: Array, lesson_weight: Array) -> tuple[float, float]:
    """(a, b) of logit e = a + b logit ê, so that ê agrees with the audit.

    Labeled rows and answered positives, each of these standing for 1/d rows, are all positives there are: among them e
    is the plain chance of a label, and its logistic regression on logit ê sees it without bias. `labeled` and
    `answered` are ê of either kind. The likelihood is scaled to the number of answers, and b is held to one by a few of
    them.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.uniform(0.05, 0.9, 4000)
    >>> label = rng.random(4000) < truth
    >>> flat = 1 / (1 + np.exp(-0.5 * np.log(truth / (1 - truth))))
    >>> a, b = recalibrate(flat[label], flat[~label], np.ones((~label).sum()))
    >>> bool(abs(a) < 0.1 and abs(b - 2) < 0.1)
    True
    """
    x = _logit(np.concatenate([labeled, answered]))
    s = np.concatenate([np.ones(len(labeled)), np.zeros(len(answered))])
    weight = np.concatenate([np.ones(len(labeled)), lesson_weight])
    if not len(labeled) or not len(answered):
        return 0.0, 1.0
    worth = len(answered) + 1 / (1 / len(labeled) + 1 / len(answered))
    weight = weight * worth / weight.sum()
    center = float(weight @ x / weight.sum())

    def loss(parameters: Array) -> float:
        margin = parameters[0] + parameters[1] * (x - center)
        return float(weight @ (np.logaddexp(0, margin) - s * margin) + STIFF / 2 * (parameters[1] - 1) ** 2)

    found = minimize(loss, np.array([center, 1.0]), method="BFGS").x
    return float(found[0] - found[1] * center), float(found[1])


def recalibrated(e: Array, a: float, b: float) -> Array:
    """ê with the slope and the level found by `recalibrate`."""
    return np.asarray(1 / (1 + np.exp(-(a + b * _logit(e)))))


def _logit(e: Array) -> Array:
    e = np.clip(e, 1e-4, 1 - 1e-4)
    return np.asarray(np.log(e / (1 - e)))


def _require_unlabeled(labels: NDArray[np.int64], lesson: Lesson) -> None:
    known = labels[lesson.rows] != 0
    if known.any():
        raise InvalidInput(
            f"{int(known.sum())} answered rows are labeled in the table now. Fit on the table of the audit."
        )
