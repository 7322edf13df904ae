"""Which classifier `pue fit` takes where none is named, and why."""

from __future__ import annotations

from dataclasses import replace

from pue.app.recipe import Recipe
from pue.app.rows import Rows
from pue.app.stream import StreamedRows
from pue.core.data import is_image

MANY = 50_000
"""Rows from which boosting alone is as good, and faster."""


def settled(recipe: Recipe, rows: Rows | StreamedRows) -> tuple[Recipe, str]:
    """The recipe with a method for these rows, and the reason in words; empty where the method was named."""
    if recipe.method != "auto":
        return recipe, ""
    method, reason = _method(rows)
    return replace(recipe, method=method), reason


def _method(rows: Rows | StreamedRows) -> tuple[str, str]:
    if isinstance(rows, StreamedRows):
        return "nnpu", "a network, because the rows are streamed and trees need all of them in memory"
    if is_image(rows.data.x):
        return "nnpu", "a network, because the rows are images"
    if rows.data.n_rows >= MANY:
        return "boosting", f"boosting, because the table has {MANY:,} rows or more"
    return "blend", f"a blend of a forest, boosting and a regression, because the table has fewer than {MANY:,} rows"
