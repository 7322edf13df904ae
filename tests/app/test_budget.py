"""A budget: the best rows without a label, ties by lot, and an interval that holds what it says."""

from __future__ import annotations

import numpy as np
import pytest

from pue.app.budget import doubt_of, expected_hits, spend
from pue.errors import InvalidInput


def test_rows_with_a_label_are_passed_over() -> None:
    p = np.array([0.9, 0.8, 0.7, 0.6])
    found = spend(p, 2, known=np.array([True, False, True, False]))
    assert found.rows.tolist() == [False, True, False, True]
    assert (found.threshold, found.known, found.tied) == (0.6, 2, 0)


def test_the_lot_decides_between_equal_rows_alike_for_all_of_them() -> None:
    p = np.array([0.9, *[0.5] * 10, 0.1])
    drawn = np.array([spend(p, 4, seed=seed).rows for seed in range(600)])
    assert drawn[:, 0].all()
    assert not drawn[:, -1].any()
    assert np.abs(drawn[:, 1:-1].mean(0) - 0.3).max() < 0.08  # four standard deviations
    assert spend(p, 4).tied == 10
    assert spend(p, 11).tied == 0, "all of the equal rows are taken"


@pytest.mark.parametrize(
    ("p", "k", "known", "message"),
    [
        ([0.5, 0.6], 0, None, "at least 1; got 0"),
        ([0.5, 0.5, 0.5], 2, None, "all 3 rows have the same probability, 0.500: a budget would be a lottery"),
        ([0.9, 0.5, 0.5, 0.5], 2, [1, 0, 0, 0], "all 3 rows have the same probability"),
        ([0.9, 0.5], 2, [1, 1], "every row has a label already"),
    ],
)
def test_a_budget_that_cannot_be_spent_is_an_error(p: list[float], k: int, known: list[int], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        spend(np.array(p), k, known=None if known is None else np.array(known, dtype=bool))


def test_equal_rows_are_no_error_if_all_of_them_are_taken() -> None:
    assert spend(np.array([0.5, 0.5]), 2).rows.all()


def test_the_interval_is_that_of_a_plain_simulation() -> None:
    rng = np.random.default_rng(1)
    q, doubt = rng.uniform(0.05, 0.95, 80), (0.4, 0.7)
    simulated = []
    for _ in range(4000):  # the slow twin: a factor for all rows, then every row by itself
        z = rng.standard_normal() / 1.959964
        chances = q * max(0, 1 + z * (1 - doubt[0])) if z < 0 else 1 - (1 - q) * max(0, 1 - z * (1 - doubt[1]))
        simulated.append((rng.random(80) < chances).sum())
    found = expected_hits(q, doubt)
    assert found.value == q.sum()
    assert abs(found.low - np.quantile(simulated, 0.025)) <= 2
    assert abs(found.high - np.quantile(simulated, 0.975)) <= 2


def test_rows_that_seem_certain_are_as_doubtful_as_the_precision() -> None:
    assert expected_hits(np.full(300, 0.999), (0.5, 1.0)).low < 160


def test_hits_stay_between_none_and_all() -> None:
    assert expected_hits(np.ones(9)).low == 9
    wide = expected_hits(np.full(10, 0.9), (0.0, 0.0))
    assert (str(wide.low), wide.high) == ("0.0", 10)


def test_without_an_estimate_there_is_no_doubt_to_carry_over() -> None:
    assert doubt_of(None) == doubt_of({"values": {"precision": {"value": None}}}) == (1.0, 1.0)
