"""Thresholds: each against a search by brute force."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import twins
from hypothesis import given
from hypothesis import strategies as st

from pue import weights
from pue.core.data import Scenario
from pue.core.decisions import ZERO, best_f1, budget, decide, prior_quantile, target_precision
from pue.errors import InvalidInput

ties = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=10)
scores_of_any_kind = st.one_of(ties, st.lists(twins.numbers(-5, 5), min_size=1, max_size=10))


def test_a_score_at_the_threshold_is_positive():
    assert decide(torch.tensor([0.5, 0.4999, 0.6]), 0.5).tolist() == [1, 0, 1]
    assert decide(torch.tensor([-0.1, 0.0])).tolist() == decide(torch.tensor([-0.1, 0.0]), ZERO).tolist() == [0, 1]


@given(scores=scores_of_any_kind, data=st.data())
def test_a_budget_calls_the_k_best_rows(scores, data):
    k = data.draw(st.integers(1, len(scores)))
    threshold = budget(twins.tensor(scores), k)
    assert threshold == sorted(scores, reverse=True)[k - 1]
    called = decide(twins.tensor(scores), threshold).sum().item()
    # Ties at the threshold come along, nothing else does.
    assert called == k + sum(g == threshold for g in scores) - sorted(scores, reverse=True)[:k].count(threshold)


@given(scores=st.lists(twins.numbers(-5, 5), min_size=1, max_size=20, unique=True), prior=twins.numbers(0.01, 0.99))
def test_prior_quantile_calls_the_priors_share_of_the_rows(scores, prior):
    called = decide(twins.tensor(scores), prior_quantile(twins.tensor(scores), prior)).sum().item()
    assert called == max(1, round(prior * len(scores)))


def test_thresholds_keep_their_meaning_in_single_precision():
    scores = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float32)
    assert decide(scores, budget(scores, 2)).tolist() == [0, 1, 1]


@st.composite
def weighted_scores(draw: st.DrawFn) -> tuple[list[float], weights.RowWeights]:
    sample = draw(twins.pu_samples())
    labels, e = torch.tensor(sample.labels), twins.tensor(sample.propensity)
    w = weights.normalized_inverse_propensity(labels, e, prior=sample.prior, scenario=sample.scenario)
    scores = [float(round(g)) for g in sample.scores] if draw(st.booleans()) else sample.scores
    return scores, w


@given(case=weighted_scores())
def test_best_f1_equals_the_search_over_all_thresholds(case):
    scores, w = case

    def f1(threshold: float) -> float:
        return twins.estimated_f1(scores, w.positive.tolist(), w.negative.tolist(), threshold)

    threshold = best_f1(twins.tensor(scores), w)
    assert threshold in scores
    assert f1(threshold) == pytest.approx(max(f1(t) for t in scores), abs=1e-12)


def test_best_f1_cannot_split_a_tie():
    # The labeled row at 2 alone would have F1 = .71, but four unlabeled rows share its score: together .32. Down to
    # 1, with the other labeled row, it is .57.
    labels = torch.tensor([1, 0, 0, 0, 0, 1])
    w = weights.uniform(labels, prior=0.4)
    scores = twins.tensor([2, 2, 2, 2, 2, 1])
    assert best_f1(scores, w) == 1.0
    assert best_f1(scores, w) == best_f1(scores.flip(0), weights.uniform(labels.flip(0), prior=0.4))


def test_best_f1_uses_the_propensities():
    # One labeled row at the top, a rarely labeled one far below: only its weight makes it worth calling down to it.
    labels, scores = torch.tensor([1, 0, 0, 1, 0, 0, 0, 0]), torch.arange(8.0).flip(0)
    weighted = weights.normalized_inverse_propensity(labels, twins.tensor([0.9, 0.05]), prior=0.3)
    reverse = weights.normalized_inverse_propensity(labels, twins.tensor([0.05, 0.9]), prior=0.3)
    assert best_f1(scores, weighted) == 4.0
    assert best_f1(scores, reverse) == 7.0


@pytest.mark.parametrize("k", [0, -1, 4])
def test_refuses_an_impossible_budget(k):
    with pytest.raises(InvalidInput, match="k must lie between 1 and the number of rows, 3; got"):
        budget(torch.zeros(3), k)


@pytest.mark.parametrize("prior", [0.0, 1.0, 1.7])
def test_refuses_a_prior_that_is_no_share(prior):
    with pytest.raises(InvalidInput, match=r"prior must lie in \(0, 1\); got"):
        prior_quantile(torch.zeros(3), prior)


@pytest.mark.parametrize(
    "choose",
    [
        decide,
        lambda scores: budget(scores, 1),
        lambda scores: prior_quantile(scores, 0.5),
        lambda scores: best_f1(scores, weights.uniform(torch.tensor([1, 0, 0]), prior=0.5)),
    ],
    ids=["decide", "budget", "prior_quantile", "best_f1"],
)
def test_refuses_a_column_of_scores(choose):
    with pytest.raises(InvalidInput, match=r"scores must be one-dimensional; got shape \(3, 1\)\. Use scores.squeeze"):
        choose(torch.zeros(3, 1))


def test_best_f1_refuses_scores_of_other_rows():
    with pytest.raises(InvalidInput, match="scores must have one entry for each of the 3 rows; got 2"):
        best_f1(torch.zeros(2), weights.uniform(torch.tensor([1, 0, 0]), prior=0.5))


def test_target_precision_equals_the_search_over_all_thresholds():
    rng, chosen = np.random.default_rng(0), set()
    for seed in range(30):
        scores = torch.from_numpy(rng.integers(0, 12, 40).astype(float))
        labels = torch.from_numpy((rng.random(40) < 0.1 + 0.05 * scores.numpy()).astype(np.int8))
        labels[0], labels[1] = 1, 0
        w = weights.uniform(labels, prior=0.3, scenario=Scenario.CASE_CONTROL)
        target = float(rng.uniform(0.3, 0.9))  # all rows together have a precision of 0.3
        found = []
        for threshold in sorted(set(scores.tolist())):
            called = scores >= threshold
            hits, mass = float(w.positive[called].sum()), float(w.background[called].sum())
            if hits >= target * mass - 1e-12 and hits >= 0.03:
                found.append(threshold)
        if found:
            assert target_precision(scores, w, target) == min(found), seed
            chosen.add(min(found))
        else:
            with pytest.raises(InvalidInput, match="no threshold has an estimated precision"):
                target_precision(scores, w, target)
    assert len(chosen) > 4  # not always the lowest score


@pytest.mark.parametrize("target", [0.0, 1.5])
def test_a_precision_is_a_share(target):
    with pytest.raises(InvalidInput, match="target precision must lie in"):
        target_precision(torch.zeros(2), weights.uniform(torch.tensor([1, 0]), prior=0.5), target)
