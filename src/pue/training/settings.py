"""How to optimise, and what an epoch leaves behind."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import torch

from pue.core.criteria import CRITERIA
from pue.errors import InvalidInput, UnknownName
from pue.persistence import PASSING, kept
from pue.training.augment import Augmentation
from pue.training.batches import Batching
from pue.training.schedules import SCHEDULES

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,  # weight decay is L2 in the gradient, as in the PU literature
    "adamw": torch.optim.AdamW,
    "sgd": lambda parameters, **options: torch.optim.SGD(parameters, momentum=0.9, nesterov=True, **options),
}

CHOICES: dict[str, Collection[str]] = {
    "optimizer": OPTIMIZERS, "schedule": SCHEDULES, "criterion": CRITERIA, "keep": ("auto", "best", "last"),
}  # fmt: skip
BATCHING = {"batch_size": "size", "batching": "mode", "labeled_per_batch": "labeled", "labeled_rows": "labeled_rows"}
"""Option of a classifier → the field of `Batching` that holds it; all others are fields of `Training`."""


@kept
@dataclass(frozen=True)
class Training:
    """How to optimise: everything that, with the data and the seed, decides the parameters."""

    epochs: int = 60
    batching: Batching = field(default_factory=Batching)
    optimizer: str = "adam"
    lr: float = 1e-3
    weight_decay: float = 1e-4
    schedule: str = "cosine"
    ema: float | None = None
    """Decay of an exponential moving average of the parameters, which then is the result; None: off."""
    augmentation: Augmentation = field(default_factory=Augmentation)
    validation: float = 0.0
    """Share of the rows held out; the criterion of their scores is recorded after every epoch."""
    criterion: str = "risk"
    """A name in `pue.core.criteria.CRITERIA`. It sees the held-out rows' weights: uniform for nnPU, ω for nnPUe."""
    patience: int | None = None
    """Stop after so many epochs in which the criterion did not rise above its best; None: never."""
    keep: Literal["auto", "best", "last"] = "auto"
    """Which epoch is the result, the one with the best criterion or the last; "auto": the best if there is patience."""

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            if vars(self)[name] not in known:
                raise UnknownName(name, vars(self)[name], known)
        if self.epochs < 1:
            raise InvalidInput(f"epochs must be at least 1; got {self.epochs}.")
        if not self.lr > 0 or self.weight_decay < 0:
            raise InvalidInput(
                f"lr must be positive and weight_decay not negative; got {self.lr}, {self.weight_decay}."
            )
        if self.ema is not None and not 0 < self.ema < 1:
            raise InvalidInput(f"ema must lie in (0, 1); got {self.ema}. 0.999 is common.")
        if not 0 <= self.validation <= 0.5:
            raise InvalidInput(f"validation must lie in [0, 0.5]; got {self.validation}.")
        if self.patience is not None and (self.patience < 1 or not self.validation):
            raise InvalidInput("early stopping needs patience of at least 1 and held-out rows: set validation=0.1.")
        if self.keep == "best" and not self.validation:
            raise InvalidInput("the best epoch is chosen by held-out rows: set validation=0.1.")

    def with_options(self, options: Mapping[str, Any]) -> Training:
        """The same with other values, by the names that `PUClassifier` has for them; other names are not read.

        >>> Training().with_options({"lr": 0.1, "batch_size": 64, "prior": 0.3}).batching.size
        64
        """
        batching = {field: options[name] for name, field in BATCHING.items() if name in options}
        own = [field.name for field in fields(self) if field.name not in BATCHING]
        changes = {name: options[name] for name in own if name in options}
        return replace(self, batching=replace(self.batching, **batching), **changes)

    @property
    def keeps_best(self) -> bool:
        return self.keep == "best" or (self.keep == "auto" and self.patience is not None)


@kept
@dataclass(frozen=True)
class EpochRecord:
    """What an epoch did."""

    epoch: int
    risk: float
    """Mean reported risk of its batches."""
    corrected: float
    """Share of batches in which the correction stepped in (nnPU's ascent)."""
    seconds: float = field(default=math.nan, metadata=PASSING)
    """Not stored: the same training gives the same bytes."""
    validation: float | None = None
    """The criterion of the held-out rows; higher is better, whatever the criterion."""
