"""Worlds that labels cannot tell apart: other classes, other propensities, the same labels.

Labels show rate(x) = e(x) f(x), f(x) = P(positive | x), and a given prior shows the mean of f. Every pair with that
product and that mean gives the same labels with the same probability, so no number of rows decides between them, and
whoever decides for one is wrong in the others.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pue.core.data import require_vector
from pue.errors import InvalidInput


def least_biased(rate: Tensor, prior: float) -> tuple[Tensor, Tensor]:
    """(f, e) with f e = rate, mean f = prior, and the smallest e as large as possible.

        f = min(1, rate / c),   e = max(c, rate)

    Were e above c everywhere, f = rate/e would lie below min(1, rate/c), and so would its mean. Where no rate is above
    c it is SCAR, and what a method without correction assumes.

    >>> least_biased(torch.tensor([0.05, 0.2, 0.2, 0.05]), 0.5)
    (tensor([0.2000, 0.8000, 0.8000, 0.2000]), tensor([0.2500, 0.2500, 0.2500, 0.2500]))
    """
    require_vector("rate", rate)
    if not bool(((rate >= 0) & (rate <= 1)).all()):
        raise InvalidInput("a rate of labels is a probability: it lies in [0, 1].")
    if not float(rate.mean()) <= prior <= float((rate > 0).to(rate.dtype).mean()):
        raise InvalidInput(
            f"no class has the mean {prior:g}: it is at least the mean rate, {float(rate.mean()):.3g}, and at most the "
            f"share of rows that can have a label, {float((rate > 0).double().mean()):.3g}."
        )
    low, high = 0.0, 1.0
    for _ in range(100):  # the mean of f falls as c rises
        middle = (low + high) / 2
        low, high = (middle, high) if float(_class(rate, middle).mean()) > prior else (low, middle)
    f = _class(rate, high)
    return f, torch.where(f > 0, rate / f.clamp(min=1e-300), torch.full_like(rate, high))


def _class(rate: Tensor, c: float) -> Tensor:
    return (rate / max(c, 1e-300)).clamp(max=1)


def within_reach(f: Tensor, other: Tensor, loss: float) -> float:
    """The largest share of the accuracy to be won in the world f, by a rule that loses at most `loss` in the other one.

    Both worlds have the same labels, so a rule calls the same rows positive in both. The best rule of the other world
    wins nothing of it, that of f all. Where they differ, a row wins |2f − 1| / n here and loses |2 other − 1| / n
    there: the largest ratios first.

    >>> f, other = torch.tensor([0.9, 0.6, 0.1]), torch.tensor([0.4, 0.1, 0.1])
    >>> round(within_reach(f, other, 0.0), 3), round(within_reach(f, other, 0.1), 3), within_reach(f, other, 1.0)
    (0.0, 0.825, 1.0)
    """
    if loss < 0:
        raise InvalidInput(f"a loss is at least 0; got {loss}.")
    differ = (f > 0.5) != (other > 0.5)
    gain, cost = ((2 * world[differ].double() - 1).abs() / len(f) for world in (f, other))
    if not float(gain.sum()):
        return math.nan
    order = torch.argsort(gain / cost.clamp(min=1e-300), descending=True)
    before = cost[order].cumsum(0) - cost[order]
    part = ((loss - before) / cost[order].clamp(min=1e-300)).clamp(0, 1)
    return float((part * gain[order]).sum() / gain.sum())
