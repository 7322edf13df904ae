"""The paper's bounds, identities and bias terms, as functions one can call on data.

Notation: `propensity`, `estimate` and `h` are those of the labeled rows; h = L(g, +1) − L(g, −1); r = 1/e; W = Σ r
over the labeled rows; N_P is the number of positives in the population sample; L_max bounds |L|.
"""

from __future__ import annotations

import math

from torch import Tensor

from pue.core.alike import least_biased as least_biased
from pue.core.alike import within_reach as within_reach
from pue.core.data import require_vector
from pue.core.minimizer import Minimizer as Minimizer
from pue.core.minimizer import population_minimizer as population_minimizer
from pue.errors import InvalidInput


def ipw_bound(n: int, *, loss_max: float = 1.0, eta: float = 0.05) -> float:
    """Theorem 1: |R_PN − R_IPW| ≤ √(L_max² ln(2/η) / (2n)) with probability 1 − η.

    Caveat: the printed proof uses a bounded difference of L_max/n, which forgets the factor 1/e of a labeled row. The
    statement is reproduced as printed; for a bound that holds with small propensities pass loss_max / min(e).

    >>> round(ipw_bound(10_000), 5)
    0.01358
    """
    if n < 1 or not 0 < eta < 1:
        raise InvalidInput(f"n must be positive and eta lie in (0, 1); got n={n}, eta={eta}.")
    return math.sqrt(loss_max**2 * math.log(2 / eta) / (2 * n))


def common_pu_bound(
    n_labeled: int, n_unlabeled: int, prior: float, *, loss_max: float = 1.0, eta: float = 0.05
) -> float:
    """Theorem 2: |R_PN − R_PU| ≤ 2π L_max n_U / (n_U + n_P) + Theorem 1's term: a PU risk that ignores the bias.

    Caveat: the paper asserts the first term without deriving it. `weighting_gap_bound` is the one that can be proved.

    >>> round(common_pu_bound(2_500, 60_000, 0.5), 4)
    0.9654
    """
    if not 0 < prior < 1:
        raise InvalidInput(f"prior must lie in (0, 1); got {prior}.")
    comparison = 2 * prior * loss_max * n_unlabeled / (n_unlabeled + n_labeled)
    return comparison + ipw_bound(n_labeled + n_unlabeled, loss_max=loss_max, eta=eta)


def weighting_gap_bound(weights: Tensor, other: Tensor, prior: float, *, h_max: float = 1.0) -> float:
    """|R − R'| ≤ π max|h| Σ |ω − ω'|: how far two weightings of the same labeled rows can move any risk.

    Both are normalised here. For losses in [0, 1], max|h| = 1. On the paper's class mixes Σ|ω − 1/n_P| is 0.94
    (CIFAR-10) and 0.90 (MNIST).

    >>> import torch
    >>> round(weighting_gap_bound(torch.tensor([1.0, 3.0]), torch.tensor([1.0, 1.0]), 0.4), 12)
    0.2
    """
    _require_same_rows(weights=weights, other=other)
    distance = (weights.double() / weights.double().sum() - other.double() / other.double().sum()).abs().sum()
    return prior * h_max * float(distance)


def normalization_gap(propensity: Tensor, h: Tensor, n_positive: float) -> float:
    """μ_e − μ_N = ((N_P − W) / W) μ_N, exactly: what normalising the weights changes.

    μ_e = Σ r h / W is PUe's normalised correction, μ_N = Σ r h / N_P the unnormalised one.
    """
    _require_same_rows(propensity=propensity, h=h)
    inverse = 1 / propensity.double()
    total = inverse.sum()
    unnormalized = (inverse * h.double()).sum() / n_positive
    return float((n_positive - total) / total * unnormalized)


def normalization_bound(propensity: Tensor, n_positive: float, *, loss_max: float = 1.0, safe: bool = True) -> float:
    """A bound on |μ_e − μ_N|.

    Safe: 2 L_max |W − N_P| / N_P, which always holds. As printed: 2 L_max |W − N_P| / W, which needs |μ_N| ≤ 2 L_max;
    that is true in expectation but not for every sample (when W > N_P it can fail).
    """
    _require_same_rows(propensity=propensity)
    total = float((1 / propensity.double()).sum())
    return 2 * loss_max * abs(total - n_positive) / (n_positive if safe else total)


