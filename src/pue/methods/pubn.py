"""PUbN (Hsieh et al. 2019), with and without biased negatives, and PUbNe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from scipy.optimize import brentq
from scipy.special import expit
from torch import Tensor

from pue.core.data import population_rows
from pue.core.losses import logistic
from pue.core.risks import nnpu
from pue.core.risks import pubn as pubn_risk
from pue.core.weights import biased_negatives, pubn, pubn_region, pubn_threshold
from pue.errors import InvalidInput
from pue.methods.composition import pu_weights
from pue.methods.protocol import Fitted, Task
from pue.persistence import kept
from pue.training import score


@kept
@dataclass(frozen=True)
class PUbN:
    """Three steps: learn σ(x) = P(x lies where labels come from) by nnPU, cut it at η, minimise the PUbN risk.

    Rows labeled −1 are the biased negatives; without them this is the authors' PUbN\\N. With propensities both steps
    are weighted, positives and negatives each by their own (PUbNe).
    """

    rho: float | None = None
    """Share of the population that is negative *and* could have been labeled; needed where rows are labeled −1."""
    tau: float = 0.9
    """η is the τ(1 − π − ρ) quantile of σ on the population; the authors: 0.9 without negatives, 0.5 or 0.7 with."""
    weight_sigma: bool = True
    """Whether the propensities weight the first step too; otherwise σ inherits the bias."""
    sharpness: float = 1.0
    """1: σ is the sigmoid of the first step's score, as published. Above: of so many times the score, shifted so that σ
    has the mean π + ρ. Where classes do not overlap σ should be 0 or 1, and a network that was trained for a while only
    is less sure: rows of the labeled region then count as negatives by (1 − σ) / σ, and recall is lost."""
    uses_negatives: ClassVar[bool] = True
    summary: str = "nnPU finds where labels come from, then a risk that is never negative"

    def __post_init__(self) -> None:
        if not self.sharpness >= 1:
            raise InvalidInput(f"sharpness must be at least 1, which leaves σ as it is; got {self.sharpness}.")

    def fit(self, task: Task) -> Fitted:
        data, prior, loss = task.data, task.prior, task.loss or logistic
        negatives, plain_negatives, rho = None, None, 0.0
        if bool((data.labels == -1).any()):
            if self.rho is None:
                raise InvalidInput(
                    "PUbN with labeled negatives needs their share of the population: method=PUbN(rho=0.2)."
                )
            rho = self.rho
            kind: dict[str, Any] = {"rho": rho, "sample_weight": data.sample_weight}
            plain_negatives = biased_negatives(data.labels, **kind)
            negatives = biased_negatives(data.labels, propensity=task.negative_propensity, **kind)
        weights = pu_weights(data, prior, task.propensity)
        region = pubn_region(weights, negatives)
        if not self.weight_sigma:
            region = pubn_region(pu_weights(data, prior, None), plain_negatives)
        first = task.build(task.seed)
        history = task.train(first, region, nnpu(loss))
        population = population_rows(data.labels, data.scenario)
        scores, share = score(first, data.x).double(), prior + rho
        plain = self.sharpness == 1
        sigma = torch.sigmoid(scores) if plain else sharpened(scores, self.sharpness, share, data.mass * population)
        eta = pubn_threshold(sigma[population], prior=prior, rho=rho, tau=self.tau)
        network = task.build(task.seed)
        risk_weights = pubn(weights, sigma, eta=eta, negatives=negatives)
        history = history + task.train(network, risk_weights, pubn_risk(loss), stage=1)
        return Fitted(network, history)


def sharpened(scores: Tensor, factor: float, share: float, mass: Tensor) -> Tensor:
    """sigmoid(factor · score + shift), the shift such that the mean under `mass` is `share`.

    >>> sharpened(torch.tensor([-1.0, 1.0, 3.0]), 10.0, 2 / 3, torch.ones(3)).round(decimals=3)
    tensor([0., 1., 1.], dtype=torch.float64)
    """
    steep = (factor * scores.double()).numpy()
    weight = (mass.double() / mass.double().sum()).numpy()
    reach = float(abs(steep).max()) + 50
    shift = brentq(lambda b: float(weight @ expit(steep + b)) - share, -reach, reach)
    return torch.from_numpy(expit(steep + shift))
