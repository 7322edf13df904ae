"""A frame as numbers: each column by its kind, fitted once on the training rows and the same for every row after."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pue.core.randomness import derive
from pue.errors import InvalidInput, listed
from pue.estimators.frames import FrameEncoder
from pue.estimators.vectorizer.columns import as_numbers, as_words, held, spelt_numbers
from pue.estimators.vectorizer.encoders import Categories, Dates, Encoder, Kind, Numbers, Texts
from pue.persistence import kept

FIT_ROWS = 100_000
FEWEST_TEXTS = 40
"""Fewer different values are categories, more are text: skrub's threshold."""


@kept
@dataclass(frozen=True, eq=False)
class Vectorizer(FrameEncoder):
    """Fitted on a training frame; `transform` gives the features of any rows that have the same columns.

    Row i of the result depends on row i of the frame alone.
    """

    encoders: tuple[Encoder, ...]
    dropped: dict[str, str]
    """Columns that say nothing, and why."""
    notes: list[str]
    """What deserves a second look."""

    @property
    def columns(self) -> dict[str, Kind]:
        return {encoder.name: encoder.kind for encoder in self.encoders}

    @property
    def feature_names(self) -> list[str]:
        return [name for encoder in self.encoders for name in encoder.names]

    def places(self, names: Iterable[str]) -> tuple[int, ...]:
        """Which features come from these columns."""
        wanted, owner = set(names), [encoder.name for encoder in self.encoders for _ in encoder.names]
        return tuple(place for place, name in enumerate(owner) if name in wanted)

    def unknown(self, frame: pd.DataFrame) -> list[str]:
        """Columns that were not there at training: they are not looked at."""
        known = {*self.columns, *self.dropped}
        return [name for name in frame.columns if name not in known]

    def with_nodata(self, values: Iterable[float]) -> Vectorizer:
        """The same, with more numbers that stand for a missing value."""
        more = tuple(values)
        encoders = [replace(e, nodata=e.nodata + more) if isinstance(e, Numbers) else e for e in self.encoders]
        return replace(self, encoders=tuple(encoders))

    def transform(self, frame: pd.DataFrame) -> NDArray[np.float32]:
        """Features of each row, without NaN; memory for them and for one column at a time."""
        self._require_columns(frame)
        widths = [len(encoder.names) for encoder in self.encoders]
        features = np.zeros((len(frame), sum(widths)), np.float32)
        for encoder, stop, width in zip(self.encoders, np.cumsum(widths), widths, strict=True):
            encoder.encode(frame[encoder.name], features[:, stop - width : stop])
        return features

    def _require_columns(self, frame: pd.DataFrame) -> None:
        absent = [name for name in self.columns if name not in frame.columns]
        if not absent:
            return
        extra = [str(name) for name in self.unknown(frame)]
        close = difflib.get_close_matches(absent[0], extra, n=1, cutoff=0.5)
        hint = f" Did you mean {close[0]!r}? Rename it." if close else " Add it, empty where it is not known."
        raise InvalidInput(f"the model was trained on column(s) {listed(absent)}, which the table does not have.{hint}")


def fit_vectorizer(frame: pd.DataFrame, *, seed: int = 0, nodata: tuple[float, ...] = ()) -> Vectorizer:
    """What the columns of a training frame mean, learnt from at most 100,000 of its rows; `nodata` are numbers that
    stand for a missing value.

    >>> frame = pd.DataFrame({"age": [30.0, None, 50.0], "color": ["red", "blue", "red"]})
    >>> vectorizer = fit_vectorizer(frame)
    >>> vectorizer.feature_names
    ['age', 'age is missing', 'color=blue', 'color=red']
    >>> vectorizer.transform(frame)[1].tolist()
    [40.0, 1.0, 1.0, 0.0]
    """
    sample = frame
    if len(frame) > FIT_ROWS:
        sample = frame.iloc[np.sort(np.random.default_rng(seed).choice(len(frame), FIT_ROWS, replace=False))]
    encoders: list[Encoder] = []
    dropped: dict[str, str] = {}
    for number, name in enumerate(frame.columns):
        if reason := _says_nothing(sample[name], name, nodata):
            dropped[name] = reason if sample is frame else f"{reason} in {FIT_ROWS:,} rows drawn at random"
        else:
            encoders.append(_fit_encoder(name, sample[name], frame[name], derive(seed, number) % 2**32, nodata))
    if not encoders:
        raise InvalidInput(f"no column says anything about the rows: {dropped or 'there is none'}. Add features.")
    return Vectorizer(tuple(encoders), dropped, [])


def _says_nothing(column: pd.Series, name: str, nodata: tuple[float, ...]) -> str | None:
    match held(column, name):
        case "text":
            codes = as_words(column, name)[0]
        case "numbers" if nodata:
            codes = pd.factorize(as_numbers(column, name, nodata))[0]
        case _:
            codes = pd.factorize(column)[0]
    if (codes < 0).all():
        return "all values are missing"
    return "all values are the same" if (codes == codes[0]).all() else None


def _fit_encoder(name: str, column: pd.Series, whole: pd.Series, seed: int, nodata: tuple[float, ...]) -> Encoder:
    match held(column, name):
        case "true/false":
            return Numbers.fit(name, column, "boolean")
        case "numbers":
            return Numbers.fit(name, column, "number", nodata)
        case "dates":
            return Dates.fit(name, column, None)
    codes, words = as_words(column, name)
    different = [words[code] for code in np.unique(codes) if code >= 0]
    if not np.isnan(spelt_numbers(different)[:-1]).any():
        return Numbers.fit(name, column, "number", nodata)
    if form := date_format(different):
        return Dates.fit(name, column, form)
    if len(different) < FEWEST_TEXTS:
        return Categories.fit(name, column)
    return Texts.fit(name, column, seed)


def date_format(words: list[str]) -> str | None:
    """How these words spell dates, or None."""
    from skrub import ToDatetime  # a second to import, for nothing where a model only predicts
    from skrub.core import RejectColumn

    try:
        form: str | None = ToDatetime().fit(pd.Series(words, dtype="str")).format_
    except RejectColumn:
        return None
    return form