def estimation_gap(propensity: Tensor, estimate: Tensor, h: Tensor) -> float:
    """μ̂ − μ_e = Σ Δ (h − μ_e) / Ŵ, exactly, with Δ = 1/ê − 1/e: what estimated propensities change."""
    _require_same_rows(propensity=propensity, estimate=estimate, h=h)
    inverse, estimated = 1 / propensity.double(), 1 / estimate.double()
    mean = (inverse * h.double()).sum() / inverse.sum()
    return float(((estimated - inverse) * (h.double() - mean)).sum() / estimated.sum())


def estimation_bound(
    propensity: Tensor, estimate: Tensor, *, loss_max: float = 1.0, non_negative_loss: bool = False
) -> float:
    """|μ̂ − μ_e| ≤ 4 L_max Σ|Δ| / Ŵ. For a non-negative loss |h| ≤ L_max, and the factor is 2."""
    _require_same_rows(propensity=propensity, estimate=estimate)
    inverse, estimated = 1 / propensity.double(), 1 / estimate.double()
    factor = 2 if non_negative_loss else 4
    return factor * loss_max * float((estimated - inverse).abs().sum() / estimated.sum())


def estimation_bias(propensity: Tensor, estimate: Tensor, h: Tensor, n: int, *, labeled: Tensor | None = None) -> float:
    """Eq. 13: the bias (π/N_P) Σ_{all positives} (1 − ω̂/ω) h of the risk with estimated propensities, π/N_P = 1/n.

    Here the three tensors are those of **all** positives, not of the labeled ones. The ratio of normalised weights is
    ω̂/ω = (e/ê)(W/Ŵ), and each W is the sum over the rows marked in `labeled`. Without `labeled`, W and Ŵ take their
    expected values, N_P and Σ e/ê.

    Caveats: the expression treats W as fixed, so it is the bias of the normalised estimator only to first order; with
    W = Ŵ it reduces to Bekker's (1/n) Σ (1 − e/ê) h. The sign is that of true minus expected estimate.
    """
    _require_same_rows(propensity=propensity, estimate=estimate, h=h)
    propensity, estimate = propensity.double(), estimate.double()
    if labeled is None:
        total, estimated_total = float(len(propensity)), float((propensity / estimate).sum())
    else:
        total = float((1 / propensity[labeled]).sum())
        estimated_total = float((1 / estimate[labeled]).sum())
    ratio = propensity / estimate * (total / estimated_total)
    return float(((1 - ratio) * h.double()).sum() / n)


def weight_error_bound(propensity: Tensor, ratio: float, n: int) -> Tensor:
    """If βe ≤ ê ≤ e, then |1/(nê) − 1/(ne)| ≤ (1/β − 1) / (ne), row by row; `ratio` is β."""
    if not 0 < ratio <= 1:
        raise InvalidInput(f"ratio must lie in (0, 1]; got {ratio}.")
    _require_same_rows(propensity=propensity)
    return (1 / ratio - 1) / (n * propensity.double())


def error_ratio_interval(half: float, *, lower: float, middle: float) -> tuple[float, float]:
    """The interval [B(1 + 1/γ), B(1/γ + 1/β)) in which Σ 1/ê lies (the paper's appendix, "Error ratio").

    Half of the inverse-propensity mass B = Σ_{S₁} 1/e = Σ_{S₂} 1/e has γe < ê ≤ e, the other half βe < ê ≤ γe, with
    β = `lower` < γ = `middle` < 1. Caveat: it shows that errors in the same direction partly cancel in ω̂, not that
    normalising always helps.

    >>> error_ratio_interval(100.0, lower=0.25, middle=0.5)
    (300.0, 600.0)
    """
    if not 0 < lower < middle < 1:
        raise InvalidInput(f"needs 0 < lower < middle < 1; got lower={lower}, middle={middle}.")
    return half * (1 + 1 / middle), half * (1 / middle + 1 / lower)


def _require_same_rows(**vectors: Tensor) -> None:
    length = len(next(iter(vectors.values())))
    for name, values in vectors.items():
        require_vector(name, values, length)
