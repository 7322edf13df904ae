"""One column of a frame: what it holds, and the same values as numbers, words or times.

Every function looks at each value alone, so that a row means the same in every batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from pue.core.finite import LARGEST
from pue.errors import InvalidInput, shown

MISSING = frozenset({"", "?", "na", "n/a", "#n/a", "#na", "<na>", "nan", "nat", "null", "none"})
"""How people write that a value is missing, in lower case, without the space around it."""
Held = Literal["numbers", "true/false", "dates", "text", "nothing"]
_INFERRED: dict[str, Held] = {
    "empty": "nothing", "boolean": "true/false", "string": "text", "categorical": "text",
    "integer": "numbers", "floating": "numbers", "mixed-integer-float": "numbers", "decimal": "numbers",
}  # fmt: skip


def held(column: pd.Series, name: str) -> Held:
    """What the values are; "nothing" where all of them are missing.

    >>> held(pd.Series([1, 2]), "x"), held(pd.Series(["a", None]), "x"), held(pd.Series([None, None]), "x")
    ('numbers', 'text', 'nothing')
    """
    dtype = column.dtype
    if types.is_bool_dtype(dtype) and not isinstance(dtype, pd.CategoricalDtype):
        return "true/false"
    if types.is_any_real_numeric_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        return "numbers"
    if types.is_datetime64_any_dtype(dtype):
        return "dates"
    if isinstance(dtype, pd.StringDtype):
        return "nothing" if column.isna().all() else "text"
    found = types.infer_dtype(column, skipna=True)
    if found in _INFERRED:
        return _INFERRED[found]
    if column.isna().all():
        return "nothing"
    raise InvalidInput(
        f"column {name!r} holds {found} values, which are no numbers, text, dates or true/false. Convert it, or leave "
        f"it out with --ignore {name}."
    )


def as_numbers(column: pd.Series, name: str, nodata: Sequence[float] = ()) -> NDArray[np.float32]:
    """Numbers as float32 with NaN where they are missing or one of `nodata`; durations in seconds; text where it spells
    numbers. Errors name rows by the column's index."""
    match held(column, name):
        case "dates":
            if column.isna().all():
                return np.full(len(column), np.nan, dtype=np.float32)
            raise changed(name, "numbers", "dates", column)
        case "text":
            values = _parsed_numbers(column, name)
        case _ if types.is_timedelta64_dtype(column.dtype):
            values = column.dt.total_seconds().to_numpy(np.float32)
        case _:
            with np.errstate(over="ignore"):  # what is too large becomes infinite, and that is refused
                values = column.to_numpy(np.float32, na_value=np.nan)
    with np.errstate(over="ignore"):
        gaps = np.isin(values, np.asarray(nodata, dtype=np.float32)) if len(nodata) else np.zeros(len(values), bool)
    if gaps.any():
        values = np.where(gaps, np.float32(np.nan), values)
    wrong = np.flatnonzero(np.abs(values) > LARGEST)  # after the cast, so that what it made infinite is among them
    if len(wrong):
        rows, example = column.index[wrong].tolist(), column.iloc[wrong[0]]
        raise InvalidInput(
            f"column {name!r} holds infinite numbers, or some beyond {LARGEST:g}, in row(s) {shown(rows)} (the first "
            f"is 0), for example {example!s}. Where they mark missing values empty these cells, or pass --nodata "
            f"{example!s}; else rescale them."
        )
    return values


def _parsed_numbers(column: pd.Series, name: str) -> NDArray[np.float32]:
    codes, words = as_words(column, name)
    values = spelt_numbers(words)
    wrong = np.isnan(values[:-1]) & np.isin(np.arange(len(words)), codes)
    if wrong.any():
        raise changed(name, "numbers", "text", words[int(wrong.argmax())])
    return values[codes]


def spelt_numbers(words: Sequence[str]) -> NDArray[np.float32]:
    """The numbers that words spell, NaN where they spell none; one more NaN at the end, for the code −1."""
    with np.errstate(over="ignore"):
        return np.append(pd.to_numeric(pd.Series(words, dtype="str"), errors="coerce").to_numpy(np.float32), np.nan)


def as_words(column: pd.Series, name: str) -> tuple[NDArray[np.intp], list[str]]:
    """The different values as text, and for each row the place of its own: −1 where it is missing.

    >>> codes, words = as_words(pd.Series(["b", " ", "a", "b", "NA"]), "x")
    >>> codes.tolist(), words[0], words[2]
    ([0, -1, 2, 0, -1], 'b', 'a')
    """
    now = held(column, name)
    if now in ("dates", "true/false"):
        if column.isna().all():  # an empty column has whatever type its reader chose
            return np.full(len(column), -1, dtype=np.intp), []
        raise changed(name, "text", now, column)
    codes, values = pd.factorize(column)
    words = [_spelt(value) for value in np.asarray(values, dtype=object).tolist()]
    missing = np.array([word.strip().casefold() in MISSING for word in words] + [True])
    return np.where(missing[codes], -1, codes), words


def _spelt(value: Any) -> str:
    """As it would stand in a CSV: a column of words may happen to hold only numbers in one file."""
    if isinstance(value, str):
        return value
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def as_times(column: pd.Series, name: str, form: str | None) -> pd.Series:
    """Times without a zone, those that had one in UTC; text is read in the format `form`, else as ISO 8601."""
    now = held(column, name)
    if now in ("numbers", "true/false"):
        if column.isna().all():
            return pd.Series(np.full(len(column), np.datetime64("NaT", "s")), column.index, name=column.name)
        raise changed(name, "dates", now, column)
    if now == "dates":
        return column if column.dt.tz is None else column.dt.tz_convert("UTC").dt.tz_localize(None)
    codes, words = as_words(column, name)
    times = pd.to_datetime(pd.Series(words, dtype="str"), format=form or "ISO8601", errors="coerce", utc=True)
    wrong = times.isna().to_numpy() & np.isin(np.arange(len(words)), codes)
    if wrong.any():
        raise changed(name, f"dates ({form or 'ISO 8601'})", "text", words[int(wrong.argmax())])
    naive = times.dt.tz_localize(None).to_numpy()
    return pd.Series(np.append(naive, np.datetime64("NaT"))[codes], column.index, name=column.name)


def cell_text(value: object) -> str:
    """A cell as text; dates beyond the year 9999, or before the first, have words in NumPy alone if they have a zone.

    >>> cell_text(7), cell_text(pd.Timestamp("2024-05-06"))
    ('7', '2024-05-06 00:00:00')
    """
    try:
        return str(value)
    except (NotImplementedError, OverflowError):
        if not isinstance(value, pd.Timestamp):
            raise
        return str(value.to_datetime64())


def changed(name: str, was: str, now: str, example: pd.Series | str) -> InvalidInput:
    known = example if isinstance(example, str) else cell_text(example.dropna().iloc[0])
    return InvalidInput(
        f"column {name!r} held {was} when the model was trained and holds {now} now, for example {known!r}. Give "
        "it its old type, empty cells that hold no value, or train again with this table."
    )
