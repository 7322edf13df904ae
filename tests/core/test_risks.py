"""Risks: every one against its slow twin, and the contract of loss × weighting × correction."""

from __future__ import annotations

import inspect

import pytest
import torch
import twins
from hypothesis import assume, given
from hypothesis import strategies as st

from pue import risks, weights
from pue.core.corrections import CORRECTIONS, non_negative
from pue.core.data import Scenario
from pue.core.losses import LOSSES
from pue.core.risks import Risk, binary_entropy, dist_pu, imbalanced, label_likelihood, nnpu, pu_risk, pubn, upu
from pue.errors import InvalidInput

PRIOR = 0.4
LABELS = torch.tensor([0, 1, 0, 1, -1, 0, 0, 0, -1, 0])
PROPENSITY = twins.tensor([0.3, 0.1])
SIGMA = twins.tensor([0.2, 0.9, 0.6, 0.8, 0.7, 0.1, 0.3, 0.4, 0.9, 0.5])

MIXED = twins.tensor([0.4, 1.8, -1.5, -0.7, -0.3, 2.2, 0.6, -0.2, -1.6, 0.3])
"""Scores away from every kink (−1, 0, 1)."""
OVERFIT = torch.where(LABELS == 1, 3.2, -2.7).double()
"""Labeled rows far on the positive side, all others far on the negative one: R⁻ < 0."""
UNDERFIT = torch.where(LABELS == 1, -1.7, 1.9).double()
"""The reverse: R⁻ well above zero."""

both_scenarios = pytest.mark.parametrize("scenario", list(Scenario))

WEIGHTINGS = {
    "inverse_propensity": lambda scenario: weights.inverse_propensity(LABELS, PROPENSITY, scenario=scenario),
    "normalized_inverse_propensity": lambda scenario: weights.normalized_inverse_propensity(
        LABELS, PROPENSITY, prior=PRIOR, scenario=scenario
    ),
    "pubn": lambda scenario: weights.pubn(
        weights.uniform(LABELS, prior=PRIOR, scenario=scenario),
        SIGMA,
        eta=0.45,
        negatives=weights.biased_negatives(LABELS, rho=0.2),
    ),
    "supervised": lambda scenario: weights.supervised(LABELS >= 0),
    "uniform": lambda scenario: weights.uniform(LABELS, prior=PRIOR, scenario=scenario),
    "unlabeled_as_negative": lambda scenario: weights.unlabeled_as_negative(LABELS),
}

RISKS = {
    "dist_pu": dist_pu(PRIOR),
    "dist_pu with entropy": dist_pu(PRIOR, entropy=0.1),
    "imbalanced": imbalanced(PRIOR),
    "label_likelihood": label_likelihood(0.7, scale=2.0, target=0.3),
    "nnpu": nnpu(),
    "nnpu with beta and gamma": nnpu(LOSSES["logistic"], beta=0.05, gamma=0.5),
    "pu_risk": pu_risk(LOSSES["savage"], CORRECTIONS["absolute"]),
    "pubn": pubn(),
    "upu": upu(),
}

every_risk = pytest.mark.parametrize("name", RISKS)
every_composition = pytest.mark.parametrize(
    ("loss", "weighting", "correction"),
    [(loss, weighting, correction) for loss in LOSSES for weighting in WEIGHTINGS for correction in CORRECTIONS],
)


def value_and_gradient(risk: Risk, scores: torch.Tensor, w: weights.RowWeights) -> tuple[float, torch.Tensor]:
    scores = scores.clone().requires_grad_()
    value = risk(scores, w)
    (slope,) = torch.autograd.grad(value, scores)
    return value.item(), slope


def test_every_factory_is_in_the_table():
    factories = {
        name
        for name, function in inspect.getmembers(risks, inspect.isfunction)
        if function.__module__ == risks.__name__ and inspect.signature(function).return_annotation == "Risk"
    }
    assert factories == {name.split()[0] for name in RISKS}


# ------------------------------------------------------------------------------------------------ twins

SMOOTH = ["sigmoid", "logistic"]
smooth_loss = st.sampled_from(SMOOTH)
any_loss = st.sampled_from(sorted(LOSSES))


def v_of(sample: twins.Sample, weighted: bool) -> list[float]:
    return twins.mean_one(sample.propensity) if weighted else [1.0] * len(sample.propensity)


