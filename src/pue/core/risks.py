"""PU risks: a loss × a weighting × a correction.

    R(g) = Σ w⁺ ℓ(g)  ⊕  Σ w⁻ ℓ(−g)

A `Risk` is a pair of pure functions: a *linear* part (weighted sums over the rows) and what is done with these sums.
The pair matters: over several processes the sums are reduced first and corrected after, so that nnPU's switch and
Dist-PU's |mean − π| see the whole batch. A method with propensities is the same risk with other weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pue.core.corrections import Correction, non_negative, unbiased
from pue.core.data import require_vector
from pue.core.losses import Loss, logistic, sigmoid
from pue.core.weights import RowWeights
from pue.errors import InvalidInput

Reduce = Callable[[Tensor], Tensor]


def no_reduction(sums: Tensor) -> Tensor:
    """The reduction of a single process."""
    return sums


@dataclass(frozen=True)
class Risk:
    """Weighted sums, and their combination into one scalar that carries value and gradient.

    >>> from pue.core.weights import uniform
    >>> labels = torch.tensor([1, 1, 0, 0, 0, 0])
    >>> scores = torch.tensor([2.0, -1.0, 1.0, -2.0, 0.5, -0.5], dtype=torch.float64)
    >>> round(float(upu()(scores, uniform(labels, prior=0.4, scenario="case_control"))), 6)
    0.40267
    """

    terms: tuple[str, ...]
    """A name for each sum, for progress and error messages."""
    sums: Callable[[Tensor, RowWeights], Tensor]
    """Linear in the weights: sums over parts of the rows add up to the sums over all of them."""
    combine: Callable[[Tensor], Tensor]
    """From the sums to the scalar to report and to follow."""
    corrected: Callable[[Tensor], bool] = lambda sums: False
    """Whether a correction changed this batch: nnPU's ascent steps."""

    def __call__(self, scores: Tensor, weights: RowWeights, reduce: Reduce = no_reduction) -> Tensor:
        return self.combine(reduce(self.sums(scores, weights)))


def pu_risk(loss: Loss = sigmoid, correction: Correction = unbiased) -> Risk:
    """The family's one formula; every choice of loss and correction is a risk."""

    def sums(scores: Tensor, weights: RowWeights) -> Tensor:
        require_vector("scores", scores, len(weights.positive))
        return torch.stack([weights.positive @ loss(scores), weights.negative @ loss(-scores)])

    def combine(sums: Tensor) -> Tensor:
        return correction(*sums.unbind())

    def corrected(sums: Tensor) -> bool:
        return correction is not unbiased and bool(combine(sums) != sums.sum())

    return Risk(("positive", "negative"), sums, combine, corrected)


def upu(loss: Loss = sigmoid) -> Risk:
    """uPU (du Plessis et al. 2014): R⁺ + R⁻. With `weights.inverse_propensity` it is the unnormalised IPW risk."""
    return pu_risk(loss, unbiased)


def nnpu(loss: Loss = sigmoid, *, beta: float = 0.0, gamma: float = 1.0) -> Risk:
    """nnPU (Kiryo et al. 2017): uPU that climbs out when R⁻ falls below −β."""
    return pu_risk(loss, non_negative(beta, gamma))


def pubn(loss: Loss = logistic) -> Risk:
    """PUbN (Hsieh et al. 2019) is a weighting, `weights.pubn`: all its weights are non-negative, nothing to correct."""
    return pu_risk(loss, unbiased)


def imbalanced(
    prior: float, loss: Loss = sigmoid, *, target: float = 0.5, beta: float = 0.0, gamma: float = 1.0
) -> Risk:
    """ImbPU (Su et al. 2021): nnPU as if positives were a share π' of the data, (π'/π) R⁺ and ((1−π')/(1−π)) R⁻."""
    _require_share("prior", prior)
    _require_share("target", target)
    base = pu_risk(loss, non_negative(beta, gamma))
    up, down = target / prior, (1 - target) / (1 - prior)

    def sums(scores: Tensor, weights: RowWeights) -> Tensor:
        return base.sums(scores, RowWeights(up * weights.positive, down * weights.negative))

    return Risk(base.terms, sums, base.combine, base.corrected)


def dist_pu(prior: float, *, entropy: float = 0.0) -> Risk:
    """Dist-PU's label-distribution term (Zhao et al. 2022), with the entropy of its warm-up stage.

        (1/π) Σ w⁺ (1 − s) + |Σ (w⁺ + w⁻) s − π| / (2π) + entropy · Σ (w⁺ + w⁻) H(s),   s = sigmoid(g)

    The positive term stays linear in 1 − s: weights of a batch need not sum to one, and an absolute value would
    then push scores below one. H is taken of scores clamped to ±10, as in the authors' code.
    """
    _require_share("prior", prior)

    def sums(scores: Tensor, weights: RowWeights) -> Tensor:
        require_vector("scores", scores, len(weights.positive))
        probability = torch.sigmoid(scores)
        parts = [weights.positive @ (1 - probability) / prior, weights.background @ probability]
        if entropy:
            parts.append(weights.background @ binary_entropy(scores.clamp(-10, 10)))
        return torch.stack(parts)

    def combine(sums: Tensor) -> Tensor:
        risk = sums[0] + (sums[1] - prior).abs() / (2 * prior)
        return risk + entropy * sums[2] if entropy else risk

    terms = ("labeled", "predicted positives") + (("entropy",) if entropy else ())
    return Risk(terms, sums, combine)


def label_likelihood(alpha: float = 0.0, *, scale: float = 1.0, target: float | None = None) -> Risk:
    """The paper's objective for e(x): cross-entropy of "labeled" and a pull of the predicted number of labels (Eq. 14).

        Σ w⁺ log(1 + exp(−g)) + Σ w⁻ log(1 + exp(g)) + α · scale · |Σ (w⁺ + w⁻) sigmoid(g) − target|

    for the weights of `supervised(labels == 1)`: w⁺ = 1/n on labeled rows, w⁻ = 1/n on all others. `target` None is the
    share of labeled rows in the batch itself, Σ w⁺.
    """
    if alpha < 0:
        raise InvalidInput(f"alpha must not be negative; got {alpha}. The paper searches it in [0, 20].")
    base = pu_risk(logistic)

    def sums(scores: Tensor, weights: RowWeights) -> Tensor:
        likelihood = base.sums(scores, weights)
        predicted = weights.background @ torch.sigmoid(scores)
        return torch.cat([likelihood, torch.stack([predicted, weights.positive.sum()])])

    def combine(sums: Tensor) -> Tensor:
        gap = sums[2] - (sums[3] if target is None else target)
        return sums[0] + sums[1] + alpha * scale * gap.abs()

    return Risk(("labeled", "others", "predicted labels", "labels"), sums, combine)


def binary_entropy(scores: Tensor) -> Tensor:
    """−s log s − (1 − s) log(1 − s) with s = sigmoid(score), without the logarithm of a rounded zero.

    >>> binary_entropy(torch.tensor([0.0]))
    tensor([0.6931])
    """
    return torch.sigmoid(scores) * logistic(scores) + torch.sigmoid(-scores) * logistic(-scores)


def _require_share(name: str, share: float) -> None:
    if not 0 < share < 1:
        raise InvalidInput(f"{name} must lie in (0, 1); got {share}.")
