"""What boosting follows: value, gradient and curvature against plain loops and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from twins_trees import banded_gradient, logistic_pu_risk

from pue.trees.gradient import BANDS, FLAT, Weighted, softplus


def problem(seed: int, *, heavy: bool, n: int = 40) -> tuple[np.ndarray, Weighted]:
    rng = np.random.default_rng(seed)
    labeled = rng.random(n) < 0.3
    positive = np.where(labeled, rng.uniform(2, 9) if heavy else 0.4, 0.0)
    background = np.where(labeled & (seed % 2 == 1), 0.0, rng.uniform(0.5, 1.5, n))  # odd seeds: case-control
    return rng.normal(size=n) + (3 * labeled if heavy else 0), Weighted(positive, background)


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_the_gradient_equals_its_twin(seed: int, heavy: bool) -> None:
    scores, rows = problem(seed, heavy=heavy)
    found, _ = rows.gradient(scores)
    wanted = banded_gradient(scores.tolist(), rows.positive.tolist(), rows.background.tolist(), BANDS)
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    assert rows.outweighed(1 / (1 + np.exp(-scores))).any() or not heavy


@pytest.mark.parametrize("seed", range(4))
def test_where_nothing_is_outweighed_it_is_the_derivative_of_the_risk(seed: int) -> None:
    scores, rows = problem(seed, heavy=False)
    rows = Weighted(0.3 * rows.positive, rows.background + 0.5)
    assert not rows.outweighed(1 / (1 + np.exp(-scores))).any()
    first, second = rows.gradient(scores)
    a, b, step = rows.positive.tolist(), rows.background.tolist(), 1e-4
    for row in range(len(scores)):
        at = [logistic_pu_risk([*scores[:row], scores[row] + d, *scores[row + 1 :]], a, b) for d in (-step, 0, step)]
        assert first[row] == pytest.approx((at[2] - at[0]) / (2 * step), abs=1e-6)
        assert second[row] == pytest.approx((at[2] - 2 * at[1] + at[0]) / step**2, abs=1e-4)


def test_the_pull_of_labeled_rows_that_stand_alone_goes_out() -> None:
    """Without the correction it would stay at b − w⁺ however large the score, and the risk would fall without end."""
    alone = Weighted(np.array([5.0, 5.0, 0.0]), np.array([1.0, 1.0, 1.0]))
    pulls = [alone.gradient(np.array([g, g, -g]))[0][0] for g in (2.0, 5.0, 20.0)]
    assert pulls[0] < pulls[1] < pulls[2] < 0
    assert pulls[2] > -1e-6


@pytest.mark.parametrize("seed", range(4))
def test_the_risk_is_nnpus(seed: int) -> None:
    scores, rows = problem(seed, heavy=seed > 1)
    negative = (rows.background - rows.positive) @ np.log1p(np.exp(scores))
    plain = logistic_pu_risk(scores.tolist(), rows.positive.tolist(), rows.background.tolist())
    assert rows.risk(scores) == pytest.approx(plain - min(negative, 0))
    assert rows.risk(scores) >= 0


def test_curvature_and_loss_at_the_ends() -> None:
    scores = np.array([-800.0, 0.0, 800.0])
    first, second = Weighted(np.zeros(3), np.ones(3)).gradient(scores)
    np.testing.assert_allclose(first, [0, 0.5, 1], atol=1e-12)
    np.testing.assert_allclose(second, [FLAT, 0.25, FLAT])
    np.testing.assert_allclose(softplus(scores), [0, np.log(2), 800], atol=1e-12)


def test_a_part_has_the_weight_of_the_whole() -> None:
    rows = Weighted(np.array([1.0, 0.0, 3.0]), np.array([1.0, 2.0, 1.0]))
    part = rows.part(np.array([True, True, False]))
    assert part.positive.tolist() == [4, 0]
    assert part.background.sum() == 4
    assert rows.part(np.array([False, True, False])).positive.tolist() == [0]  # no label in it
