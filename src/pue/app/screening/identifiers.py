"""Columns that name rows or count them, seen from their values alone: no label is looked at.

A measurement may have a different value in every row too. What tells an identifier from it: text without words that
come again, whole numbers that fill their range, or such numbers under a name like "claim_id".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pue.app.screening.findings import Finding
from pue.estimators.vectorizer.columns import as_times, as_words, held, spelt_numbers
from pue.estimators.vectorizer.vectorize import date_format

FEWEST = 30
"""Of fewer rows nothing is said: a dozen different numbers are no surprise."""
UNIQUE, OFTEN = 0.95, 0.5
"""Different values among the rows: nearly all, or as many as under the name of an identifier."""
DENSE, ORDERED = 2.0, 10.0
"""Whole numbers that all differ, in a range of so many times the rows; the second, if they rise or fall all along."""
LONG, MANY = 10**7, 200
"""Numbers of at least eight digits, all of one length, in so many rows: an account, a case."""
EPOCHS = ((10**9, 3 * 10**9), (10**12, 3 * 10**12))
"""Seconds and milliseconds since 1970 are times, not names."""
_LIKE_AN_ID = re.compile(r"(?i:(^|[_\W])(id|uuid|guid|key|index|row|nr|no)$)|[a-z]I[dD]$")
_SURELY_AN_ID = re.compile(r"(?i:(^|[_\W])(id|uuid|guid)$)|[a-z]I[dD]$")
_WORD = re.compile(r"(?<!\S)\W*([^\W\d_]{2,})\W*(?!\S)")
"""Letters between two spaces: what stands in a mail address or between hyphens is no word."""


def find_identifiers(frame: pd.DataFrame, numbers: NDArray[np.int64]) -> Iterator[Finding]:
    """Findings of every column; `numbers` says where the rows stand in the table they were drawn from."""
    for name in frame.columns:
        column = frame[name]
        match held(column, name):
            case "numbers":
                found = _whole_numbers(column, name, numbers)
            case "dates":
                found = _ordering(column, name)
            case "text":
                found = _text(column, name, numbers)
            case _:
                found = None
        if found is not None:
            yield found


def _text(column: pd.Series, name: str, numbers: NDArray[np.int64]) -> Finding | None:
    codes, words = as_words(column, name)
    there = codes[codes >= 0]
    places = np.unique(there)
    if len(there) < FEWEST or len(places) < OFTEN * len(there):
        return None
    different = [words[place] for place in places]
    spelt = spelt_numbers(different)[:-1]
    if not np.isnan(spelt).any():
        return _whole_numbers(pd.to_numeric(column, errors="coerce"), name, numbers)
    if form := date_format(different):
        return _ordering(as_times(column, name, form), name)
    enough = OFTEN if _LIKE_AN_ID.search(name) else UNIQUE
    if len(places) < enough * len(there) or _speaks(different):
        return None
    shown = (
        f"{len(places):,} different values in {len(there):,} rows, such as {different[0]!r}, and hardly a word twice"
    )
    return Finding(name, "identifier", shown, True)


def _speaks(values: list[str]) -> bool:
    """Whether most values hold at least two words that other values hold as well."""
    told = [{word.casefold() for word in _WORD.findall(value)} for value in values[:5_000]]
    seen = Counter(word for words in told for word in words)
    return sum(sum(seen[word] > 1 for word in words) >= 2 for words in told) > len(told) / 2


def _whole_numbers(column: pd.Series, name: str, numbers: NDArray[np.int64]) -> Finding | None:
    if pd.api.types.is_timedelta64_dtype(column.dtype):
        return None
    values = column.to_numpy(np.float64, na_value=np.nan)
    there = ~np.isnan(values)
    values, numbers = values[there], numbers[there]
    n = len(values)
    if n < FEWEST or not np.isfinite(values).all() or (values != np.floor(values)).any():
        return None
    different = len(np.unique(values))
    if different < n:
        repeated = _SURELY_AN_ID.search(name) and different >= max(OFTEN * n, FEWEST)
        shown = f"{different:,} different whole numbers in {n:,} rows, under the name of an identifier"
        return Finding(name, "identifier", shown, True) if repeated else None
    reach = (values.max() - values.min() + 1) / (numbers[-1] - numbers[0] + 1)
    steps = np.diff(values)
    ordered = bool((steps > 0).all() or (steps < 0).all())
    if ordered and reach <= ORDERED:
        return Finding(name, "identifier", f"whole numbers that count the {n:,} rows from the first to the last", True)
    if reach <= DENSE:
        return Finding(name, "identifier", f"the {n:,} rows have the numbers of a list, each of them once", True)
    if _LIKE_AN_ID.search(name):
        return Finding(name, "identifier", f"{n:,} different whole numbers, under the name of an identifier", True)
    if n >= MANY and _same_length(values):
        return Finding(name, "identifier", f"{n:,} different whole numbers of {len(f'{values[0]:.0f}')} digits", True)
    return None


def _same_length(values: NDArray[np.float64]) -> bool:
    low, high = values.min(), values.max()
    if low < LONG or any(first <= low and high < last for first, last in EPOCHS):
        return False
    return len(f"{low:.0f}") == len(f"{high:.0f}")


def _ordering(column: pd.Series, name: str) -> Finding | None:
    """Dates that rise or fall from the first row to the last: rows of a later day will lie beyond all of them."""
    times = column.dropna()
    if len(times) < FEWEST or times.nunique() < FEWEST:
        return None
    if not (times.is_monotonic_increasing or times.is_monotonic_decreasing):
        return None
    shown = "its dates rise or fall from the first row to the last, so that later rows lie beyond what was learnt"
    return Finding(name, "order", shown, False)
