"""From scores to labels. A score ranks, a threshold decides; here are the ways to choose the threshold.

Every function gives a threshold; `decide` applies it. None looks at true classes.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, digamma

from pue.core.data import require_vector
from pue.core.finite import require_finite_scores
from pue.core.weights import RowWeights
from pue.errors import InvalidInput

ZERO = 0.0
"""The threshold that the risks train for: P(positive) ≥ ½."""


def decide(scores: Tensor, threshold: float = ZERO) -> Tensor:
    """1 where the score reaches the threshold, else 0; a score that is no number is an error, never a decision.

    >>> decide(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([0, 1, 1])
    """
    require_vector("scores", scores)
    if math.isnan(threshold):
        raise InvalidInput("the threshold is NaN, which no score reaches. Pass a number.")
    require_finite_scores(scores)
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

    >>> from pue.core.weights import uniform
    >>> labels = torch.tensor([1, 1, 0, 0, 0, 0])
    >>> best_f1(torch.tensor([3.0, 2.0, 2.5, 0.0, -1.0, -2.0]), uniform(labels, prior=0.5))
    2.0
    """
    ordered, hits, called, choice = _by_score(scores, weights)
    f1 = 2 * hits / (hits[-1] + called)
    return float(ordered[torch.where(choice, f1, -torch.inf).argmax()])


def target_precision(scores: Tensor, weights: RowWeights, precision: float) -> float:
    """The lowest threshold whose precision, as estimated from PU data, Σ w⁺1{g ≥ t} / Σ b 1{g ≥ t}, reaches the target.

    Below a tenth of Σ w⁺ the estimate rests on too few rows: such thresholds are not considered.

    >>> from pue.core.weights import uniform
    >>> labels = torch.tensor([1, 1, 0, 0, 0, 0])
    >>> target_precision(torch.tensor([3.0, 2.0, 2.5, 0.0, -1.0, -2.0]), uniform(labels, prior=0.5), 0.9)
    2.0
    """
    if not 0 < precision <= 1:
        raise InvalidInput(f"the target precision must lie in (0, 1]; got {precision}.")
    ordered, hits, called, choice = _by_score(scores, weights)
    reached = choice & (hits >= precision * called - 1e-12) & (hits >= 0.1 * hits[-1])
    if not bool(reached.any()):
        best = float((hits / called.clamp(min=1e-300))[choice & (hits >= 0.1 * hits[-1])].max())
        raise InvalidInput(
            f"no threshold has an estimated precision of {precision:g}; the highest is {best:.2f}. Lower the target, "
            "or take the best rows by a budget."
        )
    return float(ordered[torch.nonzero(reached)[-1, 0]])


def most_informative(scores: Tensor, *, neighbors: int = 3, candidates: int = 1000) -> float:
    """The threshold whose two sides the scores tell most about, by nearest neighbors (tMI, Teisseyre et al. 2025).

    Needs neither a prior nor propensities: it cuts where few scores lie. With k = `neighbors`, T scores, n₀ and n₁ of
    them on the two sides, and mᵢ scores within the distance of score i to its k-th neighbor on its own side,

        I(t) = ψ(T) + ψ(k) − mean ψ(mᵢ) − Σ (n_c / T) ψ(n_c),

    where mᵢ = k except for the k scores on either side of the cut (Ross 2014). Pass scores of *unlabeled* rows.

    >>> round(most_informative(torch.cat([torch.linspace(-3, -2, 50), torch.linspace(2, 3, 50)])))
    0
    """
    _require_scores(scores)
    ordered, k = scores.double().sort().values, neighbors
    total = len(ordered)
    if k < 1 or total < 4 * (k + 1):
        raise InvalidInput(f"{4 * (k + 1)} scores are needed for {k} neighbors; got {total}. Pass more unlabeled rows.")
    least = _smallest_side(total, k)
    grid = torch.linspace(float(ordered[least]), float(ordered[total - 1 - least]), candidates, dtype=torch.float64)
    below = torch.searchsorted(ordered, grid, right=True)
    enough = (below > k) & (total - below > k)
    if not bool(enough.any()):
        raise InvalidInput("all scores are nearly equal: no threshold tells them apart. Check the model.")
    below, grid = below[enough], grid[enough]
    cut, near = below[:, None], torch.arange(k)
    first, last = torch.zeros_like(cut), torch.full_like(cut, total - 1)
    crowds = [_crowd(ordered, cut - 1 - near, first, cut - 1, k), _crowd(ordered, cut + near, cut, last, k)]
    crowding = digamma(torch.cat(crowds, dim=1).double()).sum(1) + (total - 2 * k) * digamma(_number(k))
    sides = sum(n * digamma(n) for n in (below.double(), (total - below).double()))
    ignorance = crowding + sides
    best = torch.nonzero(ignorance == ignorance.min())[:, 0]
    return float(grid[best[len(best) // 2]])  # every cut of an empty stretch is as good: take one inside it


def _by_score(scores: Tensor, weights: RowWeights) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Scores from the highest, the mass of positives and of the population down to each, and which are real choices: a
    threshold takes all rows of the same score, so only the last of a run of ties is one."""
    require_vector("scores", scores, len(weights.positive))
    _require_scores(scores)
    ordered, order = scores.double().sort(descending=True)
    hits = weights.positive[order].double().cumsum(0)
    called = weights.background[order].double().cumsum(0)
    last_of_ties = torch.cat([ordered[1:] != ordered[:-1], torch.ones(1, dtype=torch.bool)])
    return ordered, hits, called, last_of_ties


def _crowd(ordered: Tensor, at: Tensor, first: Tensor, last: Tensor, k: int) -> Tensor:
    """For the scores at places `at`: how many others lie as near as the k-th of their own side, `first` to `last`."""
    places = at[..., None] + torch.arange(-k, k + 1)
    inside = (places >= first[..., None]) & (places <= last[..., None])
    value = ordered[at]
    distance = (ordered[places.clamp(0, len(ordered) - 1)] - value[..., None]).abs()
    radius = torch.where(inside, distance, torch.inf).sort(-1).values[..., k]
    lowest = torch.searchsorted(ordered, value - radius)
    return torch.searchsorted(ordered, value + radius, right=True) - lowest - 1


def _smallest_side(total: int, k: int) -> int:
    """Fewer scores than this on one side cannot hold the most informative cut: there the bound on I is below what the
    cut in the middle has at least."""
    n = torch.arange(1, total // 2 + 1, dtype=torch.float64)
    most = -(n * digamma(n) + (total - n) * digamma(total - n)) / total
    half = _number(total / 2)
    sure = -digamma(half) + 2 * k / total * (digamma(_number(k)) - digamma(half + k))
    return int(torch.searchsorted(most, sure))


def _number(value: float) -> Tensor:
    return torch.tensor(float(value), dtype=torch.float64)


def _require_scores(scores: Tensor) -> None:
    require_vector("scores", scores)
    if len(scores) == 0 or not bool(torch.isfinite(scores).all()):
        raise InvalidInput("scores must be finite, and there must be some. Check the model and its inputs.")
