"""A method whose scores only rank, and a rule that puts the threshold: PUSB, P-vs-U baselines, the anchor."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pue.core.data import PUData, Scenario, population_rows
from pue.core.decisions import most_informative, prior_quantile
from pue.methods.composition import Composition
from pue.methods.protocol import Fitted, Task
from pue.persistence import kept, kept_function

Rule = Callable[[Tensor, PUData, float], float]
"""(scores of all training rows, data, prior) → threshold."""


@kept
@dataclass(frozen=True)
class Thresholded:
    """`base` is trained as it is; a row is positive where its score reaches the threshold that `rule` finds."""

    base: Composition
    rule: Rule
    summary: str

    def fit(self, task: Task) -> Fitted:
        fitted = self.base.fit(task)
        scores = fitted.scores(task.data.x).double()
        return replace(fitted, threshold=self.rule(scores, task.data, task.prior))


@kept_function
def share_of_population(scores: Tensor, data: PUData, prior: float) -> float:
    """So that a share π of the population is called positive (PUSB, Kato et al. 2019)."""
    return prior_quantile(scores[population_rows(data.labels, data.scenario)], prior)


@kept_function
def informative(scores: Tensor, data: PUData, prior: float) -> float:
    """Where the unlabeled rows' scores fall apart; needs no prior (tMI, Teisseyre et al. 2025)."""
    return most_informative(scores[data.unlabeled])


@kept_function
def probabilistic_gap(scores: Tensor, data: PUData, prior: float, *, quantile: float = 0.999) -> float:
    """P(positive | x) = √(r / k) ≥ ½, r the labeling rate and k its highest value (anchor, Gerych et al. 2022).

    It holds where e grows in proportion to P(positive | x). k is the 99.9 % quantile: a maximum would be noise.
    """
    top = float(scores.sort().values[math.ceil(quantile * (len(scores) - 1))])
    if data.scenario is Scenario.CASE_CONTROL:
        return top - math.log(4)  # there the odds are the rate, and only its ratio to k matters
    return float(torch.logit(torch.sigmoid(torch.tensor(top, dtype=torch.float64)) / 4))
