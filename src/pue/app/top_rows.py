"""The unlabeled rows that look most like positives, as the page shows them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from pue.app.model import PUModel
from pue.app.predict import score_batches
from pue.app.roles import Roles
from pue.app.sources.labels import meanings
from pue.app.sources.opening import Source

TOP, WIDEST = 20, 60


def top_rows(model: PUModel, source: Source, roles: Roles) -> dict[str, Any]:
    """The unlabeled rows of highest probability, of equal ones the first, with some of their columns."""
    shown = shown_columns(source, roles)
    best: list[list[Any]] = []
    start = 0
    for frame, p, _ in score_batches(model, source, [*shown, roles.label]):
        unlabeled = np.flatnonzero(meanings(frame[roles.label], roles.label) == 0)
        top = unlabeled[np.argsort(-p[unlabeled], kind="stable")[:TOP]]
        cells = frame[shown].iloc[top].itertuples(index=False, name=None)
        new = [[start + int(row), float(p[row]), *map(_cell, values)] for row, values in zip(top, cells, strict=True)]
        best = sorted([*best, *new], key=lambda row: -row[1])[:TOP]
        start += len(p)
    return {"columns": ["row", "P(positive)", *shown], "rows": best}


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
    text = str(value)
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"