def weights_of(sample: twins.Sample, weighted: bool) -> weights.RowWeights:
    labels, options = torch.tensor(sample.labels), {"prior": sample.prior, "scenario": sample.scenario}
    if weighted:
        return weights.normalized_inverse_propensity(labels, twins.tensor(sample.propensity), **options)
    return weights.uniform(labels, **options)


@given(sample=twins.pu_samples(), weighted=st.booleans(), loss=any_loss)
def test_upu_equals_its_twin(sample, weighted, loss):
    got = upu(LOSSES[loss])(twins.tensor(sample.scores), weights_of(sample, weighted))
    parts = twins.pu_parts(
        sample.scores_of(1),
        sample.scores_of(0),
        sample.prior,
        twins.LOSSES[loss],
        v_of(sample, weighted),
        single=sample.single,
    )
    assert got.item() == pytest.approx(sum(parts), rel=1e-10, abs=1e-12)


@given(
    sample=twins.pu_samples(),
    weighted=st.booleans(),
    loss=smooth_loss,
    beta=st.sampled_from([0.0, 0.1]),
    gamma=st.sampled_from([1.0, 0.5]),
    shift=st.sampled_from([0.0, 3.0]),
)
def test_nnpu_equals_its_twin_in_value_and_gradient(sample, weighted, loss, beta, gamma, shift):
    # The shift pulls labeled rows up and unlabeled rows down, into the branch of ascent.
    scores = [g + shift * (1 if label == 1 else -1) for g, label in zip(sample.scores, sample.labels, strict=True)]

    def parts(g: list[float]) -> tuple[float, float]:
        g_p, g_u = sample.of(g, 1), sample.of(g, 0)
        v = v_of(sample, weighted)
        return twins.pu_parts(g_p, g_u, sample.prior, twins.LOSSES[loss], v, single=sample.single)

    positive, negative = parts(scores)
    assume(abs(negative + beta) > 1e-3)
    value, slope = value_and_gradient(
        nnpu(LOSSES[loss], beta=beta, gamma=gamma), twins.tensor(scores), weights_of(sample, weighted)
    )
    assert value == pytest.approx(twins.nnpu_value(positive, negative, beta), abs=1e-9)
    followed = twins.gradient(lambda g: twins.nnpu_followed(*parts(g), negative, beta, gamma), scores)
    assert slope.tolist() == pytest.approx(followed, abs=1e-7)


@pytest.mark.parametrize(("correction", "twin"), [("clamp", twins.clamp), ("absolute", twins.absolute)])
@given(sample=twins.pu_samples(), weighted=st.booleans(), loss=smooth_loss, shift=st.sampled_from([0.0, 3.0]))
def test_clamp_and_absolute_equal_their_twins(correction, twin, sample, weighted, loss, shift):
    scores = [g + shift * (1 if label == 1 else -1) for g, label in zip(sample.scores, sample.labels, strict=True)]

    def twin_risk(g: list[float]) -> float:
        g_p, g_u = sample.of(g, 1), sample.of(g, 0)
        v = v_of(sample, weighted)
        return twin(*twins.pu_parts(g_p, g_u, sample.prior, twins.LOSSES[loss], v, single=sample.single))

    risk = pu_risk(LOSSES[loss], CORRECTIONS[correction])
    w = weights_of(sample, weighted)
    assume(abs(risk.sums(twins.tensor(scores), w)[1].item()) > 1e-3)
    value, slope = value_and_gradient(risk, twins.tensor(scores), w)
    assert value == pytest.approx(twin_risk(scores), abs=1e-9)
    assert slope.tolist() == pytest.approx(twins.gradient(twin_risk, scores), abs=1e-7)


@given(sample=twins.pu_samples(), loss=any_loss)
def test_unnormalized_ipw_equals_its_twin(sample, loss):
    w = weights.inverse_propensity(
        torch.tensor(sample.labels), twins.tensor(sample.propensity), scenario=sample.scenario
    )
    parts = twins.ipw_parts(
        sample.scores_of(1), sample.scores_of(0), sample.propensity, twins.LOSSES[loss], single=sample.single
    )
    got = upu(LOSSES[loss]).sums(twins.tensor(sample.scores), w)
    assert got.tolist() == pytest.approx(parts, rel=1e-10, abs=1e-9)


