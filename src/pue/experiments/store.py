"""Records on the disk: one immutable JSON file a run, named by the hash of its spec.

A record is written to a temporary name, synced and renamed: it is there as a whole or not at all. Whoever computes one
holds a lock that the kernel releases when the process dies, however it dies. What a killed process leaves behind is
a temporary file and a lock file that nobody holds; `sweep` removes them.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pue.errors import PueError
from pue.experiments.spec import SCHEMA, Spec, digest

Record = dict[str, Any]


class Busy(PueError):
    """Another process is computing this."""


class Damaged(PueError):
    """A file that is not the record it should be: truncated, edited, or something else. It is not used."""


@dataclass(frozen=True)
class Entry:
    """One file of the store: a JSON object with the `spec` it answers and the `key` of that."""

    path: Path
    key: str

    def read(self) -> Record | None:
        """The record, None where there is none; `Damaged` where there is something else."""
        try:
            record = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
            raise Damaged(f"{self.path} is not complete JSON ({error}).") from error
        if not isinstance(record, dict) or record.get("schema") != SCHEMA:
            raise Damaged(f"{self.path} is not a record of schema {SCHEMA}.")
        if record.get("key") != self.key or digest(record.get("spec", {})) != self.key:
            raise Damaged(f"{self.path} holds the record of another run.")
        return record

    def valid(self) -> Record | None:
        """The record, or None where it has to be computed."""
        try:
            return self.read()
        except Damaged:
            return None

    def write(self, record: Mapping[str, Any]) -> None:
        """All or nothing, and on the disk when this returns. Only for the holder of the claim."""
        write_atomically(self.path, self._beside("tmp"), as_text(record))

    @contextmanager
    def claim(self, *, wait: bool) -> Iterator[None]:
        """Nobody else computes this in the meantime; `Busy` where somebody does and we should not wait."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = self._beside("lock")
        handle = _locked(lock, wait)
        try:
            self._beside("tmp").unlink(missing_ok=True)
            yield
        finally:
            lock.unlink(missing_ok=True)  # while we hold it: whoever waits for it sees that it is gone and tries again
            os.close(handle)

    def _beside(self, ending: str) -> Path:
        return self.path.with_name(f".{self.path.stem}.{ending}")


@dataclass(frozen=True)
class Store:
    """A folder of records: `<suite>/<run>.json`, and propensities that runs share in `propensities/`."""

    root: Path

    def run(self, suite: str, spec: Spec) -> Entry:
        return Entry(self.root / suite / f"{spec.name}.json", spec.key)

    def propensity(self, identity: Mapping[str, Any]) -> Entry:
        key = digest(identity)
        return Entry(self.root / "propensities" / f"{key[:24]}.json", key)

    def sweep(self, suite: str) -> None:
        """Remove what killed processes left; what a living one holds stays."""
        for folder in (self.root / suite, self.root / "propensities"):
            for leftover in [*folder.glob(".*.tmp"), *folder.glob(".*.lock")]:
                entry = Entry(leftover.with_name(f"{leftover.stem[1:]}.json"), "")
                with suppress(Busy), entry.claim(wait=False):
                    pass


def as_text(record: Mapping[str, Any]) -> str:
    """JSON with a line for every field, so that two records can be compared by eye."""
    lines = (f"{json.dumps(name)}: {json.dumps(value, allow_nan=False)}" for name, value in record.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write_atomically(path: Path, temporary: Path, text: str) -> None:
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _locked(lock: Path, wait: bool) -> int:
    """An open handle that holds the lock."""
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(lock)):
                    return handle
        except BlockingIOError:
            os.close(handle)
            raise Busy(f"another process holds {lock}.") from None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # the file was removed by its last holder: lock the new one


def comparable(record: Mapping[str, Any]) -> Record:
    """What must be equal for equal specs: everything but times, versions and memory."""
    kept = {name: value for name, value in record.items() if name not in ("cost", "versions", "finished")}
    kept["history"] = [
        {name: value for name, value in epoch.items() if name != "seconds"} for epoch in record["history"]
    ]
    if record["propensity"] is not None:
        kept["propensity"] = {**record["propensity"], "seconds": None, "cpu": None}
    return kept
