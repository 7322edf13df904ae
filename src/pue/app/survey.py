"""The first pass over a table: which labels there are, and a sample of the rows that fits the preprocessing."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pue.errors import InvalidInput, PueWarning
from pue.model.columns import Columns, propensities
from pue.tables.labels import meanings, require_both
from pue.tables.sources import BATCH, Source
from pue.tables.vectorize import FIT_ROWS, Vectorizer, fit_vectorizer


@dataclass(eq=False)
class Survey:
    """What one pass found."""

    counts: Counter[int] = field(default_factory=Counter)
    """Rows by label."""
    sample: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Features of at most 100,000 rows, drawn at random, in order."""
    sample_labels: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))
    numbers: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """Which rows these are."""
    vectorizer: Vectorizer | None = None
    """None for images."""
    labels: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))
    known: NDArray[np.float64] | None = None
    """Propensities of all rows, NaN where a cell is empty."""

    @property
    def n_rows(self) -> int:
        return self.counts.total()

    def require_same(self, source: Source, n_rows: int) -> None:
        """Another pass must have found as many rows."""
        if n_rows != self.n_rows:
            raise InvalidInput(f"{source.path.name} changed while it was read. Read it again when nobody writes to it.")

    def count(self, labels: NDArray[np.int8]) -> None:
        values, rows = np.unique(labels, return_counts=True)
        self.counts.update(dict(zip(values.tolist(), rows.tolist(), strict=True)))


def survey_rows(source: Source, columns: Columns, *, seed: int = 0, most: int | None = None) -> Survey:
    """Read everything once. Labels are kept, and known propensities, unless there are more than `most` rows."""
    columns.check(source.columns)
    features = [] if source.kind == "images" else columns.features(source.columns)
    if source.kind == "table" and not features:
        raise InvalidInput(f"{source.path.name} has no column left to learn from: {', '.join(source.columns)}.")
    wanted = [columns.label, *([columns.propensity] if columns.propensity else []), *features]
    found, sampler, labels, known = Survey(), Sampler(FIT_ROWS, seed), [], []
    for frame in source.batches(BATCH, columns=wanted):
        labels.append(meanings(frame[columns.label], columns.label))
        found.count(labels[-1])
        if columns.propensity:
            known.append(propensities(frame[columns.propensity]))
        if most is not None and found.n_rows > most:
            labels, known = [], []
        if features:
            sampler.add(frame[[columns.label, *features]])
    require_both(set(found.counts), columns.label)
    if labels:
        found.labels, found.known = np.concatenate(labels), np.concatenate(known) if known else None
    if features:
        found.sample, found.numbers = sampler.frame(), sampler.numbers()
        found.sample_labels = meanings(found.sample.pop(columns.label), columns.label)
        found.vectorizer = fit_vectorizer(found.sample, seed=seed)
        for note in found.vectorizer.notes:
            warnings.warn(note, PueWarning, stacklevel=3)
    return found


class Sampler:
    """A uniform sample of the rows of a stream, in their order: those with the smallest random keys."""

    def __init__(self, most: int, seed: int) -> None:
        self.most, self.rng, self.n, self.seen = most, np.random.default_rng(seed), 0, 0
        self.parts: list[tuple[pd.DataFrame, NDArray[np.float64], NDArray[np.int64]]] = []

    def add(self, frame: pd.DataFrame) -> None:
        keys = self.rng.random(len(frame))
        self.parts.append((frame, keys, np.arange(self.seen, self.seen + len(frame))))
        self.n, self.seen = self.n + len(frame), self.seen + len(frame)
        if self.n > 2 * self.most:
            self._shrink()

    def frame(self) -> pd.DataFrame:
        self._shrink()
        return pd.concat([frame for frame, *_ in self.parts], ignore_index=True)

    def numbers(self) -> NDArray[np.int64]:
        """Which rows of the stream are in the sample."""
        self._shrink()
        return np.concatenate([numbers for *_, numbers in self.parts])

    def _shrink(self) -> None:
        if self.n <= self.most:
            return
        keys = np.concatenate([keys for _, keys, _ in self.parts])
        cut = np.partition(keys, self.most)[self.most]
        self.parts = list(self._below(cut))
        self.n = sum(len(keys) for _, keys, _ in self.parts)

    def _below(self, cut: float) -> Iterator[tuple[pd.DataFrame, NDArray[np.float64], NDArray[np.int64]]]:
        for frame, keys, numbers in self.parts:
            kept = keys < cut
            yield frame[kept], keys[kept], numbers[kept]
