"""What a method gets and what it gives back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from pue.core.data import Features, PUData
from pue.core.losses import Loss
from pue.core.randomness import derive
from pue.core.risks import Risk
from pue.core.weights import RowWeights
from pue.errors import InvalidInput
from pue.training import Checkpointing, EpochRecord, Objective, RowStream, Training, score, train
from pue.trees import Learner, Learnt, dense


@dataclass(frozen=True, eq=False)
class Task:
    """Everything a method may use: data, prior, propensities, what to fit and how. No true class."""

    data: PUData
    prior: float
    propensity: Tensor | None
    """e of the rows labeled positive, in order, or None: no correction."""
    negative_propensity: Tensor | None
    """e of the rows labeled negative, in order."""
    build: Callable[[int], nn.Module]
    """A fresh network from a seed."""
    training: Training
    seed: int
    loss: Loss | None = None
    """The loss asked for; None: the method's own."""
    device: torch.device = torch.device("cpu")  # noqa: RUF009 (immutable)
    checkpointing: Checkpointing | None = None
    progress: bool | float | None = None
    stream: RowStream | None = None
    """Where all rows but those of `data` come from, if they are not in memory."""
    learner: Learner | None = None
    """What methods of one stage fit instead of a network."""

    def learn(self, weights: RowWeights, risk: Risk) -> Fitted:
        """A network trained on this risk, or trees: they have a risk of their own, with the same weights."""
        if self.learner is None:
            network = self.build(self.seed)
            return Fitted(network, self.train(network, weights, risk))
        trees, threshold = self.learner.learn(self.data, weights, self.seed)
        return Fitted(trees, [], threshold)

    def train(
        self, network: nn.Module, weights: RowWeights, risk: Risk | Objective, *, stage: int = 0, **changes: Any
    ) -> list[EpochRecord]:
        """One run of the training loop; `changes` to the settings, and a checkpoint folder for every later stage."""
        checkpointing = self.checkpointing
        if checkpointing is not None and stage:
            checkpointing = Checkpointing(checkpointing.folder / f"stage-{stage}", checkpointing.every)
        return train(
            network,
            self.data,
            weights,
            risk,
            replace(self.training, **changes),
            seed=self.seed if stage == 0 else derive(self.seed, 100 + stage),
            device=self.device,
            checkpointing=checkpointing,
            progress=self.progress,
            stream=self.stream,
        )

    def refuse_propensity(self, name: str) -> None:
        if self.propensity is not None:
            raise InvalidInput(f"{name} has no use for propensities: leave propensity=None.")


class NeighborVote(ABC):
    """A model that asks the rows it remembers."""

    @abstractmethod
    def scores(self, x: Features) -> Tensor:
        """The score of each row; it is finite."""


Model = nn.Module | Learnt | NeighborVote


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained network, trees, or rows that vote; a row is called positive where its score reaches `threshold`."""

    model: Model
    history: list[EpochRecord]
    threshold: float = 0.0

    def scores(self, x: Features) -> Tensor:
        return scores_of(self.model, x)


def scores_of(model: Model, x: Features) -> Tensor:
    """The output of a network, the log-odds of trees, or the vote of neighbors."""
    if isinstance(model, NeighborVote):
        return model.scores(x)
    return torch.from_numpy(model.log_odds(dense(x))) if isinstance(model, Learnt) else score(model, x)


class Method(Protocol):
    """A value with `fit`; its fields are its own settings."""

    @property
    def summary(self) -> str:
        """One line for lists."""
        ...

    def fit(self, task: Task) -> Fitted: ...


@runtime_checkable
class UsesNegatives(Protocol):
    """A method that weights rows labeled −1 by propensities of their own."""

    uses_negatives: ClassVar[bool]
