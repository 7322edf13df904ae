"""Models and the files around them: fit from a source, load a folder, know the rows again."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from pue.errors import InvalidInput
from pue.model.fit import Recipe, Say, fit_model
from pue.model.model import PUModel
from pue.model.rows import Columns, read_rows
from pue.persistence import load
from pue.tables.labels import meanings
from pue.tables.sources import Source

TOP = 20
WIDEST = 60


def fit_source(source: Source, columns: Columns, recipe: Recipe, *, say: Say = lambda text: None) -> PUModel:
    """Read, fit, and note the unlabeled rows that look most like positives."""
    say(f"reading {source.path}")
    rows = read_rows(source, columns, scenario=recipe.scenario, seed=recipe.seed)
    model = fit_model(rows, recipe, facts=facts_of(source, columns), say=say)
    say("finding the best unlabeled rows")
    return replace(model, summary={**model.summary, "top_rows": _top_rows(model, source, columns)})


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
    """The unlabeled rows of highest probability, with some of their columns."""
    from pue.model.predict import score_batches

    shown = [name for name in source.columns if name not in (columns.label, *columns.ignore)][:8]
    best = pd.DataFrame()
    start = 0
    for frame, p, _ in score_batches(model, source, [*shown, columns.label]):
        scored = frame.assign(**{"row": range(start, start + len(p)), "P(positive)": p})
        unlabeled = scored[_unlabeled(scored[columns.label])]
        best = pd.concat([best, unlabeled]).nlargest(TOP, "P(positive)", keep="first")
        start += len(p)
    names = ["row", "P(positive)", *shown]
    rows = [[_cell(value) for value in row] for row in best[names].itertuples(index=False, name=None)]
    return {"columns": names, "rows": rows}


def _unlabeled(column: pd.Series) -> pd.Series:
    return pd.Series(meanings(column, str(column.name)) == 0, index=column.index)


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
