"""Shapley values of trees, exactly (path-dependent TreeSHAP), with columns as players.

What a row's score would be if only the columns in S were known is v(S): walk down the trees by these columns, and where
another one is asked for, go both ways, in the proportions of the rows that went there at training (the covers). Of a
leaf it is a product: Π o over the players in S on its path, Π r over the others, where o is 1 if the row satisfies all
conditions of a player and r is the product of that player's shares of the covers. So its Shapley value is an integral

    φ_j = value · (o_j − r_j) ∫₀¹ Π_{i ≠ j} (t o_i + (1 − t) r_i) dt

of a polynomial, which Gauss's rule computes without error. Leaves below an edge share its player's o and r: products
are made from the roots down, sums over leaves from the leaves up (the idea of Linear TreeSHAP, Yu et al. 2022), and all
rows of a block are computed at once. A player may own several features, as the one-hot columns of a category.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pue.errors import InvalidInput
from pue.trees.boosted import BoostedTrees
from pue.trees.nodes import LEAF, STEPS, Ensemble, as_float32

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROWS, NODES = 128, 1 << 12
"""Rows and nodes that are computed at once, about: what the processor keeps near."""


def node_covers(trees: Ensemble, matrix: Any) -> Ints:
    """How many of these rows come by each node."""
    rows = _seen(trees, matrix)
    found = np.zeros(trees.n_nodes, dtype=np.int64)
    for part in _blocks(trees, len(rows)):
        found += np.bincount(trees._leaves(rows[part]).ravel(), minlength=trees.n_nodes)
    for node in np.flatnonzero(trees.left != LEAF)[::-1]:  # a child comes after its parent
        found[node] = found[trees.left[node]] + found[trees.right[node]]
    return found


def expected_score(trees: Ensemble, covers: Ints) -> float:
    """v(∅): the additive score if no column were known."""
    share = np.ones(trees.n_nodes)
    for node in np.flatnonzero(trees.left != LEAF):
        for child in (trees.left[node], trees.right[node]):
            share[child] = share[node] * (covers[child] / covers[node] if covers[node] else 0.0)
    leaf = trees.left == LEAF
    return float(share[leaf] @ _additive(trees)[leaf]) + _start(trees)


def additive_score(trees: Ensemble, matrix: Any) -> Floats:
    """What the values sum to, with `expected_score`: the mean of the trees of a forest, the log-odds of boosting."""
    rows, value = _seen(trees, matrix), _additive(trees)
    parts = [value[trees._leaves(rows[part])].sum(0) for part in _blocks(trees, len(rows))]
    return np.concatenate([np.zeros(0), *parts]) + _start(trees)


def shapley_values(trees: Ensemble, matrix: Any, covers: Ints, players: Ints | None = None) -> Floats:
    """(rows, players): how much each player moves the additive score of each row. `players` says who owns a feature;
    None: every feature is its own.

    >>> from pue.trees import Trees
    >>> stump = dict(left=np.int32([1, -1, -1]), right=np.int32([2, -1, -1]), feature=np.int32([0, 0, 0]))
    >>> numbers = dict(threshold=np.array([0.5, 0, 0]), value=np.array([0.4, 0.1, 0.9]))
    >>> trees = Trees(1, np.int64([0]), **stump, **numbers, missing_left=np.zeros(3, dtype=bool))
    >>> shapley_values(trees, [[0.0], [1.0]], covers=np.array([4, 3, 1])).round(3).tolist()
    [[-0.2], [0.6]]
    """
    owners = np.arange(trees.n_features) if players is None else np.asarray(players, dtype=np.int64)
    if owners.shape != (trees.n_features,) or covers.shape != (trees.n_nodes,):
        raise InvalidInput(
            f"{trees.n_features} features need as many players, and {trees.n_nodes} nodes as many covers; got "
            f"{owners.shape} and {covers.shape}."
        )
    rows = _seen(trees, matrix)
    found = np.zeros((len(rows), int(owners.max(initial=-1)) + 1))
    for paths in _chunks(trees, covers, owners):
        shape = (len(paths.parent), len(paths.weight))
        room = np.empty((*shape, min(ROWS, len(rows))))
        for start in range(0, len(rows), ROWS):
            part = rows[start : start + ROWS]
            found[start : start + ROWS] += _of_block(paths, part, room[:, :, : len(part)])
    return found


def _blocks(trees: Ensemble, n_rows: int) -> Iterator[slice]:
    """Rows that walk down all trees at once."""
    size = max(1, STEPS // trees.n_trees)
    return (slice(start, start + size) for start in range(0, n_rows, size))


def _seen(trees: Ensemble, matrix: Any) -> NDArray[Any]:
    """Rows as the trees compare them."""
    rows = trees._matrix(matrix)
    return np.ascontiguousarray(rows, dtype=np.float64) if isinstance(trees, BoostedTrees) else as_float32(rows)


def _additive(trees: Ensemble) -> Floats:
    """What a leaf adds to the score."""
    return trees.value / (len(trees.counts) if isinstance(trees, BoostedTrees) else trees.n_trees)


def _start(trees: Ensemble) -> float:
    return trees.start if isinstance(trees, BoostedTrees) else 0.0


@dataclass(frozen=True, eq=False)
class _Paths:
    """Some trees, their nodes level by level; per node what stands above it. Index 0 of `first` and the like is that of
    the first level below the roots."""

    levels: list[slice]
    parent: Ints
    feature: Ints
    threshold: Floats
    missing_left: NDArray[np.bool_]
    is_left: NDArray[np.bool_]
    """Of the split above a node."""
    before: Ints
    """The nearest node above with the same player; itself where there is none."""
    again: list[Ints]
    """Of every level below the roots, the nodes that have one, counted from its first."""
    owner: Floats
    """(nodes, players): 1 for the player of the split above."""
    factor: Floats
    """(nodes, points, 3): a node's factor for (1, o_before, o), a leaf's times its value."""
    gain: Floats
    """(nodes, 3, points): the same of what its player gains from leaves below, times the weights of Gauss's rule."""
    weight: Floats


