"""Files whose content is known beforehand: read with their hash checked, written whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
import os
import uuid
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from pue.errors import MissingData


class Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...
    def hexdigest(self) -> str: ...


def hasher(digest: str) -> Hash:
    """The algorithm that gives digests of this length: the old sets were published with md5, the rest with sha256."""
    return hashlib.md5(usedforsecurity=False) if len(digest) == 32 else hashlib.sha256()


def matches(data: bytes, digest: str) -> bool:
    """Whether `data` has this md5 or sha256.

    >>> matches(b"", "d41d8cd98f00b204e9800998ecf8427e")
    True
    """
    algorithm = hasher(digest)
    algorithm.update(data)
    return algorithm.hexdigest() == digest


def gunzipped(data: bytes) -> bytes | None:
    """What is in the .gz, or None when it is damaged or none at all."""
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        return None


def file_matches(path: Path, digest: str) -> bool:
    """Whether the file has this md5 or sha256, read in pieces because it may be large."""
    algorithm = hasher(digest)
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            algorithm.update(chunk)
    return algorithm.hexdigest() == digest


def read_known(path: Path, digest: str, *, needs: str) -> bytes:
    """The content of `path`, which has this `digest`; `needs` says in the error what belongs there."""
    if not path.is_file():
        raise MissingData(f"{path.name} is missing in {path.parent}. {needs}")
    data = path.read_bytes()
    if not matches(data, digest):
        raise damaged(path)
    return data


def damaged(path: Path, why: str = "wrong checksum") -> MissingData:
    return MissingData(f"{path} is damaged or not the original file ({why}). Fetch it again.")


def write_atomically(path: Path, chunks: Iterable[bytes | memoryview]) -> None:
    """Write under another name, flush to the disk, rename: whoever reads `path` sees all of it or nothing."""
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
    try:
        with partial.open("xb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
