"""Arrays that are slow to make, kept between runs.

A file is a .npy array followed by the sha256 of its key and of all bytes before. What is cut, foreign or belongs to
another key does not match and is made again; a folder that cannot be written means no cache.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from pue.errors import PueWarning
from pue.files import write_bytes


def cache_folder() -> Path:
    """PUE_CACHE, else XDG_CACHE_HOME/pue, else ~/.cache/pue."""
    if own := os.environ.get("PUE_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pue"


def cached(name: str, key: str, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """`make()`, or what it returned for the same `name` and `key` in an earlier run."""
    try:
        path = cache_folder() / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.npy"
    except RuntimeError:  # an account without a home folder
        return make()
    array = _read(path, key)
    if array is None:
        if path.exists():
            warnings.warn(f"{path} was altered or cut off: it is not used, and made again.", PueWarning, stacklevel=2)
        array = np.ascontiguousarray(make())
        _write(path, key, array)
    return array


def _read(path: Path, key: str) -> NDArray[Any] | None:
    digest = hashlib.sha256(key.encode())
    try:
        with path.open("rb") as file:
            left = path.stat().st_size - digest.digest_size
            while left > 0 and (chunk := file.read(min(left, 1 << 20))):
                digest.update(chunk)
                left -= len(chunk)
            if file.read() != digest.digest():
                return None
            file.seek(0)
            return _array(file, path.stat().st_size - digest.digest_size)
    except OSError:
        return None


def _array(file: IO[bytes], n_bytes: int) -> NDArray[Any] | None:
    """The numbers of a .npy, if its header says as many bytes as there are: no header decides what is allocated."""
    try:
        npy.read_magic(file)
        shape, fortran, dtype = npy.read_array_header_1_0(file)
        n = math.prod(shape)
        if dtype.kind not in "biuf" or fortran or n * dtype.itemsize != n_bytes - file.tell():
            return None
        found: NDArray[Any] = np.frombuffer(file.read(n * dtype.itemsize), dtype).reshape(shape).copy()
        return found
    except ValueError:
        return None


def _write(path: Path, key: str, array: NDArray[Any]) -> None:
    header = io.BytesIO()
    npy.write_array_header_1_0(header, npy.header_data_from_array_1_0(array))
    chunks: list[bytes | memoryview] = [header.getvalue(), array.data]
    digest = hashlib.sha256(key.encode())
    for chunk in chunks:
        digest.update(chunk)
    try:
        write_bytes(path, *chunks, digest.digest())
    except OSError:
        return
