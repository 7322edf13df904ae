"""Expectation maximisation with two networks, one for f = P(positive | x) and one for e = P(labeled | x, positive):
SAR-EM (Bekker, Robberechts and Davis 2019) and LBE, labeling bias estimation (Gong et al. 2021)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from pue.backbones import build
from pue.backbones.inputs import input_spec
from pue.core.data import Features, PUData, Scenario
from pue.core.folds import most_folds
from pue.core.losses import logistic
from pue.core.randomness import derive
from pue.core.regression import Array, sigmoid
from pue.core.risks import upu
from pue.core.weights import RowWeights
from pue.errors import InvalidInput
from pue.persistence import kept
from pue.propensity.latent import expectation, row_mass
from pue.propensity.network import NetworkModel, by_name
from pue.propensity.protocol import PropensityModel
from pue.training import Batching, Training, score, train
from pue.training.feeds import split_rows


@dataclass(frozen=True)
class NetworkEM(ABC):
    """E: q = s + (1 − s) f(1 − e) / (1 − f e). M: a few steps of f towards the soft target q, and of e towards s with
    weights q. It ends when the log-likelihood of held-out rows has hardly grown for `patience` rounds, and goes back to
    the best round.

    Case-control: see `latent`. How the networks start is what tells the methods apart.
    """

    backbone: str | nn.Module | Callable[..., Any] = "auto"
    steps: int = 300
    """Gradient steps of a network before the first E-step, in whole epochs."""
    round_steps: int = 30
    """Gradient steps of each network in an M-step, in whole epochs."""
    rounds: int = 100
    patience: int = 10
    gain: float = 1e-4
    """Stop when the mean log-likelihood gained less than this in so many rounds."""
    validation: float = 0.1
    """Share of the rows held out; without any (or with too few distinct rows) the training rows decide."""
    lr: float = 1e-3
    weight_decay: float = 1e-4
    batch_size: int = 256

    def __post_init__(self) -> None:
        if min(self.steps, self.round_steps, self.patience) < 1 or self.rounds < 0:
            raise InvalidInput("steps, round_steps and patience must be at least 1, and rounds not negative.")

    @abstractmethod
    def _start(self, pair: Pair) -> None:
        """Teach the two networks something to begin with."""

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> PropensityModel:
        spec = input_spec(data, "auto", torch.device("cpu"))
        _, e = self.fit_pair(data, seed=seed, build=lambda own_seed: build(self.backbone, spec, seed=own_seed))
        odds = data.scenario is Scenario.CASE_CONTROL
        return NetworkModel(e, odds, backbone=by_name(self.backbone), spec=spec)

    def fit_pair(self, data: PUData, *, seed: int, build: Callable[[int], nn.Module]) -> tuple[nn.Module, nn.Module]:
        """The networks of f and of e, as they were in the best round; `build` makes one from a seed."""
        share = self.validation if most_folds(data.x, data.labels) > 1 else 0.0
        rows, held_out = split_rows(data, share, seed)
        pair = Pair(self, data.take(rows), seed, build)
        judge = pair.data if held_out is None else data.take(held_out)
        self._start(pair)
        best, result = pair.log_likelihood(judge), deepcopy((pair.f, pair.e))
        mark, stalled = best, 0
        for _ in range(self.rounds):
            pair.go_round()
            found = pair.log_likelihood(judge)
            if found > best:
                best, result = found, deepcopy((pair.f, pair.e))
            mark, stalled = (found, 0) if found > mark + self.gain else (mark, stalled + 1)
            if stalled >= self.patience:
                break
        return result


class Pair:
    """The two networks and the rows they learn from."""

    def __init__(self, settings: NetworkEM, data: PUData, seed: int, build: Callable[[int], nn.Module]) -> None:
        self.settings, self.data, self.seed = settings, data, seed
        self.f, self.e = build(derive(seed, 0)), build(derive(seed, 1))
        self.s, self.mass = data.labeled.numpy().astype(np.float64), row_mass(data)
        self.trainings = 0

    def teach(self, network: nn.Module, positive: Array, negative: Array, steps: int) -> None:
        """So many steps of the binary cross-entropy Σ w⁺ log(1 + e⁻ᵍ) + w⁻ log(1 + eᵍ), weights of mass one."""
        size, total = self.settings.batch_size, (positive + negative).sum()
        training = Training(
            epochs=-(-steps // -(-self.data.n_rows // size)),
            batching=Batching(size),
            lr=self.settings.lr,
            weight_decay=self.settings.weight_decay,
        )
        self.trainings += 1
        weights = RowWeights(torch.from_numpy(positive / total), torch.from_numpy(negative / total))
        seed = derive(self.seed, 2, self.trainings)
        train(network, self.data, weights, upu(logistic), training, seed=seed, progress=False)

    def teach_propensity(self, q: Array, steps: int) -> None:
        self.teach(self.e, self.mass * self.s, self.mass * (1 - self.s) * q, steps)

    def go_round(self) -> None:
        """An E-step and an M-step."""
        q, steps = expectation(*self._scores(self.data), self.s)[0], self.settings.round_steps
        self.teach_propensity(q, steps)
        self.teach(self.f, self.mass * q, self.mass * (1 - q), steps)

    def class_probability(self) -> Array:
        return sigmoid(_score(self.f, self.data.x))

    def log_likelihood(self, data: PUData) -> float:
        """Mean of log P(s | x) over some rows."""
        mass = row_mass(data)
        _, log_p = expectation(*self._scores(data), data.labeled.numpy().astype(np.float64))
        return float(mass @ log_p / mass.sum())

    def _scores(self, data: PUData) -> tuple[Array, Array]:
        return _score(self.f, data.x), _score(self.e, data.x)


def _score(network: nn.Module, x: Features) -> Array:
    scores: Array = score(network, x).double().numpy()
    return scores


@kept
@dataclass(frozen=True)
class DeepSAREM(NetworkEM):
    """`SAREM` with any backbone, by gradient steps.

    It starts as SAR-EM does: f from labels against the rest, both sides weighing the same; then e from the labels,
    unlabeled rows weighing f.
    """

    def _start(self, pair: Pair) -> None:
        s, mass = pair.s, pair.mass
        share = mass @ s / mass.sum()
        pair.teach(pair.f, mass * s * (1 - share), mass * (1 - s) * share, self.steps)
        pair.teach_propensity(pair.class_probability(), self.steps)


@kept
@dataclass(frozen=True)
class LBE(NetworkEM):
    """h = P(positive | x) and η = P(labeled | x, positive) by EM with gradient steps, both linear by default.

    It starts from h trained on the labels as if they were classes, and an untrained η (a half, where linear). Published
    code also lets likely negatives teach η, whose target then is P(labeled | x); we follow the likelihood, where they
    say nothing about η. The start is far off where labels are rare, and prefers neither reading of the two curves, so
    η can end up as the class: `SAREM` and `DeepSAREM` are safer.
    """

    backbone: str | nn.Module | Callable[..., Any] = "linear"
    lr: float = 1e-2

    def _start(self, pair: Pair) -> None:
        pair.teach(pair.f, pair.mass * pair.s, pair.mass * (1 - pair.s), self.steps)
