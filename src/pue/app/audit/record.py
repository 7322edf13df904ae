"""The plan beside a sheet: what was drawn, from what, by which seed; read again only as it was written."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from pue.audit import Known, Plan, Stratum
from pue.audit.design import DESIGNS, PURPOSES
from pue.errors import InvalidInput, MissingData, ModelError
from pue.files import write_text
from pue.persistence import strict_json

FORMAT, SCHEMA = "pue audit plan", 1
MOST_ROWS = 2**53
"""Numbers up to here are exact wherever they are reckoned with."""


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
        return _digest(self._document())

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


def _digest(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def plan_path(sheet: Path) -> Path:
    """Where the plan of a sheet lies.

    >>> plan_path(Path("to_check.csv")).name
    'to_check.plan.json'
    """
    return sheet.parent / f"{sheet.name.removesuffix(sheet.suffix)}.plan.json"


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
        stated = found.pop("digest")
        intact = _digest(found) == stated
        record = _record(found) if intact else None
    except (ModelError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InvalidInput(f"{path} is no plan of this version of pue, or damaged. Make the plan again.") from error
    if record is None:
        raise InvalidInput(
            f"{path} was changed after it was written: its digest differs. Restore it, or make the plan again."
        )
    return record


def _record(found: dict[str, Any]) -> Record:
    p = found["plan"]
    strata = tuple(
        _typed(Stratum, {**s, "low": _bound(s["low"], -np.inf), "high": _bound(s["high"], np.inf)}) for s in p["strata"]
    )
    ids, rows, places, _ = zip(*found["rows"], strict=True)
    if not all(type(row) is int and 0 <= row < MOST_ROWS for row in rows) or not set(places) <= {*range(len(strata))}:
        raise ValueError("rows and strata are counted from 0")
    plan = Plan(
        np.array(rows), np.array(places), strata, _typed(Known, p["known"]),
        p["threshold"], p["purpose"], p["design"], p["seed"], (len(rows),),
    )  # fmt: skip
    named = {name: found[name] for name in ("id", "by_number", "model", "source", "checksum", "trained_on", "after")}
    record = Record(plan, tuple(ids), **named)
    _require_possible(record)
    return record


def _typed(kind: type[Any], values: dict[str, Any]) -> Any:
    """A `Stratum` or `Known` whose fields have the types they are declared with, and none is negative."""
    types = {"int": (int,), "float": (int, float), "bool": (bool,)}
    for each in fields(kind):
        value = values[each.name]
        if type(value) not in types[str(each.type)] or (each.name not in ("low", "high") and not value >= 0):
            raise TypeError(f"{each.name} cannot be {value!r}")
    return kind(**values)


def _require_possible(record: Record) -> None:
    """A plan that could have been drawn: what follows reckons with its numbers and looks rows up by them."""
    plan, known = record.plan, record.plan.known
    drawn = np.bincount(plan.stratum, minlength=len(plan.strata))
    texts = (
        *record.ids,
        record.id,
        record.model,
        record.source,
        record.checksum,
        "" if record.after is None else record.after,
    )
    whole = (
        all(isinstance(text, str) for text in texts) and isinstance(record.after, str | None),
        type(record.by_number) is bool and type(record.trained_on) is bool and type(plan.seed) is int,
        type(plan.threshold) in (int, float) and plan.purpose in PURPOSES and plan.design in DESIGNS,
        len(set(record.ids)) == len(set(plan.rows.tolist())) == len(plan.rows),
        drawn.tolist() == [s.drawn for s in plan.strata],
        all(0 < s.drawn + s.before <= s.size for s in plan.strata) or plan.design == "random",
        known.rows < MOST_ROWS,
        sum(s.size for s in plan.strata) + known.positives + known.negatives == known.rows,
        known.positives_called <= known.positives and known.negatives_called <= known.negatives,
        sum(s.size for s in plan.strata if s.called) + known.positives_called + known.negatives_called == known.called,
    )
    if not all(whole):
        raise ValueError("no such plan can have been drawn")


def _bound(value: float | None, other: float) -> float:
    return other if value is None else float(value)


def model_hash(folder: Path) -> str:
    """Of a model's folder: its manifest holds the hash of every file."""
    return hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()
