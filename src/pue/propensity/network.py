"""The paper's estimator: a network for P(labeled | x) with a pull of Σê towards the number of labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from pue.backbones import BACKBONES, InputSpec, build
from pue.backbones.inputs import input_spec
from pue.core.data import Features, PUData, Scenario
from pue.core.risks import label_likelihood
from pue.core.weights import supervised
from pue.errors import InvalidInput, UnknownName
from pue.persistence import NetworkParts, kept, kept_with_network
from pue.propensity.protocol import PropensityModel
from pue.training import Batching, Training, score, train
from pue.training.feeds import split_rows

Form = Literal["mean", "full_mean", "sum_batch", "sum_scaled"]
FORMS: tuple[str, ...] = ("mean", "full_mean", "sum_batch", "sum_scaled")

EARLY_STOPPING = Training(
    epochs=60, batching=Batching(256, "pooled"), weight_decay=5e-3, validation=0.1, criterion="likelihood", patience=5
)
"""The recommended reading of the paper: at most 60 epochs, stopped by the likelihood of a held-out tenth."""


@kept
@dataclass(frozen=True)
class Network:
    """ê from a network fitted to "labeled" by mean cross-entropy + α_e |…|, which reads in four ways:

    | form         | the regulariser for a batch B of n rows in all |
    |--------------|------------------------------------------------|
    | "mean"       | α ·abs(mean_B ê − share of labels in B)        |
    | "full_mean"  | α ·abs(mean_B ê − n_P / n)                     |
    | "sum_batch"  | α ·abs(Σ_B ê − labels in B): "mean" times B     |
    | "sum_scaled" | α ·abs((n / B) Σ_B ê − n_P), the paper's letter |

    Only the mean forms give the searched α ∈ [0, 20] the size of the likelihood; the sums drown it. None of the four
    excludes memorisation, which satisfies Σê = n_P exactly: cross-fit it, or stop early, as the default does.
    """

    alpha: float = 15.0
    form: Form = "mean"
    backbone: str | nn.Module | Callable[[InputSpec], nn.Module] = "auto"
    training: Training = field(default_factory=lambda: EARLY_STOPPING)
    odds: bool | None = None
    """Whether ê is p / (1 − p); None: in case-control, where labeled rows stand beside the sample. False: the paper."""
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise UnknownName("form", self.form, FORMS)
        if self.alpha < 0:
            raise InvalidInput(f"alpha must not be negative; got {self.alpha}. The paper searches it in [0, 20].")

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> PropensityModel:
        weights = supervised(data.labels == 1, data.sample_weight)
        share = float(weights.positive.sum())
        n, size = data.n_rows, min(self.training.batching.size, data.n_rows)
        scale = {"mean": 1.0, "full_mean": 1.0, "sum_batch": float(size), "sum_scaled": float(n)}[self.form]
        target = share if self.form in ("full_mean", "sum_scaled") else None
        spec = input_spec(data, "auto", torch.device(self.device))
        network = build(self.backbone, spec, seed=seed)
        risk = label_likelihood(self.alpha, scale=scale, target=target)
        train(network, data, weights, risk, self.training, seed=seed, device=self.device, progress=False)
        odds = data.scenario is Scenario.CASE_CONTROL if self.odds is None else self.odds
        _, held_out = split_rows(data, self.training.validation, seed)
        unseen = None if held_out is None else torch.isin(torch.nonzero(data.labeled)[:, 0], held_out)
        return NetworkModel(network.cpu(), odds, unseen, by_name(self.backbone), spec)


@kept_with_network(NetworkParts("network", "backbone", "spec", build))
@dataclass(frozen=True, eq=False)
class NetworkModel(PropensityModel):
    """A fitted network: x → P(labeled | x) in the rows it saw, or the odds of that."""

    network: nn.Module
    odds: bool
    unseen: Tensor | None = None
    """Which of the labeled rows were held out for early stopping."""
    backbone: str | Callable[..., nn.Module] | None = None
    """What built the network and builds a saved one again; None: a user's own object, which cannot be named."""
    spec: InputSpec | None = None

    def __call__(self, x: Features) -> Tensor:
        logits = score(self.network, x).double()
        return torch.exp(logits.clamp(-50, 50)) if self.odds else torch.sigmoid(logits)


def by_name(backbone: str | nn.Module | Callable[..., nn.Module]) -> str | Callable[..., nn.Module] | None:
    """The backbone, if it is a name, an import path or one of ours (with settings): a model that kept a user's function
    could no longer be pickled.
    """
    ours = isinstance(backbone, str) or getattr(backbone, "func", backbone) in BACKBONES.values()
    return backbone if ours else None
