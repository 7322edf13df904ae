"""Rows of a table that does not fit into memory: those with a label and some to judge by are kept, the others stream.

Pass one (`survey_rows`) counts labels and draws the sample that fits the preprocessing; pass two (`stream_rows`) keeps
labeled and held-out rows; every epoch is another pass, in another order: pieces of the table (row groups) are read
several at a time, in random order, into a buffer from which rows leave at random. Which rows are held out is decided by
their content, so no copy of a held-out row is trained on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pue.app.roles import Roles, propensities
from pue.app.sources.labels import meanings
from pue.app.sources.stored_table import Piece, StoredTable
from pue.app.survey import Survey
from pue.backbones import InputSpec
from pue.core.data import Features, PUData, Scenario
from pue.core.folds import row_hash
from pue.core.machine import show_bytes
from pue.errors import InvalidInput
from pue.estimators.vectorizer.vectorize import Vectorizer

READ = 16_384
"""Rows that are read from a piece before it is the next one's turn."""
MOST_PIECES = 16
HELD_LABELED, HELD_ROWS = 10_000, 100_000
"""So many labeled and unlabeled rows judge a model; of small numbers a fifth."""
MOST_HELD = 0.2
IN_MEMORY, IN_MEMORY_ROW = 8, 60
"""Bytes that training in memory takes: for each number, twice float32 (folds are copies), and beside them for each row:
labels, weights and orders."""


def bytes_in_memory(survey: Survey) -> int:
    """About what `fit` takes if all rows are in memory."""
    width = 0 if survey.vectorizer is None else len(survey.vectorizer.feature_names)
    return survey.n_rows * (IN_MEMORY * width + IN_MEMORY_ROW)


