"""Parquet, one file or a folder of them, and Arrow's own format (Feather), as file or stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from pue.errors import InvalidInput
from pue.tables.frames import plain_type, stored_columns
from pue.tables.problems import reading, require_bytes
from pue.tables.table import Piece, Table


def open_parquet(path: Path, parts: Sequence[Path] = ()) -> Table:
    """The table in a Parquet file, or in several that agree in their columns, one after the other."""
    files = list(parts) or [path]
    schemas, n_rows, stored, pieces = [], 0, [], []
    for file in files:
        require_bytes(file)
        with reading(file, "a Parquet file"), parquet.ParquetFile(file) as opened:
            schemas.append(stored_columns(file, opened.schema_arrow))
            n_rows += opened.metadata.num_rows
            stored.append(Stored.now(file))
            for number in range(opened.num_row_groups):
                group = opened.metadata.row_group(number)
                scan = partial(_scan_parquet, [stored[-1]], groups=[number])
                pieces.append(Piece(group.num_rows, group.total_byte_size, scan))
    for file, schema in zip(files, schemas, strict=True):
        _require_same(files[0], schemas[0], file, schema)
    return Table(path, schemas[0], n_rows, partial(_scan_parquet, stored), tuple(pieces))


@dataclass(frozen=True)
class Stored:
    """A file as it was when it was opened: a table that changes while it is read many times is no table."""

    path: Path
    n_bytes: int
    changed: int
    """In nanoseconds."""

    @classmethod
    def now(cls, path: Path) -> Stored:
        found = path.stat()
        return cls(path, found.st_size, found.st_mtime_ns)

    def require_same(self) -> None:
        if not self.path.exists() or Stored.now(self.path) != self:
            raise InvalidInput(f"{self.path} changed while it was read. Start again when nobody writes to it.")


def _scan_parquet(
    files: list[Stored], names: list[str], size: int, groups: list[int] | None = None
) -> Iterator[pa.RecordBatch]:
    for file in files:
        file.require_same()
        try:
            with reading(file.path, "a Parquet file"), parquet.ParquetFile(file.path) as opened:
                for batch in opened.iter_batches(batch_size=size, columns=names, row_groups=groups):
                    yield _sound(batch)
        except InvalidInput:
            file.require_same()  # a file that was overwritten looks damaged
            raise
        file.require_same()


def _require_same(first: Path, expected: pa.Schema, file: Path, schema: pa.Schema) -> None:
    kinds, others = ({field.name: plain_type(field.type) or field.type for field in s} for s in (expected, schema))
    for name in [*kinds, *others]:
        if kinds.get(name) != others.get(name):
            raise InvalidInput(
                f"{first} and {file.name} are parts of one table but disagree: column {name!r} is "
                f"{kinds.get(name, 'absent')} in the first and {others.get(name, 'absent')} in the second. Write all "
                "parts with one schema, or keep other tables in another folder."
            )


def open_arrow(path: Path) -> Table:
    """The table in an Arrow file or stream; how many rows a stream has only reading tells."""
    with reading(path, "an Arrow file"), pa.memory_map(str(path)) as source:
        if source.read(6) == b"ARROW1":
            with pa.ipc.open_file(source) as reader:
                n_rows = reader.count_rows()
                return Table(path, stored_columns(path, reader.schema), n_rows, partial(_scan_file, path))
        source.seek(0)
        with pa.ipc.open_stream(source) as stream:
            n_rows = None if any(batch.num_rows for batch in stream) else 0
            return Table(path, stored_columns(path, stream.schema), n_rows, partial(_scan_stream, path))


def _scan_file(path: Path, names: list[str], size: int) -> Iterator[pa.RecordBatch]:
    with reading(path, "an Arrow file"), pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
        for number in range(reader.num_record_batches):
            yield _sound(reader.get_batch(number).select(names))


def _scan_stream(path: Path, names: list[str], size: int) -> Iterator[pa.RecordBatch]:
    with reading(path, "an Arrow stream"), pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as stream:
        for batch in stream:
            yield _sound(batch.select(names))


def _sound(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch whose offsets lie inside it and whose text is text: Arrow trusts files, and reads where they tell it."""
    batch.validate(full=True)
    return batch
