"""A table on the disk, whatever its format: columns, rows, and batches of rows in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

import pandas as pd
import pyarrow as pa

from pue.app.sources.frames import plain_batch, plain_schema, regroup, to_frame
from pue.app.sources.problems import empty, require_columns
from pue.errors import InvalidInput

BATCH = 65_536
Scan = Callable[[list[str], int], Iterator[pa.RecordBatch]]
"""From columns and a number of rows to batches of at most so many rows (or as the file has them), in order."""


@dataclass(frozen=True)
class Piece:
    """Rows of a table that can be read without the others: a row group of a Parquet file, say."""

    n_rows: int | None
    n_bytes: int
    """About what they take in memory while they are read."""
    scan: Scan = field(repr=False)


@dataclass(frozen=True)
class StoredTable:
    """A format is a schema and a way to scan it; the rest is the same for all."""

    kind: ClassVar[Literal["table"]] = "table"
    path: Path
    schema: pa.Schema
    n_rows: int | None
    """None where only reading tells."""
    scan: Scan = field(repr=False)
    part: Callable[[int, int, list[str], int], Iterator[pa.RecordBatch]] | None = field(default=None, repr=False)
    """A scan of the rows from the first number to before the second; None where they are found only by reading all."""
    pieces: tuple[Piece, ...] = ()
    """In order, all rows together; a format that must be read from the start is one piece."""

    def __post_init__(self) -> None:
        if self.n_rows == 0:
            raise empty(self.path, "no rows")
        if not self.pieces:
            object.__setattr__(self, "pieces", (Piece(self.n_rows, 0, self.scan),))

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    def read(self, columns: Sequence[str] | None = None, rows: int | None = None) -> pd.DataFrame:
        """All rows, or the first ones."""
        if rows is not None:
            for first in self.batches(rows, columns):
                return first
            raise empty(self.path, "no rows")
        schema, batches = self._plain(columns, BATCH)
        return to_frame(list(batches), schema)

    def batches(
        self, size: int = BATCH, columns: Sequence[str] | None = None, piece: Piece | None = None
    ) -> Iterator[pd.DataFrame]:
        """All rows, or those of a piece, in order, `size` at a time."""
        schema, batches = self._plain(columns, size, piece)
        for group in regroup(batches, size):
            yield to_frame(group, schema)

    def between(self, start: int, stop: int) -> StoredTable:
        """The rows from `start` to before `stop` as a table of their own; those before them are not read."""
        if self.part is None:
            raise InvalidInput(
                f"rows of {self.path} have no place that is known before all are read. Write the table as Parquet."
            )
        return replace(self, n_rows=stop - start, scan=partial(self.part, start, stop), part=None, pieces=())

    def _plain(
        self, columns: Sequence[str] | None, size: int, piece: Piece | None = None
    ) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        names = require_columns(columns, self.columns)
        schema = plain_schema(self.path, self.schema, names)
        scan = self.scan if piece is None else piece.scan
        return schema, (plain_batch(batch, schema) for batch in scan(names, min(size, BATCH)))