@dataclass(frozen=True, eq=False)
class StreamedRows:
    """All rows of a table, most of them on the disk."""

    source: StoredTable
    roles: Roles
    vectorizer: Vectorizer
    scenario: Scenario
    counts: dict[int, int]
    """Rows by label."""
    x: Tensor
    """Features of the rows that train and have a label, and a last row, the sample's mean, for all streamed ones."""
    labels: Tensor
    """Theirs."""
    numbers: Tensor
    """Where the labeled rows stand in the table; held-out ones follow those that train."""
    propensity: NDArray[np.float64] | None
    """Known e of the labeled rows, in the order of `numbers`."""
    held_out: PUData
    """`sample_weight` says how many held-out rows each of these stands for."""
    sample_rows: tuple[PUData, Tensor]
    """A uniform sample of the table, and which rows it holds."""
    scale: tuple[Tensor, Tensor]
    """Mean and standard deviation of every feature on the sample."""
    streamed: tuple[int, ...]
    """Rows of each piece that are streamed."""
    threshold: int
    """Rows whose hash is below it are held out."""
    seed: int
    memory: int

    @property
    def n_streamed(self) -> int:
        return sum(self.streamed)

    @property
    def data(self) -> PUData:
        """Rows in memory that train; the last one stands for all streamed rows."""
        mass = torch.ones(len(self.labels), dtype=torch.float64)
        mass[-1] = self.n_streamed
        return PUData(self.x, self.labels, self.scenario, mass)

    @property
    def input_spec(self) -> InputSpec:
        return InputSpec(tuple(self.x.shape[1:]), *self.scale)

    @property
    def n_training(self) -> int:
        """Labeled positives that train; the others are held out."""
        return int((self.labels == 1).sum())

    def sample(self, most: int, seed: int) -> tuple[PUData, Tensor]:
        return self.sample_rows

    def labeled_numbers(self) -> Tensor:
        return self.numbers

    def labeled_features(self, index: Tensor) -> Features:
        training, judging = (torch.nonzero(labels == 1)[:, 0] for labels in (self.labels, self.held_out.labels))
        trains = index < len(training)
        found = torch.empty(len(index), self.x.shape[1])
        found[trains] = self.x[training[index[trains]]]
        found[~trains] = self.held_out.x[judging[index[~trains] - len(training)]]
        return found

    def shares(self, seed: int, size: int) -> list[int]:
        """How many rows each of `size` processes gets in an epoch."""
        rows = np.asarray(self.streamed)
        return [int(rows[self._own(seed, rank, size)].sum()) for rank in range(size)]

    def blocks(self, seed: int, rank: int, size: int) -> Iterator[Tensor]:
        """The rows of one process, shuffled, block by block."""
        pieces = [self.source.pieces[k] for k in self._own(seed, rank, size)]
        width = self.x.shape[1]
        capacity = max(2 * READ, self.memory // 16 // (4 * width))  # twice that while half of it leaves
        rng = torch.Generator().manual_seed(seed % 2**62 + rank)
        buffer, filled = torch.empty(min(capacity, self.n_streamed), width), 0
        for rows in self._interleaved(pieces):
            while len(rows):
                taken = rows[: len(buffer) - filled]
                buffer[filled : filled + len(taken)] = taken
                filled, rows = filled + len(taken), rows[len(taken) :]
                if filled == len(buffer):
                    # Half of them leave; the others wait for rows from further away.
                    order = torch.randperm(filled, generator=rng)
                    leaving, staying = order.tensor_split(2)
                    yield buffer.index_select(0, leaving)
                    filled = len(staying)
                    buffer[:filled] = buffer.index_select(0, staying)
        yield buffer.index_select(0, torch.randperm(filled, generator=rng))

    def _own(self, seed: int, rank: int, size: int) -> NDArray[np.int64]:
        """The pieces of one process, in the order of this epoch."""
        return np.random.default_rng(seed).permutation(len(self.source.pieces))[rank::size]

    def _interleaved(self, pieces: list[Piece]) -> Iterator[Tensor]:
        """A few rows of one piece after a few of another, as many pieces at once as memory allows."""
        largest = max((piece.n_bytes for piece in pieces), default=0)
        at_once = int(np.clip(self.memory // 4 // max(1, largest), 1, MOST_PIECES))
        waiting, readers = deque(pieces), deque[Iterator[Tensor]]()
        while waiting or readers:
            while waiting and len(readers) < at_once:
                readers.append(self._unlabeled(waiting.popleft()))
            reader = readers.popleft()
            rows = next(reader, None)
            if rows is not None:
                readers.append(reader)
                yield rows

    def _unlabeled(self, piece: Piece) -> Iterator[Tensor]:
        for found in _read(self.source, self.roles, self.vectorizer, piece, self.seed):
            yield found.x[(found.labels == 0) & (found.hashes >= self.threshold)]


@dataclass(frozen=True, eq=False)
class _Found:
    x: Tensor
    labels: NDArray[np.int8]
    hashes: NDArray[np.uint64]
    known: NDArray[np.float64] | None


def _read(
    source: StoredTable, roles: Roles, vectorizer: Vectorizer, piece: Piece, seed: int, *, known: bool = False
) -> Iterator[_Found]:
    """Features, labels and hashes of the rows of a piece."""
    others = [roles.label, *([roles.propensity] if known and roles.propensity else [])]
    for frame in source.batches(READ, columns=[*vectorizer.columns, *others], piece=piece):
        x = torch.from_numpy(vectorizer.transform(frame))
        e = propensities(frame[roles.propensity]) if len(others) > 1 else None
        yield _Found(x, meanings(frame[roles.label], roles.label), row_hash(x, seed=seed), e)


def stream_rows(
    source: StoredTable, roles: Roles, survey: Survey, *, memory: int, scenario: str = "single_sample", seed: int = 0
) -> StreamedRows:
    """The second pass: labeled rows, held-out rows, and how many are left to stream."""
    assert survey.vectorizer is not None  # images are not streamed
    vectorizer, counts, kind = survey.vectorizer, survey.counts, Scenario.parse(scenario)
    _require_room(survey, memory)
    share = held_share(counts[1], counts[0])
    kept = min(share, HELD_ROWS / counts[0])  # of the unlabeled rows that are held out, enough to judge by
    below = [np.uint64(min(2**64 - 1, int(part * 2**64))) for part in (share, kept)]
    training, judging, streamed = _second_pass(source, roles, survey, vectorizer, below, seed)
    labels, judges = np.concatenate(training.labels), np.concatenate(judging.labels)
    for part, where in ((labels, "trains"), (judges, "is held out to judge by")):
        if not (part == 1).any():
            raise InvalidInput(f"no labeled row {where}: a table that is streamed needs at least a few dozen of them.")

    def of_positives(ours: list[Any], theirs: list[Any]) -> NDArray[Any]:
        return np.concatenate([np.concatenate(ours)[labels == 1], np.concatenate(theirs)[judges == 1]])

    known = of_positives(training.known, judging.known) if training.known else None
    if known is not None:
        roles.require_propensities(known)
    sample = torch.from_numpy(vectorizer.transform(survey.sample))
    mean, std = sample.double().mean(dim=0), sample.double().std(dim=0, correction=0)
    x = torch.cat([*training.x, mean.float()[None]])
    training.x.clear()  # there are many where tables are large: no second copy while the rest is put together
    worth = torch.from_numpy(np.where(judges == 0, share / kept, 1.0))
    return StreamedRows(
        source, roles, vectorizer, kind, counts,
        x=x,
        labels=torch.from_numpy(np.append(labels, np.int8(0))),
        numbers=torch.from_numpy(of_positives(training.numbers, judging.numbers)),
        propensity=known,
        held_out=PUData(torch.cat(judging.x), torch.from_numpy(judges), kind, worth),
        sample_rows=(PUData(sample, torch.from_numpy(survey.sample_labels), kind), torch.from_numpy(survey.numbers)),
        scale=(mean, std), streamed=streamed, threshold=int(below[0]), seed=seed, memory=memory,
    )  # fmt: skip


def _second_pass(
    source: StoredTable, roles: Roles, survey: Survey, vectorizer: Vectorizer, below: list[np.uint64], seed: int
) -> tuple[_Kept, _Kept, tuple[int, ...]]:
    """Rows that train, rows that judge, and how many of each piece are streamed; by hashes below two numbers a row is
    held out, and an unlabeled one judges.
    """
    (held, judge), training, judging, streamed, start = below, _Kept(), _Kept(), [], 0
    for piece in source.pieces:
        n_streamed = 0
        for found in _read(source, roles, vectorizer, piece, seed, known=True):
            numbers = np.arange(start, start + len(found.labels))
            labeled, out = found.labels != 0, found.hashes < held
            training.add(found, labeled & ~out, numbers)
            judging.add(found, np.where(labeled, out, found.hashes < judge), numbers)
            n_streamed += int((~labeled & ~out).sum())
            start += len(numbers)
        streamed.append(n_streamed)
    survey.require_same(source, start)
    return training, judging, tuple(streamed)


def held_share(labeled: int, unlabeled: int) -> float:
    """The share of the rows that judge and do not train.

    >>> held_share(1_000, 100_000), held_share(2_000_000, 50_000_000)
    (0.2, 0.005)
    """
    return min(MOST_HELD, max(HELD_LABELED / labeled, HELD_ROWS / unlabeled))


def _require_room(survey: Survey, memory: int) -> None:
    assert survey.vectorizer is not None
    labeled = (survey.counts[1] + survey.counts[-1]) * 4 * len(survey.vectorizer.feature_names)
    if labeled > memory / 4:
        raise InvalidInput(
            f"the labeled rows alone take {show_bytes(labeled)}, more than a quarter of the memory that was allowed, "
            f"{show_bytes(memory)}. Allow at least {show_bytes(4.1 * labeled)} with --memory."
        )


class _Kept:
    """Rows that are collected while others pass by."""

    def __init__(self) -> None:
        self.x: list[Tensor] = []
        self.labels: list[NDArray[np.int8]] = []
        self.numbers: list[NDArray[np.int64]] = []
        self.known: list[NDArray[np.float64]] = []

    def add(self, found: _Found, chosen: NDArray[np.bool_], numbers: NDArray[np.int64]) -> None:
        self.x.append(found.x[chosen])
        self.labels.append(found.labels[chosen])
        self.numbers.append(numbers[chosen])
        if found.known is not None:
            self.known.append(found.known[chosen])
