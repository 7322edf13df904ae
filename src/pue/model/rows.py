"""A source of rows → features, labels and, where a column holds them, propensities. Two passes, bounded memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from pue.data import PUData, Scenario, require_propensity
from pue.errors import InvalidInput, PueWarning
from pue.tables.labels import label_column, parse_labels
from pue.tables.sources import BATCH, Source
from pue.tables.vectorize import FIT_ROWS, Vectorizer, fit_vectorizer

IMAGE_BATCH = 1024


@dataclass(frozen=True)
class Columns:
    """Which columns mean what; every other one is a feature."""

    label: str
    id: str | None = None
    ignore: tuple[str, ...] = ()
    propensity: str | None = None
    """Holds known e(x) of the labeled rows."""
    truth: str | None = None
    """Holds true classes; never a feature."""

    @property
    def special(self) -> list[str]:
        named = [self.label, self.id, self.propensity, self.truth]
        return [*(name for name in named if name is not None), *self.ignore]

    def check(self, names: Sequence[str]) -> None:
        """Each must be there, and none may play two parts."""
        for name in self.special:
            label_column(names, name)
        twice = {name for name in self.special if self.special.count(name) > 1}
        if twice:
            raise InvalidInput(
                f"column {sorted(twice)[0]!r} is named twice: as label, id, truth, propensity or ignored."
            )

    def features(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name not in self.special]


@dataclass(frozen=True, eq=False)
class Rows:
    """All rows of a source, ready to learn from."""

    data: PUData
    vectorizer: Vectorizer | None
    """None for images."""
    propensity: NDArray[np.float64] | None
    """Known e of the labeled rows, in order."""


def read_rows(source: Source, columns: Columns, *, scenario: str = "single_sample", seed: int = 0) -> Rows:
    """Labels and a sample of the rows first, which fits the preprocessing; then the features of all rows."""
    columns.check(source.columns)
    labels, known, sample = _first_pass(source, columns, seed)
    x: torch.Tensor
    vectorizer = None
    if source.kind == "images":
        x = torch.from_numpy(source.images(0, len(labels)))  # type: ignore[attr-defined]
    else:
        vectorizer = fit_vectorizer(sample, seed=seed)
        for note in vectorizer.notes:
            warnings.warn(note, PueWarning, stacklevel=2)
        x = torch.from_numpy(_all_features(source, vectorizer, len(labels)))
    data = PUData(x, torch.from_numpy(labels), Scenario.parse(scenario))
    if known is not None:
        known = known[labels == 1]
        try:
            require_propensity(torch.from_numpy(known), len(known))
        except InvalidInput as error:
            raise InvalidInput(f"column {columns.propensity!r}: {error}") from error
    return Rows(data, vectorizer, known)


def _first_pass(
    source: Source, columns: Columns, seed: int
) -> tuple[NDArray[np.int8], NDArray[np.float64] | None, pd.DataFrame]:
    features = [] if source.kind == "images" else columns.features(source.columns)
    if source.kind == "table" and not features:
        raise InvalidInput(f"{source.path.name} has no column left to learn from: {', '.join(source.columns)}.")
    wanted = [columns.label, *([columns.propensity] if columns.propensity else []), *features]
    sampler, given, known = _Sampler(FIT_ROWS, seed), [], []
    for frame in source.batches(BATCH, columns=wanted):
        given.append(frame[columns.label])
        if columns.propensity:
            known.append(propensities(frame[columns.propensity]))
        if features:
            sampler.add(frame[features])
    labels = parse_labels(pd.concat(given, ignore_index=True), columns.label)
    return labels, np.concatenate(known) if known else None, sampler.frame() if features else pd.DataFrame()


def propensities(column: pd.Series) -> NDArray[np.float64]:
    """Known e(x), NaN where a cell is empty."""
    try:
        return np.array(pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"column {column.name!r} must hold propensities, numbers in (0, 1]: {error}") from error


class _Sampler:
    """A uniform sample of the rows of a stream, in their order: those with the smallest random keys."""

    def __init__(self, most: int, seed: int) -> None:
        self.most, self.rng, self.n = most, np.random.default_rng(seed), 0
        self.parts: list[tuple[pd.DataFrame, NDArray[np.float64]]] = []

    def add(self, frame: pd.DataFrame) -> None:
        self.parts.append((frame, self.rng.random(len(frame))))
        self.n += len(frame)
        if self.n > 2 * self.most:
            self._shrink()

    def frame(self) -> pd.DataFrame:
        self._shrink()
        return pd.concat([frame for frame, _ in self.parts], ignore_index=True)

    def _shrink(self) -> None:
        if self.n <= self.most:
            return
        keys = np.concatenate([keys for _, keys in self.parts])
        cut = np.partition(keys, self.most)[self.most]
        self.parts = [(frame[keys < cut], keys[keys < cut]) for frame, keys in self.parts]
        self.n = sum(len(keys) for _, keys in self.parts)


def _all_features(source: Source, vectorizer: Vectorizer, n_rows: int) -> NDArray[np.float32]:
    x = np.empty((n_rows, len(vectorizer.feature_names)), dtype=np.float32)
    start = 0
    for frame in source.batches(BATCH, columns=list(vectorizer.columns)):
        stop = start + len(frame)
        if stop <= n_rows:
            x[start:stop] = vectorizer.transform(frame)
        start = stop
    if start != n_rows:
        raise InvalidInput(f"{source.path.name} changed while it was read. Read it again when nobody writes to it.")
    return x


def feature_batches(
    source: Source, vectorizer: Vectorizer | None, others: Sequence[str] = (), size: int = BATCH
) -> Iterator[tuple[NDArray[Any], pd.DataFrame]]:
    """Features of the rows and their other columns, batch by batch, in order."""
    if vectorizer is None:
        yield from _image_batches(source, others)
        return
    missing = [name for name in vectorizer.columns if name not in source.columns]
    wanted = [*vectorizer.columns, *others] if not missing else list(source.columns)  # all, so that the error can guess
    for frame in source.batches(size, columns=list(dict.fromkeys(wanted))):
        yield vectorizer.transform(frame), frame[list(others)]


def _image_batches(source: Source, others: Sequence[str]) -> Iterator[tuple[NDArray[Any], pd.DataFrame]]:
    if source.kind != "images":
        raise InvalidInput(f"this model was trained on images, but {source.path.name} is a table.")
    start = 0
    for frame in source.batches(IMAGE_BATCH, columns=list(others)):
        yield source.images(start, start + len(frame)), frame  # type: ignore[attr-defined]
        start += len(frame)


def warn_unknown(source: Source, vectorizer: Vectorizer | None, special: Sequence[str]) -> list[str]:
    """Columns the model never saw are named, once, and not used."""
    if vectorizer is None:
        return []
    known = {*vectorizer.columns, *vectorizer.dropped, *special}
    unknown = [name for name in source.columns if name not in known]
    if unknown:
        shown = ", ".join(unknown[:5]) + (f" and {len(unknown) - 5} more" if len(unknown) > 5 else "")
        warnings.warn(f"columns the model never saw are not used: {shown}.", PueWarning, stacklevel=2)
    return unknown
