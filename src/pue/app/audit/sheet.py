"""The sheet itself: a CSV that people fill in and spreadsheets save again, in other encodings and orders."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pue.app.audit.cells import number, plain_id, safe, verdict
from pue.app.audit.record import Record
from pue.app.sources.problems import require_bytes
from pue.audit.design import Array
from pue.errors import InvalidInput, listed
from pue.files import write_bytes

ANSWER, PROBABILITY = "answer", "inclusion_probability"
WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""How .xlsx and .ods, and .xls, begin."""
TOLERANCE = 5e-3
"""Relative: spreadsheets round numbers."""


@dataclass(frozen=True, eq=False)
class Filled:
    """What a sheet holds: an answer for each row of its plan, and what was noticed."""

    answers: Array
    """1 yes, 0 no, not a number where there is none, in the plan's order."""
    unknown: int
    """Rows whose answer says that it is unknown, or that are empty."""
    absent: int
    """Rows of the plan that the file no longer has."""
    notes: list[str] = field(default_factory=list)


def write_sheet(path: Path, record: Record, columns: Sequence[str], cells: Sequence[Sequence[Any]]) -> None:
    """Ids, what a person needs, an empty answer and the inclusion probability, row by row; readable by spreadsheets."""
    taken = {record.id, ANSWER, PROBABILITY}
    names = [f"{name} (column)" if name in taken else name for name in columns]
    text = io.StringIO(newline="")
    sheet = csv.writer(text)
    sheet.writerow([safe(name) for name in (record.id, *names, ANSWER, PROBABILITY)])
    for name, values, chance in zip(record.ids, cells, record.plan.probability, strict=True):
        sheet.writerow([safe(name), *(safe(value) for value in values), "", f"{chance:.6g}"])
    write_bytes(path, text.getvalue().encode("utf-8-sig"))


def read_table(path: Path) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a sheet in whatever encoding and separator it was saved."""
    require_bytes(path)
    data = path.read_bytes()
    if data.startswith(WORKBOOKS):
        raise InvalidInput(f"{path} is a workbook of a spreadsheet program. Save it as CSV there, under this name.")
    text = _decoded(data)
    first = text.lstrip("\r\n").partition("\n")[0]
    if first.lower().startswith("sep="):
        text = text.lstrip("\r\n").partition("\n")[2]
        first = text.partition("\n")[0]
    separator = max(",;\t|", key=first.count)
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if any(map(str.strip, row))]
    if not rows:
        raise InvalidInput(f"{path} holds no rows. Pass the sheet that pue audit plan wrote.")
    return [name.strip().removeprefix("'") for name in rows[0]], rows[1:]


def _decoded(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def read_sheet(path: Path, record: Record) -> Filled:
    """The answers of a sheet, matched by id; what contradicts the plan or itself is refused."""
    header, rows = read_table(path)
    for name in (record.id, ANSWER):
        if name not in header:
            raise InvalidInput(
                f"{path} has no column {name!r}. Keep the columns that pue audit plan wrote; it has {listed(header)}."
            )
    at_id, at_answer = header.index(record.id), header.index(ANSWER)
    at_chance = header.index(PROBABILITY) if PROBABILITY in header else None
    place = _places(record)
    found: dict[int, float | None] = {}
    strangers, unreadable, torn, changed = [], [], [], []
    chances = record.plan.probability
    for row in rows:
        cells = row + [""] * (len(header) - len(row))
        name = cells[at_id]
        k = place.get(name, place.get(name.strip().removeprefix("'"), place.get(plain_id(name))))
        if k is None:
            strangers.append(name)
            continue
        readable, said = verdict(cells[at_answer])
        if not readable:
            unreadable.append(cells[at_answer])
        elif found.get(k) is not None and said is not None and found[k] != said:
            torn.append(record.ids[k])
        else:
            found[k] = said if said is not None else found.get(k)
        chance = None if at_chance is None else number(cells[at_chance])
        if chance is not None and abs(chance - chances[k]) > TOLERANCE * chances[k] + 1e-6:
            changed.append(record.ids[k])
    _refuse(path, strangers, unreadable, torn, changed)
    answers = np.array([np.nan if found.get(k) is None else found[k] for k in range(len(record.ids))], dtype=np.float64)
    notes = []
    if len(rows) > len(found):
        notes.append(f"{path.name}: {len(rows) - len(found)} rows stand there twice; each counts once.")
    absent = len(record.ids) - len(found)
    if absent:
        notes.append(f"{path.name}: {absent} rows of the plan are gone from the file; they count as not answered.")
    return Filled(answers, int(np.isnan(answers).sum()) - absent, absent, notes)


def _places(record: Record) -> dict[str, int]:
    """Id → place in the plan: as it is, as a cell, and without what spreadsheets change, where that is unique."""
    place = {name: k for k, name in enumerate(record.ids)}
    loose: dict[str, list[int]] = {}
    for name, k in list(place.items()):
        for form in {safe(name), plain_id(name)}:
            loose.setdefault(form, []).append(k)
    return {**{form: ks[0] for form, ks in loose.items() if len(set(ks)) == 1}, **place}


def _refuse(path: Path, strangers: list[str], unreadable: list[str], torn: list[str], changed: list[str]) -> None:
    if strangers:
        raise InvalidInput(
            f"{path} holds rows that are not in its plan: {listed(strangers)}. Remove them; if a spreadsheet changed "
            "the ids, restore that column from the file that pue audit plan wrote (its answers are matched by id)."
        )
    if unreadable:
        raise InvalidInput(
            f"{path} holds answers that cannot be read: {listed(unreadable)}. Write yes, no or ? (or 1, 0), or leave "
            "the cell empty."
        )
    if torn:
        raise InvalidInput(f"{path} answers both yes and no for {listed(torn)}. Keep one answer for each id.")
    if changed:
        raise InvalidInput(
            f"{path}: the inclusion probability of {listed(changed)} is not the plan's. Restore the column, or delete "
            "it: the plan beside the sheet knows the probabilities."
        )
