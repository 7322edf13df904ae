"""Records on the disk: one immutable JSON file a run, named by the hash of its spec.

A record is there as a whole or not at all. Whoever computes one holds a lock that the kernel releases when the process
dies, however it dies. What a killed process leaves behind is a hidden file and a lock file that nobody holds; `sweep`
removes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pue.bench.record import Propensities, Record
from pue.bench.spec import SCHEMA, Spec, digest
from pue.bench.suites import SUITES
from pue.errors import Busy, InvalidInput, ModelError, PueError
from pue.files import hold, recover, unfinished, write_text
from pue.persistence.sealed import opened, sealed

T = TypeVar("T", Record, Propensities)
"""What a file of the store holds: an object with the `spec` it answers and the `key` of that."""
SHARED = "propensities"
"""The folder of a store that holds no runs but what runs share."""


class Damaged(PueError):
    """A file that is not the record it should be: truncated, edited, or something else. It is not used."""


def read(path: Path, kind: type[T]) -> T:
    """What a file holds; `Damaged` where it is not whole, was altered, or its key is not that of its spec."""
    try:
        body = opened(path.read_bytes(), str(path))
    except ModelError as error:
        raise Damaged(f"{error}.") from error
    if body.get("schema") != SCHEMA:
        raise Damaged(f"{path} is not a record of schema {SCHEMA}.")
    if not isinstance(body.get("spec"), dict) or digest(body["spec"]) != body.get("key"):
        raise Damaged(f"{path} holds the record of another run: its key is not that of its spec.")
    try:
        return kind.from_dict(body)
    except (InvalidInput, KeyError, TypeError, ValueError, AttributeError) as error:
        raise Damaged(f"{path} is not a record: {error}") from error


def read_records(runs: Path) -> dict[str, list[Record]]:
    """Every record of `RUNS/<suite>/*.json`, or of one suite alone, by suite: the known ones in their order first."""
    if not runs.is_dir():
        raise InvalidInput(f"{runs} is not a folder. Pass the folder that `pue bench` wrote its records to.")
    paths = sorted(path for path in runs.rglob("*.json") if path.parent.name != SHARED and path.name[0] != ".")
    if not paths:
        raise InvalidInput(f"no run records (*.json) in {runs}. Run `pue bench` first, or pass its folder.")
    suites: dict[str, dict[str, tuple[Path, Record]]] = {}
    for path in paths:
        try:
            record = read(path, Record)
        except (OSError, Damaged) as error:
            remedy = "Delete it and run the bench again, or keep other JSON files elsewhere."
            raise InvalidInput(f"{error} {remedy}") from error
        first, _ = suites.setdefault(path.absolute().parent.name, {}).setdefault(record.key, (path, record))
        if first != path:
            raise InvalidInput(f"{first.name} and {path.name} in {path.parent} are the same run. Delete one.")
    names = [name for name in (*SUITES, *sorted(suites.keys() - SUITES.keys())) if name in suites]
    return {name: sorted((record for _, record in suites[name].values()), key=_order) for name in names}


def _order(record: Record) -> tuple[str, str, int]:
    return record.row, record.identity, record.seed


@dataclass(frozen=True)
class Entry(Generic[T]):
    """One file of the store."""

    path: Path
    key: str
    kind: type[T]

    def read(self) -> T | None:
        """What is kept there, None where nothing is; `Damaged` where it is something else."""
        try:
            found = read(self.path, self.kind)
        except FileNotFoundError:
            return None
        if found.key != self.key:
            raise Damaged(f"{self.path} holds the record of another run.")
        return found

    def valid(self) -> T | None:
        """What is kept there, or None where it has to be computed; `pue bench` says where it is damaged."""
        try:
            return self.read()
        except Damaged:
            return None

    def write(self, value: T) -> None:
        """All or nothing, and on the disk when this returns. Only for the holder of the claim."""
        write_text(self.path, as_text(value.to_dict()))

    def complete(self, compute: Callable[[], T], *, wait: bool) -> tuple[T, bool]:
        """What is kept there, or computed and then kept; the second value says which (True: computed)."""
        found = self.valid()
        if found is not None:
            return found, False
        with self.claim(wait=wait):
            found = self.valid()  # whoever held the claim before us may have written it
            if found is not None:
                return found, False
            value = compute()
            self.write(value)
            return value, True

    @contextmanager
    def claim(self, *, wait: bool) -> Iterator[None]:
        """Nobody else computes this in the meantime; `Busy` where somebody does and we should not wait."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = self.path.with_name(f".{self.path.stem}.lock")
        with hold(lock, wait=wait):
            recover(self.path)
            yield


@dataclass(frozen=True)
class Store:
    """A folder of records: `<suite>/<run>.json`, and propensities that runs share in `propensities/`."""

    root: Path

    def run(self, suite: str, spec: Spec) -> Entry[Record]:
        return Entry(self.root / suite / f"{spec.name}.json", spec.key, Record)

    def propensity(self, key: str) -> Entry[Propensities]:
        return Entry(self.root / SHARED / f"{key[:24]}.json", key, Propensities)

    def sweep(self, suite: str) -> None:
        """Remove what killed processes left; what a living one holds stays."""
        for folder in (self.root / suite, self.root / SHARED):
            locked = {lock.with_name(f"{lock.stem[1:]}.json") for lock in folder.glob(".*.lock")}
            for path in unfinished(folder) | locked:
                with suppress(Busy), Entry(path, "", Record).claim(wait=False):
                    pass


def as_text(record: Mapping[str, Any]) -> str:
    """JSON with a line for every field, so that two records can be compared by eye, and the digest of all of them."""
    whole = sealed(json.loads(json.dumps(record, allow_nan=False)))  # as it will be read: lists, not tuples
    lines = (f"{json.dumps(name)}: {json.dumps(value, allow_nan=False)}" for name, value in whole.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"
