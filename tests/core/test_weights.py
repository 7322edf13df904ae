"""Weightings: against their twins, and the contract that every one of them keeps."""

from __future__ import annotations

import re

import pytest
import torch
import twins
from hypothesis import given
from hypothesis import strategies as st

from pue import weights
from pue.core.data import Scenario
from pue.errors import InvalidInput

LABELS = torch.tensor([1, 0, 1, 0, 0, 1, 0, 0])
PROPENSITY = twins.tensor([0.3, 0.1, 0.8])
SAMPLE_WEIGHT = twins.tensor([1.0, 2.0, 0.5, 3.0, 1.0, 1.5, 0.25, 1.0])
PRIOR = 0.6

WEIGHTINGS = {
    "inverse_propensity": lambda labels, e, **options: weights.inverse_propensity(labels, e, **options),
    "normalized_inverse_propensity": lambda labels, e, **options: weights.normalized_inverse_propensity(
        labels, e, prior=PRIOR, **options
    ),
    "uniform": lambda labels, e, **options: weights.uniform(labels, prior=PRIOR, **options),
}
"""The PU weightings, called alike: labels and the labeled rows' propensities."""

every_weighting = pytest.mark.parametrize("name", WEIGHTINGS)
both_scenarios = pytest.mark.parametrize("scenario", list(Scenario))
with_and_without_weights = pytest.mark.parametrize("sample_weight", [None, SAMPLE_WEIGHT], ids=["plain", "weighted"])


def same(got: weights.RowWeights, expected: tuple[list[float], list[float]]) -> None:
    assert got.positive.tolist() == pytest.approx(expected[0], rel=1e-12, abs=1e-15)
    assert got.negative.tolist() == pytest.approx(expected[1], rel=1e-12, abs=1e-15)


def options_of(sample: twins.Sample) -> dict:
    weight = None if sample.weight is None else twins.tensor(sample.weight)
    return {"scenario": sample.scenario, "sample_weight": weight}


# ------------------------------------------------------------------------------------------------ twins

any_sample = st.one_of(twins.pu_samples(), twins.pu_samples(weighted=True))


@given(sample=any_sample)
def test_background_equals_its_twin(sample):
    got = weights.background(torch.tensor(sample.labels), **options_of(sample))
    expected = twins.background(sample.labels, sample.scenario, sample.weight)
    assert got.tolist() == pytest.approx(expected, rel=1e-12)


@given(sample=any_sample)
def test_uniform_equals_its_twin(sample):
    got = weights.uniform(torch.tensor(sample.labels), prior=sample.prior, **options_of(sample))
    same(got, twins.uniform(sample.labels, sample.prior, sample.scenario, sample.weight))


@given(sample=any_sample)
def test_normalized_inverse_propensity_equals_its_twin(sample):
    got = weights.normalized_inverse_propensity(
        torch.tensor(sample.labels), twins.tensor(sample.propensity), prior=sample.prior, **options_of(sample)
    )
    expected = twins.normalized_inverse_propensity(
        sample.labels, sample.propensity, sample.prior, sample.scenario, sample.weight
    )
    same(got, expected)


@given(sample=any_sample)
def test_inverse_propensity_equals_its_twin(sample):
    got = weights.inverse_propensity(torch.tensor(sample.labels), twins.tensor(sample.propensity), **options_of(sample))
    same(got, twins.inverse_propensity(sample.labels, sample.propensity, sample.scenario, sample.weight))


@given(
    sample=twins.pu_samples(negatives=True),
    rho=twins.numbers(0.05, 0.95),
    propensity=st.lists(twins.numbers(0.05, 1), min_size=3, max_size=3),
)
def test_biased_negatives_equal_their_twin(sample, rho, propensity):
    labels = torch.tensor(sample.labels)
    plain = weights.biased_negatives(labels, rho=rho)
    assert plain.tolist() == pytest.approx(twins.biased_negatives(sample.labels, rho))
    own = propensity[: sample.labels.count(-1)]
    weighted = weights.biased_negatives(labels, rho=rho, propensity=twins.tensor(own))
    assert weighted.tolist() == pytest.approx(twins.biased_negatives(sample.labels, rho, own))


