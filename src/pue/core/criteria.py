"""Criteria of held-out scores that need no negatives: which epoch, which setting? **Higher is better.**

A criterion is a function of scores and row weights. `weights.uniform` makes it the plain form, which assumes SCAR;
`weights.normalized_inverse_propensity` makes the same function the ω-weighted form, for biased labels. Nor does it
know the scenario: π = Σ w⁺, and the background b = w⁺ + w⁻ is a sample of p(x) in both.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pue.core.data import require_scores
from pue.core.decisions import decide
from pue.core.losses import logistic
from pue.core.risks import upu
from pue.core.weights import RowWeights

Criterion = Callable[[Tensor, RowWeights], float]


def risk(scores: Tensor, weights: RowWeights) -> float:
    """Minus the PU risk of the sigmoid loss, uncorrected: smooth, and sensitive to how sure the scores are."""
    return -float(upu()(_checked(scores, weights), weights))


def pa(scores: Tensor, weights: RowWeights) -> float:
    """Proxy accuracy (Wang et al. 2026): 2π·TPR + P(called negative) − π = 2 Σ w⁺1{g ≥ 0} + Σ b 1{g < 0} − Σ w⁺.

    It is one minus the PU risk of the 0-1 loss (but a score of exactly zero is called positive here, as `decide` does),
    and estimates the accuracy without bias; on a small sample it can leave [0, 1].

    >>> from pue.core.weights import uniform
    >>> weights = uniform(torch.tensor([1, 1, 0, 0, 0]), prior=0.4)  # all positives have a label
    >>> pa(torch.tensor([2.0, -1.0, -2.0, -0.5, 0.5]), weights)
    0.6
    """
    called = decide(_checked(scores, weights)) == 1
    hits, background = weights.positive[called].sum(), weights.background[~called].sum()
    return float(2 * hits + background - weights.positive.sum())


def pauc(scores: Tensor, weights: RowWeights) -> float:
    """Proxy AUC (Wang et al. 2026): P(g(positive) > g(row of p(x))) = Σᵢⱼ w⁺ᵢ bⱼ 1{gᵢ > gⱼ} / (Σ w⁺ Σ b); ties count ½.

    Only the ranking counts, not the threshold. Sorting makes it O(n log n).
    """
    values, place = torch.unique(_checked(scores, weights), return_inverse=True)
    background = weights.background.double()
    mass = torch.zeros_like(values).index_add_(0, place, background)
    below = mass.cumsum(0) - mass / 2
    positive = weights.positive.double()
    return float(positive @ below[place] / (positive.sum() * background.sum()))


def auc(scores: Tensor, weights: RowWeights) -> float:
    """The AUC of positives against negatives that `pauc` implies: (PAUC − π/2) / (1 − π) (Jain et al. 2017).

    A row of p(x) is a positive with probability π, and a positive beats another one half of the time:
    PAUC = π/2 + (1 − π) AUC. So it selects what `pauc` selects, on a scale that is known; it can leave [0, 1].

    >>> from pue.core.weights import uniform
    >>> weights = uniform(torch.tensor([1, 1, 0, 0]), prior=0.5)  # all positives have a label
    >>> auc(torch.tensor([2.0, 0.5, 1.0, 0.0]), weights)
    0.75
    """
    prior = float(weights.positive.sum())
    return (pauc(scores, weights) - prior / 2) / (1 - prior)


def likelihood(scores: Tensor, weights: RowWeights) -> float:
    """Mean log-likelihood of "labeled" under P(labeled) = sigmoid(g): for models of the label, not of the class."""
    return -float(upu(logistic)(_checked(scores, weights), weights))


CRITERIA: dict[str, Criterion] = {"auc": auc, "likelihood": likelihood, "pa": pa, "pauc": pauc, "risk": risk}


def _checked(scores: Tensor, weights: RowWeights) -> Tensor:
    require_scores(scores, len(weights.positive))
    return scores.double()
