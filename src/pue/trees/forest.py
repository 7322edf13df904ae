"""`Forest`: extremely randomised trees on the weights of a PU risk.

scikit-learn's trees take signed weights, but they do not do what their documentation says (version 1.9.1): no split is
ignored because a class has negative weight in a child. Only a child whose *total* weight is negative is. Gini's
impurity of a child with positive weight a and total t < a is 2 a (t − a) / t² < 0, so such a split looks better than a
pure one, the child becomes a leaf at once, and its value a / t exceeds one: that is uPU, unbounded. `growth` therefore
grows trees of its own, whose splits keep the negative part of every leaf non-negative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import ClassVar

import numpy as np
import torch
from joblib import Parallel, delayed
from numpy.typing import NDArray

from pue.core.data import PUData
from pue.core.randomness import derive
from pue.core.weights import RowWeights
from pue.errors import InvalidInput
from pue.persistence import kept
from pue.trees.growth import Grown, Level, Limits, Rows, grow
from pue.trees.nodes import LEAF, Trees, as_float32, dense, log_odds
from pue.trees.thresholds import prior_threshold

KEPT = 2**23
"""Pairs of a row and a tree whose leaf is noted while the tree grows: 64 MB."""
PAIRS = 2**18
"""About so many pairs of a row and a tree are grown at once; which trees grow together changes nothing."""


@kept
@dataclass(frozen=True)
class Forest:
    """Trees whose random splits (Geurts et al. 2006) are chosen by the non-negative PU risk of their leaves.

    >>> import torch
    >>> from pue.core.weights import uniform
    >>> data = PUData(torch.arange(12.0)[:, None], torch.tensor([0] * 9 + [1] * 3))
    >>> trees = Forest(n_trees=20, min_leaf=1).fit(data, uniform(data.labels, prior=0.5), seed=0)
    >>> trees.probability([[0.0], [11.0]])
    array([0., 1.])
    """

    called: ClassVar[str] = "a forest"

    n_trees: int = 100
    min_leaf: float = 3
    """Rows, or as much sample weight, in every leaf."""
    max_features: int | float | str = "sqrt"
    """Splits weighed in a node: a number, a share of the features, "sqrt" of their number, or "all"."""
    max_rows: int | None = 10_000
    """Rows that a tree is grown on, at most, drawn anew for each tree: all labeled ones, up to a half, and others in
    their place. None: all rows."""
    jobs: int = 1
    """Trees are grown by so many threads; -1: one for each core. The forest is the same."""

    def __post_init__(self) -> None:
        if not (isinstance(self.n_trees, Integral) and self.n_trees >= 1):
            raise InvalidInput(f"n_trees must be a whole number, at least 1; got {self.n_trees!r}.")
        if not (math.isfinite(self.min_leaf) and self.min_leaf > 0):
            raise InvalidInput(f"min_leaf must be a number of rows above 0; got {self.min_leaf!r}.")
        if self.max_rows is not None and not (isinstance(self.max_rows, Integral) and self.max_rows >= 2):
            raise InvalidInput(f"max_rows must be a whole number, at least 2, or None; got {self.max_rows!r}.")
        if self.jobs == 0:
            raise InvalidInput("jobs must be a number of threads, or -1 for one on each core; got 0.")
        self.draws(1)

    def fit(self, data: PUData, weights: RowWeights, seed: int) -> Trees:
        """The forest of these rows; its trees do not depend on `jobs`."""
        rows = _rows(data, weights, self.max_rows)
        return _collect(self._grown(rows, seed), len(rows.x))

    def learn(self, data: PUData, weights: RowWeights, seed: int) -> tuple[Trees, float]:
        """The forest, and the threshold at which it decides: that of as many rows as a tree gets."""
        rows = _rows(data, weights, self.max_rows)
        # Where every tree gets every row, growing it says all that walking down again would.
        whole = len(rows.mass) * self.n_trees <= KEPT and all(count == len(own) for own, count in rows.groups)
        grown = self._grown(rows, seed, say=whole)
        trees, own = _collect(grown, len(rows.x)), rows.draw(np.random.default_rng(derive(seed, self.n_trees)))
        positive, background = torch.from_numpy(rows.positive[own]), torch.from_numpy(rows.background[own])
        scores = log_odds(_mean(grown)) if whole else trees.log_odds(rows.x[:, own].T)
        return trees, prior_threshold(scores, RowWeights(positive, background - positive))

    def _grown(self, rows: Rows, seed: int, *, say: bool = False) -> list[Grown]:
        limits = Limits(self.min_leaf, self.draws(len(rows.x)))
        seeds = [derive(seed, tree) for tree in range(self.n_trees)]
        size = max(1, PAIRS // sum(count for _, count in rows.groups))
        blocks = [seeds[start : start + size] for start in range(0, self.n_trees, size)]
        run: list[Grown] = Parallel(n_jobs=self.jobs, prefer="threads")(
            delayed(grow)(rows, limits, block, say=say) for block in blocks
        )
        return run

    def draws(self, n_features: int) -> int:
        """How many splits are weighed in a node of a table with so many features."""
        if self.max_features == "sqrt":
            return max(1, math.isqrt(n_features))
        if self.max_features == "all":
            return n_features
        if isinstance(self.max_features, Integral) and self.max_features >= 1:
            return min(int(self.max_features), n_features)
        if isinstance(self.max_features, float) and 0 < self.max_features <= 1:
            return max(1, int(self.max_features * n_features))
        raise InvalidInput(
            f"max_features must be a number of features, a share in (0, 1], 'sqrt' or 'all'; got {self.max_features!r}."
        )


def _rows(data: PUData, weights: RowWeights, most: int | None) -> Rows:
    """Rows that have some weight; the others teach nothing. Those that a tree may not get weigh more where it does."""
    positive, background = weights.positive.numpy(), weights.background.clamp(min=0).numpy()
    used = (positive > 0) | (background > 0)
    x = as_float32(dense(data.x))
    positive, background, mass = positive[used], background[used], data.mass.numpy()[used]
    groups = _groups(positive > 0, len(mass) if most is None else most)
    factor = np.ones(len(mass))
    for own, count in groups:
        factor[own] = len(own) / count if count else 1.0
    return Rows(np.ascontiguousarray(x[used].T), factor * positive, factor * background, mass, groups)


def _groups(labeled: NDArray[np.bool_], most: int) -> list[tuple[NDArray[np.int64], int]]:
    """Labeled and other rows, and how many of each a tree gets."""
    both = [np.flatnonzero(labeled), np.flatnonzero(~labeled)]
    first = min(len(both[0]), max(most // 2, most - len(both[1])))
    return [(both[0], first), (both[1], min(len(both[1]), most - first))]


def _mean(grown: Sequence[Grown]) -> NDArray[np.float64]:
    """Of what all trees said while they grew, summed in their order as `Trees.probability` does."""
    found = np.zeros(grown[0].said.shape[1])
    for said in (said for block in grown for said in block.said):
        found += said
    return np.asarray(found / sum(len(block.said) for block in grown))


def _collect(grown: Sequence[Grown], n_features: int) -> Trees:
    """The nodes of trees that grew level by level, tree after tree."""
    levels = [level for block in grown for level in block.levels]
    before = np.cumsum([0, *(len(block.levels[0].tree) for block in grown)])
    tree = np.concatenate([level.tree + n for block, n in zip(grown, before, strict=False) for level in block.levels])
    order = np.argsort(tree, kind="stable")
    place = np.argsort(order, kind="stable")
    left = _left_children(levels)[order]
    return Trees(
        n_features,
        np.searchsorted(tree[order], np.arange(before[-1])),
        np.where(left == LEAF, LEAF, place[left]).astype(np.int32),
        np.where(left == LEAF, LEAF, place[np.minimum(left + 1, len(tree) - 1)]).astype(np.int32),
        np.concatenate([level.split.feature for level in levels])[order].astype(np.int32),
        np.concatenate([level.split.threshold for level in levels])[order],
        np.concatenate([level.split.missing_left for level in levels])[order],
        np.concatenate([level.value for level in levels])[order],
    )


def _left_children(levels: Sequence[Level]) -> NDArray[np.int64]:
    """Where the left child of each node stands when all levels follow one another; its sibling stands beside it."""
    found, first = [], 0
    for level in levels:
        divided = level.split.feature != LEAF
        first += len(level.tree)
        found.append(np.where(divided, first + 2 * (np.cumsum(divided) - 1), LEAF))
    return np.concatenate(found)
