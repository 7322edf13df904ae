"""A table, a labeling and a seed become rows to learn from and rows to be judged by."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from encoding import encode
from labelings import LABELINGS, OTHERS, Bools, Floats, Labeling, Propensities, Rows, draw, logistic
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from tables import MOST, TABLES

TRAIN = 0.7
RARE = {"rare-0.002": 0.002, "rare-0.01": 0.01, "rare-0.02": 0.02, "rare-0.05": 0.05}
"""Positives thinned to such a share of the rows; half of them are labeled, with the bias of `logistic`."""
RARE_MEAN = 0.5
FEWEST, MOST_LABELS = 30, 300
"""Labels expected among the training rows of a rare problem."""
RARE_ROWS, READ_ROWS = 20_000, 100_000
"""A rare problem has no more rows than the first unless its labels would be too few."""
ALL_LABELINGS: dict[str, Propensities] = {
    **LABELINGS,
    **OTHERS,
    **dict.fromkeys(RARE, partial(logistic, mean=RARE_MEAN)),
}


class Impossible(Exception):
    """A table has too few rows for a labeling."""


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows of a table, as a frame and as numbers."""

    frame: pd.DataFrame
    x: NDArray[np.float32]
    s: Bools
    e: Floats
    y: Bools
    """True classes: to judge by, and for the ceiling."""


@dataclass(frozen=True, eq=False)
class Problem:
    """What every method is given; which of it a method may look at is said where the method stands."""

    train: Part
    test: Part
    prior: float
    """The true share of positives among the training rows."""
    names: list[str]
    """Of the columns of `x`."""
    drivers: dict[str, int]
    seed: int


def pose(table: str, labeling: str, seed: int) -> Problem:
    """The same problem for every method. Tables differ in what their seeds draw."""
    drawn_by = zlib.crc32(f"{table} {seed}".encode())
    frame, y = TABLES[table].read(READ_ROWS if labeling in RARE else MOST)
    if labeling in RARE:
        rows = thinned(y, RARE[labeling], np.random.default_rng(drawn_by))
        frame, y = frame.iloc[rows].reset_index(drop=True), y[rows]
    x, names = encode(frame)
    labels = draw(ALL_LABELINGS[labeling], Rows(x.astype(np.float64), y, names, drawn_by))
    train, test = train_test_split(np.arange(len(y)), train_size=TRAIN, stratify=y, random_state=drawn_by)
    parts = [_part(frame, x, y, labels, np.sort(rows)) for rows in (train, test)]
    return Problem(parts[0], parts[1], float(parts[0].y.mean()), names, labels.drivers, seed)


def thinned(y: Bools, share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows with this share of positives: as many as there are, within the bounds above."""
    negatives, positives = np.flatnonzero(~y), np.flatnonzero(y)
    labels_a_row = TRAIN * RARE_MEAN * share
    most = min(max(RARE_ROWS, 1.05 * FEWEST / labels_a_row), MOST_LABELS / labels_a_row)
    n = min(len(negatives) / (1 - share), len(positives) / share, most)
    if n * labels_a_row < FEWEST:
        raise Impossible(f"{n * labels_a_row:.0f} labels with a share of {share:g} positives; {FEWEST} are wanted")
    kept = [(negatives, round(n * (1 - share))), (positives, round(n * share))]
    return np.sort(np.concatenate([rng.choice(rows, count, replace=False) for rows, count in kept]))


def _part(frame: pd.DataFrame, x: NDArray[np.float32], y: Bools, labels: Labeling, rows: NDArray[np.int64]) -> Part:
    return Part(frame.iloc[rows].reset_index(drop=True), x[rows], labels.s[rows], labels.e[rows], y[rows])