@given(values=st.lists(twins.numbers(0.01, 5), min_size=1, max_size=10))
def test_effective_sample_size_is_kishs(values):
    size = weights.effective_sample_size(twins.tensor(values))
    assert size == pytest.approx(twins.kish(values))
    assert 1 - 1e-9 <= size <= len(values) + 1e-9


def test_effective_sample_size_of_equal_weights_is_their_number():
    assert weights.effective_sample_size(torch.full((7,), 0.3)) == pytest.approx(7)


@given(
    sigma=st.lists(twins.numbers(0, 1), min_size=1, max_size=12),
    prior=twins.numbers(0.05, 0.6),
    rho=twins.numbers(0, 0.3),
    tau=twins.numbers(0.05, 1),
)
def test_pubn_threshold_is_a_quantile(sigma, prior, rho, tau):
    got = weights.pubn_threshold(twins.tensor(sigma), prior=prior, rho=rho, tau=tau)
    assert got == pytest.approx(twins.quantile(sigma, tau * (1 - prior - rho)), abs=1e-12)


# --------------------------------------------------------------------------------------------- contract


@every_weighting
@both_scenarios
@with_and_without_weights
def test_total_mass_is_one_and_positives_lie_on_labeled_rows(name, scenario, sample_weight):
    w = WEIGHTINGS[name](LABELS, PROPENSITY, scenario=scenario, sample_weight=sample_weight)
    assert (w.positive + w.negative).sum().item() == pytest.approx(1, abs=1e-14)
    assert bool((w.positive[LABELS == 1] > 0).all())
    assert bool((w.positive[LABELS != 1] == 0).all())
    torch.testing.assert_close(w.background, weights.background(LABELS, scenario, sample_weight))


@pytest.mark.parametrize("name", ["uniform", "normalized_inverse_propensity"])
@both_scenarios
@with_and_without_weights
def test_the_mass_of_the_positives_is_the_prior(name, scenario, sample_weight):
    w = WEIGHTINGS[name](LABELS, PROPENSITY, scenario=scenario, sample_weight=sample_weight)
    assert w.positive.sum().item() == pytest.approx(PRIOR, abs=1e-14)


@both_scenarios
@with_and_without_weights
def test_a_common_factor_on_the_propensities_changes_nothing(scenario, sample_weight):
    weigh = WEIGHTINGS["normalized_inverse_propensity"]
    w = weigh(LABELS, PROPENSITY, scenario=scenario, sample_weight=sample_weight)
    scaled = weigh(LABELS, PROPENSITY * 0.037, scenario=scenario, sample_weight=sample_weight)
    torch.testing.assert_close(scaled.positive, w.positive)
    torch.testing.assert_close(scaled.negative, w.negative)


@both_scenarios
@with_and_without_weights
@pytest.mark.parametrize("constant", [1e-4, 0.3, 1.0])
def test_a_constant_propensity_is_the_base_method(scenario, sample_weight, constant):
    e = torch.full((3,), constant, dtype=torch.float64)
    w = WEIGHTINGS["normalized_inverse_propensity"](LABELS, e, scenario=scenario, sample_weight=sample_weight)
    base = WEIGHTINGS["uniform"](LABELS, e, scenario=scenario, sample_weight=sample_weight)
    torch.testing.assert_close(w.positive, base.positive, rtol=1e-14, atol=1e-16)
    torch.testing.assert_close(w.negative, base.negative, rtol=1e-14, atol=1e-16)


@both_scenarios
def test_unnormalized_weights_with_the_label_frequency_are_the_base_method(scenario):
    # SCAR: e = n_P / (π n) for every positive.
    n = 8 if scenario is Scenario.SINGLE_SAMPLE else 5
    e = torch.full((3,), 3 / (PRIOR * n), dtype=torch.float64)
    w = weights.inverse_propensity(LABELS, e, scenario=scenario)
    torch.testing.assert_close(w.positive, weights.uniform(LABELS, prior=PRIOR, scenario=scenario).positive)


