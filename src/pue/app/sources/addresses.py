"""Addresses: `s3://bucket/rows.parquet` and all others that fsspec knows, and `duckdb:///file.db?query=…`."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from pue.app.sources.copies import own_folder
from pue.app.sources.problems import first_line
from pue.app.sources.queries import DUCKDB, rows_of_query
from pue.errors import InvalidInput, MissingData, require

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_address(text: str) -> bool:
    """Whether this is an address and no name of a file.

    >>> is_address("s3://bucket/rows.csv"), is_address("rows.csv")
    (True, False)
    """
    return _SCHEME.match(text) is not None


def fetched(address: str) -> Path:
    """A file or folder here that holds what is there.

    >>> import fsspec
    >>> fsspec.filesystem("memory").pipe("/bucket/rows.csv", b"a,b")
    >>> fetched("memory://bucket/rows.csv").read_text()
    'a,b'
    """
    if address.startswith(DUCKDB):
        return rows_of_query(address)
    require("remote")
    import fsspec

    try:
        system, place = fsspec.url_to_fs(address)
        target = own_folder() / _name(place)
        _copy(system, place, target)
    except FileNotFoundError as error:
        raise MissingData(f"there is nothing at {address}. Check the address, and that you may see it.") from error
    except Exception as error:  # every store has errors of its own; an absent client is an ImportError that names it
        raise InvalidInput(
            f"{address} could not be read ({type(error).__name__}: {first_line(error)}). Check the address, your "
            "credentials, and that the package for such addresses is installed (s3fs, gcsfs, adlfs, …)."
        ) from error
    return target


def _copy(system: Any, place: str, target: Path) -> None:
    """One file, or all below a folder. Folders are walked here: what `get` names its copies differs by store."""
    if system.isfile(place):
        system.get_file(place, str(target))
        return
    found = [file for file in system.find(place) if not PurePosixPath(file).name.startswith(".")]
    if not found:
        raise FileNotFoundError(place)
    for file in found:
        copy = target / PurePosixPath(file).relative_to(PurePosixPath(place.rstrip("/")))
        copy.parent.mkdir(parents=True, exist_ok=True)
        system.get_file(file, str(copy))


def _name(place: str) -> str:
    """The last part of a path: its suffix says what the file is, and pages show it."""
    return PurePosixPath(unquote(place.partition("?")[0])).name or "rows"
