"""From held-out probabilities to a threshold: a number, a rule, or the lowest with a given precision."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pue.core.decisions import best_f1, target_precision
from pue.core.weights import RowWeights
from pue.errors import InvalidInput, UnknownName
from pue.persistence import kept

Array = NDArray[np.float64]

RULES = {
    "f1": "the highest estimated F1",
    "half": "probability one half: the highest accuracy",
    "prior": "as many rows called positive as there should be positives",
}


@kept
@dataclass(frozen=True, eq=False)
class HeldOut:
    """Probabilities of rows by models that had not seen them, and their weights: what thresholds are chosen from."""

    probabilities: Array
    positive: Array
    background: Array
    believed: Array | None = None
    """w⁺ as the estimated metrics have it, with the bias that overlap hides; None: `positive`."""

    def __post_init__(self) -> None:
        vectors = (self.probabilities, self.positive, self.background, self.believed)
        shapes = {vector.shape for vector in vectors if vector is not None}
        if len(shapes) > 1 or self.probabilities.ndim != 1:
            raise InvalidInput("every held-out row has one probability and two weights: vectors of one length.")

    @property
    def weights(self) -> RowWeights:
        positive, background = torch.from_numpy(self.positive), torch.from_numpy(self.background)
        return RowWeights(positive, background - positive)

    @property
    def believed_weights(self) -> RowWeights:
        """Those that an estimated precision rests on: the same number wherever it is shown."""
        positive = torch.from_numpy(self.positive if self.believed is None else self.believed)
        return RowWeights(positive, torch.from_numpy(self.background) - positive)


def choose_threshold(
    held_out: HeldOut, threshold: float | str = "f1", *, precision: float | None = None
) -> tuple[float, str]:
    """A threshold in probabilities and, in words, where it came from: a number, a rule in `RULES`, or the lowest one
    with an estimated `precision`."""
    check_rule(threshold, precision)
    scores, weights = torch.from_numpy(held_out.probabilities), held_out.weights
    if precision is not None:
        chosen = target_precision(scores, held_out.believed_weights, precision)
        return chosen, f"the lowest with an estimated precision of {precision:g}"
    if not isinstance(threshold, str):
        return float(threshold), "given"
    if threshold == "f1":
        value = best_f1(scores, weights)
    elif threshold == "half":
        value = 0.5
    else:
        value = _as_many_as_positives(held_out)
    return value, RULES[threshold]


def as_unseen(
    p: Tensor, weights: RowWeights, fold: Tensor | None, at: float, threshold: float | str, precision: float | None
) -> Tensor:
    """Probabilities to judge by what was chosen from them: `at`, by the rule `threshold` or for a `precision`."""
    return unselected(p, weights, fold, at) if threshold == "f1" and precision is None else p


def unselected(p: Tensor, weights: RowWeights, fold: Tensor | None, threshold: float) -> Tensor:
    """Probabilities to judge a threshold by that was chosen for its F1: those of each fold are moved so that the
    threshold which the *other* folds choose comes to lie at `threshold`. Order inside a fold stays, and 0 and 1 do.

    The highest of many estimates is too high: the rows that chose a threshold look better at it than others will.
    `fold` None: one model scored all rows, and they are dealt into parts.

    >>> p = torch.tensor([0.9, 0.6, 0.2, 0.8, 0.4, 0.1], dtype=torch.float64)
    >>> positive = torch.tensor([0.2, 0.2, 0.0, 0.1, 0.0, 0.0], dtype=torch.float64)
    >>> fold = torch.tensor([0, 0, 0, 1, 1, 1])
    >>> unselected(p, RowWeights(positive, 1 / 6 - positive), fold, threshold=0.6)
    tensor([0.8000, 0.4500, 0.1500, 0.8000, 0.4000, 0.1000], dtype=torch.float64)
    """
    if threshold <= float(p.min()):
        return p  # all rows are called positive, whatever they are
    fold = _parts(weights) if fold is None else fold
    moved = p.double().clone()
    for value in np.unique(fold.numpy()):
        own = fold == int(value)
        chosen = best_f1(p[~own], RowWeights(weights.positive[~own], weights.negative[~own]))
        moved[own] = _carried(moved[own], chosen, threshold)
    return moved


def _carried(p: Tensor, chosen: float, to: float) -> Tensor:
    """Straight lines from 0 over (chosen, to) to 1; what lies below the one lies below the other."""
    above = to + (p - chosen).clamp(min=0) * ((1 - to) / (1 - chosen) if chosen < 1 else 0.0)
    below = (p * (to / chosen if chosen > 0 else 0.0)).clamp(max=math.nextafter(to, -math.inf))
    return torch.where(p >= chosen, above.clamp(min=to), below)


def _parts(weights: RowWeights, folds: int = 5) -> Tensor:
    """As many labeled rows in each part, and as many others."""
    part, rng = np.empty(len(weights.positive), dtype=np.int64), np.random.default_rng(0)
    labeled = (weights.positive > 0).numpy()
    for kind in (labeled, ~labeled):
        part[kind] = rng.permutation(int(kind.sum())) % folds
    return torch.from_numpy(part)


def _as_many_as_positives(held_out: HeldOut) -> float:
    """The threshold that the mass of the positives lies above; rows count by their mass, for some stand for many."""
    population = held_out.background > 0
    p, mass = held_out.probabilities[population], held_out.background[population]
    order = np.argsort(-p, kind="stable")
    reached = mass[order].cumsum() >= min(held_out.positive.sum(), 1 - 1e-9) - mass[order] / 2
    return float(p[order][reached.argmax()])


def check_rule(threshold: float | str, precision: float | None = None) -> None:
    """Whether a threshold can be chosen so; known long before there are probabilities to choose it from."""
    if precision is not None and not 0 < precision <= 1:
        raise InvalidInput(f"the target precision must lie in (0, 1]; got {precision:g}.")
    if isinstance(threshold, str):
        if threshold not in RULES:
            raise UnknownName("threshold rule", threshold, RULES)
    elif not 0 <= threshold <= 1:
        raise InvalidInput(f"a threshold is a probability between 0 and 1; got {threshold:g}.")