@every_weighting
@both_scenarios
@pytest.mark.parametrize("row", range(len(LABELS)))
def test_a_row_twice_is_a_row_of_double_weight(name, scenario, row):
    rows = torch.cat([torch.arange(len(LABELS)), torch.tensor([row])])
    e = torch.full((len(LABELS),), torch.nan, dtype=torch.float64)
    e[LABELS == 1] = PROPENSITY
    twice = WEIGHTINGS[name](LABELS[rows], e[rows][LABELS[rows] == 1], scenario=scenario)
    doubled = torch.ones(len(LABELS), dtype=torch.float64)
    doubled[row] = 2
    once = WEIGHTINGS[name](LABELS, PROPENSITY, scenario=scenario, sample_weight=doubled)
    for repeated, weighted in ((twice.positive, once.positive), (twice.negative, once.negative)):
        merged = repeated[:-1].clone()
        merged[row] += repeated[-1]
        torch.testing.assert_close(merged, weighted)


@every_weighting
@both_scenarios
def test_inputs_are_left_alone(name, scenario):
    labels, e, sample_weight = LABELS.clone(), PROPENSITY.clone(), SAMPLE_WEIGHT.clone()
    WEIGHTINGS[name](labels, e, scenario=scenario, sample_weight=sample_weight)
    assert torch.equal(labels, LABELS)
    assert torch.equal(e, PROPENSITY)
    assert torch.equal(sample_weight, SAMPLE_WEIGHT)


def test_the_scenarios_differ_only_in_the_background():
    single = weights.uniform(LABELS, prior=PRIOR)
    control = weights.uniform(LABELS, prior=PRIOR, scenario=Scenario.CASE_CONTROL)
    assert torch.equal(single.positive, control.positive)
    assert single.background.tolist() == pytest.approx([1 / 8] * 8)
    assert control.background.tolist() == pytest.approx([0, 1 / 5, 0, 1 / 5, 1 / 5, 0, 1 / 5, 1 / 5])


def test_the_naive_baseline_and_the_oracle_put_each_row_on_one_side():
    naive = weights.unlabeled_as_negative(torch.tensor([1, 0, 0, 0]))
    assert naive.positive.tolist() == [0.25, 0, 0, 0]
    assert naive.negative.tolist() == [0, 0.25, 0.25, 0.25]
    oracle = weights.supervised(torch.tensor([1, 1, 0, -1]), twins.tensor([1, 2, 1, 4]))
    assert oracle.positive.tolist() == [0.125, 0.25, 0, 0]
    assert oracle.negative.tolist() == [0, 0, 0.125, 0.5]


def test_take_scales_each_row_by_what_it_stands_for():
    w = weights.uniform(LABELS, prior=PRIOR)
    index, factor = torch.tensor([5, 0, 3]), twins.tensor([2, 1, 4])
    part = w.take(index, factor)
    torch.testing.assert_close(part.positive, w.positive[index] * factor)
    torch.testing.assert_close(part.negative, w.negative[index] * factor)


def test_to_changes_the_precision_of_both_sides():
    w = weights.uniform(LABELS, prior=PRIOR).to(torch.device("cpu"), torch.float32)
    assert w.positive.dtype == w.negative.dtype == torch.float32


# ------------------------------------------------------------------------------------------------- PUbN

SIGMA = twins.tensor([0.9, 0.2, 0.7, 0.5, 0.1, 1.0, 0.0, 0.6])


@both_scenarios
@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0])
def test_pubn_has_no_negative_weight(scenario, eta):
    labels = torch.tensor([1, 0, 1, 0, -1, 1, 0, -1])
    base = weights.uniform(labels, prior=PRIOR, scenario=scenario)
    w = weights.pubn(base, SIGMA, eta=eta, negatives=weights.biased_negatives(labels, rho=0.2))
    assert bool((w.positive >= 0).all())
    assert bool((w.negative >= 0).all())
    assert bool(torch.isfinite(w.negative).all())


def test_pubns_region_moves_the_biased_negatives_to_the_positive_side():
    labels = torch.tensor([1, 0, 0, -1])
    base = weights.uniform(labels, prior=0.4, scenario=Scenario.CASE_CONTROL)
    negatives = weights.biased_negatives(labels, rho=0.2)
    region = weights.pubn_region(base, negatives)
    assert region.positive.tolist() == pytest.approx([0.4, 0, 0, 0.2])
    assert region.negative.tolist() == pytest.approx([-0.4, 0.5, 0.5, -0.2])
    assert weights.pubn_region(base) is base


