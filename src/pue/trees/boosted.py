"""`BoostedTrees`: boosted trees as arrays of nodes, read once from what LightGBM writes.

LightGBM is not needed to predict. Its rule for a row, in its words: a value that is not a number goes by `default_left`
where the feature had such values in training (missing type NaN), and else counts as 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pue.errors import InvalidInput
from pue.persistence import kept
from pue.trees.nodes import LEAF, Ensemble

_DEFAULT_LEFT, _MISSING_IS_NAN = 2, 8
"""Bits of LightGBM's `decision_type`."""
_ZERO = float(np.float32(1e-35))
"""What is not larger counts as 0 there, so that a row at the threshold −1e-35 stands on its right."""


@kept
@dataclass(frozen=True, eq=False)
class BoostedTrees(Ensemble):
    """Several sums of trees, and their mean: the value of a leaf is what it adds to the score.

    >>> stump = dict(left=np.int32([1, -1, -1]), right=np.int32([2, -1, -1]), feature=np.int32([0, 0, 0]))
    >>> numbers = dict(threshold=np.array([0.5, 0, 0]), value=np.array([0, -1.5, 1]), missing_left=np.zeros(3, bool))
    >>> trees = BoostedTrees(1, np.int64([0]), **stump, **numbers, counts=np.int64([1]), start=0.25)
    >>> trees.log_odds(np.array([[0.0], [1.0]]))
    array([-1.25,  1.25])
    """

    counts: NDArray[np.int64]
    """How many trees each sum has."""
    start: float
    """The score before the first tree."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.counts.ndim != 1 or (self.counts < 1).any() or self.counts.sum() != self.n_trees:
            raise InvalidInput("the sums do not share the trees among them. The trees are damaged: fit again.")
        if not np.isfinite(self.start):
            raise InvalidInput("the score before the first tree is no number. The trees are damaged: fit again.")

    def margins(self, matrix: Any) -> NDArray[np.float64]:
        """(sums, rows): equal to LightGBM's raw scores with the same trees to the last bit."""
        rows = self._matrix(matrix)
        found = np.zeros((len(self.counts), len(rows)))
        own = np.repeat(np.arange(len(self.counts)), self.counts)
        for part, values in self._values(rows, np.float64):
            for each, value in zip(own, values, strict=True):
                found[each, part] += value
        return found

    def log_odds(self, matrix: Any) -> NDArray[np.float64]:
        """The mean of the sums, from `start` on."""
        return np.asarray(self.start + self.margins(matrix).mean(axis=0))


def read_lightgbm(texts: Sequence[str], n_features: int, start: float) -> BoostedTrees:
    """The trees of LightGBM's models, one sum for each; a model without a tree adds nothing."""
    models = [[_read_tree(block) for block in _blocks(text)] or [_leaf()] for text in texts]
    trees = [tree for model in models for tree in model]
    starts = np.cumsum([0, *(len(tree["value"]) for tree in trees)])
    for tree, first in zip(trees, starts, strict=False):
        for side in ("left", "right"):
            tree[side] = np.where(tree[side] == LEAF, LEAF, tree[side] + first).astype(np.int32)
    nodes = {name: np.concatenate([tree[name] for tree in trees]) for name in trees[0]}
    counts = np.array([len(model) for model in models])
    return BoostedTrees(n_features, starts[:-1], **nodes, counts=counts, start=start)


def _blocks(text: str) -> list[str]:
    return text.partition("\nend of trees")[0].split("\nTree=")[1:]


def _read_tree(block: str) -> dict[str, NDArray[Any]]:
    """A tree: first its splits in LightGBM's order, a child after its parent, then its leaves."""
    lines = dict(line.partition("=")[::2] for line in block.split("\n"))
    values = np.array(lines["leaf_value"].split(), dtype=np.float64)
    if len(values) == 1:
        return _leaf(values[0])
    left, right, feature, kind = (
        np.array(lines[name].split(), dtype=np.int32)
        for name in ("left_child", "right_child", "split_feature", "decision_type")
    )
    threshold, n = np.array(lines["threshold"].split(), dtype=np.float64), len(feature)
    threshold[threshold == -_ZERO] = np.nextafter(-_ZERO, -1)
    missing_left = np.where(kind & _MISSING_IS_NAN, kind & _DEFAULT_LEFT, threshold >= 0).astype(bool)
    rest = np.full(len(values), LEAF, dtype=np.int32)
    return {
        "left": np.concatenate([np.where(left < 0, n - 1 - left, left), rest]),  # LightGBM counts leaves −1, −2, …
        "right": np.concatenate([np.where(right < 0, n - 1 - right, right), rest]),
        "feature": np.concatenate([feature, rest]),
        "threshold": np.concatenate([threshold, np.zeros(len(values))]),
        "missing_left": np.concatenate([missing_left, np.zeros(len(values), dtype=bool)]),
        "value": np.concatenate([np.zeros(n), values]),
    }


def _leaf(value: float = 0.0) -> dict[str, NDArray[Any]]:
    none = np.array([LEAF], dtype=np.int32)
    numbers = {"threshold": np.zeros(1), "missing_left": np.zeros(1, dtype=bool), "value": np.array([value])}
    return {"left": none, "right": none, "feature": none, **numbers}