@given(sample=twins.pu_samples(), weighted=st.booleans(), target=twins.numbers(0.1, 0.9))
def test_imbalanced_equals_its_twin(sample, weighted, target):
    positive, negative = twins.imbalanced_parts(
        sample.scores_of(1),
        sample.scores_of(0),
        sample.prior,
        target,
        twins.sigmoid,
        v_of(sample, weighted),
        single=sample.single,
    )
    assume(abs(negative) > 1e-9)
    got = imbalanced(sample.prior, target=target)(twins.tensor(sample.scores), weights_of(sample, weighted))
    assert got.item() == pytest.approx(twins.nnpu_value(positive, negative), abs=1e-9)


@given(
    sample=twins.pu_samples(), weighted=st.booleans(), entropy=st.sampled_from([0.0, 0.002, 1.0]), wide=st.booleans()
)
def test_dist_pu_equals_its_twin(sample, weighted, entropy, wide):
    scores = [4 * g if wide else g for g in sample.scores]  # the entropy is that of scores clamped to ±10
    got = dist_pu(sample.prior, entropy=entropy)(twins.tensor(scores), weights_of(sample, weighted))
    expected = twins.dist_pu(
        sample.of(scores, 1),
        sample.of(scores, 0),
        sample.prior,
        entropy,
        v_of(sample, weighted),
        single=sample.single,
    )
    assert got.item() == pytest.approx(expected, rel=1e-9, abs=1e-9)


grid = st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.9])  # a grid, so that σ̂ = η happens: it belongs to the rows below


@given(
    sample=twins.pu_samples(negatives=True),
    weighted=st.booleans(),
    sigma=st.lists(grid, min_size=12, max_size=12),
    eta=grid,
    rho=twins.numbers(0.05, 0.5),
    with_negatives=st.booleans(),
)
def test_pubn_equals_its_twin(sample, weighted, sigma, eta, rho, with_negatives):
    sigma = sigma[: len(sample.labels)]
    labels, n_bn = torch.tensor(sample.labels), sample.labels.count(-1)
    bn_propensity = [0.2, 0.9, 0.4][:n_bn] if weighted else [1.0] * n_bn
    negatives = weights.biased_negatives(labels, rho=rho, propensity=twins.tensor(bn_propensity))
    w = weights.pubn(
        weights_of(sample, weighted),
        twins.tensor(sigma),
        eta=eta,
        negatives=negatives if with_negatives else None,
    )
    p = twins.Part(sample.scores_of(1), sample.of(sigma, 1), v_of(sample, weighted))
    bn = twins.Part(sample.scores_of(-1), sample.of(sigma, -1), twins.mean_one(bn_propensity))
    drawn = twins.Part(sample.drawn(sample.scores), sample.drawn(sigma), [1.0] * len(sample.drawn(sigma)))
    expected = twins.pubn(p, drawn, sample.prior, eta, twins.logistic, bn if with_negatives else None, rho)
    assert pubn()(twins.tensor(sample.scores), w).item() == pytest.approx(expected, rel=1e-10)


@given(sample=twins.pu_samples(negatives=True), rho=twins.numbers(0.05, 0.5))
def test_pubns_sigma_step_equals_its_twin(sample, rho):
    labels = torch.tensor(sample.labels)
    region = weights.pubn_region(weights_of(sample, False), weights.biased_negatives(labels, rho=rho))
    positive, negative = twins.pubn_region_parts(
        sample.scores_of(1), sample.scores_of(-1), sample.drawn(sample.scores), sample.prior, rho, twins.logistic
    )
    assume(abs(negative) > 1e-9)
    got = nnpu(LOSSES["logistic"])(twins.tensor(sample.scores), region)
    assert got.item() == pytest.approx(twins.nnpu_value(positive, negative), abs=1e-9)


@given(scores=st.lists(twins.numbers(-15, 15), min_size=1, max_size=6))
def test_binary_entropy_equals_its_twin(scores):
    # Above a score of 15 the twin takes the logarithm of a rounded 1 − s; the library does not.
    got = binary_entropy(twins.tensor(scores)).tolist()
    assert got == pytest.approx([twins.binary_entropy(g) for g in scores], rel=1e-8)


# --------------------------------------------------------------------------------------------- contract


@every_composition
@both_scenarios
def test_value_and_gradient_are_finite_even_for_extreme_scores(loss, weighting, correction, scenario):
    risk, w = pu_risk(LOSSES[loss], CORRECTIONS[correction]), WEIGHTINGS[weighting](scenario)
    for scores in (MIXED, OVERFIT, UNDERFIT, 1000 * MIXED):
        value, slope = value_and_gradient(risk, scores, w)
        assert torch.isfinite(torch.tensor(value))
        assert bool(torch.isfinite(slope).all())