# -------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("prior", [0.0, 1.0, 1.2, -0.1, float("nan")])
def test_refuses_a_prior_that_is_no_share(prior):
    with pytest.raises(InvalidInput, match=r'prior must lie in \(0, 1\); got .* or prior="estimate"'):
        weights.uniform(LABELS, prior=prior)


def test_refuses_a_prior_below_what_is_already_labeled():
    with pytest.raises(InvalidInput, match=r'below the share of labeled rows, 0\.375.*scenario="case_control"'):
        weights.uniform(LABELS, prior=0.3)
    # In case-control the labeled rows say nothing about the share of positives.
    assert weights.uniform(LABELS, prior=0.3, scenario=Scenario.CASE_CONTROL).positive.sum().item() == pytest.approx(
        0.3
    )


def test_the_labeled_share_counts_sample_weights():
    heavy = torch.where(LABELS == 1, 10.0, 1.0).double()
    with pytest.raises(InvalidInput, match=re.escape("below the share of labeled rows, 0.857143")):
        weights.uniform(LABELS, prior=PRIOR, sample_weight=heavy)


@pytest.mark.parametrize("bad", [0.0, -0.2, 1.5, float("nan")])
def test_refuses_an_impossible_propensity_and_says_which_row(bad):
    with pytest.raises(InvalidInput, match=r"1 of 3 labeled rows do not, the first is labeled row 1 .*clip the est"):
        weights.inverse_propensity(LABELS, twins.tensor([0.5, bad, 0.5]))


def test_refuses_propensities_of_other_rows():
    with pytest.raises(InvalidInput, match=r"one entry for each of the 3 labeled rows .*; got 8"):
        weights.normalized_inverse_propensity(LABELS, torch.full((8,), 0.5), prior=PRIOR)


def test_refuses_a_column_of_propensities():
    with pytest.raises(InvalidInput, match=r"propensity must be one-dimensional; got shape \(3, 1\).*squeeze"):
        weights.inverse_propensity(LABELS, PROPENSITY[:, None])


def test_refuses_biased_negatives_where_there_are_none():
    with pytest.raises(InvalidInput, match=r"no row is labeled negative\. Mark known negatives with -1"):
        weights.biased_negatives(LABELS, rho=0.2)


@pytest.mark.parametrize("rho", [0.0, 1.0, -0.5])
def test_refuses_a_rho_that_is_no_share(rho):
    with pytest.raises(InvalidInput, match=r"rho must lie in \(0, 1\).*share of negatives that could be labeled"):
        weights.biased_negatives(torch.tensor([1, 0, -1]), rho=rho)


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan")])
def test_refuses_a_sigma_that_is_no_probability(bad):
    sigma = SIGMA.clone()
    sigma[3] = bad
    with pytest.raises(InvalidInput, match=r"sigma must hold probabilities.*Pass the scores through a sigmoid"):
        weights.pubn(weights.uniform(LABELS, prior=PRIOR), sigma, eta=0.5)


def test_refuses_a_sigma_of_the_wrong_shape():
    w = weights.uniform(LABELS, prior=PRIOR)
    with pytest.raises(InvalidInput, match=r"sigma must be one-dimensional; got shape \(8, 1\)"):
        weights.pubn(w, SIGMA[:, None], eta=0.5)
    with pytest.raises(InvalidInput, match=r"sigma must have one entry for each of the 8 rows; got 7"):
        weights.pubn(w, SIGMA[1:], eta=0.5)


@pytest.mark.parametrize(("prior", "rho", "tau"), [(0.5, 0.5, 0.9), (0.5, 0.0, 0.0), (0.5, 0.0, 1.1), (0.0, 0.1, 0.5)])
def test_refuses_an_impossible_pubn_threshold(prior, rho, tau):
    with pytest.raises(InvalidInput, match=r"tau must lie in \(0, 1\] and prior \+ rho below 1; got tau="):
        weights.pubn_threshold(SIGMA, prior=prior, rho=rho, tau=tau)


def test_refuses_an_unknown_scenario():
    with pytest.raises(InvalidInput, match=r"unknown scenario 'single'\. Did you mean .*single_sample"):
        weights.uniform(LABELS, prior=PRIOR, scenario="single")
