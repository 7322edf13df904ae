"""What is done with the positive part R⁺ and the negative part R⁻ of a PU risk.

R⁻ estimates a non-negative quantity by a difference, so a flexible network can drive it below zero. A correction
says what to do then. Each returns **one** scalar that carries both the value to report and the gradient to follow.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from pue.errors import InvalidInput

Correction = Callable[[Tensor, Tensor], Tensor]


def unbiased(positive: Tensor, negative: Tensor) -> Tensor:
    """R⁺ + R⁻: uPU. Nothing is corrected.

    >>> import torch
    >>> unbiased(torch.tensor(0.25), torch.tensor(-0.5))
    tensor(-0.2500)
    """
    return positive + negative


def non_negative(beta: float = 0.0, gamma: float = 1.0) -> Correction:
    """nnPU (Kiryo et al. 2017, Algorithm 1).

    While R⁻ ≥ −β: R⁺ + R⁻. Below, the *value* is R⁺ − β and the *gradient* is that of −γR⁻: a step of ascent on the
    negative part alone, R⁺ takes no part in it.

    >>> import torch
    >>> r = torch.tensor([0.25, -0.5], requires_grad=True)
    >>> risk = non_negative()(r[0], r[1])
    >>> risk.backward()
    >>> risk.item(), r.grad
    (0.25, tensor([ 0., -1.]))
    """
    if beta < 0:
        raise InvalidInput(f"beta must be at least 0; got {beta}. nnPU's default is 0.")
    if not 0 <= gamma <= 1:
        raise InvalidInput(f"gamma must lie in [0, 1]; got {gamma}. nnPU's default is 1.")

    def correct(positive: Tensor, negative: Tensor) -> Tensor:
        if not negative < -beta:  # a branch, not torch.where: only the side that counts is computed
            return positive + negative
        ascent = -gamma * negative
        return ascent + (positive - beta - ascent).detach()

    return correct


def clamp(positive: Tensor, negative: Tensor) -> Tensor:
    """R⁺ + max(0, R⁻): the simplified nnPU; below zero R⁻ gets no gradient, R⁺ keeps its own.

    >>> import torch
    >>> clamp(torch.tensor(0.25), torch.tensor(-0.5))
    tensor(0.2500)
    """
    return positive + negative.clamp(min=0)


def absolute(positive: Tensor, negative: Tensor) -> Tensor:
    """R⁺ + |R⁻| (the absolute correction of Lu et al. 2020).

    >>> import torch
    >>> absolute(torch.tensor(0.25), torch.tensor(-0.5))
    tensor(0.7500)
    """
    return positive + negative.abs()


CORRECTIONS: dict[str, Correction] = {
    "absolute": absolute,
    "clamp": clamp,
    "non_negative": non_negative(),
    "unbiased": unbiased,
}
