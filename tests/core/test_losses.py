"""Every loss against its twin, and the two families that the module promises."""

from __future__ import annotations

import pytest
import torch
import twins
from hypothesis import given
from hypothesis import strategies as st

from pue.core.losses import LOSSES

SYMMETRIC = ["ramp", "sigmoid", "zero_one"]
LINEAR_ODD = ["double_hinge", "logistic", "squared"]
BOUNDS = {"ramp": 1.0, "savage": 4.0, "sigmoid": 1.0, "zero_one": 1.0}

# Beyond a margin of 20 torch's softplus is linear and gives up the last 2e-9.
margins = st.lists(twins.numbers(-19, 19), min_size=1, max_size=8)
every_loss = pytest.mark.parametrize("name", LOSSES)


def test_every_loss_has_a_twin():
    assert set(twins.LOSSES) == set(LOSSES)


@every_loss
@given(z=margins)
def test_equals_its_twin(name, z):
    got = LOSSES[name](twins.tensor(z))
    assert got.tolist() == pytest.approx([twins.LOSSES[name](zi) for zi in z], rel=1e-12, abs=1e-15)


@every_loss
@pytest.mark.parametrize("kink", [-1.0, 0.0, 1.0])
def test_equals_its_twin_at_the_kinks(name, kink):
    assert LOSSES[name](twins.tensor([kink])).item() == pytest.approx(twins.LOSSES[name](kink), abs=1e-15)


@pytest.mark.parametrize("name", SYMMETRIC)
@given(z=margins)
def test_symmetric_losses_sum_to_one(name, z):
    z = twins.tensor(z)
    torch.testing.assert_close(LOSSES[name](z) + LOSSES[name](-z), torch.ones_like(z))


@pytest.mark.parametrize("name", LINEAR_ODD)
@given(z=margins)
def test_linear_odd_losses_differ_by_the_margin(name, z):
    z = twins.tensor(z)
    torch.testing.assert_close(LOSSES[name](z) - LOSSES[name](-z), -z)


@every_loss
@given(z=margins)
def test_is_not_negative_and_stays_below_its_bound(name, z):
    got = LOSSES[name](twins.tensor(z))
    assert bool((got >= 0).all())
    assert bool((got <= BOUNDS.get(name, float("inf"))).all())


@every_loss
def test_falls_as_the_margin_grows(name):
    # The squared loss rises again beyond a margin of one, so the grid ends there.
    values = LOSSES[name](torch.linspace(-6, 1, 200, dtype=torch.float64))
    assert bool((values.diff() <= 1e-15).all())
    assert values[0] > values[-1]


@every_loss
def test_gradient_by_finite_differences_away_from_the_kinks(name):
    z = twins.tensor([-5.3, -1.4, -0.6, 0.4, 1.7, 4.2], requires_grad=True)
    assert torch.autograd.gradcheck(LOSSES[name], (z,))


@every_loss
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_value_and_gradient_are_finite_at_any_margin(name, dtype):
    z = torch.tensor([-1e4, -100.0, 0.0, 100.0, 1e4], dtype=dtype, requires_grad=True)
    values = LOSSES[name](z)
    values.sum().backward()
    assert values.dtype == dtype
    assert bool(torch.isfinite(values).all())
    assert bool(torch.isfinite(z.grad).all())


@every_loss
def test_works_element_by_element_and_leaves_its_input_alone(name):
    z = torch.linspace(-2, 2, 6).reshape(2, 3)
    before = z.clone()
    assert LOSSES[name](z).shape == (2, 3)
    assert torch.equal(z, before)
