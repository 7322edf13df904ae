"""Tables that are read whole and kept in memory: JSON lines, and sheets of Excel and LibreOffice."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import json

from pue.app.sources.delimited import COMPRESSIONS
from pue.app.sources.frames import stored_columns
from pue.app.sources.problems import empty, first_line, reading
from pue.app.sources.stored_table import StoredTable
from pue.errors import InvalidInput, PueWarning, require


def open_json_lines(path: Path) -> StoredTable:
    """One JSON object a line; all lines decide the type of a column."""
    with reading(path, "JSON lines"), _stream(path) as stream:
        content = stream.read()
    try:
        options = json.ReadOptions(block_size=max(1 << 16, len(content) + 1))
        table = json.read_json(pa.BufferReader(content), read_options=options)
        table.validate(full=True)  # text that is no UTF-8 is read as it is
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:  # the second where Arrow quotes what is no text
        raise InvalidInput(
            f"{path} does not parse as JSON lines ({first_line(error)}). Write one object a line, with the same names "
            "and kinds of values in all of them."
        ) from error
    return _kept(path, table)


def _stream(path: Path) -> pa.NativeFile:
    return pa.input_stream(str(path), compression=COMPRESSIONS.get(path.suffix.lower()))


def open_sheet(path: Path) -> StoredTable:
    """The first sheet of an xlsx, xls or ods file; its first row names the columns."""
    require("excel")
    try:
        with pd.ExcelFile(path, engine="calamine") as book:
            names = [str(name) for name in book.sheet_names]
            frame = pd.read_excel(book, sheet_name=0)
    except Exception as error:  # calamine has errors of its own, for damaged files of every kind
        raise InvalidInput(
            f"{path} cannot be read as a sheet ({first_line(error)}). Save it again, or as CSV."
        ) from error
    if len(names) > 1:
        text = f"{path.name} has {len(names)} sheets; the first, {names[0]!r}, is read."
        warnings.warn(text, PueWarning, stacklevel=2)
    unnamed = [str(name) for name in frame.columns if str(name).startswith("Unnamed: ")]
    frame = frame.rename(columns=dict.fromkeys(unnamed, "")).rename(columns=str)
    columns = {name: _column(frame.iloc[:, place]) for place, name in enumerate(frame.columns)}
    stored_columns(path, pa.schema([(str(name), pa.string()) for name in frame.columns]))  # names are told apart first
    return _kept(path, pa.table(columns))


def _column(values: pd.Series) -> pa.Array:
    """A column of cells of several kinds is text."""
    if values.dtype != object:
        return pa.array(values, from_pandas=True)
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if pd.isna(value) else str(value) for value in values], pa.string())


def _kept(path: Path, table: pa.Table) -> StoredTable:
    if not table.num_rows:
        raise empty(path, "no rows")
    schema = stored_columns(path, table.schema)
    part = partial(_scan, table)
    return StoredTable(path, schema, table.num_rows, partial(part, 0, sys.maxsize), part)


def _scan(table: pa.Table, start: int, stop: int, names: list[str], size: int) -> Iterator[Any]:
    yield from table.slice(start, stop - start).select(names).combine_chunks().to_batches(max_chunksize=size)
