"""The plan beside a sheet: what was drawn, from what, by which seed; read again only as it was written."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pue.audit import Known, Plan, Stratum
from pue.errors import InvalidInput, MissingData, ModelError
from pue.files import write_text
from pue.persistence import strict_json

FORMAT, SCHEMA = "pue audit plan", 1


@dataclass(frozen=True, eq=False)
class Record:
    """A plan, the ids of its rows, and where they come from."""

    plan: Plan
    ids: tuple[str, ...]
    id: str
    """Name of the column that holds them."""
    by_number: bool
    """Whether an id is the number of a row, from 0 on."""
    model: str
    """Hash of the model."""
    source: str
    checksum: str
    trained_on: bool
    after: str | None = None
    """Digest of the plan that this one tops up."""

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self._document(), sort_keys=True).encode()).hexdigest()

    def _document(self) -> dict[str, Any]:
        names = ("id", "by_number", "model", "source", "checksum", "trained_on", "after")
        rows = zip(self.ids, self.plan.rows, self.plan.stratum, self.plan.probability, strict=True)
        return {
            "format": FORMAT,
            "schema": SCHEMA,
            **{name: getattr(self, name) for name in names},
            "plan": self.plan.as_dict(),
            "rows": [[name, int(row), int(k), float(chance)] for name, row, k, chance in rows],
        }

    def write(self, sheet: Path) -> None:
        write_text(plan_path(sheet), json.dumps({**self._document(), "digest": self.digest}, indent=1) + "\n")


def plan_path(sheet: Path) -> Path:
    """Where the plan of a sheet lies.

    >>> plan_path(Path("to_check.csv")).name
    'to_check.plan.json'
    """
    return sheet.with_name(f"{sheet.name.removesuffix(sheet.suffix)}.plan.json")


def read_record(sheet: Path) -> Record:
    """The plan beside a sheet; a plan that was edited is refused."""
    path = plan_path(sheet)
    if not path.is_file():
        raise MissingData(
            f"the plan of {sheet.name} is missing: there is no {path}. It was written with the sheet; keep them "
            "together, and give both the same name if you rename one."
        )
    try:
        found = strict_json.parse(path.read_bytes(), path.name)
        if found["format"] != FORMAT or found["schema"] != SCHEMA:
            raise KeyError("format")
        record = _record(found)
        intact = record.digest == found["digest"]
    except (ModelError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InvalidInput(f"{path} is no plan of this version of pue, or damaged. Make the plan again.") from error
    if not intact:
        raise InvalidInput(
            f"{path} was changed after it was written: its digest differs. Restore it, or make the plan again."
        )
    return record


def _record(found: dict[str, Any]) -> Record:
    p = found["plan"]
    strata = tuple(
        Stratum(**{**s, "low": _bound(s["low"], -np.inf), "high": _bound(s["high"], np.inf)}) for s in p["strata"]
    )
    ids, rows, places, _ = zip(*found["rows"], strict=True)
    plan = Plan(
        np.array(rows), np.array(places), strata, Known(**p["known"]),
        p["threshold"], p["purpose"], p["design"], p["seed"], (len(rows),),
    )  # fmt: skip
    names = ("id", "by_number", "model", "source", "checksum", "trained_on", "after")
    return Record(plan, tuple(ids), **{name: found[name] for name in names})


def _bound(value: float | None, other: float) -> float:
    return other if value is None else float(value)


def model_hash(folder: Path) -> str:
    """Of a model's folder: its manifest holds the hash of every file."""
    return hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()
