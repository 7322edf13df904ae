"""From scores to labels. A score ranks, a threshold decides; here are the ways to choose the threshold.

Every function gives a threshold; `decide` applies it. None looks at true classes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pue.data import require_vector
from pue.errors import InvalidInput
from pue.weights import RowWeights

ZERO = 0.0
"""The threshold that the risks train for: P(positive) ≥ ½."""


def decide(scores: Tensor, threshold: float = ZERO) -> Tensor:
    """1 where the score reaches the threshold, else 0.

    >>> decide(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([0, 1, 1])
    """
    require_vector("scores", scores)
    return (scores >= threshold).long()


def prior_quantile(scores: Tensor, prior: float) -> float:
    """The threshold above which a share π of a sample of p(x) lies (PUSB, Kato et al. 2019).

    Pass scores of *training* rows drawn from p(x); taking them from the test set is transductive.

    >>> prior_quantile(torch.tensor([0.0, 1.0, 2.0, 3.0]), prior=0.5)
    2.0
    """
    if not 0 < prior < 1:
        raise InvalidInput(f"prior must lie in (0, 1); got {prior}.")
    return budget(scores, max(1, round(prior * len(scores))))


def budget(scores: Tensor, k: int) -> float:
    """The threshold that calls the k best rows positive (ties at the threshold come along).

    >>> budget(torch.tensor([0.1, 0.9, 0.5]), 2)
    0.5
    """
    _require_scores(scores)
    if not 1 <= k <= len(scores):
        raise InvalidInput(f"k must lie between 1 and the number of rows, {len(scores)}; got {k}.")
    return float(torch.topk(scores.double(), k).values[-1])


def best_f1(scores: Tensor, weights: RowWeights) -> float:
    """The threshold with the highest F1 as estimated from PU data: F1(t) = 2 Σ w⁺1{g ≥ t} / (Σ w⁺ + Σ b 1{g ≥ t}).

    b = w⁺ + w⁻ is the background: the first sum estimates P(positive and called so), the last P(called positive).

    >>> from pue.weights import uniform
    >>> labels = torch.tensor([1, 1, 0, 0, 0, 0])
    >>> best_f1(torch.tensor([3.0, 2.0, 2.5, 0.0, -1.0, -2.0]), uniform(labels, prior=0.5))
    2.0
    """
    require_vector("scores", scores, len(weights.positive))
    _require_scores(scores)
    ordered, order = scores.double().sort(descending=True)
    hits = weights.positive[order].double().cumsum(0)
    called = weights.background[order].double().cumsum(0)
    f1 = 2 * hits / (hits[-1] + called)
    # A threshold takes all rows of the same score: only the last of a run of ties is a real choice.
    last_of_ties = torch.cat([ordered[1:] != ordered[:-1], torch.ones(1, dtype=torch.bool)])
    return float(ordered[torch.where(last_of_ties, f1, -torch.inf).argmax()])


def _require_scores(scores: Tensor) -> None:
    require_vector("scores", scores)
    if len(scores) == 0 or not bool(torch.isfinite(scores).all()):
        raise InvalidInput("scores must be finite, and there must be some. Check the model and its inputs.")
