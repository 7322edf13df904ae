"""A PU risk first; then a slow average of the network teaches it what rows are, each heard beside its nearest rows.

    1   nnPU with the weights, for a share of the epochs
    2   nnPU + lessons.   Before each epoch the teacher scores all rows; what it says of a row is averaged with what it
        says of the row's nearest rows (structure), and shifted so that the mean over the population is π; labeled rows
        are positive. The network learns these soft labels from views of its own, augmented if images are.

Classes that form regions are named as a whole in this way, also where few of their labels were drawn.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from pue.core.data import PUData, population_rows, select
from pue.core.losses import sigmoid as sigmoid_loss
from pue.core.risks import Risk, nnpu
from pue.errors import InvalidInput
from pue.methods.composition import pu_weights
from pue.methods.protocol import Fitted, Task
from pue.methods.pubn import sharpened
from pue.persistence import kept
from pue.propensity.structure import graph_rows, network_of
from pue.training import Batch, Objective, StepRisk, score, step_risk
from pue.training.averages import follow


@kept
@dataclass(frozen=True)
class AveragedTeacher:
    """nnPU, then soft labels of an averaged teacher and of each row's neighbors (docs/lab/teacher.md)."""

    warm_up: float = 0.5
    """Share of the epochs without a teacher."""
    decay: float = 0.99
    """Of the teacher, a step; 0: the network as it is at the start of an epoch."""
    neighbors: int = 10
    """Nearest rows that are heard, in each view of the structure; 0: none."""
    weight: float = 3.0
    """Of the lessons beside the risk."""
    summary: str = "nnPU, then soft labels of an averaged teacher, heard beside those of each row's neighbors"

    def __post_init__(self) -> None:
        shares = 0 < self.warm_up <= 1 and 0 <= self.decay < 1
        if not (shares and self.neighbors >= 0 and self.weight > 0):
            raise InvalidInput(
                f"warm_up must lie in (0, 1], decay in [0, 1), neighbors be at least 0, weight above 0; got {self}."
            )

    def fit(self, task: Task) -> Fitted:
        network, epochs = task.build(task.seed), task.training.epochs
        weights = pu_weights(task.data, task.prior, task.propensity)
        risk = nnpu(task.loss or sigmoid_loss)
        first = min(epochs, max(1, round(self.warm_up * epochs)))
        history = task.train(network, weights, risk, epochs=first)
        if first < epochs:
            lessons = Lessons(self, task.data, task.prior, risk, network)
            history = history + task.train(network, weights, lessons, stage=1, epochs=epochs - first)
            network.load_state_dict(lessons.teacher.state_dict())
        return Fitted(network, history)


class Lessons(Objective):
    """R(g) + weight · mean BCE(g, q) over all rows; q is what the teacher and the neighbors say, renewed each epoch."""

    heard: Tensor

    def __init__(self, settings: AveragedTeacher, data: PUData, prior: float, risk: Risk, network: nn.Module) -> None:
        super().__init__()
        self.options, self.prior, self.risk, self.x = settings, prior, risk, data.x
        self.terms = (*risk.terms, "lessons")
        self.teacher = deepcopy(network).eval().requires_grad_(False)
        self.near = nearest_rows(data, settings.neighbors) if settings.neighbors else None
        self.labeled, self.mass = data.labeled, data.mass * population_rows(data.labels, data.scenario)
        self.register_buffer("heard", torch.zeros(data.n_rows, dtype=torch.float64))

    def start_epoch(self, epoch: int, epochs: int, network: nn.Module) -> None:
        said = torch.sigmoid(score(self.teacher, self.x).double())
        if self.near is not None:
            said = (said + said[self.near].sum(1)) / (1 + self.near.shape[1])
        kept_mean = sharpened(torch.logit(said, eps=1e-6), 1.0, self.prior, self.mass)
        self.heard.copy_(torch.where(self.labeled, 1.0, kept_mean))

    def forward(self, batch: Batch) -> StepRisk:
        follow(self.teacher, batch.network, self.options.decay)
        scores = batch.network(batch.x)
        base = step_risk(self.risk, scores, batch)
        heard = self.heard[batch.rows].to(scores)
        wrong = functional.binary_cross_entropy_with_logits(scores, heard, reduction="none")
        lessons = batch.reduce((batch.share @ wrong)[None])
        value = base.value + self.options.weight * lessons[0]
        return StepRisk(value, torch.cat([base.sums, lessons]), base.corrected)

    def settings(self) -> Any:
        return [repr(self.options), self.prior]


def nearest_rows(data: PUData, k: int) -> Tensor:
    """(n, k for each view): of every row, the rows of the population that are nearest to it; itself is none of them."""
    nodes = graph_rows(data.x, population_rows(data.labels, data.scenario))
    network = network_of(select(data.x, nodes), k)
    others = torch.ones(data.n_rows, dtype=torch.bool)
    others[nodes] = False
    own = torch.cat(network.near, dim=1)
    near = torch.empty(data.n_rows, own.shape[1], dtype=torch.int64)
    near[nodes] = nodes[own]
    if bool(others.any()):
        near[others] = nodes[network.near_to(select(data.x, others))]
    return near
