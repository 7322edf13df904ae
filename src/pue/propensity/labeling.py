"""Simple models of which positives get a label: labeled against not, among rows weighted by P(positive | x, s)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy.special import expit

from pue.core.randomness import derive
from pue.core.regression import Array
from pue.persistence import kept
from pue.trees.boosted import BoostedTrees
from pue.trees.nodes import LEAF
from pue.trees.ridge import Ridge, moments, solved, standardized

Matrix = NDArray[np.floating]

BINS = 48
"""Of every column; boosted trees need no finer ones, and so few make weighted rows cheap: scikit-learn sorts a column
of many values once for every bin."""
STRENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Of the ridge regression, as scikit-learn's C."""
HELD_OUT = 0.3
"""Share of the rows that chooses among `STRENGTHS`."""
NEGLIGIBLE = 1e-3
"""Rows of a smaller weight are almost certainly negative and say nothing, but would count in a smallest leaf."""


class Labeling(Protocol):
    """Rows → P(labeled | x, positive)."""

    def __call__(self, x: Matrix) -> Array: ...


@kept
@dataclass(frozen=True, eq=False)
class Steps:
    """Boosted trees on the bins of the columns."""

    edges: Array
    """(columns, bins − 1), each row ascending, filled up with infinity."""
    trees: BoostedTrees

    def __call__(self, x: Matrix) -> Array:
        return np.asarray(expit(self.trees.log_odds(binned(x, self.edges))))


def boosted(x: Matrix, s: NDArray[np.bool_], weight: Array, seed: int) -> Steps:
    """Sixty trees of four leaves: kinds of rows and interactions of few columns, not single rows."""
    edges = bin_edges(x)
    trees = sklearn.ensemble.HistGradientBoostingClassifier(
        max_iter=60,
        max_leaf_nodes=4,
        learning_rate=0.1,
        l2_regularization=5.0,
        min_samples_leaf=20,
        max_bins=64,
        early_stopping=False,
        random_state=seed % 2**32,
    )
    counted = weight > NEGLIGIBLE * weight.max()
    trees.fit(binned(x[counted], edges), s[counted], weight[counted])
    return Steps(edges, read_histogram_boosting(trees))


def read_histogram_boosting(fitted: Any) -> BoostedTrees:
    """The nodes of scikit-learn's histogram gradient boosting of two classes, after a leaf that is its start: so sums
    are added up in its order, and `log_odds` are its `decision_function` to the last bit."""
    trees = [stage[0].nodes for stage in fitted._predictors]
    starts = np.cumsum([0, 1, *(len(tree) for tree in trees)])
    nodes = np.concatenate([np.zeros(1, trees[0].dtype), *trees])
    nodes["is_leaf"][0], nodes["value"][0] = 1, float(fitted._baseline_prediction.item())
    first, leaf = np.repeat(starts[:-1], np.diff(starts)), nodes["is_leaf"].astype(bool)
    left, right = (np.where(leaf, LEAF, nodes[side] + first).astype(np.int32) for side in ("left", "right"))
    return BoostedTrees(
        fitted.n_features_in_,
        starts[:-1],
        left,
        right,
        np.where(leaf, LEAF, nodes["feature_idx"]).astype(np.int32),
        np.where(leaf, 0.0, np.minimum(nodes["num_threshold"], np.finfo(np.float64).max)),  # infinity: all but gaps
        nodes["missing_go_to_left"].astype(bool),
        np.ascontiguousarray(nodes["value"], dtype=np.float64),
        counts=np.array([len(trees) + 1]),
        start=0.0,
    )


def ridge(x: Matrix, s: NDArray[np.bool_], weight: Array, seed: int) -> Ridge:
    """A logistic regression whose strength makes held-out labels most likely, then fitted to all rows."""
    mean, scale = moments(x, weight)
    z = standardized(x, mean, scale)
    held = np.random.default_rng(derive(seed, 1)).random(len(s)) < HELD_OUT
    if len(np.unique(s[~held])) < 2 or not held.any():
        held = np.zeros(len(s), dtype=bool)
    yes, no = weight * s, weight * ~s
    likelihoods = [
        _likelihood(z[held] @ solved(z[~held], yes[~held], no[~held], C), s[held], weight[held]) for C in STRENGTHS
    ]
    strength = STRENGTHS[int(np.argmax(likelihoods))]
    return Ridge(mean, scale, solved(z, yes, no, strength))


Fit = Callable[[Matrix, NDArray[np.bool_], Array, int], Labeling]
"""(rows, labeled, weights, seed) → fitted."""
MEMBERS: dict[str, Fit] = {
    "boosted": boosted,
    "logistic": ridge,
}


def bin_edges(x: Matrix) -> Array:
    """Values between which the rows are shared out into equal parts, for every column.

    >>> bin_edges(np.array([[0.0, 1.0], [0.0, 1.0], [0.0, np.nan]]))[:, :2]
    array([[ 0., inf],
           [ 1., inf]])
    """
    edges = np.full((x.shape[1], BINS - 1), np.inf)
    for column, values in enumerate(np.asarray(x, dtype=np.float64).T):
        known = values[np.isfinite(values)]
        if len(known):
            found = np.unique(np.quantile(known, np.linspace(0, 1, BINS + 1)[1:-1]))
            edges[column, : len(found)] = found
    return edges


def binned(x: Matrix, edges: Array) -> NDArray[np.float32]:
    """The bin of every value; missing ones stay missing."""
    found = np.empty(x.shape, dtype=np.float32)
    for column, own in enumerate(edges):
        values = np.asarray(x[:, column], dtype=np.float64)
        found[:, column] = np.where(np.isnan(values), np.nan, np.searchsorted(own, values, side="right"))
    return found


def _likelihood(margin: Array, s: NDArray[np.bool_], weight: Array) -> float:
    return float(weight @ -np.logaddexp(0, np.where(s, -margin, margin)))
