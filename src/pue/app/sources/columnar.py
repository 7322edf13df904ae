"""Parquet, one file or a folder of them, and Arrow's own format (Feather), as file or stream."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from pue.app.sources.frames import plain_type, sound, stored_columns
from pue.app.sources.problems import reading, require_bytes
from pue.app.sources.stored_table import Piece, StoredTable
from pue.errors import InvalidInput

END = sys.maxsize
"""A row after the last."""
BUFFER = 2**16
"""Bytes of a column that are read at a time."""


def open_parquet(path: Path, parts: Sequence[Path] = ()) -> StoredTable:
    """The table in a Parquet file, or in several that agree in their columns, one after the other."""
    files = list(parts) or [path]
    schemas, stored, sizes = [], [], []
    for file in files:
        require_bytes(file)
        with reading(file, "a Parquet file"), parquet.ParquetFile(file) as opened:
            schemas.append(stored_columns(file, opened.schema_arrow))
            groups = [opened.metadata.row_group(number) for number in range(opened.num_row_groups)]
            stored.append(Stored.now(file, tuple(group.num_rows for group in groups)))
            sizes += [(group.num_rows, group.total_byte_size) for group in groups]
    for file, schema in zip(files, schemas, strict=True):
        _require_same(files[0], schemas[0], file, schema)
    part, ends = partial(_scan_parquet, stored), accumulate(rows for rows, _ in sizes)
    pieces = tuple(
        Piece(rows, n_bytes, partial(part, end - rows, end)) for (rows, n_bytes), end in zip(sizes, ends, strict=True)
    )
    return StoredTable(path, schemas[0], sum(rows for rows, _ in sizes), partial(part, 0, END), part, pieces)


@dataclass(frozen=True)
class Stored:
    """A file as it was when it was opened: a table that changes while it is read many times is no table."""

    path: Path
    groups: tuple[int, ...]
    """Rows of each row group."""
    n_bytes: int
    changed: int
    """In nanoseconds."""

    @classmethod
    def now(cls, path: Path, groups: tuple[int, ...]) -> Stored:
        found = path.stat()
        return cls(path, groups, found.st_size, found.st_mtime_ns)

    def require_same(self) -> None:
        if not self.path.exists() or Stored.now(self.path, self.groups) != self:
            raise InvalidInput(f"{self.path} changed while it was read. Start again when nobody writes to it.")


def _scan_parquet(files: list[Stored], start: int, stop: int, names: list[str], size: int) -> Iterator[pa.RecordBatch]:
    """The rows from `start` to before `stop`; files and row groups without any of them are passed over."""
    after = 0
    for file in files:
        wanted = {}
        for number, rows in enumerate(file.groups):
            before, after = after, after + rows
            if before < stop and start < after:
                wanted[number] = before
        if wanted:
            yield from _scan_groups(file, list(wanted), names, size, start, stop, before=min(wanted.values()))
        if after >= stop:
            return


def _scan_groups(
    file: Stored, groups: list[int], names: list[str], size: int, start: int, stop: int, before: int
) -> Iterator[pa.RecordBatch]:
    file.require_same()
    try:
        # Without pre_buffer=False Arrow keeps what it has read of all row groups until the last is done, and without
        # a buffer it reads whole columns of a row group before it gives the first row.
        with (
            reading(file.path, "a Parquet file"),
            parquet.ParquetFile(file.path, pre_buffer=False, buffer_size=BUFFER) as opened,
        ):
            batches = opened.iter_batches(batch_size=size, row_groups=groups, columns=names)
            yield from map(sound, _cut(batches, start, stop, before=before))
    except InvalidInput:
        file.require_same()  # a file that was overwritten looks damaged
        raise
    file.require_same()


def _cut(batches: Iterable[pa.RecordBatch], start: int, stop: int, before: int = 0) -> Iterator[pa.RecordBatch]:
    """The rows from `start` to before `stop` of batches that begin with row `before`."""
    for batch in batches:
        after = before + batch.num_rows
        if before < stop and start < after:
            first = max(0, start - before)
            yield batch.slice(first, min(stop, after) - before - first)
        before = after
        if before >= stop:
            return


def _require_same(first: Path, expected: pa.Schema, file: Path, schema: pa.Schema) -> None:
    kinds, others = ({field.name: plain_type(field.type) or field.type for field in s} for s in (expected, schema))
    for name in [*kinds, *others]:
        if kinds.get(name) != others.get(name):
            raise InvalidInput(
                f"{first} and {file.name} are parts of one table but disagree: column {name!r} is "
                f"{kinds.get(name, 'absent')} in the first and {others.get(name, 'absent')} in the second. Write all "
                "parts with one schema, or keep other tables in another folder."
            )


def open_arrow(path: Path) -> StoredTable:
    """The table in an Arrow file or stream; how many rows a stream has only reading tells."""
    with reading(path, "an Arrow file"), pa.OSFile(str(path)) as source:
        if source.read(6) == b"ARROW1":
            with pa.ipc.open_file(source) as reader:
                schema, part = stored_columns(path, reader.schema), partial(_scan_file, path)
                return StoredTable(path, schema, reader.count_rows(), partial(part, 0, END), part)
        source.seek(0)
        with pa.ipc.open_stream(source) as stream:
            n_rows = None if any(batch.num_rows for batch in stream) else 0
            return StoredTable(path, stored_columns(path, stream.schema), n_rows, partial(_scan_stream, path))


def _scan_file(path: Path, start: int, stop: int, names: list[str], size: int) -> Iterator[pa.RecordBatch]:
    """Batches without wanted rows are not read. The file is not mapped into memory: one that is cut off meanwhile would
    end the process with a signal."""
    with reading(path, "an Arrow file"), pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as reader:
        stored = (reader.get_batch(number).select(names) for number in range(reader.num_record_batches))
        yield from map(sound, _cut(stored, start, stop))


def _scan_stream(path: Path, names: list[str], size: int) -> Iterator[pa.RecordBatch]:
    with reading(path, "an Arrow stream"), pa.OSFile(str(path)) as source, pa.ipc.open_stream(source) as stream:
        for batch in stream:
            yield sound(batch.select(names))
