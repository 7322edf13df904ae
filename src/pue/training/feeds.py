"""Where the rows of a batch come from: from memory, by index."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from pue.data import Features, PUData, gather
from pue.training.batches import Batches
from pue.training.processes import Part, place
from pue.training.settings import Training
from pue.training.split import restrict, split_rows
from pue.weights import RowWeights


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
class HeldOut:
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
    def held_out(self) -> HeldOut | None: ...
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
            None if held_out is None else HeldOut(data.x, held_out, restrict(weights, data.labels, held_out))
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
