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

from pue.errors import InvalidInput

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

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


def _require_unlabeled(labels: NDArray[np.int64], lesson: Lesson) -> None:
    known = labels[lesson.rows] != 0
    if known.any():
        raise InvalidInput(
            f"{int(known.sum())} answered rows are labeled in the table now. Fit on the table of the audit."
        )
