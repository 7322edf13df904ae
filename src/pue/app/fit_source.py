"""From rows on the disk to a model that knows where they came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pue.app.audit.learning import Taught, taught
from pue.app.audit.reading import read_sheets
from pue.app.classifiers import require_streaming
from pue.app.fit import fit_model
from pue.app.model import PUModel
from pue.app.origin import facts_of
from pue.app.recipe import Recipe, Say
from pue.app.roles import Roles
from pue.app.rows import Rows, surveyed_rows
from pue.app.sources.opening import Source
from pue.app.sources.stored_table import StoredTable
from pue.app.stream import IN_MEMORY_ROW, StreamedRows, bytes_in_memory, stream_rows
from pue.app.survey import survey_rows
from pue.app.top_rows import shown_columns, top_rows
from pue.core.machine import available_memory, show_bytes
from pue.training.processes import on_first, place


def fit_source(
    source: Source,
    roles: Roles,
    recipe: Recipe,
    *,
    memory: int | None = None,
    audit: Sequence[Path] = (),
    say: Say = lambda text: None,
) -> PUModel:
    """Read, fit, and note the unlabeled rows that look most like positives.

    Rows that would take more than `memory` bytes (None: half of what is free) are streamed instead of kept. `audit`
    are sheets of `pue audit plan` with answers about these rows.
    """
    answered = read_sheets(audit) if audit else None
    rows = open_rows(source, roles, recipe, memory=memory, say=say)
    lesson = None if answered is None else taught(answered, source, rows)
    return fit_rows(source, roles, rows, recipe, audit=lesson, say=say)


def open_rows(
    source: Source, roles: Roles, recipe: Recipe, *, memory: int | None = None, say: Say = lambda text: None
) -> Rows | StreamedRows:
    """All rows, in memory if they fit."""
    say(f"reading {source.path}")
    if memory is None:  # the first process decides, or they might decide differently
        memory = on_first(available_memory) // 2 // place()[1]
    survey = survey_rows(source, roles, seed=recipe.seed, most=memory // IN_MEMORY_ROW)
    needed = bytes_in_memory(survey)
    if needed <= memory or not isinstance(source, StoredTable):
        return surveyed_rows(source, roles, survey, scenario=recipe.scenario)
    say(f"streaming: {survey.n_rows:,} rows would take {show_bytes(needed)}, and {show_bytes(memory)} are allowed")
    require_streaming(recipe.method, needed)
    return stream_rows(source, roles, survey, memory=memory, scenario=recipe.scenario, seed=recipe.seed)


def fit_rows(
    source: Source,
    roles: Roles,
    rows: Rows | StreamedRows,
    recipe: Recipe,
    *,
    audit: Taught | None = None,
    say: Say = lambda text: None,
) -> PUModel:
    """The same as `fit_source` with rows that were read already."""
    source.read(shown_columns(source, roles), rows=1)  # a column that cannot be shown is refused before the work
    model = fit_model(rows, recipe, facts=on_first(lambda: facts_of(source, roles)), audit=audit, say=say)
    say("finding the best unlabeled rows")
    top = on_first(lambda: top_rows(model, source, roles))
    return replace(model, summary={**model.summary, "top_rows": top})
