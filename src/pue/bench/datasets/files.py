"""Files whose content is known beforehand: read with their hash checked."""

from __future__ import annotations

import gzip
import hashlib
import tomllib
import zlib
from pathlib import Path

from pue.errors import MissingData

DIGESTS: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("digests.toml").read_text(encoding="utf-8"))
"""Data set → name of a file → its md5 or sha256."""


def matches(data: bytes, digest: str) -> bool:
    """Whether `data` has this md5 or sha256.

    >>> matches(b"", "d41d8cd98f00b204e9800998ecf8427e")
    True
    """
    return hashlib.new(_algorithm(digest), data, usedforsecurity=False).hexdigest() == digest


def file_matches(path: Path, digest: str) -> bool:
    """Whether the file has this md5 or sha256, read in pieces because it may be large."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.new(_algorithm(digest), usedforsecurity=False))
    return found.hexdigest() == digest


def _algorithm(digest: str) -> str:
    """That which gives digests of this length: the old sets were published with md5, the rest with sha256."""
    return "md5" if len(digest) == 32 else "sha256"


def gunzipped(data: bytes) -> bytes | None:
    """What is in the .gz, or None when it is damaged or none at all."""
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        return None


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
