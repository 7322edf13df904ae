"""VPU (Chen et al. 2020): the variational principle, which needs no prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pue.core.losses import logistic
from pue.core.risks import Risk
from pue.core.weights import RowWeights
from pue.methods.composition import pu_weights
from pue.methods.protocol import Fitted, Task
from pue.persistence import kept
from pue.training import Batch, Objective, StepRisk, step_risk
from pue.training.augment import draw_beta


def variational(prior: float) -> Risk:
    """log E_p[Φ] − E_P[log Φ], Φ = sigmoid(g): least where Φ is proportional to P(positive | x).

    w⁺/π is a distribution whatever π is, so the prior cancels.
    """

    def sums(scores: Tensor, weights: RowWeights) -> Tensor:
        return torch.stack([weights.background @ torch.sigmoid(scores), weights.positive @ logistic(scores) / prior])

    def combine(sums: Tensor) -> Tensor:
        return sums[0].log() + sums[1]

    return Risk(("predicted positives", "labeled"), sums, combine)


@kept
@dataclass(frozen=True)
class VPU:
    """The variational risk and the authors' regulariser: log Φ of a blend of an unlabeled and a labeled row is the log
    of the blended Φ, labeled rows taken as 1. Propensities weight the labeled rows."""

    consistency: float = 0.03
    beta: float = 0.3
    summary: str = "variational PU, the prior is not used"

    def fit(self, task: Task) -> Fitted:
        network = task.build(task.seed)
        weights = pu_weights(task.data, task.prior, task.propensity)
        return Fitted(network, task.train(network, weights, Consistent(self, task.prior, task.data.labeled)))


class Consistent(Objective):
    """The variational risk plus consistency · E[(log Φ(λx + (1 − λ)x') − log(λΦ(x) + 1 − λ))²], x' labeled."""

    terms = ("predicted positives", "labeled", "consistency")
    labeled: Tensor

    def __init__(self, settings: VPU, prior: float, labeled: Tensor) -> None:
        super().__init__()
        self.options, self.prior = settings, prior
        self.register_buffer("labeled", labeled, persistent=False)

    def forward(self, batch: Batch) -> StepRisk:
        scores = batch.network(batch.x)
        base = step_risk(variational(self.prior), scores, batch)
        labeled = batch.part.whole(self.labeled[batch.rows])
        known, others = torch.nonzero(labeled)[:, 0], torch.nonzero(~labeled)[:, 0]
        gap = scores.new_zeros(())
        if len(known) and len(others):
            share = draw_beta(self.options.beta, batch.generator)
            partner = labeled.new_zeros(len(labeled), dtype=torch.int64)
            partner[others] = known[
                torch.randint(len(known), (len(others),), generator=batch.generator).to(known.device)
            ]
            own = torch.nonzero(batch.part.of(~labeled))[:, 0]
            beside = batch.part.whole(batch.x)[batch.part.of(partner)[own]]
            blend = batch.network(share * batch.x[own] + (1 - share) * beside)
            target = (share * torch.sigmoid(scores[own].detach()) + 1 - share).log()
            mass = batch.share[own] / batch.part.whole(batch.share)[others].sum()
            gap = mass @ (logistic(blend) + target).square()
        extra = batch.reduce(gap[None])
        return StepRisk(base.value + self.options.consistency * extra[0], torch.cat([base.sums, extra]))

    def settings(self) -> Any:
        return [repr(self.options), self.prior]
