"""Run records as the report sees them: read, checked, metrics in percent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pue.errors import InvalidInput
from pue.experiments.spec import SCHEMA, digest

METRICS = ("accuracy", "precision", "recall", "f1", "auc", "ap", "auc_hard", "ap_hard")
NEEDED = ("key", "spec", "row", "metrics")
SHARED = "propensities"
"""The folder of a store that holds no runs but what runs share."""


@dataclass(frozen=True)
class Record:
    """One finished run."""

    suite: str
    key: str
    row: str
    """The name it goes by in a table, such as "uPUe"."""
    seed: int
    settings: Mapping[str, Any]
    """The whole spec but the seed: what must be equal in runs that are averaged."""
    metrics: Mapping[str, float]
    """In percent."""
    body: Mapping[str, Any]
    """The record as it was stored."""

    @cached_property
    def identity(self) -> str:
        """The settings as text; equal settings, equal text."""
        return json.dumps(self.settings, sort_keys=True)

    def cost(self, name: str) -> float | None:
        return _number(self.body.get("cost"), name)

    @property
    def warnings(self) -> list[str]:
        return list(self.body.get("warnings") or [])

    def propensity(self, name: str) -> float | None:
        return _number(self.body.get("propensity"), name)


def read_records(runs: Path) -> list[Record]:
    """Every record under a folder, `RUNS/<suite>/*.json` or one suite alone, in the order of suite, row and seed."""
    if not runs.is_dir():
        raise InvalidInput(f"{runs} is not a folder. Pass the folder that `pue bench` wrote its records to.")
    paths = sorted(path for path in runs.rglob("*.json") if path.parent.name != SHARED and path.name[0] != ".")
    if not paths:
        raise InvalidInput(f"no run records (*.json) in {runs}. Run `pue bench` first, or pass its folder.")
    found: dict[tuple[str, str, str, int], Path] = {}
    records = []
    for path in paths:
        record = read_record(path)
        run = (record.suite, record.row, record.identity, record.seed)
        if run in found:
            raise InvalidInput(f"{found[run].name} and {path.name} in {path.parent} are the same run. Delete one.")
        found[run] = path
        records.append(record)
    return sorted(records, key=lambda record: (record.suite, record.row, record.identity, record.seed))


def read_record(path: Path) -> Record:
    """One record; the folder it lies in names its suite."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InvalidInput(f"{path} is damaged: {error}. Delete it and run the bench again; it resumes.") from error
    try:
        return _record(path.absolute().parent.name, body)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"{path} is not a run record: {_reason(error)}. Delete it, or keep other JSON files elsewhere."
        ) from error


def _record(suite: str, body: Any) -> Record:
    if not isinstance(body, dict):
        raise TypeError("expected an object")
    if body.get("schema") != SCHEMA:
        raise ValueError(f"schema {body.get('schema')!r}, expected {SCHEMA}")
    key, spec, row, metrics = (body[name] for name in NEEDED)
    if not isinstance(spec, dict) or not isinstance(metrics, dict):
        raise TypeError("spec and metrics must be objects")
    if digest(spec) != key:
        raise ValueError("its key is not that of its spec, so one of them was changed")
    settings = {name: value for name, value in spec.items() if name != "seed"}
    percent = {name: 100 * float(metrics[name]) for name in METRICS}
    return Record(suite, str(key), str(row), int(spec["seed"]), settings, percent, body)


def _reason(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def _number(section: Any, name: str) -> float | None:
    value = section.get(name) if isinstance(section, dict) else None
    return None if value is None else float(value)
