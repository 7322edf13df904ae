"""How positives come by their labels: e(x) = P(labeled | positive, x), a quarter of them on average.

    scar      every positive with the same probability, .25
    logistic  a logistic curve of three columns, from .01 to .9; `logistic-0.5`, `-1`, `-4` are weaker and stronger ones
    kinds     positives in four clusters, labeled at .6, .25, .08 and .04, in an order drawn by the seed
    easy      the surer a positive, the likelier its label: .02 to .48 by the rank of its true-class probability
    hard      the reverse: the clearer a positive, the less likely its label

The mean of `kinds` is what the sizes of the clusters make it. True classes are used to label, never to learn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from sklearn.cluster import KMeans
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import cross_val_predict

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MEAN = 0.25
LOWEST, HIGHEST = 0.01, 0.9
STRONG = 2.0
"""Standard deviation of the logit among positives."""
RATES = (0.6, 0.25, 0.08, 0.04)
EASY = (0.02, 0.48)
MANY_VALUES = 4
"""A column with fewer different values drives the labels only where there are not enough others."""


@dataclass(frozen=True, eq=False)
class Labeling:
    """The propensity of every row, who is labeled, and what drives it."""

    e: Floats
    s: Bools
    drivers: dict[str, int] = field(default_factory=dict)
    """Column → the sign with which it raises e; empty where it is no sum of columns."""


@dataclass(frozen=True, eq=False)
class Rows:
    """What a labeling may look at."""

    x: Floats
    y: Bools
    names: Sequence[str]
    seed: int


Propensity = tuple[Floats, dict[str, int]]
Propensities = Callable[[Rows, np.random.Generator], Propensity]


def scar(rows: Rows, rng: np.random.Generator) -> Propensity:
    return np.full(len(rows.y), MEAN), {}


def logistic(
    rows: Rows, rng: np.random.Generator, *, strength: float = STRONG, mean: float = MEAN, columns: int = 3
) -> Propensity:
    """Equal weights of either sign on standardized columns, cut at three standard deviations."""
    usable = driving_columns(rows.x[rows.y], columns)
    chosen = rng.choice(usable, min(columns, len(usable)), replace=False)
    signs = rng.choice([-1, 1], len(chosen))
    logit = np.clip(standardized(rows)[:, chosen], -3, 3) @ signs
    logit *= strength / logit[rows.y].std()

    def e(shift: float) -> Floats:
        return np.asarray(np.clip(1 / (1 + np.exp(-(logit + shift))), LOWEST, HIGHEST))

    shift = brentq(lambda shift: e(shift)[rows.y].mean() - mean, -40, 40)
    return e(shift), {rows.names[column]: int(sign) for column, sign in zip(chosen, signs, strict=True)}


def kinds(rows: Rows, rng: np.random.Generator) -> Propensity:
    z = standardized(rows)
    clusters = KMeans(len(RATES), n_init=3, random_state=rows.seed).fit(z[rows.y])
    return rng.permutation(RATES)[clusters.predict(z)], {}


def easy(rows: Rows, rng: np.random.Generator, *, reverse: bool = False) -> Propensity:
    """By rank among the positives of what a forest of the true classes says out of fold."""
    forest = ExtraTreesClassifier(200, min_samples_leaf=3, n_jobs=1, random_state=rows.seed)
    p = cross_val_predict(forest, rows.x, rows.y, cv=5, method="predict_proba")[:, 1]
    p = p + 1e-9 * rng.random(len(p))  # equal ones in any order
    among = np.sort(p[rows.y])
    rank = np.clip(np.searchsorted(among, p) / (len(among) - 1), 0, 1)
    low, high = EASY
    return low + (high - low) * (1 - rank if reverse else rank), {}


LABELINGS: dict[str, Propensities] = {
    "scar": scar,
    "logistic": logistic,
    "kinds": kinds,
    "easy": easy,
    "hard": partial(easy, reverse=True),
}
STRENGTHS = {0.5: "logistic-0.5", 1.0: "logistic-1", STRONG: "logistic", 4.0: "logistic-4"}
"""Of the picture of accuracy against bias."""
OTHERS: dict[str, Propensities] = {
    name: partial(logistic, strength=strength) for strength, name in STRENGTHS.items() if name not in LABELINGS
}


def draw(labeling: Propensities, rows: Rows) -> Labeling:
    """Labels of all rows; the same seed gives the same ones."""
    rng = np.random.default_rng(rows.seed)
    e, drivers = labeling(rows, rng)
    return Labeling(e, rows.y & (rng.random(len(rows.y)) < e), drivers)


def standardized(rows: Rows) -> Floats:
    """By mean and standard deviation of the positives."""
    positives = rows.x[rows.y]
    return np.asarray((rows.x - positives.mean(0)) / (positives.std(0) + 1e-9))


def driving_columns(positives: Floats, wanted: int) -> NDArray[np.int64]:
    """Columns that vary among the positives; those with many values alone where they are enough."""
    varying = np.flatnonzero(positives.std(0) > 1e-6)
    many = np.array([c for c in varying if len(np.unique(positives[:, c])) >= MANY_VALUES], dtype=np.int64)
    return many if len(many) >= wanted else varying
