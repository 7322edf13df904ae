"""From held-out probabilities to a threshold: a number, a rule, or the lowest with a given precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

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
