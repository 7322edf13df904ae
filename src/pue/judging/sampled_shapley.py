"""Shapley values of any score by sampling: columns become known in a random order, each worth what it changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Score = Callable[[NDArray[Any]], Floats]

AT_ONCE = 1 << 15
"""Rows that are scored at once."""


def sampled_shapley(
    score: Score,
    rows: NDArray[Any],
    background: NDArray[Any],
    players: NDArray[np.int64],
    *,
    orders: int = 32,
    seed: int = 0,
) -> tuple[Floats, float]:
    """(rows, players) and the mean score of the background, from which they start.

    A column that is not known has its value of a row of the background, drawn anew for every order. Every order is also
    taken backwards, with the same background row: for a score that is a sum over columns one pair is then exact but for
    the choice of that row. The values of a row add up to its score minus that of its background rows.

    >>> x = np.array([[1.0, 2.0]])
    >>> sampled_shapley(lambda rows: rows @ np.array([1.0, 10.0]), x, np.zeros((3, 2)), np.array([0, 1]))
    (array([[ 1., 20.]]), 0.0)
    """
    rng, n_players = np.random.default_rng(seed), int(players.max(initial=-1)) + 1
    pairs = max(1, orders // 2)
    drawn = [(rng.permutation(n_players), int(rng.integers(len(background)))) for _ in range(pairs)]
    found = np.zeros((len(rows), n_players))
    size = max(1, AT_ONCE // (n_players + 1))
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        for order, at in drawn:  # the same for all rows: what a row is told does not depend on its company
            for way in (order, order[::-1]):
                found[start : start + size][:, way] += _along(score, part, background[at], players, way)
    return found / (2 * pairs), float(score(background).mean())


def _along(
    score: Score, rows: NDArray[Any], other: NDArray[Any], players: NDArray[np.int64], order: NDArray[np.int64]
) -> Floats:
    """What each step of an order changes, (rows, steps)."""
    known = np.tile(other, (len(order) + 1, len(rows), 1))
    for step, player in enumerate(order, start=1):
        known[step:, :, players == player] = rows[:, players == player]
    scores = np.asarray(score(known.reshape(-1, rows.shape[1])), dtype=np.float64).reshape(len(order) + 1, len(rows))
    return np.diff(scores, axis=0).T
