"""What a model keeps of its training rows so that it can be explained later: how they spread over its trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pue.app.drift import ColumnProfile, profiles_of
from pue.app.rows import Rows
from pue.app.stream import StreamedRows
from pue.core.data import as_matrix, is_image, select
from pue.core.randomness import derive
from pue.errors import InvalidInput
from pue.persistence import kept
from pue.trees import Learnt
from pue.trees.blended import covers_of

COVERING, BACKGROUND = 10_000, 200
"""Training rows that say how many come by a node; rows that stand for all others where a model has no nodes."""


@kept
@dataclass(frozen=True, eq=False)
class Reference:
    """One of the two: rows at each node of a model's trees, or the features of some rows."""

    covers: NDArray[np.int64] | None
    background: NDArray[np.float32] | None

    def __post_init__(self) -> None:
        if (self.covers is None) == (self.background is None):
            raise InvalidInput("a reference holds covers or a background. It was altered: fit the model again.")


def make_reference(classifier: Any, rows: Rows | StreamedRows, seed: int) -> Reference | None:
    """Of a model of a table; None for images."""
    if is_image(rows.data.x):
        return None
    sample, _ = rows.sample(COVERING, derive(seed, 11))
    trees = trees_of(classifier)
    if trees is not None:
        return Reference(covers_of(trees, as_matrix(sample.x)), None)
    chosen = np.random.default_rng(derive(seed, 12)).permutation(sample.n_rows)[:BACKGROUND]
    return Reference(
        None, np.ascontiguousarray(as_matrix(select(sample.x, torch.from_numpy(np.sort(chosen)))), dtype=np.float32)
    )


def make_profiles(rows: Rows | StreamedRows, seed: int) -> tuple[ColumnProfile, ...]:
    """How the columns are filled; none for images."""
    if rows.vectorizer is None:
        return ()
    sample, _ = rows.sample(COVERING, derive(seed, 11))
    return profiles_of(rows.vectorizer, np.asarray(as_matrix(sample.x)))


def trees_of(classifier: Any) -> Learnt | None:
    """The nodes of a classifier that is a forest, boosting or a blend of our own."""
    found = getattr(classifier, "trees_", None)
    return found if isinstance(found, Learnt) else None
