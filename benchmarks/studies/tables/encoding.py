"""A frame as numbers for whoever takes only numbers: `pue fit` itself is given the frame."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

LEVELS = 12
"""Of a category with more values the most frequent ones get a column."""


def encode(frame: pd.DataFrame) -> tuple[NDArray[np.float32], list[str]]:
    """Numbers as they are, missing ones filled with the median; categories as a column for each value.

    >>> x, names = encode(pd.DataFrame({"age": [30.0, None, 50.0], "color": ["red", "blue", "red"]}))
    >>> names, x[1].tolist()
    (['age', 'color=blue', 'color=red'], [40.0, 1.0, 0.0])
    """
    columns = [pair for name in frame.columns for pair in _columns(str(name), frame[name])]
    return np.column_stack([values for _, values in columns]).astype(np.float32), [name for name, _ in columns]


def _columns(name: str, column: pd.Series) -> Iterator[tuple[str, NDArray[np.float64]]]:
    numbers = pd.to_numeric(column, errors="coerce") if not pd.api.types.is_bool_dtype(column) else column.astype(float)
    if numbers.notna().sum() == column.notna().sum():
        yield name, numbers.fillna(numbers.median()).to_numpy(np.float64)
        return
    words = column.astype(str)
    for value in sorted(words.value_counts().index[:LEVELS]):
        yield f"{name}={value}", (words == value).to_numpy(np.float64)
