"""`Blended`: a forest, boosting and a regression whose scores add up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pue.errors import InvalidInput
from pue.persistence import kept
from pue.trees.boosted import BoostedTrees
from pue.trees.nodes import Ensemble, Trees
from pue.trees.ridge import Ridge
from pue.trees.shapley import expected_score, node_covers, shapley_values

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

VOTE = 4.0
"""The slope of the log-odds of p at p = ½: a forest's share of votes p enters as 4 (p − ½), so that it is of the scale
of the others, and adds up over its trees."""


@kept
@dataclass(frozen=True, eq=False)
class Blended:
    """start + Σ share · score, of the members in this order."""

    forest: Trees
    boosted: BoostedTrees
    line: Ridge
    shares: Floats
    start: float

    def __post_init__(self) -> None:
        if self.shares.shape != (3,) or not (np.isfinite(self.shares).all() and (self.shares >= 0).all()):
            raise InvalidInput("a blend has three shares, none below zero. It is damaged: fit again.")
        n, line = self.forest.n_features, self.line
        shapes = line.mean.shape, line.scale.shape, line.beta.shape
        if self.boosted.n_features != n or shapes != ((n,), (n,), (n + 1,)):
            raise InvalidInput("the members of the blend do not look at the same features. It is damaged: fit again.")
        if not all(np.isfinite(each).all() for each in (line.mean, line.scale, line.beta, self.start)):
            raise InvalidInput("the blend holds what is no number. It is damaged: fit again.")
        if not (line.scale > 0).all():
            raise InvalidInput("a spread of the blend's regression is not above zero. It is damaged: fit again.")

    @property
    def n_features(self) -> int:
        return self.forest.n_features

    def log_odds(self, matrix: Any) -> Floats:
        """The score of each row; it is finite."""
        return np.asarray(scores(self.forest, self.boosted, self.line, matrix) @ self.shares + self.start)

    def _trees(self) -> Iterator[tuple[Ensemble, float]]:
        """The members that are trees, and by what their additive scores are multiplied."""
        yield self.forest, VOTE * self.shares[0]
        yield self.boosted, self.shares[1]


def scores(forest: Trees, boosted: BoostedTrees, line: Ridge, matrix: Any) -> Floats:
    """(rows, members)."""
    votes = VOTE * (forest.probability(matrix) - 0.5)
    return np.column_stack([votes, boosted.log_odds(matrix), line.margin(np.asarray(matrix))])


def covers_of(model: Ensemble | Blended, matrix: Any) -> Ints:
    """How many of these rows come by each node, tree after tree."""
    if isinstance(model, Ensemble):
        return node_covers(model, matrix)
    return np.concatenate([node_covers(trees, matrix) for trees, _ in model._trees()])


def base_of(model: Ensemble | Blended, covers: Ints) -> float:
    """The additive score of a row of which no column is known; of the regression, that of a row of means."""
    if isinstance(model, Ensemble):
        return expected_score(model, covers)
    known = model.start - VOTE * model.shares[0] / 2 + model.shares[2] * model.line.beta[-1]
    return float(known + sum(factor * expected_score(trees, own) for trees, factor, own in _with_covers(model, covers)))


def effects_of(model: Ensemble | Blended, matrix: Any, covers: Ints, players: Ints | None = None) -> Floats:
    """(rows, players): Shapley values of the additive score; with `base_of` they sum to it."""
    if isinstance(model, Ensemble):
        return shapley_values(model, matrix, covers, players)
    owners = np.arange(model.n_features) if players is None else np.asarray(players, dtype=np.int64)
    found = sum(
        factor * shapley_values(trees, matrix, own, owners) for trees, factor, own in _with_covers(model, covers)
    )
    own = model.line.effects(np.asarray(matrix))
    return np.asarray(found + model.shares[2] * (own @ np.eye(int(owners.max(initial=-1)) + 1)[owners]))


def _with_covers(model: Blended, covers: Ints) -> Iterator[tuple[Ensemble, float, Ints]]:
    """The covers shared out among the members that are trees."""
    nodes = model.forest.n_nodes + model.boosted.n_nodes
    if covers.shape != (nodes,):
        raise InvalidInput(f"{nodes} nodes need as many covers; got {covers.shape}.")
    parts = np.split(covers, [model.forest.n_nodes])
    return ((trees, factor, own) for (trees, factor), own in zip(model._trees(), parts, strict=True))
