"""Where the rows of a batch come from: training rows in memory, by index, and those that are held out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from pue.core.data import Features, PUData, gather
from pue.core.folds import content_holdout
from pue.core.weights import RowWeights
from pue.training.batches import Batches
from pue.training.processes import Part, place
from pue.training.settings import Training


@dataclass(frozen=True, eq=False)
class Draw:
    """What this process has of one batch."""

    x: Tensor
    """As the rows are stored, on the CPU."""
    rows: Tensor
    """Where they stand in the data; −1 for rows of a stream, which have no place."""
    weights: RowWeights
    """Scaled by how much of the sample a row stands for."""
    share: Tensor
    """How much of the training rows each row stands for; one in sum over the whole batch, or in expectation."""
    part: Part


@dataclass(frozen=True, eq=False)
class ValidationRows:
    """Rows that judge a network while it is trained."""

    x: Features
    rows: Tensor
    weights: RowWeights


class Feed(Protocol):
    """The batches of a training, epoch by epoch."""

    @property
    def steps(self) -> int:
        """Batches of an epoch."""
        ...

    @property
    def held_out(self) -> ValidationRows | None: ...
    @property
    def shape(self) -> tuple[int, ...]:
        """Of all features; the first number counts rows."""
        ...

    def epoch(self, generator: torch.Generator) -> Iterator[Draw]: ...
    def fingerprint(self, digest: Any) -> None:
        """Tell a hash what these rows and weights are."""
        ...


class InMemory:
    """Rows that are looked up."""

    def __init__(self, data: PUData, weights: RowWeights, training: Training, *, seed: int, dtype: torch.dtype) -> None:
        self._x, self._dtype = data.x, dtype
        self.rows, held_out = split_rows(data, training.validation, seed)
        self.weights = restrict(weights, data.labels, self.rows).to(torch.device("cpu"), dtype)
        self.batches = Batches(data.labels[self.rows], self.weights.positive, training.batching)
        self.steps, self.shape = self.batches.steps, tuple(data.x.shape)
        self.held_out = (
            None if held_out is None else ValidationRows(data.x, held_out, restrict(weights, data.labels, held_out))
        )

    def epoch(self, generator: torch.Generator) -> Iterator[Draw]:
        for index, factor in self.batches.epoch(generator):
            part = Part(*place(), len(index))
            index, factor = part.of(index), part.of(factor)
            rows = self.rows[index]
            weights = self.weights.take(index, factor.to(self._dtype))
            yield Draw(gather(self._x, rows), rows, weights, (factor / len(self.rows)).to(self._dtype), part)

    def fingerprint(self, digest: hashlib._Hash) -> None:
        """All weights and a sample of the rows."""
        digest.update(self.weights.positive.numpy().tobytes())
        digest.update(self.weights.negative.numpy().tobytes())
        sample = torch.linspace(0, self.shape[0] - 1, min(self.shape[0], 256), dtype=torch.float64).long()
        digest.update(gather(self._x, sample).contiguous().numpy().tobytes())


def split_rows(data: PUData, share: float, seed: int) -> tuple[Tensor, Tensor | None]:
    """Training rows and, where a share is to be held out, the held-out rows; copies of a row stay together."""
    if not share:
        return torch.arange(data.n_rows), None
    held_out = torch.from_numpy(content_holdout(data.x, data.labels, share, seed=seed))
    return torch.nonzero(~held_out)[:, 0], torch.nonzero(held_out)[:, 0]


def restrict(weights: RowWeights, labels: Tensor, rows: Tensor) -> RowWeights:
    """The weights of some rows; in each stratum w⁺ and the background keep the mass they had."""
    positive, background = weights.positive[rows], weights.background[rows]
    for value in (1, 0, -1):
        here, everywhere = labels[rows] == value, labels == value
        positive[here] *= _ratio(weights.positive[everywhere].sum(), positive[here].sum())
        background[here] *= _ratio(weights.background[everywhere].sum(), background[here].sum())
    return RowWeights(positive, background - positive)


def _ratio(whole: Tensor, part: Tensor) -> float:
    return float(whole / part) if part else 1.0
