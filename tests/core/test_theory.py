"""The paper's bounds and identities: each function against its definition, each theorem on data that could break it."""

from __future__ import annotations

import math

import pytest
import torch
import twins
from hypothesis import assume, given
from hypothesis import strategies as st

from pue import theory, weights
from pue.core.losses import LOSSES
from pue.core.risks import upu
from pue.errors import InvalidInput

Rows = list[tuple[float, float, float]]


def rows(h_low: float = -1, h_high: float = 1) -> st.SearchStrategy[Rows]:
    """Labeled rows as (propensity, estimate, h)."""
    propensity = twins.numbers(0.02, 1)
    row = st.tuples(propensity, propensity, twins.numbers(h_low, h_high))
    return st.lists(row, min_size=1, max_size=8)


def columns(table: Rows) -> tuple[list[float], list[float], list[float]]:
    e, estimate, h = zip(*table, strict=True)
    return list(e), list(estimate), list(h)


def tensors(*lists: list[float]) -> list[torch.Tensor]:
    return [twins.tensor(each) for each in lists]


n_positives = st.integers(1, 60)


# ----------------------------------------------------------------------------------- Theorem 1 and 2


@given(n=st.integers(1, 10**6), loss_max=twins.numbers(0.1, 4), eta=twins.numbers(0.001, 0.999))
def test_ipw_bound_equals_its_twin(n, loss_max, eta):
    assert theory.ipw_bound(n, loss_max=loss_max, eta=eta) == pytest.approx(twins.ipw_bound(n, loss_max, eta))


@given(n_p=st.integers(1, 5000), n_u=st.integers(1, 5000), prior=twins.numbers(0.01, 0.99))
def test_common_pu_bound_equals_its_twin(n_p, n_u, prior):
    got = theory.common_pu_bound(n_p, n_u, prior, loss_max=2.0, eta=0.1)
    assert got == pytest.approx(twins.common_pu_bound(n_p, n_u, prior, 2.0, 0.1))


def test_four_times_the_rows_halve_the_ipw_bound():
    assert theory.ipw_bound(400) == pytest.approx(theory.ipw_bound(100) / 2)


@pytest.mark.parametrize(("n", "eta"), [(0, 0.05), (10, 0.0), (10, 1.0)])
def test_ipw_bound_refuses_impossible_arguments(n, eta):
    with pytest.raises(InvalidInput, match=r"n must be positive and eta lie in \(0, 1\); got n="):
        theory.ipw_bound(n, eta=eta)


# ------------------------------------------------------------------------- two weightings of the same rows


@given(
    pairs=st.lists(st.tuples(twins.numbers(0.01, 5), twins.numbers(0.01, 5)), min_size=1, max_size=8),
    prior=twins.numbers(0.05, 0.95),
    h_max=twins.numbers(0.1, 4),
)
def test_weighting_gap_bound_equals_its_twin(pairs, prior, h_max):
    one, other = (list(each) for each in zip(*pairs, strict=True))
    got = theory.weighting_gap_bound(*tensors(one, other), prior, h_max=h_max)
    assert got == pytest.approx(twins.weighting_gap_bound(one, other, prior, h_max), abs=1e-15)


@given(sample=twins.pu_samples(), loss=st.sampled_from(["sigmoid", "ramp", "zero_one"]))
def test_no_score_moves_pue_further_from_upu_than_the_bound(sample, loss):
    labels, e = torch.tensor(sample.labels), twins.tensor(sample.propensity)
    options = {"prior": sample.prior, "scenario": sample.scenario}
    scores, risk = twins.tensor(sample.scores), upu(LOSSES[loss])
    pue = risk(scores, weights.normalized_inverse_propensity(labels, e, **options))
    plain = risk(scores, weights.uniform(labels, **options))
    bound = theory.weighting_gap_bound(1 / e, torch.ones(len(e)), sample.prior)
    assert abs(pue.item() - plain.item()) <= bound + 1e-12


def test_the_weighting_gap_bound_is_reached():
    # Scores that call the over-weighted row negative and the other positive, with h = ±1.
    labels, e = torch.tensor([1, 1, 0, 0, 0]), twins.tensor([0.1, 0.3])
    scores, risk = twins.tensor([-1, 1, 0, 0, 0]), upu(LOSSES["zero_one"])
    pue = risk(scores, weights.normalized_inverse_propensity(labels, e, prior=0.4))
    plain = risk(scores, weights.uniform(labels, prior=0.4))
    assert (pue - plain).item() == pytest.approx(theory.weighting_gap_bound(1 / e, torch.ones(2), 0.4))


# -------------------------------------------------------------------------- what normalising changes (§11-1)


@given(table=rows(), n_positive=n_positives)
def test_normalization_gap_is_the_difference_of_the_two_means(table, n_positive):
    e, _, h = columns(table)
    got = theory.normalization_gap(*tensors(e, h), n_positive)
    assert got == pytest.approx(twins.normalization_gap(e, h, n_positive), rel=1e-9, abs=1e-12)


@given(table=rows(), n_positive=n_positives, loss_max=twins.numbers(0.5, 3))
def test_normalization_bounds_equal_their_twins(table, n_positive, loss_max):
    e, _, _ = columns(table)
    for safe in (True, False):
        got = theory.normalization_bound(*tensors(e), n_positive, loss_max=loss_max, safe=safe)
        assert got == pytest.approx(twins.normalization_bound(e, n_positive, loss_max, safe=safe), abs=1e-12)


@given(table=rows(-2, 2), n_positive=n_positives)
def test_the_safe_normalization_bound_always_holds(table, n_positive):
    e, _, h = tensors(*columns(table))
    assert abs(theory.normalization_gap(e, h, n_positive)) <= theory.normalization_bound(e, n_positive) + 1e-9


