"""Fitted trees as arrays of nodes, and nothing else; `Trees` are those of a forest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pue.core.data import Features, as_matrix
from pue.errors import InvalidInput
from pue.persistence import kept

LEAF = -1
"""The child of a node that has none."""
STEPS = 2**18
"""So many pairs of a row and a tree walk down at once."""
COMPILED, ROWS = 2**23, 2**16
"""From so many pairs on, scikit-learn's compiled walk is worth the time that its import takes; it takes so many rows at
a time."""
SURE = 1e-6
"""Log-odds are those of a probability between this and its complement."""


@dataclass(frozen=True, eq=False)
class Ensemble(ABC):
    """The nodes of all trees, one tree after the other, a child after its parent. A row goes left where its feature is
    at most the threshold."""

    n_features: int
    starts: NDArray[np.int64]
    """The root of each tree."""
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    feature: NDArray[np.int32]
    """Of a leaf it is not read, nor is its threshold."""
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    """Whether a row whose feature is not a number goes left."""
    value: NDArray[np.float64]

    @abstractmethod
    def log_odds(self, matrix: Any) -> NDArray[np.float64]:
        """The score of each row; it is finite."""

    def __post_init__(self) -> None:
        """Refuse what is no ensemble: after this no walk can leave its tree, go in a circle or read beside a row."""
        per_node = (self.left, self.right, self.feature, self.threshold, self.missing_left, self.value)
        if self.starts.ndim != 1 or any(array.shape != (self.n_nodes,) for array in per_node):
            raise InvalidInput("the arrays of nodes must be vectors of one length. The trees are damaged: fit again.")
        inside = (self.starts >= 0) & (self.starts < self.n_nodes)
        if not (inside.all() and len(inside) and self.starts[0] == 0 and (np.diff(self.starts) > 0).all()):
            raise InvalidInput("the trees do not follow one another in the array of nodes. Fit again.")
        for wrong, what in self._faults():
            if wrong.any():
                raise InvalidInput(f"node {int(np.argmax(wrong))} {what}. The trees are damaged: fit again.")

    def _faults(self) -> list[tuple[NDArray[np.bool_], str]]:
        """Nodes that cannot be, and what is wrong with them."""
        nodes, inner = np.arange(self.n_nodes), self.left != LEAF
        ends = np.repeat(np.append(self.starts[1:], self.n_nodes), np.diff(self.starts, append=self.n_nodes))
        outside = [inner & ((child <= nodes) | (child >= ends)) for child in (self.left, self.right)]
        named = np.concatenate([self.left[inner & ~outside[0]], self.right[inner & ~outside[1]]])
        parents = np.bincount(named, minlength=self.n_nodes)
        return [
            (inner != (self.right != LEAF), "has one child"),
            (outside[0] | outside[1], "has a child that does not come after it in its own tree"),
            (parents != ~np.isin(nodes, self.starts), "is not the child of exactly one node"),
            (inner & ((self.feature < 0) | (self.feature >= self.n_features)), "asks for a feature that is not there"),
            (inner & ~np.isfinite(self.threshold), "has no threshold"),
            (~np.isfinite(self.value), "has a value that is no number"),
        ]

    @property
    def n_nodes(self) -> int:
        return len(self.value)

    @property
    def n_trees(self) -> int:
        return len(self.starts)

    def _matrix(self, matrix: Any) -> NDArray[Any]:
        rows = np.asarray(matrix)
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise InvalidInput(f"the trees were grown on {self.n_features} features; these rows are {rows.shape}.")
        return rows

    def _values(self, rows: NDArray[Any], dtype: type) -> Iterator[tuple[slice, Iterable[NDArray[np.float64]]]]:
        """Some rows at a time, and tree by tree the values of the leaves that they fall into; rows are compared as
        numbers of this type."""
        compiled = len(rows) * self.n_trees >= COMPILED
        size = ROWS if compiled else max(1, STEPS // self.n_trees)
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            own = as_float32(rows[part]) if dtype is np.float32 else np.ascontiguousarray(rows[part], dtype=dtype)
            yield part, compiled_values(self, own) if compiled else self.value[self._leaves(own)]

    def _leaves(self, rows: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
        """(trees, rows) → leaf; pairs that have arrived take no further part."""
        found, node = np.empty(self.n_trees * len(rows), dtype=np.int64), np.repeat(self.starts, len(rows))
        pair, flat = np.arange(len(node)), rows.ravel()
        row = np.tile(np.arange(len(rows)) * self.n_features, self.n_trees)
        missing = bool(np.isnan(flat).any())
        while len(node):
            left = self.left.take(node)
            arrived = left == LEAF
            if arrived.any():
                found[pair[arrived]] = node[arrived]
                on = np.flatnonzero(~arrived)
                pair, row, node, left = pair.take(on), row.take(on), node.take(on), left.take(on)
            seen = flat.take(row + self.feature.take(node))
            goes_left = seen <= self.threshold.take(node)
            if missing:
                goes_left |= np.isnan(seen) & self.missing_left.take(node)
            node = np.where(goes_left, left, self.right.take(node)).astype(np.int64)
        return found.reshape(self.n_trees, len(rows))


@kept
@dataclass(frozen=True, eq=False)
class Trees(Ensemble):
    """A forest: the value of a node is its share of positives.

    >>> stump = dict(left=np.int32([1, -1, -1]), right=np.int32([2, -1, -1]), feature=np.int32([0, 0, 0]))
    >>> numbers = dict(threshold=np.array([0.5, 0, 0]), value=np.array([0.4, 0.1, 0.9]))
    >>> trees = Trees(1, np.int64([0]), **stump, **numbers, missing_left=np.zeros(3, dtype=bool))
    >>> trees.probability(np.array([[0.0], [1.0]]))
    array([0.1, 0.9])
    """

    def _faults(self) -> list[tuple[NDArray[np.bool_], str]]:
        return [*super()._faults()[:-1], (~((self.value >= 0) & (self.value <= 1)), "has a value that is no share")]

    def probability(self, matrix: Any) -> NDArray[np.float64]:
        """The mean over trees of the value of the leaf a row falls into.

        Rows are compared in float32, and trees are summed in order: equal to scikit-learn's `predict_proba` with the
        same nodes to the last bit.
        """
        rows = self._matrix(matrix)
        found = np.zeros(len(rows))
        for part, values in self._values(rows, np.float32):
            for value in values:
                found[part] += value
        return found / self.n_trees

    def log_odds(self, matrix: Any) -> NDArray[np.float64]:
        """log p / (1 − p), which is finite."""
        return log_odds(self.probability(matrix))


def compiled_values(trees: Ensemble, rows: NDArray[np.floating[Any]]) -> Iterator[NDArray[np.float64]]:
    """The same by the walk of scikit-learn's histogram boosting, whose rule for a row is that of `Ensemble`.

    It trusts its nodes; those of an ensemble were checked when it was made.
    """
    from sklearn.ensemble._hist_gradient_boosting._predictor import _predict_from_raw_data
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

    nodes = np.zeros(trees.n_nodes, dtype=PREDICTOR_RECORD_DTYPE)
    inner = trees.left != LEAF
    first = np.repeat(trees.starts, np.diff(trees.starts, append=trees.n_nodes))
    nodes["is_leaf"], nodes["value"], nodes["num_threshold"] = ~inner, trees.value, trees.threshold
    nodes["missing_go_to_left"], nodes["feature_idx"] = trees.missing_left, np.where(inner, trees.feature, 0)
    for name, child in (("left", trees.left), ("right", trees.right)):
        nodes[name] = np.where(inner, child - first, 0)
    rows = np.ascontiguousarray(rows, dtype=np.float64)
    none, columns = np.zeros((0, 8), dtype=np.uint32), np.zeros(trees.n_features, dtype=np.uint32)
    for tree in np.split(nodes, trees.starts[1:]):
        found = np.empty(len(rows))
        _predict_from_raw_data(tree, rows, none, none, columns, 1, found)
        yield found


def log_odds(probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """log p / (1 − p), p kept off 0 and 1."""
    kept_off = np.clip(probability, SURE, 1 - SURE)
    return np.asarray(np.log(kept_off / (1 - kept_off)))


def as_float32(rows: Any) -> NDArray[np.float32]:
    """Rows as trees see them; what float32 does not reach becomes its largest number, and stays on its side."""
    limit = np.finfo(np.float32).max
    values = np.asarray(rows)
    if values.dtype != np.float32:
        values = np.clip(values, -limit, limit)
    return np.ascontiguousarray(values, dtype=np.float32)


def dense(x: Features) -> NDArray[np.floating]:
    """Rows of numbers, or an error for those that are sparse."""
    if sparse.issparse(x):
        raise InvalidInput(
            "a model of trees does not take sparse rows. Pass X.toarray() if it fits into memory, or use a network: "
            'backbone="tabular".'
        )
    rows: NDArray[np.floating] = as_matrix(x)
    return rows
