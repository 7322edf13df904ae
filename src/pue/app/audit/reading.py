"""From filled sheets to what they prove, beside what the model had promised."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from pue.app.audit.record import Record, model_hash, read_record
from pue.app.audit.sheet import read_sheet
from pue.app.model import PUModel
from pue.audit import QUANTITIES, Findings, Plan, join, read
from pue.audit.design import Array
from pue.errors import InvalidInput, PueWarning, UnknownName
from pue.files.paths import real
from pue.judging.estimates import Estimate

_TARGET = re.compile(r"\s*(\w+)\s*(?:±|\+/?-)?\s*(0?[.,]\d+|\d+(?:[.,]\d+)?\s*%)\s*")


@dataclass(frozen=True, eq=False)
class Answered:
    """Sheets that belong together, read."""

    records: tuple[Record, ...]
    plan: Plan
    answers: Array
    notes: tuple[str, ...]

    @property
    def ids(self) -> list[str]:
        return [name for record in self.records for name in record.ids]

    def findings(self, level: float = 0.95, look: int | None = None) -> Findings:
        return read(self.plan, self.answers, level=level, look=look)


@dataclass(frozen=True)
class Target:
    """`--until`: a quantity and the half width that is narrow enough."""

    name: str
    half: float

    @classmethod
    def parse(cls, text: str) -> Target:
        """
        >>> Target.parse("precision ±0.05"), Target.parse("recall +-5%").half
        (Target(name='precision', half=0.05), 0.05)
        """
        found = _TARGET.fullmatch(text)
        if not found:
            raise InvalidInput(f'--until takes a quantity and a half width, such as "precision ±0.05"; got {text!r}.')
        if found[1] not in QUANTITIES:
            raise UnknownName("quantity", found[1], QUANTITIES)
        size = found[2].replace(",", ".").strip()
        half = float(size.rstrip("% ")) / (100 if size.endswith("%") else 1)
        if not 0 < half < 0.5:
            raise InvalidInput(f"the half width of --until must lie between 0 and 0.5; got {half:g}.")
        return cls(found[1], half)

    def reached(self, findings: Findings) -> bool:
        found = findings.quantities().get(self.name)
        return found is not None and (found.high - found.low) / 2 <= self.half

    def missing(self, findings: Findings) -> int:
        """About how many answers more: widths fall with the root of their number."""
        found = findings.quantities().get(self.name)
        half = 0.5 if found is None else (found.high - found.low) / 2
        return max(0, int(np.ceil(findings.n_answered * ((half / self.half) ** 2 - 1) / 10)) * 10)


def chained(sheets: Sequence[Path]) -> list[Record]:
    """The plans of some sheets in the order in which one tops up the other."""
    if len({real(sheet) for sheet in sheets}) < len(sheets):
        raise InvalidInput("a sheet is named twice. Name each once.")
    records = {record.digest: record for record in map(read_record, sheets)}
    firsts = [record for record in records.values() if record.after is None]
    if not firsts:
        raise InvalidInput("this sheet tops up another one. Pass that one too: both are read together.")
    if len(firsts) > 1:
        raise InvalidInput(
            "these sheets were planned apart, so that a row may be in both. Plan the second with --after FIRST, and "
            "read each plan by itself until then."
        )
    chain = firsts
    while following := [r for r in records.values() if r.after == chain[-1].digest]:
        if len(following) > 1:
            raise InvalidInput("two sheets top up the same one, so that a row may be in both. Pass one of them.")
        chain = [*chain, following[0]]
    if len(chain) < len(sheets):
        raise InvalidInput("a sheet between these is missing. Pass all sheets of the audit.")
    return chain


def read_sheets(sheets: Sequence[Path]) -> Answered:
    """All sheets of an audit, as one."""
    records = chained(sheets)
    by_digest = {read_record(sheet).digest: sheet for sheet in sheets}
    filled = [read_sheet(by_digest[record.digest], record) for record in records]
    notes = [note for part in filled for note in part.notes]
    plan = reduce(join, (record.plan for record in records))
    return Answered(tuple(records), plan, np.concatenate([part.answers for part in filled]), tuple(notes))


def require_model(answered: Answered, folder: Path) -> None:
    if answered.records[0].model != model_hash(folder):
        raise InvalidInput(
            f"these answers were planned for another model than {folder}: its calls and scores are others. Pass that "
            "model; to learn from the answers, pue fit --audit takes them as they are."
        )


def promised(model: PUModel) -> dict[str, Estimate]:
    """What the model said of itself when it was fitted."""
    values: Mapping[str, Mapping[str, Any]] = {
        "prior": model.summary.get("prior", {}),
        **model.summary.get("metrics", {}).get("values", {}),
    }
    found = {name: values[name] for name in QUANTITIES if name in values}
    ends = ("value", "low", "high")
    whole = {name: said for name, said in found.items() if all(said.get(end) is not None for end in ends)}
    return {name: Estimate(*(float(said[end]) for end in ends)) for name, said in whole.items()}


def agree(found: Estimate, said: Estimate) -> bool:
    """Do the two intervals meet?"""
    return found.low <= said.high and said.low <= found.high


def report(answered: Answered, findings: Findings, said: Mapping[str, Estimate]) -> dict[str, Any]:
    """Every quantity as {"value", "low", "high"} under its name, and beside them what was promised."""
    found = findings.quantities()
    return {
        **{name: vars(estimate) for name, estimate in found.items()},
        "calibration": vars(findings.calibration),
        "promised": {name: vars(estimate) for name, estimate in said.items()},
        "agrees": {name: agree(found[name], said[name]) for name in found if name in said},
        "bounds": {name: {"low": low, "high": high} for name, (low, high) in findings.bounds.items()},
        "groups": [
            {**vars(group), "found": None if group.found is None else vars(group.found)} for group in findings.groups
        ],
        "planned": findings.n_planned,
        "answered": findings.n_answered,
        "yes": findings.n_yes,
        "unanswered": findings.n_unknown,
        "level": findings.level,
        "trained_on": answered.records[0].trained_on,
        "rounds": len(answered.records),
    }


def warn_of_rounds(answered: Answered, until: Target | None) -> None:
    if len(answered.records) > 1 and until is None:
        warnings.warn(
            "several rounds are read as if their number had been fixed before. If you went on until an interval was "
            "narrow enough, it is a little too narrow: pass --until to get one that allows for that.",
            PueWarning,
            stacklevel=2,
        )
