"""Dist-PU (Zhao et al. 2022): align the predicted share of positives, then mixup with pseudo-labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from pue.core.risks import binary_entropy, dist_pu
from pue.methods.composition import pu_weights
from pue.methods.protocol import Fitted, Task
from pue.persistence import kept
from pue.training import Batch, Objective, StepRisk, score, step_risk
from pue.training.augment import draw_blend


@kept
@dataclass(frozen=True)
class DistPU:
    """Both stages; half of the epochs each. Propensities weight the labeled rows' term in both (Dist-PUe)."""

    entropy: float = 2e-3
    """μ, on the entropy of unlabeled rows in the first stage."""
    late_entropy: float = 4e-3
    """In the second stage it grows from 0 to this."""
    mixed_entropy: float = 0.04
    mixup: float = 5.0
    """Weight of the cross-entropy of blended rows against their blended pseudo-labels."""
    beta: float = 6.0
    """λ ~ Beta(β, β)."""
    warm_up: float = 0.5
    """Share of the epochs in the first stage; 1: there is no second."""
    lr_factor: float = 0.1
    """The second stage's learning rate over the first's (the authors': 5e-5 and 5e-4; the paper's text: the same)."""
    decay_factor: float = 0.2
    schedule: str = "cosine_to_70"
    """Of the second stage."""
    summary: str = "Dist-PU: predicted share of positives equals π; then mixup with pseudo-labels"

    def fit(self, task: Task) -> Fitted:
        network, training = task.build(task.seed), task.training
        weights = pu_weights(task.data, task.prior, task.propensity)
        first = min(training.epochs, max(1, round(self.warm_up * training.epochs)))
        history = task.train(network, weights, dist_pu(task.prior, entropy=self.entropy), epochs=first)
        if first < training.epochs:
            pseudo = torch.sigmoid(score(network, task.data.x))
            history = history + task.train(
                network,
                weights,
                PseudoLabels(self, task.prior, pseudo, task.data.labeled),
                stage=1,
                epochs=training.epochs - first,
                lr=training.lr * self.lr_factor,
                weight_decay=training.weight_decay * self.decay_factor,
                schedule=self.schedule,
            )
        return Fitted(network, history)


class PseudoLabels(Objective):
    """The second stage. q, the pseudo-labels, are the scores each row had when it was last seen; 1 on labeled rows.

        L_lab(g) + c(t) Ent(U) + 0.04 Ent(g̃) + 5 [λ BCE(g̃, q) + (1 − λ) BCE(g̃, q')],   g̃ = g(λx + (1 − λ)x'),

    scores clamped to ±10, c(t) = 0.004 (1 − cos(πt / 2T)). The last two terms are means over all rows: a row drawn more
    often than others counts less each time. They are not weighted by propensities.
    """

    terms = ("labeled", "predicted positives", "entropy", "mixed entropy", "mixup")
    pseudo: Tensor
    labeled: Tensor

    def __init__(self, settings: DistPU, prior: float, pseudo: Tensor, labeled: Tensor) -> None:
        super().__init__()
        self.options, self.prior = settings, prior
        self.register_buffer("pseudo", torch.where(labeled, 1.0, pseudo))
        self.register_buffer("labeled", labeled, persistent=False)

    def forward(self, batch: Batch) -> StepRisk:
        options = self.options
        rising = options.late_entropy * (1 - math.cos(math.pi * batch.epoch / (2 * batch.epochs)))
        risk = dist_pu(self.prior, entropy=max(rising, 1e-30))  # zero would leave the term out, and the sums have names
        scores = batch.network(batch.x).clamp(-10, 10)
        base = step_risk(risk, scores, batch)
        blend = draw_blend(batch.x, options.beta, batch.generator, batch.part)
        mixed = batch.network(blend(batch.x)).clamp(-10, 10)
        target = blend(self.pseudo[batch.rows].to(mixed))
        cross_entropy = functional.binary_cross_entropy_with_logits(mixed, target, reduction="none")
        mass = blend(batch.share)
        extra = batch.reduce(torch.stack([mass @ binary_entropy(mixed), mass @ cross_entropy]))
        with torch.no_grad():
            fresh, rows = batch.part.whole(torch.sigmoid(scores).to(self.pseudo)), batch.part.whole(batch.rows)
            self.pseudo[rows] = torch.where(self.labeled[rows], 1.0, fresh)
        value = base.value + options.mixed_entropy * extra[0] + options.mixup * extra[1]
        return StepRisk(value, torch.cat([base.sums, extra]), base.corrected)

    def settings(self) -> Any:
        return [repr(self.options), self.prior]
