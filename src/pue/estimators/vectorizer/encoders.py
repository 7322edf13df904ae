"""How one column becomes features, one frozen value for each kind of column.

`names` are the features; `encode` writes them for any rows, without NaN, into an array that holds zeros.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import pandas as pd
import sklearn
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from pue.errors import InvalidInput
from pue.estimators.vectorizer.columns import as_numbers, as_times, as_words
from pue.persistence import kept

Kind = Literal["number", "category", "text", "date", "boolean"]
TEXT_FEATURES, TEXT_ROWS, TEXT_BUCKETS = 30, 20_000, 1 << 14
NO_DIRECTION = 1e-6
"""Texts of few different words span fewer than 30 directions. The singular values of the others, relative to the
largest, are rounding errors; what is projected on them is noise that whoever standardises columns would magnify."""
_WORD = r"\b\w+\b"


class Encoder(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> Kind: ...
    @property
    def names(self) -> list[str]: ...
    def encode(self, column: pd.Series, out: NDArray[np.float32]) -> None: ...


@kept
@dataclass(frozen=True)
class Numbers:
    """The number, its median where it is missing, and whether it is missing if it was so at training."""

    name: str
    kind: Kind
    median: float
    missing: bool
    nodata: tuple[float, ...] = ()
    """Numbers that stand for a missing value."""

    @classmethod
    def fit(cls, name: str, column: pd.Series, kind: Kind, nodata: tuple[float, ...] = ()) -> Numbers:
        values = as_numbers(column, name, nodata)
        return cls(name, kind, float(np.nanmedian(values)), bool(np.isnan(values).any()), nodata)

    @property
    def names(self) -> list[str]:
        return [self.name, f"{self.name} is missing"] if self.missing else [self.name]

    def encode(self, column: pd.Series, out: NDArray[np.float32]) -> None:
        values = as_numbers(column, self.name, self.nodata)
        gaps = np.isnan(values)
        out[:, 0] = values
        out[gaps, 0] = self.median
        if self.missing:
            out[:, 1] = gaps


@kept
@dataclass(frozen=True)
class Categories:
    """One feature for each category, and one for missing values if there were any. Unknown ones are all zeros."""

    kind: ClassVar[Kind] = "category"
    name: str
    values: list[str]
    missing: bool

    @classmethod
    def fit(cls, name: str, column: pd.Series) -> Categories:
        codes, words = as_words(column, name)
        return cls(name, sorted(words[code] for code in np.unique(codes) if code >= 0), bool((codes < 0).any()))

    @property
    def names(self) -> list[str]:
        return [f"{self.name}={value}" for value in self.values] + [f"{self.name} is missing"] * self.missing

    def encode(self, column: pd.Series, out: NDArray[np.float32]) -> None:
        codes, words = as_words(column, self.name)
        places = {value: place for place, value in enumerate(self.values)}
        if_missing = len(places) if self.missing else -1
        place = np.array([*(places.get(word, -1) for word in words), if_missing])[codes]
        known = np.flatnonzero(place >= 0)
        out[known, place[known]] = 1


@kept
@dataclass(frozen=True)
class Dates:
    """Year, month, day, where there is one the hour, seconds since 1970 and weekday; medians where it is missing."""

    kind: ClassVar[Kind] = "date"
    name: str
    form: str | None
    """How text spells the dates; None: they came as dates."""
    clock: bool
    """Whether some were not at midnight."""
    medians: list[float]
    missing: bool

    def __post_init__(self) -> None:
        if len(self.medians) != 5 + self.clock:
            raise InvalidInput(f"the medians of column {self.name!r} do not fit its parts. Fit the model again.")

    @classmethod
    def fit(cls, name: str, column: pd.Series, form: str | None) -> Dates:
        times = as_times(column, name, form)
        known = times.dropna().to_numpy()
        clock = not bool((known.astype("datetime64[D]") == known).all())
        medians = [float(np.nanmedian(part)) for part in _calendar(times, clock, name).values()]
        return cls(name, form, clock, medians, bool(times.isna().any()))

    @property
    def names(self) -> list[str]:
        parts = [part for part in _PARTS if self.clock or part != "hour"]
        return [f"{self.name} {part}" for part in parts] + [f"{self.name} is missing"] * self.missing

    def encode(self, column: pd.Series, out: NDArray[np.float32]) -> None:
        times = as_times(column, self.name, self.form)
        gaps = times.isna().to_numpy()
        n = len(self.medians)
        for place, part in enumerate(_calendar(times, self.clock, self.name).values()):
            out[:, place] = part
        out[gaps, :n] = self.medians
        if self.missing:
            out[:, n] = gaps


_PARTS = ("year", "month", "day", "hour", "total seconds", "weekday")


def _calendar(times: pd.Series, clock: bool, name: str) -> dict[str, NDArray[np.float32]]:
    """The parts of every time, NaN where there is none."""
    at = times.dt
    try:
        parts = {"year": at.year, "month": at.month, "day": at.day, **({"hour": at.hour} if clock else {})}
        parts |= {"total seconds": _seconds(times), "weekday": at.day_of_week + 1}
    except (ValueError, OverflowError) as error:
        raise InvalidInput(
            f"column {name!r} holds dates too far away to compute with ({error}). Empty such cells, or leave the "
            f"column out with --ignore {name}."
        ) from error
    return {part: values.to_numpy(np.float32) for part, values in parts.items()}


def _seconds(times: pd.Series) -> pd.Series:
    """Since 1970, whatever the unit of the times: as nanoseconds those of far dates would not fit."""
    ticks = times.to_numpy()
    unit, step = np.datetime_data(ticks.dtype)
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit] / step
    return pd.Series(np.where(np.isnat(ticks), np.nan, ticks.view(np.int64) / per_second), times.index)


@kept
@dataclass(frozen=True, eq=False)
class Texts:
    """Hashed words, or pieces of words where values are single ones, weighted by rarity and projected on the main
    directions of the training rows. Missing text is all zeros.

    Hashing keeps the fitted state small and free of strangers' strings; skrub's StringEncoder stores each n-gram.
    """

    kind: ClassVar[Kind] = "text"
    name: str
    pieces: bool
    """Of words, not words."""
    rarity: NDArray[np.float64]
    """Of what falls into each bucket."""
    directions: NDArray[np.float64]
    """(features, buckets)."""

    def __post_init__(self) -> None:
        if self.rarity.shape != (TEXT_BUCKETS,) or self.directions.shape[1:] != (TEXT_BUCKETS,):
            raise InvalidInput(f"the directions of column {self.name!r} do not fit its buckets. Fit the model again.")

    @classmethod
    def fit(cls, name: str, column: pd.Series, seed: int) -> Texts:
        codes, words = as_words(column, name)
        codes = codes[codes >= 0]
        if len(codes) > TEXT_ROWS:
            codes = np.random.default_rng(seed).choice(codes, TEXT_ROWS, replace=False)
        rows = [words[code] for code in codes]
        pieces = sum(len(re.findall(_WORD, row)) < 2 for row in rows) >= len(rows) / 2
        counts = _hasher(pieces).transform(rows)
        weight = sklearn.feature_extraction.text.TfidfTransformer().fit(counts)
        svd = sklearn.decomposition.TruncatedSVD(TEXT_FEATURES, random_state=seed)
        # One thread: the same on every machine, and no slower, for the matrices are small. Texts that differ only in
        # their case have no variance to explain.
        with threadpool_limits(1), np.errstate(invalid="ignore"):
            svd.fit(weight.transform(counts))
        rank = int((svd.singular_values_ > NO_DIRECTION * svd.singular_values_[0]).sum())
        return cls(name, pieces, weight.idf_, np.ascontiguousarray(svd.components_[: max(1, rank)]))

    @property
    def names(self) -> list[str]:
        return [f"{self.name} text {number}" for number in range(1, len(self.directions) + 1)]

    def encode(self, column: pd.Series, out: NDArray[np.float32]) -> None:
        codes, words = as_words(column, self.name)
        features = np.zeros((len(words) + 1, out.shape[1]), np.float32)  # the last row is for the code −1
        hasher = _hasher(self.pieces)
        for start in range(0, len(words), TEXT_ROWS):
            some = slice(start, start + TEXT_ROWS)
            features[:-1][some] = self._projected(hasher.transform(words[some]))
        out[:] = features[codes]

    def _projected(self, counts: Any) -> NDArray[np.float64]:
        counts.data *= self.rarity[counts.indices]
        weighted = sklearn.preprocessing.normalize(counts, copy=False)  # by its length
        return np.asarray(weighted @ self.directions.T)


def _hasher(pieces: bool) -> Any:
    """What counts words, or pieces of three or four letters, by their hash; it has nothing to learn."""
    kind = {"analyzer": "char_wb", "ngram_range": (3, 4)} if pieces else {"token_pattern": _WORD}
    return sklearn.feature_extraction.text.HashingVectorizer(
        n_features=TEXT_BUCKETS,
        norm=None,
        alternate_sign=False,
        dtype=np.float64,  # processors then agree to the last bit of a float, and so on folds drawn by content
        **kind,
    )
