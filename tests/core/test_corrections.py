"""Corrections: the value to report and the gradient to follow, each against its formula."""

from __future__ import annotations

import pytest
import torch
import twins
from hypothesis import given

from pue.core.corrections import CORRECTIONS, absolute, clamp, non_negative, unbiased
from pue.errors import InvalidInput

parts = twins.numbers(-3, 3)


def value_and_gradient(correction, positive: float, negative: float) -> tuple[float, list[float]]:
    """The risk, and its derivatives with respect to R⁺ and R⁻."""
    r = twins.tensor([positive, negative], requires_grad=True)
    risk = correction(r[0], r[1])
    risk.backward()
    return risk.item(), r.grad.tolist()


def test_the_registry_is_what_this_file_tests():
    assert set(CORRECTIONS) == {"absolute", "clamp", "non_negative", "unbiased"}


@given(positive=parts, negative=parts)
def test_unbiased_is_the_plain_sum(positive, negative):
    value, slopes = value_and_gradient(unbiased, positive, negative)
    assert value == pytest.approx(positive + negative, abs=1e-15)
    assert slopes == [1, 1]


@given(positive=parts, negative=parts)
def test_clamp_cuts_value_and_gradient_of_the_negative_part(positive, negative):
    value, slopes = value_and_gradient(clamp, positive, negative)
    assert value == pytest.approx(twins.clamp(positive, negative), abs=1e-15)
    if negative != 0:
        assert slopes == [1, 1 if negative > 0 else 0]


@given(positive=parts, negative=parts)
def test_absolute_flips_the_negative_part(positive, negative):
    value, slopes = value_and_gradient(absolute, positive, negative)
    assert value == pytest.approx(twins.absolute(positive, negative), abs=1e-15)
    if negative != 0:
        assert slopes == [1, 1 if negative > 0 else -1]


@given(positive=parts, negative=parts, beta=twins.numbers(0, 1), gamma=twins.numbers(0, 1))
def test_non_negative_reports_one_thing_and_follows_another(positive, negative, beta, gamma):
    value, slopes = value_and_gradient(non_negative(beta, gamma), positive, negative)
    assert value == pytest.approx(twins.nnpu_value(positive, negative, beta), abs=1e-14)
    # Below −β the positive part takes no part in the step.
    assert slopes == pytest.approx([1, 1] if negative >= -beta else [0, -gamma])


def test_non_negative_switches_strictly_below_minus_beta():
    at = value_and_gradient(non_negative(beta=0.25), 1.0, -0.25)
    assert at == (0.75, [1, 1])
    below = value_and_gradient(non_negative(beta=0.25), 1.0, -0.250001)
    assert below == (0.75, [0, -1])


@pytest.mark.parametrize("name", CORRECTIONS)
@pytest.mark.parametrize("negative", [0.0, 0.25, 3.0])
def test_nothing_is_corrected_while_the_negative_part_is_not_negative(name, negative):
    positive, negative = torch.tensor(0.5), torch.tensor(negative)
    assert CORRECTIONS[name](positive, negative) == positive + negative


@pytest.mark.parametrize("beta", [-0.1, -1.0])
def test_refuses_a_negative_beta(beta):
    with pytest.raises(InvalidInput, match=r"beta must be at least 0; got -.*default is 0"):
        non_negative(beta=beta)


@pytest.mark.parametrize("gamma", [-0.1, 1.5])
def test_refuses_a_gamma_outside_zero_and_one(gamma):
    with pytest.raises(InvalidInput, match=r"gamma must lie in \[0, 1\]; got .*default is 1"):
        non_negative(gamma=gamma)
