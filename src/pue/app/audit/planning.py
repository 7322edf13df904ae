"""From a model and rows to a sheet: score all rows, draw some, write what a person needs to judge them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pue.app.audit.reading import chained
from pue.app.audit.record import Record, model_hash, plan_path, read_record
from pue.app.audit.sheet import ANSWER, PROBABILITY, write_sheet
from pue.app.model import PUModel, special_columns
from pue.app.origin import checksum, same_rows
from pue.app.predict import ROW, known_propensity, score_batches
from pue.app.rows import warn_unknown
from pue.app.sources.labels import meanings
from pue.app.sources.opening import Source
from pue.app.sources.problems import require_columns
from pue.audit import join, plan, power
from pue.audit.design import Array
from pue.audit.plans import require_asked
from pue.errors import InvalidInput, listed
from pue.estimators.vectorizer.columns import cell_text


@dataclass(frozen=True, eq=False)
class Population:
    """All rows of a source as an audit sees them."""

    scores: Array
    expected: Array
    """P(positive | x, not labeled)."""
    labels: NDArray[np.int8]
    ids: list[str]
    by_number: bool


def plan_source(
    model: PUModel,
    folder: Path,
    source: Source,
    output: Path,
    *,
    n: int = 100,
    purpose: str = "all",
    design: str = "stratified",
    show: Sequence[str] | None = None,
    after: Sequence[Path] = (),
    row_id: str | None = None,
    seed: int = 0,
) -> tuple[Record, dict[int, dict[str, float]]]:
    """Write a sheet and its plan; the plan, and what 50 to 500 answers would buy. `folder` is the model's."""
    require_sheet(output)
    require_asked(purpose, design, n)
    shown = _shown(model, source, show)
    records = chained([*after]) if after else []
    if records and records[-1].model != model_hash(folder):
        raise InvalidInput("the plan to top up was made for another model. Pass that model, or make a new plan.")
    before = reduce(join, (record.plan for record in records)) if records else None
    rows = _population(model, source, row_id)
    asked: dict[str, Any] = {
        "threshold": model.threshold,
        "purpose": purpose,
        "expected": rows.expected,
        "design": design,
        "scenario": model.summary.get("data", {}).get("scenario", "single_sample"),
    }
    drawn = plan(rows.scores, rows.labels, n=n, after=before, seed=seed, **asked)
    bought = {} if after else power(rows.scores, rows.labels, seed=seed, **asked)
    name = row_id or model.facts.get("id")
    record = Record(
        drawn, tuple(rows.ids[row] for row in drawn.rows), ROW if rows.by_number else str(name), rows.by_number,
        model_hash(folder), source.path.name, checksum(source.path), same_rows(model, source),
        records[-1].digest if records else None,
    )  # fmt: skip
    cells = _cells(source, shown, drawn.rows)
    _require_own(output, record)
    record.write(output)
    write_sheet(output, record, shown, cells)
    return record, bought


def require_sheet(output: Path) -> None:
    """A sheet may hold somebody's answers: it is never replaced."""
    if output.suffix.lower() != ".csv" or output.is_dir():
        raise InvalidInput(f"cannot write {output.name!r}: a sheet is a .csv, such as to_check.csv.")
    if output.exists():
        raise InvalidInput(f"{output} is there already and may hold answers. Choose another name, or move it away.")


def _require_own(output: Path, record: Record) -> None:
    """A plan without its sheet may belong to answers that lie elsewhere; one that is the same as this was left by a
    command that did not come to write the sheet."""
    path = plan_path(output)
    if path.exists() and read_record(output).digest != record.digest:
        raise InvalidInput(
            f"{path} is the plan of another sheet, which may hold answers. Choose another name, or move it away."
        )


def _population(model: PUModel, source: Source, row_id: str | None) -> Population:
    label = model.facts.get("label")
    name = row_id or model.facts.get("id")
    if row_id is not None:
        require_columns([row_id], source.columns)
    others = [column for column in dict.fromkeys((label, name)) if column is not None and column in source.columns]
    warn_unknown(source, model.vectorizer, [*special_columns(model), *others])
    posterior = _has_posterior(model, source)
    scores, expected, columns = [], [], []
    for frame, p, unlabeled in score_batches(model, source, others, posterior=posterior):
        scores.append(p)
        expected.append(p if unlabeled is None else unlabeled)
        columns.append(frame)
    table = pd.concat(columns, ignore_index=True)
    labels = meanings(table[label], label) if label in others else np.zeros(len(table), dtype=np.int8)
    by_number = name not in others
    ids = [str(number) for number in range(len(table))] if by_number else _ids(table[name], str(name))
    return Population(np.concatenate(scores), np.concatenate(expected), labels, ids, by_number)


def _has_posterior(model: PUModel, source: Source) -> bool:
    try:
        return not known_propensity(model, source)  # a column of e is known for labeled rows only, as a rule
    except InvalidInput:
        return False


def _ids(column: pd.Series, name: str) -> list[str]:
    texts = ["" if pd.isna(value) else cell_text(value).strip() for value in column]
    if "" in texts:
        raise InvalidInput(f"id column {name!r} is empty in row {texts.index('')}. Give every row an id.")
    twice = column[column.duplicated()]
    if len(twice):
        repeated = listed(sorted({cell_text(value) for value in twice}))
        raise InvalidInput(
            f"id column {name!r} holds {repeated} more than once: an answer would belong to several rows. Name a "
            "column whose values differ."
        )
    return texts


def _shown(model: PUModel, source: Source, show: Sequence[str] | None) -> list[str]:
    """All that a person may look at: no label, no true class, no known chance of a label."""
    if show is not None:
        return require_columns(show, source.columns)
    hidden = {model.facts.get(name) for name in ("label", "truth", "propensity", "id")} | {ANSWER, PROBABILITY}
    return [name for name in source.columns if name not in hidden]


def _cells(source: Source, shown: list[str], rows: NDArray[np.int64]) -> list[list[Any]]:
    """The cells of some rows, in their order."""
    wanted = np.sort(rows)
    found: dict[int, list[Any]] = {}
    start = 0
    for frame in source.batches(columns=shown or None):
        inside = wanted[(wanted >= start) & (wanted < start + len(frame))]
        for row, values in zip(
            inside, frame[shown].iloc[inside - start].itertuples(index=False, name=None), strict=True
        ):
            found[int(row)] = list(values)
        start += len(frame)
    return [found[int(row)] for row in rows]
