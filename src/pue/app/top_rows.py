"""The unlabeled rows that look most like positives, as the page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pue.app.explain import explain, in_words
from pue.app.model import PUModel
from pue.app.predict import score_batches
from pue.app.roles import Roles
from pue.app.sources.labels import meanings
from pue.app.sources.opening import Source
from pue.app.thumbnails import thumbnail
from pue.estimators.vectorizer.columns import cell_text

TOP, WIDEST, REASONS = 20, 60, 3


def top_rows(model: PUModel, source: Source, roles: Roles) -> dict[str, Any]:
    """The unlabeled rows of highest probability, of equal ones the first, with some of their columns."""
    shown = shown_columns(source, roles)
    own = [] if model.vectorizer is None else list(model.vectorizer.columns)
    best: list[_Found] = []
    start = 0
    for frame, p, _ in score_batches(model, source, list(dict.fromkeys([*shown, roles.label, *own]))):
        unlabeled = np.flatnonzero(meanings(frame[roles.label], roles.label) == 0)
        top = unlabeled[np.argsort(-p[unlabeled], kind="stable")[:TOP]]
        cells = frame[shown].iloc[top].itertuples(index=False, name=None)
        new = [
            _Found(float(p[row]), [start + int(row), float(p[row]), *map(_cell, values)], frame[own].iloc[[row]])
            for row, values in zip(top, cells, strict=True)
        ]
        best = sorted([*best, *new], key=lambda found: -found.probability)[:TOP]
        start += len(p)
    table = {"columns": ["row", "P(positive)", *shown], "rows": [found.cells for found in best]}
    pictures = _pictures(source, [found.cells[0] for found in best])
    return {**table, "why": _why(model, [found.frame for found in best]), "images": pictures}


def _pictures(source: Any, rows: list[int]) -> list[str]:
    """Thumbnails of these rows; none of a table."""
    return [thumbnail(source.images(row, row + 1)[0]) for row in rows] if source.kind == "images" else []


@dataclass(frozen=True, eq=False)
class _Found:
    probability: float
    cells: list[Any]
    frame: pd.DataFrame
    """The row with all columns that are learnt from."""


def _why(model: PUModel, frames: list[pd.DataFrame]) -> list[str]:
    """The columns that move each row's score most, in words; none for images."""
    if model.vectorizer is None or model.reference is None or not frames:
        return []
    found = explain(model, pd.concat(frames, ignore_index=True))
    return [in_words(found.top(row, REASONS)) for row in range(len(frames))]


def shown_columns(source: Source, roles: Roles) -> list[str]:
    return [name for name in source.columns if name not in (roles.label, *roles.ignore)][:8]


def _cell(value: Any) -> str | float | int | None:
    if value is None or (not isinstance(value, str) and pd.isna(value)):
        return None
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | float):
        return value
    if hasattr(value, "item"):
        return _cell(value.item())
    text = cell_text(value)
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"
