"""Criteria without negatives: against plain loops, against the truth where it is known, and by their symmetries."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
import twins
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, roc_auc_score
from torch import Tensor

from pue import weights
from pue.core.criteria import CRITERIA, auc, pa, pauc, risk
from pue.core.data import Scenario
from pue.core.losses import zero_one
from pue.core.risks import upu
from pue.core.weights import RowWeights
from pue.errors import InvalidInput

# ------------------------------------------------------------------------------------------------------ slow twins


def slow_risk(g: list[float], positive: list[float], background: list[float]) -> float:
    """−Σ w⁺ℓ(g) − Σ (b − w⁺) ℓ(−g), ℓ the sigmoid loss."""
    rows = zip(g, positive, background, strict=True)
    return -math.fsum(w * twins.sigmoid(gi) + (b - w) * twins.sigmoid(-gi) for gi, w, b in rows)


def slow_pa(g: list[float], positive: list[float], background: list[float]) -> float:
    """2π·TPR + P(called negative) − π, in the terms of the paper: π, a rate among P, a share of p(x)."""
    prior = math.fsum(positive)
    recall = math.fsum(w for gi, w in zip(g, positive, strict=True) if gi >= 0) / prior
    return 2 * prior * recall + math.fsum(b for gi, b in zip(g, background, strict=True) if gi < 0) - prior


def slow_pauc(g: list[float], positive: list[float], background: list[float]) -> float:
    """The weighted share of pairs (P, p(x)) in the right order, pair by pair."""
    right = 0.0
    for gi, w in zip(g, positive, strict=True):
        for gj, b in zip(g, background, strict=True):
            right += w * b * (1.0 if gi > gj else 0.5 if gi == gj else 0.0)
    return right / (math.fsum(positive) * math.fsum(background))


def slow_auc(g: list[float], positive: list[float], background: list[float]) -> float:
    prior = math.fsum(positive)
    return (slow_pauc(g, positive, background) - prior / 2) / (1 - prior)


def slow_likelihood(g: list[float], positive: list[float], background: list[float]) -> float:
    """Σ w⁺ log σ(g) + Σ (b − w⁺) log(1 − σ(g))."""
    rows = zip(g, positive, background, strict=True)
    return math.fsum(-w * twins.logistic(gi) - (b - w) * twins.logistic(-gi) for gi, w, b in rows)


TWINS = {"auc": slow_auc, "likelihood": slow_likelihood, "pa": slow_pa, "pauc": slow_pauc, "risk": slow_risk}


def weigh(sample: twins.Sample, *, propensity: bool = True) -> RowWeights:
    labels = torch.tensor(sample.labels)
    weight = None if sample.weight is None else twins.tensor(sample.weight)
    options = {"prior": sample.prior, "scenario": Scenario(sample.scenario), "sample_weight": weight}
    if not propensity:
        return weights.uniform(labels, **options)
    return weights.normalized_inverse_propensity(labels, twins.tensor(sample.propensity), **options)


def tied(scores: list[float]) -> list[float]:
    """Scores on a grid: many are equal, some are zero."""
    return [float(round(score)) for score in scores]


@pytest.mark.parametrize("name", CRITERIA)
@given(sample=twins.pu_samples(weighted=True), ties=st.booleans(), propensity=st.booleans())
def test_a_criterion_equals_its_slow_twin(name, sample, ties, propensity):
    w = weigh(sample, propensity=propensity)
    scores = tied(sample.scores) if ties else sample.scores
    expected = TWINS[name](scores, w.positive.tolist(), w.background.tolist())
    assert CRITERIA[name](twins.tensor(scores), w) == pytest.approx(expected, abs=1e-12)


def test_every_criterion_has_a_twin():
    assert TWINS.keys() == CRITERIA.keys()


# ----------------------------------------------------------------------------------------------------- identities


@given(sample=twins.pu_samples(weighted=True))
def test_proxy_accuracy_is_one_minus_the_risk_of_the_zero_one_loss(sample):
    # A score of exactly zero costs ½ in the loss, and is called positive by the classifier.
    scores = twins.tensor([score or 1.0 for score in sample.scores])
    w = weigh(sample)
    assert pa(scores, w) == pytest.approx(1 - float(upu(zero_one)(scores, w)), abs=1e-12)


@given(sample=twins.pu_samples(weighted=True))
def test_a_score_of_zero_is_called_positive(sample):
    scores = twins.tensor(tied(sample.scores))
    assert pa(scores, weigh(sample)) == pa(scores + 0.1, weigh(sample))


@given(sample=twins.pu_samples())
def test_the_risk_is_the_one_that_upu_gives(sample):
    scores, w = twins.tensor(sample.scores), weigh(sample)
    assert risk(scores, w) == -float(upu()(scores, w))


# ------------------------------------------------------------------------------- where all positives have a label


@st.composite
def labeled_completely(draw: st.DrawFn) -> tuple[list[int], list[float], str]:
    y = list(draw(st.permutations([1] * draw(st.integers(1, 5)) + [0] * draw(st.integers(1, 5)))))
    scores = draw(st.lists(st.integers(-3, 3).map(float), min_size=len(y), max_size=len(y)))
    return y, scores, draw(st.sampled_from(list(Scenario)))


@given(case=labeled_completely())
def test_with_all_labels_and_the_prior_of_the_sample_they_are_accuracy_and_auc(case):
    # In case-control the labeled rows are copies beside the whole set, in a single sample they stand inside it.
    y, g, scenario = case
    labels, scores = torch.tensor(y), twins.tensor(g)
    if scenario is Scenario.CASE_CONTROL:
        labels, scores = torch.cat([torch.ones(sum(y)), torch.zeros(len(y))]), torch.cat([scores[labels == 1], scores])
    w = weights.uniform(labels, prior=sum(y) / len(y), scenario=scenario)
    assert auc(scores, w) == pytest.approx(roc_auc_score(y, g), abs=1e-12)
    assert pa(scores, w) == pytest.approx(accuracy_score(y, [gi >= 0 for gi in g]), abs=1e-12)


@pytest.mark.parametrize("name", ["pa", "pauc"])
def test_weighted_by_the_true_propensity_the_expectation_over_labelings_is_the_truth(name):
    # All 2⁴ labelings of four positives, each with its probability. Unnormalised weights make PA and π·PAUC linear in
    # the labels, so the expectation is exact; without weights it is not.
    e, g = [0.9, 0.5, 0.2, 0.1], twins.tensor([3.0, 1.0, 0.4, -1.0, 0.5, -0.5, -2.0, -0.7])
    n = len(g)
    everything = weights.uniform(torch.tensor([1] * 4 + [0] * 4), prior=0.5)
    value = pa if name == "pa" else lambda scores, w: pauc(scores, w) * float(w.positive.sum())

    def expectation(propensity: list[float]) -> float:
        total = 0.0
        for chosen in itertools.product([0, 1], repeat=4):
            chance = math.prod(p if s else 1 - p for s, p in zip(chosen, e, strict=True))
            positive = twins.tensor([s / (n * p) for s, p in zip(chosen, propensity, strict=True)] + [0.0] * 4)
            if positive.sum() == 0:  # PAUC is 0/0 here, but π·PAUC is zero; PA is the share called negative
                total += chance * (float((g < 0).double().mean()) if name == "pa" else 0.0)
            else:
                total += chance * value(g, RowWeights(positive, torch.full((n,), 1 / n).double() - positive))
        return total

    assert expectation(e) == pytest.approx(value(g, everything), abs=1e-12)
    assert abs(expectation([sum(e) / 4] * 4) - value(g, everything)) > 0.01


def test_the_weights_decide_between_two_models():
    # One model knows the positives that are often labeled, the other those that rarely are and make up most of them.
    # Plain criteria prefer the first, weighted ones the second.
    labels = torch.tensor([1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0])
    often, rarely = torch.tensor([0, 1, 2]), torch.tensor([3, 4, 5, 6, 7])
    first, second = torch.full((12,), -1.0), torch.full((12,), -1.0)
    first[often], second[rarely] = 1.0, 1.0
    plain = weights.uniform(labels, prior=0.6)
    weighted = weights.normalized_inverse_propensity(labels, twins.tensor([1.0, 1.0, 1.0, 0.2]), prior=0.6)
    for criterion in CRITERIA.values():
        assert criterion(first, plain) > criterion(second, plain)
        assert criterion(first, weighted) < criterion(second, weighted)


# ----------------------------------------------------------------------------------------------------- symmetries


def of_rows(w: RowWeights, rows: Tensor) -> RowWeights:
    return RowWeights(w.positive[rows], w.negative[rows])


@pytest.mark.parametrize("name", CRITERIA)
@given(sample=twins.pu_samples(weighted=True), data=st.data())
def test_the_order_of_the_rows_does_not_matter(name, sample, data):
    order = torch.tensor(data.draw(st.permutations(range(len(sample.labels)))))
    scores, w = twins.tensor(sample.scores), weigh(sample)
    assert CRITERIA[name](scores[order], of_rows(w, order)) == pytest.approx(CRITERIA[name](scores, w), abs=1e-12)


@pytest.mark.parametrize("name", ["auc", "pauc"])
@given(sample=twins.pu_samples(weighted=True), ties=st.booleans())
def test_a_ranking_survives_every_increasing_function(name, sample, ties):
    # Number by number: torch.sinh of equal numbers may differ in the last bit, by their place in the vector register.
    # Steps of 1/8 stay apart whatever is done to them here.
    scores, w = tied(sample.scores) if ties else [round(8 * g) / 8 for g in sample.scores], weigh(sample)
    for increasing in (math.sinh, math.atan, lambda g: g**3 + g, lambda g: 100 * g - 7):
        moved = twins.tensor([increasing(g) for g in scores])
        assert CRITERIA[name](moved, w) == CRITERIA[name](twins.tensor(scores), w)


@pytest.mark.parametrize("name", ["auc", "pauc"])
@given(sample=twins.pu_samples(weighted=True), ties=st.booleans())
def test_a_ranking_upside_down_is_one_minus_the_ranking(name, sample, ties):
    scores, w = twins.tensor(tied(sample.scores) if ties else sample.scores), weigh(sample)
    assert CRITERIA[name](-scores, w) == pytest.approx(1 - CRITERIA[name](scores, w), abs=1e-12)


@given(sample=twins.pu_samples(weighted=True))
def test_scores_that_are_all_alike_rank_as_a_coin(sample):
    scores = torch.zeros(len(sample.labels))
    assert pauc(scores, weigh(sample)) == pytest.approx(0.5, abs=1e-12)
    assert auc(scores, weigh(sample)) == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize("name", CRITERIA)
@given(sample=twins.pu_samples(), data=st.data())
def test_a_weight_of_k_is_a_row_that_stands_there_k_times(name, sample, data):
    n = len(sample.labels)
    counts = torch.tensor(data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)))
    rows = torch.arange(n).repeat_interleave(counts)
    labels, scores = torch.tensor(sample.labels), twins.tensor(sample.scores)
    e = torch.zeros(n).double()
    e[labels == 1] = twins.tensor(sample.propensity)
    share = int(counts[labels == 1].sum()) / int(counts.sum())
    options = {"prior": max(sample.prior, share), "scenario": Scenario(sample.scenario)}
    weighted = weights.normalized_inverse_propensity(labels, e[labels == 1], **options, sample_weight=counts.double())
    repeated = weights.normalized_inverse_propensity(labels[rows], e[rows][labels[rows] == 1], **options)
    assert CRITERIA[name](scores, weighted) == pytest.approx(CRITERIA[name](scores[rows], repeated), abs=1e-12)


# ------------------------------------------------------------------------------------------------- size and errors


def test_a_million_rows_are_ranked_without_a_table_of_pairs():
    n = 1_000_000
    g = torch.Generator().manual_seed(0)
    y = torch.arange(n) % 2
    scores = torch.randn(n, generator=g) + y
    w = weights.uniform(y * (torch.arange(n) < n // 2), prior=0.5)
    assert auc(scores, w) == pytest.approx(0.5 * (1 + math.erf(0.5)), abs=0.003)  # Φ(1/√2)


@pytest.mark.parametrize("name", CRITERIA)
def test_single_precision_scores_are_judged_in_double(name):
    labels, scores = torch.tensor([1, 1, 0, 0, 0]), torch.tensor([0.5, -0.25, 1.5, -2.0, 0.0])
    w = weights.uniform(labels, prior=0.5)
    assert CRITERIA[name](scores, w) == CRITERIA[name](scores.double(), w)


@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize(
    ("scores", "text"),
    [
        (torch.zeros(3, 1), r"scores must be one-dimensional; got shape \(3, 1\)"),
        (torch.zeros(2), "scores must have one entry for each of the 3 rows; got 2"),
        (torch.tensor([0.0, math.nan, 1.0]), "scores hold NaN or infinity"),
        (torch.tensor([0.0, math.inf, 1.0]), "scores hold NaN or infinity"),
    ],
    ids=["column", "other rows", "nan", "infinity"],
)
def test_scores_that_cannot_be_judged_are_refused(name, scores, text):
    with pytest.raises(InvalidInput, match=text):
        CRITERIA[name](scores, weights.uniform(torch.tensor([1, 0, 0]), prior=0.5))