@every_composition
@both_scenarios
def test_gradcheck_where_the_correction_does_not_switch(loss, weighting, correction, scenario):
    # non_negative reports one function and follows another below −β, so finite differences fit only above.
    risk, w = pu_risk(LOSSES[loss], CORRECTIONS[correction]), WEIGHTINGS[weighting](scenario)
    assert risk.sums(UNDERFIT, w)[1] > 0.1
    assert torch.autograd.gradcheck(lambda g: risk(g, w), (UNDERFIT.clone().requires_grad_(),))
    if correction != "non_negative":
        assert torch.autograd.gradcheck(lambda g: risk(g, w), (MIXED.clone().requires_grad_(),))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighting", ["inverse_propensity", "normalized_inverse_propensity", "uniform"])
@both_scenarios
def test_below_minus_beta_the_gradient_is_ascent_on_the_negative_part_alone(loss, weighting, scenario):
    risk, w = pu_risk(LOSSES[loss], non_negative(beta=0.01, gamma=0.5)), WEIGHTINGS[weighting](scenario)
    scores = OVERFIT.clone().requires_grad_()
    positive, negative = risk.sums(scores, w)
    assert negative < -0.01
    (on_negative,) = torch.autograd.grad(negative, scores)
    value, slope = value_and_gradient(risk, OVERFIT, w)
    assert value == pytest.approx(positive.item() - 0.01)
    torch.testing.assert_close(slope, -0.5 * on_negative)
    assert risk.corrected(risk.sums(OVERFIT, w))


@every_risk
@both_scenarios
@pytest.mark.parametrize("weighting", ["inverse_propensity", "normalized_inverse_propensity", "uniform"])
def test_the_order_of_the_rows_does_not_matter(name, scenario, weighting):
    w, order = WEIGHTINGS[weighting](scenario), torch.tensor([3, 9, 0, 8, 1, 7, 2, 6, 4, 5])
    moved = weights.RowWeights(w.positive[order], w.negative[order])
    value, slope = value_and_gradient(RISKS[name], MIXED, w)
    moved_value, moved_slope = value_and_gradient(RISKS[name], MIXED[order], moved)
    assert moved_value == pytest.approx(value, rel=1e-12)
    torch.testing.assert_close(moved_slope, slope[order])


@every_risk
@both_scenarios
def test_gradcheck_of_every_risk(name, scenario):
    w = WEIGHTINGS["normalized_inverse_propensity"](scenario)
    assert torch.autograd.gradcheck(lambda g: RISKS[name](g, w), (UNDERFIT.clone().requires_grad_(),))


@every_risk
def test_refuses_a_column_of_scores(name):
    # (n, 1) against (n,) would broadcast to n × n in silence.
    with pytest.raises(InvalidInput, match=r"scores must be one-dimensional; got shape \(10, 1\)\. Use scores.squeeze"):
        RISKS[name](MIXED[:, None], WEIGHTINGS["uniform"](Scenario.SINGLE_SAMPLE))


@every_risk
def test_refuses_scores_of_other_rows(name):
    with pytest.raises(InvalidInput, match="scores must have one entry for each of the 10 rows; got 9"):
        RISKS[name](MIXED[1:], WEIGHTINGS["uniform"](Scenario.SINGLE_SAMPLE))


@every_risk
def test_inputs_are_left_alone(name):
    scores, w = MIXED.clone(), WEIGHTINGS["uniform"](Scenario.CASE_CONTROL)
    positive, negative = w.positive.clone(), w.negative.clone()
    RISKS[name](scores, w)
    assert torch.equal(scores, MIXED)
    assert torch.equal(w.positive, positive)
    assert torch.equal(w.negative, negative)


@every_risk
@both_scenarios
@pytest.mark.parametrize("scores", [MIXED, OVERFIT, UNDERFIT], ids=["mixed", "overfit", "underfit"])
def test_a_constant_propensity_is_the_base_method_in_value_and_gradient(name, scenario, scores):
    base = weights.uniform(LABELS, prior=PRIOR, scenario=scenario)
    constant = weights.normalized_inverse_propensity(LABELS, twins.tensor([0.07, 0.07]), prior=PRIOR, scenario=scenario)
    value, slope = value_and_gradient(RISKS[name], scores, base)
    same_value, same_slope = value_and_gradient(RISKS[name], scores, constant)
    assert same_value == pytest.approx(value, rel=1e-14, abs=1e-15)
    torch.testing.assert_close(same_slope, slope, rtol=1e-13, atol=1e-16)


