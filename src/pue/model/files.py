"""Models and the files around them: fit from a source, load a folder, know the rows again."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pue.errors import InvalidInput
from pue.memory import available_memory, show_bytes
from pue.model.classifiers import require_streaming
from pue.model.columns import Columns
from pue.model.fit import fit_model
from pue.model.model import PUModel
from pue.model.predict import score_batches
from pue.model.recipe import Recipe, Say
from pue.model.rows import Rows, surveyed_rows
from pue.model.stream import IN_MEMORY_ROW, StreamedRows, bytes_in_memory, stream_rows
from pue.model.survey import survey_rows
from pue.persistence import load
from pue.tables.labels import meanings
from pue.tables.sources import Source
from pue.tables.table import Table
from pue.training.processes import on_first, place

TOP = 20
WIDEST = 60


def fit_source(
    source: Source, columns: Columns, recipe: Recipe, *, memory: int | None = None, say: Say = lambda text: None
) -> PUModel:
    """Read, fit, and note the unlabeled rows that look most like positives.

    Rows that would take more than `memory` bytes (None: half of what is free) are streamed instead of kept.
    """
    return fit_rows(source, columns, open_rows(source, columns, recipe, memory=memory, say=say), recipe, say=say)


def open_rows(
    source: Source, columns: Columns, recipe: Recipe, *, memory: int | None = None, say: Say = lambda text: None
) -> Rows | StreamedRows:
    """All rows, in memory if they fit."""
    say(f"reading {source.path}")
    if memory is None:  # the first process decides, or they might decide differently
        memory = on_first(available_memory) // 2 // place()[1]
    survey = survey_rows(source, columns, seed=recipe.seed, most=memory // IN_MEMORY_ROW)
    needed = bytes_in_memory(survey)
    if needed <= memory or not isinstance(source, Table):
        return surveyed_rows(source, columns, survey, scenario=recipe.scenario)
    say(f"streaming: {survey.n_rows:,} rows would take {show_bytes(needed)}, and {show_bytes(memory)} are allowed")
    require_streaming(recipe.method, needed)
    return stream_rows(source, columns, survey, memory=memory, scenario=recipe.scenario, seed=recipe.seed)


def fit_rows(
    source: Source, columns: Columns, rows: Rows | StreamedRows, recipe: Recipe, *, say: Say = lambda text: None
) -> PUModel:
    """The same of rows that were read already."""
    source.read(_shown(source, columns), rows=1)  # a column that cannot be shown is refused before the work
    model = fit_model(rows, recipe, facts=on_first(lambda: facts_of(source, columns)), say=say)
    say("finding the best unlabeled rows")
    top = on_first(lambda: _top_rows(model, source, columns))
    return replace(model, summary={**model.summary, "top_rows": top})


def load_model(path: Path) -> PUModel:
    """A model written by `pue fit`; other things that `pue.load` can read are refused."""
    found = load(path)
    if not isinstance(found, PUModel):
        raise InvalidInput(
            f"{path} holds a {type(found).__name__}, not a model of pue fit. Use it from Python: pue.load."
        )
    return found


def facts_of(source: Source, columns: Columns) -> dict[str, Any]:
    """What a model remembers of where it came from."""
    return {
        "title": f"{columns.label} in {source.path.name}",
        "source": source.path.name,
        "checksum": _checksum(source.path),
        "label": columns.label,
        "id": columns.id,
        "ignore": list(columns.ignore),
        "truth": columns.truth,
        "propensity": columns.propensity,
    }


def same_rows(model: PUModel, source: Source) -> bool:
    return bool(model.facts.get("checksum")) and model.facts["checksum"] == _checksum(source.path)


def _checksum(path: Path) -> str:
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    found = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while block := stream.read(1 << 22):
                found.update(block)
    return found.hexdigest()


def _top_rows(model: PUModel, source: Source, columns: Columns) -> dict[str, Any]:
    """The unlabeled rows of highest probability, of equal ones the first, with some of their columns."""
    shown = _shown(source, columns)
    best: list[list[Any]] = []
    start = 0
    for frame, p, _ in score_batches(model, source, [*shown, columns.label]):
        unlabeled = np.flatnonzero(meanings(frame[columns.label], columns.label) == 0)
        top = unlabeled[np.argsort(-p[unlabeled], kind="stable")[:TOP]]
        cells = frame[shown].iloc[top].itertuples(index=False, name=None)
        new = [[start + int(row), float(p[row]), *map(_cell, values)] for row, values in zip(top, cells, strict=True)]
        best = sorted([*best, *new], key=lambda row: -row[1])[:TOP]
        start += len(p)
    return {"columns": ["row", "P(positive)", *shown], "rows": best}


def _shown(source: Source, columns: Columns) -> list[str]:
    return [name for name in source.columns if name not in (columns.label, *columns.ignore)][:8]


def _cell(value: Any) -> str | float | int | None:
    if value is None or (not isinstance(value, str) and pd.isna(value)):
        return None
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | float):
        return value
    if hasattr(value, "item"):
        return _cell(value.item())
    text = str(value)
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"