def _chunks(trees: Ensemble, covers: Ints, owners: Ints) -> Iterator[_Paths]:
    ends, first = np.append(trees.starts[1:], trees.n_nodes), 0
    while first < trees.n_trees:
        last = max(first + 1, int(np.searchsorted(ends, trees.starts[first] + NODES, side="right")))
        yield _paths(trees, covers, owners, trees.starts[first:last])
        first = last


def _paths(trees: Ensemble, covers: Ints, owners: Ints, roots: Ints) -> _Paths:
    """The structure above every node; a root is its own parent and has no player."""
    nodes, parents, sides, levels, at = [roots], [np.arange(len(roots))], [np.zeros(len(roots), bool)], [], 0
    last = np.full((len(roots), int(owners.max()) + 1), -1)
    before = [np.arange(len(roots))]
    players = [np.zeros(len(roots), dtype=np.int64)]
    while len(nodes[-1]):
        size = len(nodes[-1])
        levels.append(slice(at, at + size))
        inner = np.flatnonzero(trees.left[nodes[-1]] != LEAF)
        above = nodes[-1][inner]
        nodes.append(np.concatenate([trees.left[above], trees.right[above]]).astype(np.int64))
        parents.append(np.tile(at + inner, 2))
        sides.append(np.repeat([True, False], len(inner)))
        own, number = np.tile(owners[trees.feature[above]], 2), at + size + np.arange(2 * len(inner))
        seen = np.tile(last[inner], (2, 1))
        known = seen[np.arange(len(own)), own]
        before.append(np.where(known < 0, number, known))
        seen[np.arange(len(own)), own] = number
        players.append(own)
        last, at = seen, at + size
    node, parent, is_left, back, player = (np.concatenate(part) for part in (nodes, parents, sides, before, players))
    share = np.ones(len(node))
    into = covers[node[parent]]
    np.divide(covers[node], into, out=share, where=into > 0)
    share[into == 0], share[levels[0]] = 0.0, 1.0
    alone = back == np.arange(len(node))
    for level in levels[1:]:  # shares of all conditions of a player together
        share[level] *= np.where(alone[level], 1.0, share[back[level]])
    points, weight = _rule(_most_players(parent, alone, levels))
    factor, gain = _tables(share, np.where(alone, 1.0, share[back]), points)
    factor *= np.where(trees.left[node] == LEAF, _additive(trees)[node], 1.0)[:, None, None]
    above = node[parent]
    return _Paths(
        levels, parent, trees.feature[above].astype(np.int64), trees.threshold[above], trees.missing_left[above],
        is_left, back, [np.flatnonzero(~alone[level]) for level in levels[1:]],
        (player[:, None] == np.arange(int(owners.max()) + 1)).astype(np.float64), factor, gain * weight, weight,
    )  # fmt: skip


