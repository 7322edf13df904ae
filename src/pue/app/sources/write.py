"""Tables written piece by piece, and seen by others whole or not at all.

A writer fills a file of another name in the same folder, flushes it to the disk and renames it at the end; whatever
goes wrong before, Ctrl-C included, leaves nothing behind and the old file as it was.
"""

from __future__ import annotations

import gzip
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pandas as pd
import pyarrow as pa
from pyarrow import csv, parquet

from pue.errors import InvalidInput, MissingData
from pue.tables.problems import first_line, suffix_of

_COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")
SINKS: dict[str, Callable[[Any, pa.Schema], Any]] = {
    ".csv": csv.CSVWriter,
    ".csv.gz": csv.CSVWriter,
    ".parquet": lambda file, schema: parquet.ParquetWriter(file, schema, compression="zstd"),
    ".feather": lambda file, schema: pa.ipc.new_file(file, schema, options=_COMPRESSED),
    ".arrow": lambda file, schema: pa.ipc.new_file(file, schema, options=_COMPRESSED),
}
"""From an open file and a schema to something that takes tables."""


class Writer:
    """Frames in, one file out: all have the columns of the first, in its types."""

    def __init__(self, path: Path, partial: Path) -> None:
        self.path = path
        self._suffix = suffix_of(path, SINKS)
        self._file: IO[bytes] = partial.open("xb")
        self._stream: Any = self._file
        if self._suffix.endswith(".gz"):
            self._stream = gzip.GzipFile("", "wb", compresslevel=6, fileobj=self._file, mtime=0)
        self._sink: Any = None
        self._schema: pa.Schema | None = None

    def write(self, frame: pd.DataFrame) -> None:
        """Append the rows of a frame; its index is not written."""
        with _to_disk(self.path):
            if self._schema is None:
                self._schema = pa.Schema.from_pandas(frame, preserve_index=False).remove_metadata()
                self._sink = SINKS[self._suffix](self._stream, self._schema)
            if list(frame.columns) != self._schema.names:
                raise InvalidInput(
                    f"{self.path} was begun with columns {self._schema.names} but goes on with {list(frame.columns)}. "
                    "Write frames of the same columns."
                )
            self._sink.write_table(pa.Table.from_pandas(frame, self._schema, preserve_index=False))

    def finish(self) -> None:
        """Everything on the disk."""
        if self._sink is None:
            raise InvalidInput(f"{self.path} was not written: it was given no rows.")
        with _to_disk(self.path):
            self._sink.close()
            if self._stream is not self._file:
                self._stream.close()
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Let go of the file, in whatever state it is."""
        for layer in (self._sink, self._stream, self._file):
            with suppress(Exception):
                layer.close()


def open_writer(path: str | Path) -> AbstractContextManager[Writer]:
    """A context in which `.write(frame)` appends rows to `path`, which appears when the context is left in order.

    The suffix says the format: .csv, .csv.gz, .parquet, .feather or .arrow. A column of whole numbers with a point
    comes back from CSV without it.
    """
    path = Path(path)
    suffix_of(path, SINKS)
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder. Name a file in it.")
    if not path.parent.is_dir():
        raise MissingData(f"there is no folder {path.parent} to write {path.name} to. Create it first.")
    return _writing(path)


@contextmanager
def _writing(path: Path) -> Iterator[Writer]:
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
    try:
        with _to_disk(path):
            writer = Writer(path, partial)
        try:
            yield writer
            writer.finish()
        finally:
            writer.close()
        with _to_disk(path):
            partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _to_disk(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidInput(
            f"{path} could not be written ({error.strerror or first_line(error)}). Free some space or choose another "
            "folder; nothing was left there."
        ) from error
    except pa.ArrowException as error:
        raise InvalidInput(f"{path} cannot hold these rows ({first_line(error)}). Write plain columns.") from error
