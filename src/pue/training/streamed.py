"""Batches of more rows than memory holds: labeled rows are at hand, unlabeled ones pass by once an epoch, shuffled.

Weights need no vector over all rows: every streamed row has the same, so one row in memory stands for all of them, with
their number as its sample weight. In a process group each process reads pieces of the table of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor

from pue.backbones import InputSpec
from pue.core.data import PUData
from pue.core.weights import RowWeights
from pue.errors import InvalidInput
from pue.training.batches import draw_labeled, stratum_sizes
from pue.training.feeds import Draw
from pue.training.processes import Part, place
from pue.training.settings import Training

PASS = 1024
"""Labeled rows are drawn for so many batches at once, or for one pass over them if that is longer."""


class RowStream(Protocol):
    """Unlabeled rows that can be read again and again, each time in another order."""

    def shares(self, seed: int, size: int) -> list[int]:
        """How many rows each of `size` processes gets in an epoch."""
        ...

    def blocks(self, seed: int, rank: int, size: int) -> Iterator[Tensor]:
        """The rows of one process, shuffled, in blocks of whatever length. Over all processes every row comes once."""
        ...


class StreamedTable(RowStream, Protocol):
    """Rows in memory, of which the last stands for those that stream."""

    @property
    def data(self) -> PUData: ...
    @property
    def n_streamed(self) -> int: ...
    @property
    def input_spec(self) -> InputSpec: ...


class Streamed:
    """A feed of `data`, whose last row stands for all streamed rows; the others have labels."""

    held_out = None

    def __init__(
        self, stream: RowStream, data: PUData, weights: RowWeights, training: Training, *, dtype: torch.dtype
    ) -> None:
        batching = training.batching
        if training.validation:
            raise InvalidInput("rows of a stream are not held out while it is read: leave validation=0.")
        if batching.mode != "stratified":
            raise InvalidInput(f"a stream is read in stratified batches, not {batching.mode} ones.")
        self._stream, self._x, self._batching, self._dtype = stream, data.x, batching, dtype
        self._mixes = bool(training.augmentation.mixup)
        self._weights = weights.to(torch.device("cpu"), dtype)
        self._n = round(float(data.mass[-1]))
        self._rows = {value: torch.nonzero(data.labels == value)[:, 0] for value in (1, -1)}
        labeled = {value: len(rows) for value, rows in self._rows.items() if len(rows)}
        self._sizes = stratum_sizes({**labeled, 0: self._n}, batching)
        self._total = self._n + sum(labeled.values())
        self.steps = max(1, -(-self._n // self._sizes[0]))
        self.shape = (self._total, *data.x.shape[1:])

    def epoch(self, generator: torch.Generator) -> Iterator[Draw]:
        rank, size = place()
        if size > 1 and self._mixes:
            raise InvalidInput("rows of a stream are not blended in a process group: leave mixup out.")
        seed = int(torch.randint(2**62, (), generator=generator))
        counts = self._stream.shares(seed, size)
        if sum(counts) != self._n:
            raise InvalidInput(f"the stream has {sum(counts):,} unlabeled rows, but {self._n:,} were counted before.")
        own = _Reader(self._stream.blocks(seed, rank, size))
        labeled = [self._labeled(value, generator) for value in self._sizes if value != 0]
        for step in range(self.steps):
            pieces = [_share(count, self.steps, step) for count in counts]
            index, factor = (torch.cat(parts) for parts in zip(*map(next, labeled), strict=True))
            everywhere = Part(rank, size, len(index) + sum(pieces))
            part = Part(rank, size, len(index))
            index, factor = part.of(index), part.of(factor)
            yield self._draw(index, factor, own.take(pieces[rank]), sum(pieces), everywhere)

    def _labeled(self, value: int, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        """Rows with this label and what each stands for, batch by batch, without end."""
        rows, size = self._rows[value], self._sizes[value]
        drawn = value == 1 and self._batching.labeled_rows == "drawn"
        weights = self._weights.positive[rows].double() if drawn else None
        batches = max(PASS, -(-len(rows) // size))
        while True:
            index, factor = draw_labeled(len(rows), size, batches * size, generator, weights)
            yield from zip(torch.split(rows[index], size), torch.split(factor, size), strict=True)

    def _draw(self, index: Tensor, factor: Tensor, streamed: Tensor, n_batch: int, part: Part) -> Draw:
        """Labeled rows by index, then streamed rows, which have the weight of the last row over their number."""
        own = len(streamed)
        factor = torch.cat([factor.to(self._dtype), torch.full((own,), 1 / max(1, n_batch), dtype=self._dtype)])
        everyone = torch.cat([index, index.new_full((own,), len(self._x) - 1)])
        share = factor.clone()
        share[len(index) :] *= self._n
        return Draw(
            torch.cat([self._x.index_select(0, index), streamed]),
            torch.cat([index, index.new_full((own,), -1)]),
            self._weights.take(everyone, factor),
            share / self._total,
            part,
        )

    def fingerprint(self, digest: hashlib._Hash) -> None:
        """All weights, the labeled rows' sums, and how many rows the pieces of the table have."""
        digest.update(self._weights.positive.numpy().tobytes())
        digest.update(self._weights.negative.numpy().tobytes())
        digest.update(self._x.double().sum(dim=0).numpy().tobytes())
        digest.update(repr(self._stream.shares(0, 1)).encode())


class _Reader:
    """Blocks of any length → the next so many rows."""

    def __init__(self, blocks: Iterator[Tensor]) -> None:
        self._blocks = blocks
        self._block = torch.empty(0)

    def take(self, n: int) -> Tensor:
        if n <= len(self._block):
            taken, self._block = self._block[:n], self._block[n:]
            return taken
        parts = [self._block] if len(self._block) else []
        missing = n - len(self._block)
        while missing:
            block = next(self._blocks, None)
            if block is None:
                raise InvalidInput("the stream ended before all rows that were counted had come: it changed.")
            parts.append(block[:missing])
            self._block = block[missing:]
            missing -= len(parts[-1])
        return torch.cat(parts)


def _share(count: int, steps: int, step: int) -> int:
    """Rows of one step, if `count` rows are dealt to all steps in near-equal pieces."""
    return count // steps + (step < count % steps)
