"""What a method gets and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from pue.data import PUData
from pue.errors import InvalidInput
from pue.losses import Loss
from pue.randomness import derive
from pue.risks import Risk
from pue.training import Checkpointing, EpochRecord, Objective, RowStream, Training, train
from pue.weights import RowWeights


@dataclass(frozen=True, eq=False)
class Task:
    """Everything a method may use: data, prior, propensities, how to build and train a network. No true class."""

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
    progress: bool | None = None
    stream: RowStream | None = None
    """Where all rows but those of `data` come from, if they are not in memory."""

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


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained network; a row is called positive where its score reaches `threshold`."""

    network: nn.Module
    history: list[EpochRecord]
    threshold: float = 0.0


class Method(Protocol):
    """A value with `fit`; its fields are its own settings."""

    @property
    def summary(self) -> str:
        """One line for lists."""
        ...

    def fit(self, task: Task) -> Fitted: ...
