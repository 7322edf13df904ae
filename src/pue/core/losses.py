"""Margin losses: ℓ(z), element-wise, with z = y·g(x). L(g, +1) = ℓ(g) and L(g, −1) = ℓ(−g).

Two families matter in PU learning. *Symmetric* losses, ℓ(z) + ℓ(−z) = 1 (sigmoid, ramp, zero-one), are bounded by
one, as the theory asks. *Linear-odd* losses, ℓ(z) − ℓ(−z) = −z (logistic, squared, double hinge), make the
unbiased risk of a linear model convex.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

Loss = Callable[[Tensor], Tensor]


def sigmoid(margin: Tensor) -> Tensor:
    """ℓ(z) = 1 / (1 + eᶻ), in (0, 1): the choice of nnPU (Kiryo et al. 2017).

    >>> sigmoid(torch.tensor([2.0, -1.0]))
    tensor([0.1192, 0.7311])
    """
    return torch.sigmoid(-margin)


def logistic(margin: Tensor) -> Tensor:
    """ℓ(z) = log(1 + e⁻ᶻ): the choice of PUbN (Hsieh et al. 2019).

    >>> logistic(torch.tensor([2.0, -1.0]))
    tensor([0.1269, 1.3133])
    """
    return functional.softplus(-margin, threshold=40)  # exact in float64; torch's default turns linear at 20


def zero_one(margin: Tensor) -> Tensor:
    """ℓ(z) = (1 − sign z) / 2: the error itself; its gradient is zero, so it is for evaluation.

    >>> zero_one(torch.tensor([2.0, 0.0, -1.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return (1 - torch.sign(margin)) / 2


def ramp(margin: Tensor) -> Tensor:
    """ℓ(z) = min(1, max(0, (1 − z) / 2)) (du Plessis et al. 2014).

    >>> ramp(torch.tensor([2.0, 0.0, -3.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return ((1 - margin) / 2).clamp(0, 1)


def hinge(margin: Tensor) -> Tensor:
    """ℓ(z) = max(0, 1 − z).

    >>> hinge(torch.tensor([2.0, -1.0]))
    tensor([0., 2.])
    """
    return (1 - margin).clamp(min=0)


def double_hinge(margin: Tensor) -> Tensor:
    """ℓ(z) = max(−z, max(0, (1 − z) / 2)): the convex PU loss of du Plessis et al. 2015.

    >>> double_hinge(torch.tensor([2.0, 0.0, -3.0]))
    tensor([0.0000, 0.5000, 3.0000])
    """
    return torch.maximum(-margin, ((1 - margin) / 2).clamp(min=0))


def squared(margin: Tensor) -> Tensor:
    """ℓ(z) = (z − 1)² / 4 (du Plessis et al. 2015).

    >>> squared(torch.tensor([2.0, -1.0]))
    tensor([0.2500, 1.0000])
    """
    return (margin - 1).square() / 4


def savage(margin: Tensor) -> Tensor:
    """ℓ(z) = 4 / (1 + eᶻ)²: bounded by four, robust to outliers (Masnadi-Shirazi and Vasconcelos 2008).

    >>> savage(torch.tensor([2.0, -1.0]))
    tensor([0.0568, 2.1378])
    """
    return 4 * torch.sigmoid(-margin).square()


LOSSES: dict[str, Loss] = {
    "double_hinge": double_hinge,
    "hinge": hinge,
    "logistic": logistic,
    "ramp": ramp,
    "savage": savage,
    "sigmoid": sigmoid,
    "squared": squared,
    "zero_one": zero_one,
}