def _most_players(parent: Ints, alone: NDArray[np.bool_], levels: list[slice]) -> int:
    count = np.zeros(len(parent), dtype=np.int64)
    for level in levels[1:]:
        count[level] = count[parent[level]] + alone[level]
    return int(count.max())


def _rule(degree: int) -> tuple[Floats, Floats]:
    """Points and weights on [0, 1] that integrate polynomials of a lower degree without error."""
    points, weight = np.polynomial.legendre.leggauss(max(1, -(-degree // 2)))
    return (points + 1) / 2, weight / 2


def _tables(share: Floats, above: Floats, t: Floats) -> tuple[Floats, Floats]:
    """Factors and gains as linear functions of (1, o_before, o), for the three cases (0, 0), (1, 0) and (1, 1) that
    there are. `above` is the share of the player's earlier conditions, 1 where there are none: then o_before is 1."""
    r, a = share[:, None], above[:, None]
    cases = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)]
    factors = [_ratio(t * o + (1 - t) * r, t * b + (1 - t) * a) for b, o in cases]
    gains = [_ratio(o - r, t * o + (1 - t) * r) - _ratio(b - a, t * b + (1 - t) * a) for b, o in cases]
    as_linear = [[x[0], x[1] - x[0], x[2] - x[1]] for x in (factors, gains)]
    return np.stack(as_linear[0], axis=2), np.stack(as_linear[1], axis=1)


def _ratio(top: Floats, bottom: Floats) -> Floats:
    """0 where both are: no row goes there, and nothing is lost."""
    return np.divide(top, bottom, out=np.zeros(np.broadcast_shapes(top.shape, bottom.shape)), where=bottom > 0)


def _of_block(paths: _Paths, rows: NDArray[Any], product: Floats) -> Floats:
    """Down: o of every node, and in `product` (nodes, points, rows) the factors on its path. Up: sums over leaves."""
    columns, missing = np.ascontiguousarray(rows.T), bool(np.isnan(rows).any())
    case = np.ones((len(paths.parent), 3, len(rows)))  # 1, o_before and o
    product[paths.levels[0]] = 1.0
    for level, again in zip(paths.levels[1:], paths.again, strict=True):
        seen, own = columns[paths.feature[level]], case[level]
        goes_left = seen <= paths.threshold[level, None]
        if missing:
            goes_left |= np.isnan(seen) & paths.missing_left[level, None]
        own[again, 1] = case[paths.before[level][again], 2]
        np.multiply(goes_left == paths.is_left[level, None], own[:, 1], out=own[:, 2])
        made, half = product[level], (level.stop - level.start) // 2  # children to the left, then those to the right
        np.matmul(paths.factor[level], own, out=made)
        above = product[paths.parent[level][:half]]
        made[:half] *= above
        made[half:] *= above
    return _gains(paths, case, product)


def _gains(paths: _Paths, case: Floats, total: Floats) -> Floats:
    """(rows, players), from the leaves up; the products of inner nodes give way to sums over the leaves below."""
    found = np.zeros((paths.owner.shape[1], total.shape[2]))
    for level in paths.levels[:0:-1]:
        gained = paths.gain[level] @ total[level]
        gained *= case[level]
        found += paths.owner[level].T @ gained.sum(1)
        half = (level.stop - level.start) // 2
        total[paths.parent[level][:half]] = total[level][:half] + total[level][half:]
    return found.T
