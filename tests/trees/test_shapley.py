"""Shapley values of trees: against all subsets of players, in plain recursion; and what they add up to."""

from __future__ import annotations

from itertools import combinations
from math import factorial

import numpy as np
import pytest
import torch

from pue.core.data import PUData
from pue.core.weights import uniform
from pue.errors import InvalidInput
from pue.trees import Boosting, Ensemble, Forest
from pue.trees.nodes import LEAF
from pue.trees.shapley import additive_score, expected_score, node_covers, shapley_values


def problem(n: int = 200, columns: int = 5, seed: int = 0) -> PUData:
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.5
    x = rng.normal(size=(n, columns)) + y[:, None] * rng.normal(size=columns)
    x[:, -1] = rng.integers(0, 3, n)
    labels = (y & (rng.random(n) < 0.6)).astype(np.int64)
    return PUData(torch.from_numpy(x.astype(np.float32)), torch.from_numpy(labels))


def fitted(kind: str, data: PUData) -> Ensemble:
    learner = Forest(n_trees=7, min_leaf=3) if kind == "forest" else Boosting(rounds=12, folds=2)
    return learner.fit(data, uniform(data.labels, prior=0.5), seed=0)


def known_score(trees: Ensemble, row: np.ndarray, covers: np.ndarray, known: set[int], owners: np.ndarray) -> float:
    """v(S) by plain recursion over every tree."""

    def below(node: int) -> float:
        if trees.left[node] == LEAF:
            return float(trees.value[node])
        left, right, feature = int(trees.left[node]), int(trees.right[node]), int(trees.feature[node])
        if owners[feature] in known:
            seen = row[feature]
            goes_left = bool(trees.missing_left[node]) if np.isnan(seen) else seen <= trees.threshold[node]
            return below(left if goes_left else right)
        if covers[node] == 0:
            return 0.0
        return (covers[left] * below(left) + covers[right] * below(right)) / float(covers[node])

    total = sum(below(int(root)) for root in trees.starts)
    counts = getattr(trees, "counts", None)
    return total / trees.n_trees if counts is None else total / len(counts) + trees.start


def all_subsets(trees: Ensemble, row: np.ndarray, covers: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """The definition: a mean over all orders in which players become known."""
    players = range(int(owners.max()) + 1)
    n, found = len(players), np.zeros(len(players))
    for player in players:
        others = [other for other in players if other != player]
        for size in range(n):
            weight = factorial(size) * factorial(n - size - 1) / factorial(n)
            for chosen in combinations(others, size):
                gain = known_score(trees, row, covers, {*chosen, player}, owners)
                found[player] += weight * (gain - known_score(trees, row, covers, set(chosen), owners))
    return found


@pytest.mark.parametrize("kind", ["forest", "boosting"])
@pytest.mark.parametrize("owners", [[0, 1, 2, 3, 4], [0, 1, 1, 2, 0]], ids=["each its own", "two columns of two"])
def test_they_are_those_of_all_subsets(kind: str, owners: list[int]) -> None:
    data = problem()
    trees, x = fitted(kind, data), data.x.numpy()
    covers, players = node_covers(trees, x), np.array(owners)
    rows = x[:4].copy()
    rows[1, 2] = np.nan
    found = shapley_values(trees, rows, covers, players)
    wanted = np.stack([all_subsets(trees, row, covers, players) for row in rows])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)
    assert np.abs(wanted).max() > 0.02


@pytest.mark.parametrize("kind", ["forest", "boosting"])
def test_covers_of_a_few_rows_do_no_harm(kind: str) -> None:
    """Most branches are then empty, and their share is nothing."""
    data = problem()
    trees, x = fitted(kind, data), data.x.numpy()
    covers = node_covers(trees, x[:6])
    players = np.arange(5)
    found = shapley_values(trees, x[10:13], covers, players)
    wanted = np.stack([all_subsets(trees, row, covers, players) for row in x[10:13]])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["forest", "boosting"])
def test_they_add_up_to_the_score_for_many_rows_and_deep_trees(kind: str) -> None:
    data = problem(3000, 12)
    trees, x = fitted(kind, data), data.x.numpy()
    covers = node_covers(trees, x)
    found = shapley_values(trees, x[:700], covers, np.arange(12) // 2)
    score = additive_score(trees, x[:700])
    np.testing.assert_allclose(found.sum(1) + expected_score(trees, covers), score, atol=1e-9)
    np.testing.assert_allclose(shapley_values(trees, x[5:6], covers, np.arange(12) // 2), found[5:6], atol=1e-12)
    if kind == "forest":
        np.testing.assert_allclose(score, trees.probability(x[:700]), atol=1e-12)  # type: ignore[attr-defined]
    else:
        np.testing.assert_allclose(score, trees.log_odds(x[:700]), atol=1e-12)


def test_covers_count_rows_by_hand() -> None:
    data = problem()
    trees, x = fitted("forest", data), data.x.numpy()
    covers = node_covers(trees, x)
    assert (covers[trees.starts] == len(x)).all()
    inner = np.flatnonzero(trees.left != LEAF)
    assert (covers[inner] == covers[trees.left[inner]] + covers[trees.right[inner]]).all()
    root = int(trees.starts[0])
    assert covers[trees.left[root]] == (x[:, trees.feature[root]] <= trees.threshold[root]).sum()


def test_players_and_covers_must_fit() -> None:
    data = problem()
    trees, x = fitted("forest", data), data.x.numpy()
    with pytest.raises(InvalidInput, match="5 features need as many players"):
        shapley_values(trees, x, node_covers(trees, x), np.arange(4))


def test_a_tree_without_a_split_moves_nothing() -> None:
    data = problem()
    trees = Forest(n_trees=2, min_leaf=1000).fit(data, uniform(data.labels, prior=0.5), seed=0)
    assert trees.n_nodes == 2
    assert (shapley_values(trees, data.x.numpy()[:3], node_covers(trees, data.x.numpy())) == 0).all()