@every_risk
@both_scenarios
def test_a_row_twice_is_a_row_of_double_weight_in_value_and_gradient(name, scenario):
    rows = torch.tensor([*range(10), 1, 5])
    doubled = torch.ones(10, dtype=torch.float64)
    doubled[[1, 5]] = 2
    once = weights.uniform(LABELS, prior=PRIOR, scenario=scenario, sample_weight=doubled)
    twice = weights.uniform(LABELS[rows], prior=PRIOR, scenario=scenario)
    value, slope = value_and_gradient(RISKS[name], MIXED, once)
    same_value, repeated = value_and_gradient(RISKS[name], MIXED[rows], twice)
    assert same_value == pytest.approx(value, rel=1e-12)
    merged = repeated[:10].clone()
    merged[[1, 5]] += repeated[10:]
    torch.testing.assert_close(merged, slope)


# ---------------------------------------------------------------------------------- reduce, then correct


@every_risk
@both_scenarios
@pytest.mark.parametrize("scores", [MIXED, OVERFIT], ids=["mixed", "overfit"])
def test_sums_over_two_halves_add_up_to_the_sums_over_the_whole(name, scenario, scores):
    risk, w = RISKS[name], WEIGHTINGS["normalized_inverse_propensity"](scenario)
    one = torch.ones(5, dtype=torch.float64)
    first, second = torch.arange(5), torch.arange(5, 10)
    halves = [risk.sums(scores[half], w.take(half, one)) for half in (first, second)]
    torch.testing.assert_close(halves[0] + halves[1], risk.sums(scores, w))
    # A process that holds the first half and receives the other's sums reports the risk of the whole batch.
    reported = risk(scores[first], w.take(first, one), reduce=lambda sums: sums + halves[1])
    torch.testing.assert_close(reported, risk(scores, w))


@every_risk
def test_each_sum_has_a_name(name):
    w = WEIGHTINGS["uniform"](Scenario.SINGLE_SAMPLE)
    assert len(RISKS[name].terms) == len(RISKS[name].sums(MIXED, w)) == len(set(RISKS[name].terms))


def test_only_a_step_of_ascent_counts_as_corrected():
    w = WEIGHTINGS["uniform"](Scenario.CASE_CONTROL)
    for name in ("nnpu", "imbalanced", "nnpu with beta and gamma"):
        risk = RISKS[name]
        assert risk.corrected(risk.sums(OVERFIT, w))
        assert not risk.corrected(risk.sums(UNDERFIT, w))
    for name in ("upu", "pubn", "dist_pu"):
        assert not RISKS[name].corrected(RISKS[name].sums(OVERFIT, w))


# ------------------------------------------------------------------------------------- choices, bad input


def test_the_default_losses_are_those_of_the_papers():
    w = WEIGHTINGS["uniform"](Scenario.CASE_CONTROL)
    assert upu()(MIXED, w) == upu(LOSSES["sigmoid"])(MIXED, w)
    assert nnpu()(MIXED, w) == nnpu(LOSSES["sigmoid"])(MIXED, w)
    assert imbalanced(PRIOR)(MIXED, w) == imbalanced(PRIOR, LOSSES["sigmoid"], target=0.5)(MIXED, w)
    assert pubn()(MIXED, w) == pubn(LOSSES["logistic"])(MIXED, w)


def test_imbalanced_with_the_true_prior_as_target_is_nnpu():
    w = WEIGHTINGS["uniform"](Scenario.CASE_CONTROL)
    for scores in (MIXED, OVERFIT):
        torch.testing.assert_close(imbalanced(PRIOR, target=PRIOR)(scores, w), nnpu()(scores, w))


@pytest.mark.parametrize("share", [0.0, 1.0, -0.3, 1.5])
def test_refuses_shares_outside_zero_and_one(share):
    with pytest.raises(InvalidInput, match=r"prior must lie in \(0, 1\); got"):
        dist_pu(share)
    with pytest.raises(InvalidInput, match=r"prior must lie in \(0, 1\); got"):
        imbalanced(share)
    with pytest.raises(InvalidInput, match=r"target must lie in \(0, 1\); got"):
        imbalanced(0.4, target=share)
