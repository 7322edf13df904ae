"""Columns that hold a vector in every cell, such as features of an encoder: each place of it becomes a column.

The columns of `embedding` are called `embedding[0]`, `embedding[1]`, …; a cell without a vector misses all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute, types

from pue.app.sources.frames import plain_type
from pue.app.sources.stored_table import Piece, StoredTable
from pue.errors import InvalidInput

LOOKED_AT = 1_024
"""Rows in which the first vector must stand, where the type does not tell the length."""
LONGEST = 65_536
"""Places of a vector. A column of longer ones, or of lists whose first is empty, is left as it is: no kind of any."""


def with_vectors_spread(table: StoredTable) -> StoredTable:
    """The same table with a column for each place of each vector; tables without vectors as they are."""
    found = {field.name: _width(table, field) for field in table.schema if _holds_vectors(field.type)}
    widths = {name: width for name, width in found.items() if width is not None and 0 < width <= LONGEST}
    if not widths:
        return table
    spread = partial(_spread, widths=widths, path=table.path)
    fields = [part for field in table.schema for part in _fields(field, widths.get(field.name))]
    names = [field.name for field in fields]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInput(f"{table.path} has a column {twice!r} beside a vector of that name. Rename one of them.")
    wrap: Callable[[Any], Any] = partial(partial, _scanned, spread)
    return replace(
        table,
        schema=pa.schema(fields),
        scan=wrap(table.scan),
        part=None if table.part is None else partial(_scanned_part, spread, table.part),
        pieces=tuple(Piece(each.n_rows, each.n_bytes, wrap(each.scan)) for each in table.pieces),
    )


def parts_of(name: str, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns that `name` stands for: itself, or all places of the vector of that name.

    >>> parts_of("v", ["x", "v[0]", "v[1]"]), parts_of("x", ["x", "v[0]"])
    (('v[0]', 'v[1]'), ('x',))
    """
    places = tuple(column for column in columns if column == f"{name}[{_place(column)}]")
    return places if places and name not in columns else (name,)


def _place(column: str) -> str:
    return column.rpartition("[")[2].rstrip("]")


def _holds_vectors(kind: pa.DataType) -> bool:
    nested = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    if not nested:
        return False
    inner = plain_type(kind.value_type)
    return inner is not None and (types.is_floating(inner) or types.is_integer(inner))


def _width(table: StoredTable, field: pa.Field) -> int | None:
    """How many places: the type's, or those of the first vector; None where there is none."""
    if types.is_fixed_size_list(field.type):
        return int(field.type.list_size)
    for batch in table.scan([field.name], LOOKED_AT):
        lengths = compute.drop_null(compute.list_value_length(batch.column(0)))
        return int(lengths[0].as_py()) if len(lengths) else None
    return None


def _fields(field: pa.Field, width: int | None) -> list[pa.Field]:
    if width is None:
        return [field]
    inner = plain_type(field.type.value_type)
    kind = pa.float64() if inner == pa.float64() else pa.float32()
    return [pa.field(f"{field.name}[{place}]", kind) for place in range(width)]


def _scanned(spread: Any, scan: Callable[..., Iterator[Any]], names: list[str], size: int) -> Iterator[Any]:
    return (spread(batch, names) for batch in scan(_stored(names, spread.keywords["widths"]), size))


def _scanned_part(
    spread: Any, part: Callable[..., Iterator[Any]], start: int, stop: int, names: list[str], size: int
) -> Iterator[Any]:
    return (spread(batch, names) for batch in part(start, stop, _stored(names, spread.keywords["widths"]), size))


def _stored(names: Sequence[str], widths: dict[str, int]) -> list[str]:
    """The columns of the file behind these names, each once."""
    return list(dict.fromkeys(_owner(name, widths) or name for name in names))


def _owner(name: str, widths: dict[str, int]) -> str | None:
    stem = name.rpartition("[")[0]
    return stem if stem in widths and name.endswith("]") else None


def _spread(batch: pa.RecordBatch, names: Sequence[str], *, widths: dict[str, int], path: Any) -> pa.RecordBatch:
    columns: dict[str, Any] = {}
    matrices: dict[str, Any] = {}
    for name in names:
        owner = _owner(name, widths)
        if owner is None:
            columns[name] = batch.column(name)
            continue
        if owner not in matrices:
            matrices[owner] = matrix(batch.column(owner), widths[owner], owner, path)
        columns[name] = pa.array(matrices[owner][:, int(_place(name))], from_pandas=True)
    return pa.RecordBatch.from_pydict(columns)


def matrix(column: Any, width: int, name: str, path: Any) -> Any:
    """(rows, width), NaN where a number or a whole vector is missing; all vectors must have that length."""
    lengths = compute.list_value_length(column)
    wrong = compute.fill_null(compute.not_equal(lengths, width), False)
    if compute.any(wrong).as_py():
        row = int(np.flatnonzero(wrong.to_numpy(zero_copy_only=False))[0])
        raise InvalidInput(
            f"column {name!r} of {path} holds vectors of {width} numbers, and one of {lengths[row].as_py()}. Make all "
            f"of them equally long, or leave the column out with --ignore {name}."
        )
    inner = compute.list_flatten(column)
    dtype = np.float64 if inner.type == pa.float64() else np.float32
    found = np.full((len(column), width), np.nan, dtype=dtype)
    given = column.is_valid().to_numpy(zero_copy_only=False)
    found[given] = inner.to_numpy(zero_copy_only=False).astype(dtype).reshape(-1, width)
    return found
