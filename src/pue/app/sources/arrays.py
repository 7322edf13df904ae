"""NumPy's .npy and .npz: a matrix is a table with columns x0, x1, …; bytes of three or four dimensions are images.

Nothing is ever unpickled, so arrays of Python objects are refused.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.lib import format as npy
from numpy.typing import NDArray

from pue.app.sources.problems import empty, first_line, reading, require_columns, require_names
from pue.app.sources.stored_table import BATCH
from pue.core.inputs import CHANNELS, channels_first
from pue.errors import InvalidInput, listed

_NUMBERS = "biuf"


@dataclass(frozen=True)
class Arrays:
    """Rows of an array X, and columns beside it. X is read when first needed, or stays on the disk (.npy)."""

    path: Path
    shape: tuple[int, ...]
    """Of X: (rows, columns), (n, height, width), (n, channels, height, width) or (n, height, width, channels)."""
    beside: Mapping[str, NDArray[Any]]
    load: Callable[[], NDArray[Any]] = field(repr=False)

    @property
    def kind(self) -> Literal["table", "images"]:
        return "table" if len(self.shape) == 2 else "images"

    @property
    def n_rows(self) -> int:
        return self.shape[0]

    @property
    def columns(self) -> tuple[str, ...]:
        numbers = range(self.shape[1]) if self.kind == "table" else ()
        return (*(f"x{number}" for number in numbers), *self.beside)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height, width."""
        _, channels, height, width = channels_first(np.broadcast_to(np.uint8(0), self.shape)).shape
        return channels, height, width

    def read(self, columns: Sequence[str] | None = None, rows: int | None = None) -> pd.DataFrame:
        """All rows, or the first ones."""
        return self._rows(require_columns(columns, self.columns), slice(0, rows))

    def batches(self, size: int = BATCH, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """All rows in order, `size` at a time."""
        names = require_columns(columns, self.columns)
        for start in range(0, self.n_rows, size):
            yield self._rows(names, slice(start, start + size))

    def between(self, start: int, stop: int) -> Arrays:
        """The rows from `start` to before `stop`."""
        beside = {name: values[start:stop] for name, values in self.beside.items()}
        return replace(self, shape=(stop - start, *self.shape[1:]), beside=beside, load=lambda: self.load()[start:stop])

    def images(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Some images, channels first."""
        return np.array(channels_first(self.load()[start:stop]), order="C")

    def _rows(self, names: list[str], rows: slice) -> pd.DataFrame:
        index = pd.RangeIndex(len(range(self.n_rows)[rows]))
        inner = [name for name in names if name not in self.beside]
        parts = []
        if inner:
            picked = self.load()[rows]
            if inner != list(self.columns[: self.shape[1]]):
                picked = picked[:, [int(name[1:]) for name in inner]]
            parts.append(pd.DataFrame(np.array(picked, dtype=_native(picked.dtype)), index, inner))
        parts += [_series(name, self.beside[name][rows]).to_frame() for name in names if name in self.beside]
        return pd.concat(parts, axis=1)[names] if parts else pd.DataFrame(index=index)


def _native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Byte order of this machine; pandas knows no half precision."""
    return np.dtype(np.float32) if dtype == np.float16 else dtype.newbyteorder("=")


def _series(name: str, values: NDArray[Any]) -> pd.Series:
    if values.dtype.kind == "U":
        return pd.Series(values.astype(object), dtype="str", name=name)
    return pd.Series(values.astype(_native(values.dtype)), name=name)


def open_npy(path: Path) -> Arrays:
    """One array, left on the disk and mapped into memory, in every process that needs it by itself."""
    with _array(path, "a .npy array"):
        array = npy.open_memmap(path, mode="r")
    _require_rows(path, "the array", array.shape, array.dtype)
    return Arrays(path, array.shape, {}, partial(npy.open_memmap, path, mode="r"))


def open_npz(path: Path) -> Arrays:
    """The array X of an archive, and its one-dimensional arrays of the same length as further columns."""
    with _array(path, "an .npz archive"), zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        if "X" not in names:
            raise InvalidInput(
                f"{path} has no array X but {listed(names)}. Save the rows under that name: np.savez(path, X=…, s=…)."
            )
        with archive.open("X.npy") as file:
            shape, dtype = _header(file)
        beside = {name: _member(archive, name) for name in names if name != "X"}
    _require_rows(path, "X", shape, dtype)
    for name, values in beside.items():
        if values.shape != shape[:1] or values.dtype.kind not in _NUMBERS + "UM":
            raise InvalidInput(
                f"array {name!r} of {path} has shape {values.shape} and type {values.dtype}; beside X, which has "
                f"{shape[0]} rows, stand vectors of that length that hold numbers, text or dates. Remove or reshape it."
            )
    found = Arrays(path, shape, beside, _Once(path))
    require_names(path, found.columns or ("X",))
    return found


@dataclass
class _Once:
    """X out of an archive, read at the first call and kept."""

    path: Path
    array: NDArray[Any] | None = None

    def __call__(self) -> NDArray[Any]:
        if self.array is None:
            with _array(self.path, "an .npz archive"), zipfile.ZipFile(self.path) as archive:
                self.array = _member(archive, "X")
        return self.array


def _member(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(f"{name}.npy") as file:
        array: NDArray[Any] = npy.read_array(file, allow_pickle=False)
    return array


def _header(file: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    old = npy.read_magic(file) == (1, 0)
    shape, _, dtype = npy.read_array_header_1_0(file) if old else npy.read_array_header_2_0(file)
    return shape, dtype


def _pickled(path: Path) -> InvalidInput:
    return InvalidInput(
        f"{path} holds Python objects, which are never unpickled. Save plain numbers or text: array.astype(float)."
    )


@contextmanager
def _array(path: Path, what: str) -> Iterator[None]:
    with reading(path, what):
        try:
            yield
        except (InvalidInput, OSError):
            raise
        except Exception as error:  # NumPy reads headers as Python, zipfile anything: so do they fail
            if isinstance(error, ValueError) and "object" in str(error).lower():
                raise _pickled(path) from error
            raise OSError(first_line(error)) from error


def _require_rows(path: Path, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if dtype.kind == "O":
        raise _pickled(path)
    table = len(shape) == 2 and dtype.kind in _NUMBERS
    colored = len(shape) == 4 and not {shape[1], shape[3]}.isdisjoint(CHANNELS)
    images = dtype == np.uint8 and (len(shape) == 3 or colored)
    if not table and not images:
        raise InvalidInput(
            f"{path}: {name} has shape {shape} and type {dtype}. A table is a matrix of numbers (rows, columns); "
            "images are uint8 of shape (n, height, width) or (n, channels, height, width) with 1, 3 or 4 channels. "
            "Reshape or convert it."
        )
    if 0 in shape:
        raise empty(path, f"shape {shape}")
