"""What self-supervision minimises: two views of an image should be told from views of all others.

SimCLR (Chen et al. 2020) compares each view with all others of the batch; VICReg (Bardes et al. 2022) asks for equal
vectors whose numbers vary and are not correlated.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from pue.features.views import Views
from pue.training import Batch, Objective, StepRisk

Agreement = Callable[[Tensor, Tensor], Tensor]


def simclr(one: Tensor, other: Tensor, *, temperature: float = 0.5) -> Tensor:
    """Cross-entropy of each view's partner among all other views of the batch, by the cosine of their vectors.

    >>> far = torch.eye(4)
    >>> bool(simclr(far, far) < simclr(far, far.flip(0)))
    True
    """
    n = len(one)
    unit = functional.normalize(torch.cat([one, other]))
    likeness = (unit @ unit.T / temperature).fill_diagonal_(float("-inf"))
    return functional.cross_entropy(likeness, torch.arange(2 * n, device=one.device).roll(n))


def vicreg(one: Tensor, other: Tensor, *, agree: float = 25.0, vary: float = 25.0) -> Tensor:
    """Squared difference of the two, a spread below one in any number, and covariances between numbers.

    >>> vectors = torch.tensor([[2.0, 2.0], [2.0, -2.0], [-2.0, 2.0], [-2.0, -2.0]])
    >>> vicreg(vectors, vectors).item()
    0.0
    """
    total = agree * functional.mse_loss(one, other)
    for found in (one, other):
        centered = found - found.mean(0)
        spread = (centered.var(0) + 1e-4).sqrt()
        covariance = centered.T @ centered / (len(found) - 1)
        apart = covariance.square().sum() - covariance.diagonal().square().sum()
        total = total + vary * functional.relu(1 - spread).mean() / 2 + apart / found.shape[1]
    return total


AGREEMENTS: dict[str, Agreement] = {"simclr": simclr, "vicreg": vicreg}


class Projected(nn.Module):
    """An encoder and the two layers behind it that training needs and features do not."""

    def __init__(self, encoder: nn.Module, inputs: int, hidden: int = 512, outputs: int = 128) -> None:
        super().__init__()
        self.encoder = encoder
        layers = [nn.Linear(inputs, hidden, bias=False), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, outputs)]
        self.projector = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.projector(self.encoder(x))
        return found


class TwoViews(Objective):
    """The agreement of two random views of each image of a batch; both go through the network together."""

    terms = ("agreement",)
    spent: Tensor
    """Processor seconds so far; a buffer, so that a training that was stopped goes on counting."""

    def __init__(self, agreement: str, views: Views, *, half: bool) -> None:
        super().__init__()
        self.agreement, self.views, self.in_half = agreement, views, half
        self.register_buffer("spent", torch.zeros((), dtype=torch.float64))
        self._clock = time.process_time()

    def forward(self, batch: Batch) -> StepRisk:
        both = torch.cat([self.views(batch.x, batch.generator) for _ in range(2)])
        both = both.contiguous(memory_format=torch.channels_last)
        with torch.autocast(both.device.type, dtype=torch.bfloat16, enabled=self.in_half):
            vectors = batch.network(both)
        value = AGREEMENTS[self.agreement](*vectors.float().chunk(2))
        now = time.process_time()
        self.spent += now - self._clock
        self._clock = now
        return StepRisk(value, value.detach()[None])

    def settings(self) -> Any:
        return [self.agreement, repr(self.views), self.in_half]
