"""A model's folder on the disk: written as a whole or not at all, read only if every byte is the one recorded."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from pue.errors import ModelError
from pue.files import making, set_aside, writing_folder
from pue.persistence import strict_json
from pue.persistence.tree import fields

SCHEMA = 2
FORMAT = "pue model"
MANIFEST, MODEL, TENSORS = "manifest.json", "model.json", "tensors.safetensors"
_TRIES = 20
_LIBRARIES = ("torch", "numpy", "scikit-learn", "safetensors")


def write_folder(target: Path, files: Mapping[str, bytes]) -> None:
    """Files and manifest, as a whole or not at all."""
    try:
        with making(target, wait=True), writing_folder(target) as partial:
            for name, data in {**files, MANIFEST: _manifest(files)}.items():
                (partial / name).write_bytes(data)
    except OSError as error:
        raise ModelError(
            f"the model cannot be saved to {target} ({error.strerror or error}). Free some space or choose another "
            "place; what was there before is untouched."
        ) from error


def require_replaceable(target: Path) -> None:
    """A path where nothing is, or a model that may be replaced; anything else is not ours to delete."""
    if not os.path.lexists(target):
        return
    try:
        if not target.is_dir():
            raise ModelError("it is a file.")
        listed = {MANIFEST, *_read_manifest(target)["files"]}
        foreign = sorted(name for name in os.listdir(target) if name not in listed)
        if foreign:
            raise ModelError(f"it also holds {foreign[0]}.")
    except (ModelError, OSError) as error:
        raise ModelError(
            f"{target} exists and is no model of pue's: {error} Choose another path, or delete it."
        ) from error


def read_folder(folder: Path) -> tuple[dict[str, bytes], dict[str, str]]:
    """The bytes of every file that the manifest lists, each checked, and the versions that wrote them.

    A model that is replaced while it is read is read again; one whose replacement was killed is brought back.
    """
    for _ in range(_TRIES):
        before = _identity(folder)
        try:
            return _read_once(folder)
        except ModelError:
            if before == _identity(folder) and (before is not None or not _brought_back(folder)):
                raise
            time.sleep(0.05)
    return _read_once(folder)


def _identity(folder: Path) -> tuple[int, ...] | None:
    """Another folder under the same name has another; numbers of files are used again, times are not."""
    with suppress(OSError):
        found = os.stat(folder)
        return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns
    return None


def _brought_back(folder: Path) -> bool:
    """Whether the folder may be there now: a save that was killed had set it aside, or one that lives is at it."""
    if not set_aside(folder):
        return False
    with suppress(OSError), making(folder, wait=True):  # waits for who lives, recovers from who was killed
        return True
    return False


def _read_once(folder: Path) -> tuple[dict[str, bytes], dict[str, str]]:
    try:
        if not folder.is_dir():
            raise ModelError(_no_folder(folder))
        manifest = _read_manifest(folder)
        listed = manifest["files"]
        for name in os.listdir(folder):
            if name != MANIFEST and name not in listed:
                raise ModelError(f"{folder} holds {name!r}, which is no part of the model. Remove it.")
        files = {name: _read(folder / name, record, name) for name, record in listed.items()}
    except (OSError, MemoryError) as error:
        raise ModelError(f"{folder} cannot be read ({error}).") from error
    return files, manifest["versions"]


def versions() -> dict[str, str]:
    return {
        "pue": sys.modules["pue"].__version__,
        "python": sys.version.split()[0],
        **{library: found.version for library in _LIBRARIES for found in distributions(name=library)},
    }


def _manifest(files: Mapping[str, bytes]) -> bytes:
    records = {name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()}
    document = {"format": FORMAT, "schema": SCHEMA, "versions": versions(), "files": records}
    return json.dumps(document, indent=1).encode()


def _read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest, whole and of a schema that this version reads."""
    if not os.path.lexists(folder / MANIFEST):
        raise ModelError(f"{folder} is no model of pue's: it has no {MANIFEST}. Pass the folder that save() wrote.")
    found = strict_json.parse(_read(folder / MANIFEST), MANIFEST)
    if not isinstance(found, dict) or found.get("format") != FORMAT or type(found.get("schema")) is not int:
        raise ModelError(
            f"{folder} is no model of pue's: its {MANIFEST} is another. Pass the folder that save() wrote."
        )
    writers = found.get("versions")
    writer = str(writers.get("pue")) if isinstance(writers, dict) else "unknown"
    if found["schema"] > SCHEMA:
        raise ModelError(f"{folder} was written by a newer version {writer[:40]!r} of pue; upgrade pue to load it.")
    if found["schema"] < SCHEMA:
        raise ModelError(
            f"{folder} has the schema {found['schema']} of version {writer[:40]!r} of pue; this one writes and reads "
            f"{SCHEMA}. Fit the model again."
        )
    manifest = fields(found, MANIFEST, ["format", "schema", "versions", "files"])
    if not isinstance(writers, dict) or not all(isinstance(value, str) for value in writers.values()):
        raise ModelError(f"{MANIFEST} does not say which versions wrote it: the model is damaged.")
    manifest["files"] = _records(manifest["files"])
    return manifest


def _records(files: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(files, dict) or not {MODEL, TENSORS} <= set(files):
        raise ModelError(f"{MANIFEST} does not list {MODEL} and {TENSORS}: the model is damaged.")
    for name, record in files.items():
        if name not in (MODEL, TENSORS):
            raise ModelError(f"{MANIFEST} lists {name[:80]!r}, which is no name of a model's file. Do not trust it.")
        size, digest = fields(record, f"{MANIFEST}: {name}", ["bytes", "sha256"]).values()
        if type(size) is not int or not isinstance(digest, str):
            raise ModelError(f"{MANIFEST} has no size and hash of {name}: the model is damaged.")
    return files


def _read(path: Path, record: Mapping[str, Any] | None = None, name: str = MANIFEST) -> bytes:
    """A regular file's bytes, no link followed; of the recorded size and hash, if there is a record."""
    if not os.path.lexists(path):
        raise ModelError(f"{name} is missing: the model is damaged. Restore it from a copy, or save the model again.")
    if not stat.S_ISREG(path.lstat().st_mode):
        raise ModelError(f"{name} is a link or no regular file. Do not trust this model.")
    limited = path.suffix == ".json"
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        if limited and size > strict_json.MOST_BYTES:
            raise ModelError(f"{name} holds {size} bytes; at most {strict_json.MOST_BYTES} are read. It is no model's.")
        if record is not None and size != record["bytes"]:
            raise ModelError(f"{name} holds {size} bytes, not {record['bytes']}: it was cut off or altered.")
        data = file.read()
    if record is not None and hashlib.sha256(data).hexdigest() != record["sha256"]:
        raise ModelError(f"{name} is not the file that was saved (SHA-256 differs): it was altered or damaged.")
    return data


def _no_folder(folder: Path) -> str:
    if os.path.lexists(folder):
        return f"{folder} is no folder. Pass the folder that save() wrote, not a file in it."
    if left := set_aside(folder):
        return f"there is no {folder}, but a save that was killed left the model before it: rename {left[0]} to it."
    return f"there is no {folder}. Pass the folder that save() wrote."
