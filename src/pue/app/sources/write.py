"""Tables written piece by piece, and seen by others whole or not at all.

Whatever goes wrong before the end, Ctrl-C included, leaves nothing behind and the old file as it was.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pandas as pd
import pyarrow as pa
from pyarrow import csv, parquet

from pue.app.sources.problems import first_line, suffix_of
from pue.errors import InvalidInput, MissingData
from pue.files import writing

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

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path, self._suffix = path, suffix_of(path, SINKS)
        self._layers: list[Any] = [file]  # each writes to the next
        if self._suffix.endswith(".gz"):
            self._layers.insert(0, gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0))
        self._schema: pa.Schema | None = None

    def write(self, frame: pd.DataFrame) -> None:
        """Append the rows of a frame; its index is not written."""
        with _to_disk(self.path):
            if self._schema is None:
                self._schema = pa.Schema.from_pandas(frame, preserve_index=False).remove_metadata()
                self._layers.insert(0, SINKS[self._suffix](self._layers[0], self._schema))
            if list(frame.columns) != self._schema.names:
                raise InvalidInput(
                    f"{self.path} was begun with columns {self._schema.names} but goes on with {list(frame.columns)}. "
                    "Write frames of the same columns."
                )
            self._layers[0].write_table(pa.Table.from_pandas(frame, self._schema, preserve_index=False))

    def finish(self) -> None:
        """Hand everything to the file."""
        if self._schema is None:
            raise InvalidInput(f"{self.path} was not written: it was given no rows.")
        with _to_disk(self.path):
            for layer in self._layers:
                layer.close()

    def close(self) -> None:
        """Let go of the file, in whatever state it is."""
        for layer in self._layers:
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
    """Errors of the disk are named, those of whoever writes rows are left alone."""
    with ExitStack() as stack:
        with _to_disk(path):
            partial = stack.enter_context(writing(path))
            writer = Writer(path, partial.open("xb"))
        stack.callback(writer.close)
        yield writer
        writer.finish()
        with _to_disk(path):
            stack.close()


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
