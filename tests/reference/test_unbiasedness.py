"""Unbiasedness without Monte Carlo: all labelings of a small sample, each with its probability.

The same check accepts the inverse-propensity risk and rejects the risks that ignore the bias; a check that could not
fail would prove nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
import twins

from pue import theory, weights
from pue.core.data import Scenario
from pue.core.losses import LOSSES
from pue.core.risks import upu
from pue.core.weights import RowWeights

Y = torch.tensor([1, 1, 0, 1, 0, 1, 0, 0, 1])
SCORES = twins.tensor([2.6, -0.1, -0.4, 0.6, 1.6, 1.4, -1.8, 0.3, 2.0])
BIASED = twins.tensor([0.9, 0.2, 0.3, 0.6, 0.8])
"""Propensities of the five positives; high where the score is high, so ignoring the bias must show."""
SCAR = torch.full((5,), 0.4, dtype=torch.float64)
N = len(Y)
PRIOR = float((Y == 1).double().mean())

every_loss = pytest.mark.parametrize("loss", LOSSES)
PN = {name: twins.pn_risk(SCORES.tolist(), Y.tolist(), twins.LOSSES[name]) for name in LOSSES}

Weigh = Callable[[torch.Tensor, torch.Tensor], RowWeights]
"""(labels, propensities of the labeled rows) → weights."""


def labelings(propensity: torch.Tensor) -> Iterator[tuple[float, torch.Tensor, torch.Tensor]]:
    """All 2^N_P labelings of the single sample: probability, labels, and which positives are labeled."""
    positives = torch.nonzero(Y == 1)[:, 0]
    for chosen in itertools.product([False, True], repeat=len(positives)):
        mask = torch.tensor(chosen)
        labels = torch.zeros(N, dtype=torch.int8)
        labels[positives[mask]] = 1
        yield float(torch.where(mask, propensity, 1 - propensity).prod()), labels, mask


def expected_risk(loss: str, propensity: torch.Tensor, weigh: Weigh, assumed: torch.Tensor | None = None) -> float:
    """E[R̂] over all labelings. `assumed` is the propensity that the risk believes in, if not the true one.

    A labeling without a labeled row has no normalised weights (0/0). It is kept, with a labeled part of zero: its
    risk is that of the background alone.
    """
    assumed = propensity if assumed is None else assumed
    total = 0.0
    for probability, labels, mask in labelings(propensity):
        if mask.any():
            w = weigh(labels, assumed[mask])
        else:
            w = RowWeights(torch.zeros(N).double(), weights.background(labels, Scenario.SINGLE_SAMPLE))
        total += probability * upu(LOSSES[loss])(SCORES, w).item()
    return total


def plain_upu(labels: torch.Tensor, propensity: torch.Tensor) -> RowWeights:
    return weights.uniform(labels, prior=PRIOR)


def naive(labels: torch.Tensor, propensity: torch.Tensor) -> RowWeights:
    return weights.unlabeled_as_negative(labels)


def normalized(labels: torch.Tensor, propensity: torch.Tensor) -> RowWeights:
    return weights.normalized_inverse_propensity(labels, propensity, prior=PRIOR)


# ------------------------------------------------------------------------------------- known propensities


def test_the_labelings_exhaust_all_probability():
    assert math.fsum(probability for probability, _, _ in labelings(BIASED)) == pytest.approx(1, abs=1e-15)


@every_loss
def test_the_supervised_weights_give_the_supervised_risk(loss):
    assert upu(LOSSES[loss])(SCORES, weights.supervised(Y)).item() == pytest.approx(PN[loss], abs=1e-14)


@every_loss
@pytest.mark.parametrize("propensity", [BIASED, SCAR], ids=["biased", "SCAR"])
def test_inverse_propensity_is_exactly_unbiased(loss, propensity):
    expected = expected_risk(loss, propensity, weights.inverse_propensity)
    assert expected == pytest.approx(PN[loss], abs=1e-12)


@pytest.mark.parametrize("loss", ["sigmoid", "logistic", "zero_one", "ramp"])
@pytest.mark.parametrize("weigh", [naive, plain_upu], ids=["unlabeled as negative", "plain uPU"])
def test_the_same_check_rejects_risks_that_ignore_the_bias(loss, weigh):
    assert abs(expected_risk(loss, BIASED, weigh) - PN[loss]) > 0.05


@every_loss
def test_plain_upu_passes_the_same_check_when_labels_are_scar(loss):
    # So what fails above is the assumption, not the risk. Given at least one label, uPU is unbiased under SCAR; the
    # labelings without one (probability q) keep the background's risk.
    q = float((1 - SCAR).prod())
    none = twins.mean([twins.LOSSES[loss](-g) for g in SCORES.tolist()])
    assert expected_risk(loss, SCAR, plain_upu) == pytest.approx((1 - q) * PN[loss] + q * none, abs=1e-12)
    assert abs(expected_risk("sigmoid", SCAR, naive) - PN["sigmoid"]) > 0.05


def test_the_inverse_propensities_add_up_to_the_positives_on_average():
    expected = math.fsum(p * float((1 / BIASED[mask]).sum()) for p, _, mask in labelings(BIASED))
    assert expected == pytest.approx(5, abs=1e-12)
    # In a labeling, W is n times the mass of w⁺.
    mass = [
        (p, weights.inverse_propensity(labels, BIASED[mask]).positive.sum().item())
        for p, labels, mask in labelings(BIASED)
    ]
    assert math.fsum(p * m for p, m in mass) == pytest.approx(PRIOR, abs=1e-12)


# ----------------------------------------------------------------- normalised weights: biased, consistent


def normalized_bias(copies: int) -> float:
    """E[R̂_PUe] − R_PN, exactly, for a population in which every row stands `copies` times, given some label.

    The labeled copies of a positive are binomial; rows of equal features are one row with a sample weight.
    """
    scores, positives = twins.tensor([1.5, -1.0, -0.5]), twins.tensor([0.6, 0.2])
    pn = twins.pn_risk(scores.tolist(), [1, 1, 0], twins.sigmoid)
    total, mass = 0.0, 0.0
    for counts in itertools.product(range(copies + 1), repeat=2):
        if sum(counts) == 0:
            continue
        probability = 1.0
        for count, e in zip(counts, positives.tolist(), strict=True):
            probability *= math.comb(copies, count) * e**count * (1 - e) ** (copies - count)
        labels = torch.tensor([1, 1, 0, 0, 0])
        weight = twins.tensor([*counts, copies - counts[0], copies - counts[1], copies])
        w = weights.normalized_inverse_propensity(labels, positives, prior=2 / 3, sample_weight=weight)
        total += probability * upu()(scores[[0, 1, 0, 1, 2]], w).item()
        mass += probability
    return total / mass - pn


def test_normalized_weights_are_biased_in_a_small_sample():
    gap = expected_risk("sigmoid", BIASED, normalized) - PN["sigmoid"]
    assert abs(gap) > 1e-3
    assert abs(gap) < abs(expected_risk("sigmoid", BIASED, plain_upu) - PN["sigmoid"])


def test_their_bias_falls_like_one_over_n():
    # A ratio (Hájek) estimator: doubling the sample halves the bias.
    biases = [abs(normalized_bias(copies)) for copies in (8, 16, 32)]
    assert biases[0] > 1e-3
    assert biases[0] / biases[1] == pytest.approx(2, abs=0.35)
    assert biases[1] / biases[2] == pytest.approx(2, abs=0.2)


def test_normalized_weights_find_the_truth_in_a_large_sample_and_plain_upu_does_not():
    rng = np.random.default_rng(0)
    y = torch.from_numpy((rng.random(40_000) < 0.5).astype(np.int64))
    scores = torch.from_numpy(rng.normal(size=40_000)) + y
    e = torch.sigmoid(scores - 1)
    labels = ((y == 1) & (torch.from_numpy(rng.random(40_000)) < e)).to(torch.int8)
    prior = float(y.double().mean())
    pn = upu()(scores, weights.supervised(y)).item()
    pue = upu()(scores, weights.normalized_inverse_propensity(labels, e[labels == 1], prior=prior)).item()
    plain = upu()(scores, weights.uniform(labels, prior=prior)).item()
    assert pue == pytest.approx(pn, abs=0.01)
    assert abs(plain - pn) > 0.05


# ------------------------------------------------------------------------------------ wrong propensities

WRONG = twins.tensor([0.7, 0.4, 0.4, 0.5, 0.5])


def h_of_positives(loss: str) -> list[float]:
    twin = twins.LOSSES[loss]
    return [twin(g) - twin(-g) for g in SCORES[Y == 1].tolist()]


@every_loss
def test_with_wrong_propensities_the_bias_is_bekkers(loss):
    expected = expected_risk(loss, BIASED, weights.inverse_propensity, assumed=WRONG)
    bias = twins.bekker_bias(BIASED.tolist(), WRONG.tolist(), h_of_positives(loss), N)
    assert PN[loss] - expected == pytest.approx(bias, abs=1e-12)
    assert abs(bias) > 0.005


def test_the_papers_bias_term_is_bekkers_when_both_normalizers_agree():
    # Σ e/ê = N_P makes the expected normalisers equal.
    e, estimate = twins.tensor([0.2, 0.4]), twins.tensor([0.4, 0.8 / 3])
    h = [0.7, -0.4]
    got = theory.estimation_bias(e, estimate, twins.tensor(h), 10)
    assert got == pytest.approx(twins.bekker_bias(e.tolist(), estimate.tolist(), h, 10), abs=1e-15)


def test_a_common_factor_biases_unnormalized_weights_only():
    h = twins.tensor(h_of_positives("sigmoid"))
    half = BIASED / 2
    assert theory.estimation_bias(BIASED, half, h, N) == pytest.approx(0, abs=1e-15)
    assert abs(twins.bekker_bias(BIASED.tolist(), half.tolist(), h.tolist(), N)) > 0.01
    assert expected_risk("sigmoid", BIASED, normalized, half) == pytest.approx(
        expected_risk("sigmoid", BIASED, normalized), abs=1e-14
    )


def test_the_papers_bias_term_predicts_the_normalized_risk_of_a_large_sample():
    # The term treats W as fixed, so it holds to first order: here to a twentieth of its size, 400 draws of 6,000 rows.
    rng = np.random.default_rng(1)
    n, n_positive, draws = 6000, 3000, 400
    e = rng.uniform(0.1, 0.9, n_positive)
    estimate = np.sqrt(e) * 0.8
    h = 1.5 * e - 0.5 + 0.1 * rng.normal(size=n_positive)
    labeled = rng.random((draws, n_positive)) < e
    omega = labeled / estimate
    omega /= omega.sum(axis=1, keepdims=True)
    true_minus_estimate = n_positive / n * (h.mean() - omega @ h)
    bias = theory.estimation_bias(torch.from_numpy(e), torch.from_numpy(estimate), torch.from_numpy(h), n)
    assert abs(bias) > 0.02
    assert true_minus_estimate.mean() == pytest.approx(bias, abs=0.05 * abs(bias))
