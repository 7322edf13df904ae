"""The first pass over a table: which labels there are, and a sample of the rows that fits the preprocessing."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pue.app.roles import Roles, propensities
from pue.app.screening.screen import screen
from pue.app.sources.labels import meanings, require_both
from pue.app.sources.opening import BATCH, Source
from pue.errors import InvalidInput, PueWarning
from pue.estimators.vectorizer.vectorize import FIT_ROWS, Vectorizer


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


def survey_rows(source: Source, roles: Roles, *, seed: int = 0, most: int | None = None) -> Survey:
    """Read everything once. Labels are kept, and known propensities, unless there are more than `most` rows."""
    roles.check(source.columns)
    features = [] if source.kind == "images" else roles.features(source.columns)
    if source.kind == "table" and not features:
        raise InvalidInput(f"{source.path.name} has no column left to learn from: {', '.join(source.columns)}.")
    wanted = [roles.label, *([roles.propensity] if roles.propensity else []), *features]
    found, sampler, labels, known = Survey(), Sampler(FIT_ROWS, seed), [], []
    for frame in source.batches(BATCH, columns=wanted):
        labels.append(meanings(frame[roles.label], roles.label))
        found.count(labels[-1])
        if roles.propensity:
            known.append(propensities(frame[roles.propensity]))
        if most is not None and found.n_rows > most:
            labels, known = [], []
        if features:
            sampler.add(frame[[roles.label, *features]])
    require_both(set(found.counts), roles.label)
    if labels:
        found.labels, found.known = np.concatenate(labels), np.concatenate(known) if known else None
    if features:
        found.sample, found.numbers = sampler.sample()
        found.sample_labels = meanings(found.sample.pop(roles.label), roles.label)
        found.vectorizer = screen(
            found.sample, found.sample_labels, found.numbers, keep=roles.keep, seed=seed, nodata=roles.nodata
        ).vectorizer
        for note in found.vectorizer.notes:
            warnings.warn(note, PueWarning, stacklevel=3)
    return found


class Sampler:
    """A uniform sample of the rows of a stream, in their order: those with the smallest random keys."""

    def __init__(self, most: int, seed: int) -> None:
        self.most, self.rng, self.seen = most, np.random.default_rng(seed), 0
        self.parts: list[tuple[pd.DataFrame, NDArray[np.float64]]] = []

    def add(self, frame: pd.DataFrame) -> None:
        numbers = range(self.seen, self.seen + len(frame))
        self.parts.append((frame.set_axis(numbers), self.rng.random(len(frame))))
        self.seen = numbers.stop
        if sum(len(keys) for _, keys in self.parts) > 2 * self.most:
            self._shrink()

    def sample(self) -> tuple[pd.DataFrame, NDArray[np.int64]]:
        """The rows, and where they stand in the stream."""
        self._shrink()
        frame = pd.concat([frame for frame, _ in self.parts])
        return frame.reset_index(drop=True), frame.index.to_numpy(copy=True)

    def _shrink(self) -> None:
        keys = np.concatenate([keys for _, keys in self.parts])
        if len(keys) > self.most:
            cut = np.partition(keys, self.most)[self.most]
            self.parts = [(frame[keys < cut], keys[keys < cut]) for frame, keys in self.parts]
