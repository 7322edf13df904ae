"""Do new rows look like those a model was trained on? A cheap test of every column.

At training the values of a column are counted in cells (tenths of the rows, categories, gaps). New rows are counted in
the same cells. A column has drifted if both hold: chance alone would hardly make the counts so different (χ² test, one
in a hundred over all columns together), and the difference matters: a tenth of the rows, or more, would have to change
cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2_contingency

from pue.errors import InvalidInput
from pue.estimators.vectorizer.encoders import Categories, Dates, Encoder
from pue.estimators.vectorizer.vectorize import Vectorizer
from pue.persistence import kept

CELLS = 10
LEVEL = 0.01
"""Chance of one false alarm or more among all columns."""
MATTERS = 0.1
"""Rows that would have to move to another cell: half the sum of the differences of shares."""
FEWEST = 50
"""Of fewer new rows nothing is said."""
ROWS = 10_000
"""New rows that are looked at: the first ones."""


@kept
@dataclass(frozen=True, eq=False)
class ColumnProfile:
    """A column's cells and how many training rows fell into each; the last one holds gaps."""

    name: str
    edges: NDArray[np.float64]
    """Between cells of numbers; empty for categories."""
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.edges.ndim != 1 or self.counts.ndim != 1 or len(self.counts) < 2:
            raise InvalidInput(f"the profile of column {self.name!r} is damaged. Fit the model again.")


@dataclass(frozen=True)
class Drift:
    """A column whose new values differ from those at training."""

    column: str
    moved: float
    """The share of rows that would have to change cells."""
    p_value: float

    def __str__(self) -> str:
        return (
            f"column {self.column!r} has drifted: {self.moved:.0%} of these rows hold other values than at training. "
            "Scores of such rows are guesses; look at what changed, or fit again."
        )


def profiles_of(vectorizer: Vectorizer, features: NDArray[np.float32]) -> tuple[ColumnProfile, ...]:
    """Of every column, from the features of training rows."""
    return tuple(_profile(encoder, part) for encoder, part in _parts(vectorizer, features))


def drifted(profiles: Sequence[ColumnProfile], vectorizer: Vectorizer, features: NDArray[np.float32]) -> list[Drift]:
    """Columns that drifted between training and these rows, most moved first."""
    if len(features) < FEWEST:
        return []
    found = []
    for profile, (encoder, part) in zip(profiles, _parts(vectorizer, features), strict=True):
        now = _counts(encoder, part, profile.edges, len(profile.counts))
        moved, p = _compared(profile.counts, now)
        if moved >= MATTERS and p < LEVEL / len(profiles):
            found.append(Drift(profile.name, moved, p))
    return sorted(found, key=lambda drift: -drift.moved)


def _compared(before: NDArray[np.int64], now: NDArray[np.int64]) -> tuple[float, float]:
    """Half the sum of the differences of shares, and the p-value of the χ² test of equal shares."""
    moved = 0.5 * np.abs(before / before.sum() - now / now.sum()).sum()
    table = np.stack([before, now])[:, before + now > 0]
    if table.shape[1] < 2:
        return float(moved), 1.0
    return float(moved), float(chi2_contingency(table, correction=False).pvalue)


def _parts(vectorizer: Vectorizer, features: NDArray[np.float32]) -> list[tuple[Encoder, NDArray[np.float32]]]:
    widths = [len(encoder.names) for encoder in vectorizer.encoders]
    stops = np.cumsum(widths)
    return [
        (encoder, features[:, stop - width : stop])
        for encoder, stop, width in zip(vectorizer.encoders, stops, widths, strict=True)
    ]


def _profile(encoder: Encoder, part: NDArray[np.float32]) -> ColumnProfile:
    edges = np.zeros(0)
    if not isinstance(encoder, Categories):
        edges = np.unique(np.quantile(_values(encoder, part), np.linspace(0, 1, CELLS + 1)[1:-1]).astype(np.float64))
    n_cells = len(encoder.values) + 1 if isinstance(encoder, Categories) else len(edges) + 1
    return ColumnProfile(encoder.name, edges, _counts(encoder, part, edges, n_cells + 1))


def _counts(encoder: Encoder, part: NDArray[np.float32], edges: NDArray[np.float64], n_cells: int) -> NDArray[np.int64]:
    """Rows in each cell; unknown categories have one of their own, and so have gaps."""
    gaps = part[:, -1] == 1 if getattr(encoder, "missing", False) else np.zeros(len(part), dtype=bool)
    if isinstance(encoder, Categories):
        known = part[:, : len(encoder.values)]
        cell = np.where(known.any(axis=1), known.argmax(axis=1), len(encoder.values))
    else:
        cell = np.searchsorted(edges, _values(encoder, part), side="left")
    return np.bincount(np.where(gaps, n_cells - 1, cell), minlength=n_cells).astype(np.int64)


def _values(encoder: Encoder, part: NDArray[np.float32]) -> NDArray[np.float32]:
    """The feature that stands for a column: of dates the seconds, else the first."""
    place = encoder.names.index(f"{encoder.name} total seconds") if isinstance(encoder, Dates) else 0
    return part[:, place]