def test_the_printed_normalization_bound_can_fail():
    # W = 10 where N_P = 1: μ_N = 20 is far outside ±2, which the printed proof takes for granted.
    e, h = twins.tensor([0.1]), twins.tensor([2.0])
    gap = abs(theory.normalization_gap(e, h, 1))
    assert gap > theory.normalization_bound(e, 1, safe=False)
    assert gap <= theory.normalization_bound(e, 1, safe=True)


# ------------------------------------------------------------------ what estimated propensities change (§11-2)


@given(table=rows())
def test_estimation_gap_is_the_difference_of_the_two_means(table):
    e, estimate, h = columns(table)
    got = theory.estimation_gap(*tensors(e, estimate, h))
    assert got == pytest.approx(twins.estimation_gap(e, estimate, h), abs=1e-12)


@given(table=rows(), loss_max=twins.numbers(0.5, 3), non_negative=st.booleans())
def test_estimation_bound_equals_its_twin(table, loss_max, non_negative):
    e, estimate, _ = columns(table)
    got = theory.estimation_bound(*tensors(e, estimate), loss_max=loss_max, non_negative_loss=non_negative)
    assert got == pytest.approx(twins.estimation_bound(e, estimate, 2 if non_negative else 4, loss_max), abs=1e-12)


@given(table=rows(-2, 2))
def test_the_estimation_bound_always_holds(table):
    e, estimate, h = tensors(*columns(table))
    assert abs(theory.estimation_gap(e, estimate, h)) <= theory.estimation_bound(e, estimate) + 1e-12


@given(table=rows(-1, 1))
def test_half_of_it_suffices_for_a_non_negative_loss(table):
    # ℓ ≥ 0 gives |h| ≤ L_max instead of 2 L_max.
    e, estimate, h = tensors(*columns(table))
    bound = theory.estimation_bound(e, estimate, non_negative_loss=True)
    assert abs(theory.estimation_gap(e, estimate, h)) <= bound + 1e-12


@given(table=rows(), factor=twins.numbers(0.05, 1))
def test_a_common_factor_on_the_estimates_changes_nothing(table, factor):
    e, _, h = tensors(*columns(table))
    assert theory.estimation_gap(e, factor * e, h) == pytest.approx(0, abs=1e-12)


# --------------------------------------------------------------------------------------- the bias (§11-4)


@given(table=rows(), n=st.integers(8, 100), marks=st.lists(st.booleans(), min_size=8, max_size=8))
def test_estimation_bias_equals_its_twin(table, n, marks):
    e, estimate, h = columns(table)
    got = theory.estimation_bias(*tensors(e, estimate, h), n)
    assert got == pytest.approx(twins.estimation_bias(e, estimate, h, n), abs=1e-12)
    labeled = marks[: len(e)]
    assume(any(labeled))
    got = theory.estimation_bias(*tensors(e, estimate, h), n, labeled=torch.tensor(labeled))
    assert got == pytest.approx(twins.estimation_bias(e, estimate, h, n, labeled), rel=1e-9, abs=1e-12)


@given(table=rows(), n=st.integers(8, 100))
def test_true_propensities_have_no_bias(table, n):
    e, _, h = tensors(*columns(table))
    assert theory.estimation_bias(e, e, h, n) == pytest.approx(0, abs=1e-14)


# ------------------------------------------------------------------------------- errors of a ratio (§11-5)


@given(table=rows(), ratio=twins.numbers(0.05, 1), n=st.integers(1, 100))
def test_weight_errors_stay_within_their_bound(table, ratio, n):
    # The second column serves as the place of ê between βe and e.
    e, place, _ = tensors(*columns(table))
    estimate = e * (ratio + place * (1 - ratio))
    bound = theory.weight_error_bound(e, ratio, n)
    assert bool(((1 / (n * estimate) - 1 / (n * e)).abs() <= bound + 1e-12).all())


def test_weight_error_bound_is_reached_at_its_ratio():
    e = twins.tensor([0.1, 0.4])
    torch.testing.assert_close(theory.weight_error_bound(e, 0.5, 10), 1 / (10 * 0.5 * e) - 1 / (10 * e))


@pytest.mark.parametrize("ratio", [0.0, -1.0, 1.1])
def test_weight_error_bound_refuses_an_impossible_ratio(ratio):
    with pytest.raises(InvalidInput, match=r"ratio must lie in \(0, 1\]; got"):
        theory.weight_error_bound(twins.tensor([0.5]), ratio, 10)


@given(
    lower=twins.numbers(0.05, 0.45),
    middle=twins.numbers(0.5, 0.95),
    places=st.lists(twins.numbers(0.01, 1), min_size=2, max_size=12),
)
def test_inverse_estimates_add_up_inside_the_interval(lower, middle, places):
    # S₁ has γe < ê ≤ e and S₂ has βe < ê ≤ γe, each with the inverse-propensity mass B.
    half, e = len(places), 1.0
    first = [e * (middle + place * (1 - middle)) for place in places]
    second = [e * (lower + place * (middle - lower)) for place in places]
    low, high = theory.error_ratio_interval(half, lower=lower, middle=middle)
    total = math.fsum(1 / estimate for estimate in first + second)
    assert low - 1e-9 <= total < high


@pytest.mark.parametrize(("lower", "middle"), [(0.5, 0.5), (0.6, 0.5), (0.0, 0.5), (0.2, 1.0)])
def test_error_ratio_interval_refuses_an_impossible_order(lower, middle):
    with pytest.raises(InvalidInput, match="needs 0 < lower < middle < 1; got lower="):
        theory.error_ratio_interval(1.0, lower=lower, middle=middle)
