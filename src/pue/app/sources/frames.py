"""From Arrow's many types to the few that a frame has, the same for every format and every batch.

=====================================  =========================================================
whole numbers, true/false              pandas' nullable types, for a batch may or may not miss values
numbers with a point, decimals         float32, float64; NaN is missing
text, dictionaries of text             `str`
dates, times with a date               datetime64
times of the day, durations            timedelta64
=====================================  =========================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import types

from pue.app.sources.problems import require_names
from pue.errors import InvalidInput

TEXT = pa.large_string()
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
_WHOLE = [f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)]
_PANDAS = {
    **{pa.type_for_alias(name.lower()): pd.api.types.pandas_dtype(name) for name in _WHOLE},
    pa.bool_(): pd.BooleanDtype(),
    TEXT: pd.StringDtype(na_value=np.nan),
}


def stored_columns(path: Path, schema: pa.Schema) -> pa.Schema:
    """The columns as they are stored, each with a name of its own.

    The row numbers that pandas writes beside a table it has filtered are no column of it.
    """
    try:
        fields = [field for field in schema if not _PANDAS_INDEX.fullmatch(field.name)]
    except UnicodeDecodeError as error:
        raise InvalidInput(f"a column of {path} has a name that is not UTF-8 text. Write or copy it again.") from error
    require_names(path, [field.name for field in fields])
    return pa.schema(fields)


def sound(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch whose offsets lie inside it and whose text is text: Arrow trusts files, and reads where they tell it."""
    batch.validate(full=True)
    return batch


def plain_schema(path: Path, stored: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """These columns with the types they have in a frame, or an error that names the column which fits none."""
    fields = [stored.field(name) for name in names]
    for field in fields:
        if plain_type(field.type) is None:
            raise InvalidInput(
                f"column {field.name!r} of {path} holds {field.type}, which is no number, text, date or true/false. "
                f"Flatten it into such columns, or leave it out with --ignore {field.name}."
            )
    return pa.schema([(field.name, plain_type(field.type)) for field in fields])


def plain_type(kind: pa.DataType) -> pa.DataType | None:
    """The type that stands in a frame for this one, if any does.

    >>> plain_type(pa.date32()), plain_type(pa.list_(pa.int8()))
    (TimestampType(timestamp[s]), None)
    """
    if types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if types.is_null(kind) or types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return TEXT
    if types.is_decimal(kind):
        return pa.float64()
    if types.is_float16(kind):
        return pa.float32()
    if types.is_date(kind):
        return pa.timestamp("s" if types.is_date32(kind) else "ms")
    if types.is_time(kind):
        return pa.duration(kind.unit)
    kept = types.is_timestamp(kind) or types.is_duration(kind) or types.is_floating(kind) or kind in _PANDAS
    return kind if kept else None


def plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of `schema`, in its order and types."""
    return pa.RecordBatch.from_arrays([_cast(batch.column(field.name), field.type) for field in schema], schema=schema)


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if types.is_time(column.type):  # Arrow casts times of the day to durations by way of integers only
        column = column.cast(pa.int32() if types.is_time32(column.type) else pa.int64()).cast(pa.int64())
    return column if column.type == wanted else column.cast(wanted)


def to_frame(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pd.DataFrame:
    """Plain batches as one frame."""
    table = pa.Table.from_batches(batches, schema=schema)
    return table.to_pandas(types_mapper=_PANDAS.get, ignore_metadata=True)


def regroup(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[list[pa.RecordBatch]]:
    """The same rows in groups of `size` rows, the last of fewer."""
    if size < 1:
        raise InvalidInput(f"a batch has at least one row; got size={size}.")
    group: list[pa.RecordBatch] = []
    missing = size
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            part = batch.slice(start, missing)
            group.append(part)
            start, missing = start + part.num_rows, missing - part.num_rows
            if not missing:
                yield group
                group, missing = [], size
    if group:
        yield group
