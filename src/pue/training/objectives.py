"""What one step minimises: a risk of the batch's scores, or more than that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pue.core.risks import Reduce, Risk
from pue.core.weights import RowWeights
from pue.training.processes import Part


@dataclass(frozen=True, eq=False)
class Batch:
    """What a step has at hand."""

    network: nn.Module
    x: Tensor
    """Inputs on the device, augmented."""
    rows: Tensor
    """Where they stand in the data."""
    weights: RowWeights
    share: Tensor
    """How much of the training rows each row stands for; one in sum, or in expectation."""
    epoch: int
    epochs: int
    generator: torch.Generator
    reduce: Reduce
    part: Part = Part()  # noqa: RUF009 (immutable)
    """Which rows of the whole batch these are, where several processes share it."""


@dataclass(frozen=True, eq=False)
class StepRisk:
    """A step's objective with its gradient, the sums behind it, and whether a correction stepped in."""

    value: Tensor
    sums: Tensor
    corrected: bool = False


class Objective(nn.Module):
    """One that sees the network and the rows, for methods whose loss is not a function of the scores alone.

    It is a module so that what it remembers (pseudo-labels, say) lies in buffers, and buffers are part of checkpoints.
    """

    terms: tuple[str, ...]
    """A name for each of the sums."""

    def start_epoch(self, epoch: int, epochs: int, network: nn.Module) -> None:
        """Before the first step of an epoch."""

    def forward(self, batch: Batch) -> StepRisk:
        raise NotImplementedError

    def settings(self) -> Any:
        """What makes it differ from others of its kind; part of the fingerprint of a checkpoint."""
        return type(self).__qualname__


class RiskObjective(Objective):
    """A risk of the scores: most methods."""

    def __init__(self, risk: Risk) -> None:
        super().__init__()
        self.risk, self.terms = risk, risk.terms

    def forward(self, batch: Batch) -> StepRisk:
        return step_risk(self.risk, batch.network(batch.x), batch)

    def settings(self) -> Any:
        return behavior(self.risk)


def step_risk(risk: Risk, scores: Tensor, batch: Batch) -> StepRisk:
    """The risk of these scores: sum, reduce, combine."""
    sums = batch.reduce(risk.sums(scores, batch.weights))
    return StepRisk(risk.combine(sums), sums, risk.corrected(sums.detach()))


def behavior(risk: Risk) -> list[list[float]]:
    """Value and gradient of a risk on fixed scores: tells losses and corrections apart, which have no names here."""
    scores = torch.linspace(-3, 3, 7, dtype=torch.float64, requires_grad=True)
    found = []
    for share in (0.1, 0.9):  # the second drives the negative part below zero
        positive = torch.full((7,), share, dtype=torch.float64)
        value = risk(scores, RowWeights(positive, 0.3 - positive))
        (gradient,) = torch.autograd.grad(value, scores)
        found.append([value.item(), *gradient.tolist()])
    return found
