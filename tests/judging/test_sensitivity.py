"""The worst case over wrong propensities against brute force."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from pue.errors import InvalidInput
from pue.judging.sensitivity import breaking_point, worst_case

numbers = st.floats(-2, 2, allow_nan=False).map(lambda value: round(value, 3))
rows = st.lists(st.tuples(numbers, st.floats(0.01, 1.0)), min_size=1, max_size=7)


def brute_force(h: Tensor, propensity: Tensor, gamma: float) -> tuple[float, float]:
    """Every corner of the box: a ratio of linear functions has its extremes there."""
    means = []
    for factors in itertools.product((1 / gamma, gamma), repeat=len(h)):
        weights = [factor / e for factor, e in zip(factors, propensity.tolist(), strict=True)]
        means.append(sum(w * value for w, value in zip(weights, h.tolist(), strict=True)) / sum(weights))
    return min(means), max(means)


@given(rows, st.floats(1, 10))
def test_sorting_and_thresholding_finds_the_extreme_corner(pairs: list[tuple[float, float]], gamma: float) -> None:
    h = torch.tensor([value for value, _ in pairs], dtype=torch.float64)
    e = torch.tensor([value for _, value in pairs], dtype=torch.float64)
    assert worst_case(h, e, gamma) == pytest.approx(brute_force(h, e, gamma), abs=1e-12)


def test_nothing_inside_the_box_is_beyond_the_corners() -> None:
    generator = torch.Generator().manual_seed(0)
    h, e = torch.randn(6, generator=generator), 0.05 + 0.9 * torch.rand(6, generator=generator)
    low, high = worst_case(h, e, 2.0)
    for _ in range(500):
        weights = 2.0 ** (2 * torch.rand(6, generator=generator) - 1) / e
        assert low - 1e-6 <= float((weights * h).sum() / weights.sum()) <= high + 1e-6


def test_known_propensities_leave_a_point_and_doubt_widens_it() -> None:
    h, e = torch.tensor([1.0, 0.0, 0.0, 1.0]), torch.tensor([0.3, 0.1, 0.3, 0.1])
    point = float((h / e).sum() / (1 / e).sum())
    assert worst_case(h, e, 1.0) == pytest.approx((point, point))
    ranges = [worst_case(h, e, gamma) for gamma in (1.0, 1.5, 2.0, 4.0)]
    assert all(wider[0] < narrow[0] and narrow[1] < wider[1] for narrow, wider in itertools.pairwise(ranges))
    assert worst_case(h, 0.1 * e, 2.0) == pytest.approx(worst_case(h, e, 2.0))  # only ratios matter


def test_the_breaking_point_is_where_the_range_reaches_the_value() -> None:
    h, e = torch.tensor([1.0, 0.0, 0.0, 1.0]), torch.tensor([0.3, 0.1, 0.3, 0.1])
    gamma = breaking_point(h, e, 0.9)
    assert worst_case(h, e, gamma)[1] == pytest.approx(0.9)
    assert breaking_point(h, e, 0.5) == pytest.approx(1.0)
    assert breaking_point(h, e, 1.1) == math.inf


@pytest.mark.parametrize("gamma", [0.5, 0.0, -1.0, math.nan, math.inf])
def test_a_factor_below_one_is_refused(gamma: float) -> None:
    with pytest.raises(InvalidInput, match="gamma must be at least 1"):
        worst_case(torch.ones(2), torch.ones(2), gamma)


def test_rows_and_shapes_must_fit() -> None:
    with pytest.raises(InvalidInput, match="one entry for each of the 3 labeled rows"):
        worst_case(torch.ones(3), torch.ones(2), 2.0)
    with pytest.raises(InvalidInput, match="h must be one-dimensional"):
        worst_case(torch.ones(2, 1), torch.ones(2), 2.0)
