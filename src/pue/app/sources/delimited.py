"""CSV and TSV, plain or compressed, read as a stream; other separators and decimal commas are seen, and said.

The first `HEAD` bytes decide the type of every column; the rest must agree with it. Empty cells and the usual
spellings of a missing value (NA, null, NaN, …) are missing, in text too.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import compute, csv, types

from pue.app.sources.frames import TEXT, stored_columns
from pue.app.sources.problems import empty, first_line, reading
from pue.app.sources.stored_table import StoredTable
from pue.errors import InvalidInput, PueWarning

HEAD = 1 << 24
BLOCK = 1 << 21
"""Arrow reads some forty blocks ahead of whoever takes the rows."""
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
MARKS = ";\t|,"
_AT_COLUMN = re.compile(r"In CSV column #(\d+)")
_DECIMAL_COMMA = r"[-+]?\d+(,\d+)?([eE][-+]?\d+)?"


def open_delimited(path: Path, delimiter: str) -> StoredTable:
    """The table in a text file whose first line names the columns."""
    head, whole = _head(path)
    usual, delimiter, point = delimiter, _delimiter(head, delimiter), "."
    first, names = _first(path, head, whole, delimiter, point)
    if delimiter != "," and any(map(_has_decimal_commas, first.columns)):
        point = ","
        first, names = _first(path, head, whole, delimiter, point)
    if delimiter != usual or point != ".":
        commas = ", and its numbers have decimal commas" if point == "," else ""
        warnings.warn(f"cells of {path.name} are separated by {delimiter!r}{commas}.", PueWarning, stacklevel=2)
    if not first.num_rows:
        raise empty(path, "a header, but no rows")
    for name, kind in zip(names, first.schema.types, strict=True):
        if types.is_binary(kind):
            raise _not_utf8(path, f"column {name!r}")
    _require_delimiter(path, delimiter, names)
    stored = stored_columns(path, pa.schema(zip(names, map(_settled, first.columns), strict=True)))
    return StoredTable(path, stored, None, partial(_scan, path, delimiter, point, stored))


def _first(path: Path, head: bytes, whole: bool, delimiter: str, point: str) -> tuple[pa.Table, list[str]]:
    with _parsing(path, None):
        parsing = _parse_options(delimiter, invalid_row_handler=None if whole else lambda _: "skip")  # the cut one
        first = csv.read_csv(
            pa.BufferReader(head),
            read_options=csv.ReadOptions(block_size=len(head) + 1),
            parse_options=parsing,
            convert_options=csv.ConvertOptions(strings_can_be_null=True, decimal_point=point),
        )
        return first, first.column_names  # decoded here, where the header's errors have a name


def _delimiter(head: bytes, usual: str) -> str:
    """The mark between cells: the usual one, or, where the header has none of it, one that the second line has as
    often as the header."""
    lines = head.split(b"\n", 2)[:2]
    header, second = (re.sub(r'"[^"]*"', "", line.decode(errors="replace")) for line in (*lines, b"", b"")[:2])
    if usual in header:
        return usual
    often = {mark: header.count(mark) for mark in MARKS if header.count(mark) == second.count(mark) > 0}
    return max(often, key=lambda mark: often[mark], default=usual)


def _has_decimal_commas(column: pa.ChunkedArray) -> bool:
    if not types.is_string(column.type):
        return False
    there = column.drop_null()
    fits = compute.match_substring_regex(there, f"^{_DECIMAL_COMMA}$")
    return bool(len(there) and compute.all(fits).as_py() and compute.any(compute.match_substring(there, ",")).as_py())


def _head(path: Path) -> tuple[bytes, bool]:
    """The first rows as bytes, and whether they are all."""
    with reading(path, "a text table"), _stream(path) as stream:
        head = stream.read(HEAD)
        whole = not stream.read(1)
    if not head:
        raise empty(path, "zero bytes")
    if b"\0" in head:
        raise InvalidInput(
            f"{path} holds binary data, not a table as UTF-8 text. If it is UTF-16 text, convert it: iconv -f utf-16 "
            f"-t utf-8 {path.name}; otherwise give it the suffix of what it is."
        )
    return (head if whole else head[: head.rfind(b"\n") + 1 or None]), whole


def _scan(
    path: Path, delimiter: str, point: str, schema: pa.Schema, names: list[str], size: int
) -> Iterator[pa.RecordBatch]:
    several = len(schema) > 1  # where there is one column, an empty line is a missing value
    with (
        _parsing(path, schema.names),
        _stream(path) as stream,
        csv.open_csv(
            stream,
            read_options=csv.ReadOptions(block_size=BLOCK),
            parse_options=_parse_options(delimiter, ignore_empty_lines=several),
            convert_options=csv.ConvertOptions(
                column_types=schema, include_columns=names, strings_can_be_null=True, decimal_point=point
            ),
        ) as reader,
    ):
        yield from reader


def _parse_options(delimiter: str, **options: Any) -> csv.ParseOptions:
    return csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, **options)


def _stream(path: Path) -> pa.NativeFile:
    return pa.input_stream(str(path), compression=COMPRESSIONS.get(path.suffix.lower()))


def _settled(column: pa.ChunkedArray) -> pa.DataType:
    """What later blocks are read as: a column of dates may hold hours further down, an empty one anything.

    Arrow reads every fraction of a second as nanoseconds, which end in 2262; few tables need more than microseconds.
    """
    kind = column.type
    if types.is_null(kind):
        return TEXT
    if types.is_date(kind):
        return pa.timestamp("us")
    if types.is_timestamp(kind) and not (
        kind.unit == "ns" and (column.drop_null().to_numpy().astype(int) % 1000).any()
    ):
        return pa.timestamp("us", kind.tz)
    return kind


def _require_delimiter(path: Path, delimiter: str, names: list[str]) -> None:
    if len(names) == 1 and (others := [mark for mark in ";\t|," if mark != delimiter and mark in names[0]]):
        raise InvalidInput(
            f"{path} has one column, {names[0]!r}: its cells seem to be separated by {others[0]!r}, not by "
            f"{delimiter!r}, but not in all lines alike. Save it with {delimiter!r} between cells."
        )


@contextmanager
def _parsing(path: Path, names: list[str] | None) -> Iterator[None]:
    """Arrow's errors on text, with the column's name for its number."""
    with reading(path, "a text table"):
        try:
            yield
        except UnicodeDecodeError as error:
            raise _not_utf8(path, "the header") from error
        except pa.ArrowInvalid as error:
            raise _unparsed(path, names, first_line(error)) from error


def _unparsed(path: Path, names: list[str] | None, problem: str) -> InvalidInput:
    found = _AT_COLUMN.search(problem)
    column = f"column {names[int(found[1])]!r}" if found and names else "a row"
    if "UTF8" in problem:
        return _not_utf8(path, column)
    if found:
        return InvalidInput(
            f"{column} of {path} does not go on as it begins ({problem}). Write all its cells alike, empty where the "
            "value is missing, or store the table as Parquet."
        )
    if "Empty CSV" in problem:
        return empty(path, "no header")
    return InvalidInput(
        f"{path} does not parse ({problem}). Every row needs as many cells as the header, and a cell that holds the "
        "separator stands in double quotes."
    )


def _not_utf8(path: Path, where: str) -> InvalidInput:
    text = path.name.removesuffix(".gz")
    return InvalidInput(
        f"{path} is not UTF-8 text ({where}). Convert it, for example with: iconv -f latin1 -t utf-8 {text} > "
        f"utf8-{text}"
    )
