"""Metrics with truth, against counts and pairs; score and hard flavours are the same definitions on other inputs."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch
import twins
from hypothesis import given
from hypothesis import strategies as st

from pue.errors import InvalidInput
from pue.judging import METRICS, SCORERS, EstimatedMetrics, Metrics, ap_hard, evaluate
from pue.judging.truth import BRIEF, RANKING


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[int], list[float], float]:
    """Classes (both occur), scores on a coarse grid so that ties happen, and a threshold."""
    n = draw(st.integers(2, 10))
    rest = draw(st.lists(st.sampled_from([1, 0]), min_size=n - 2, max_size=n - 2))
    y = [1, draw(st.sampled_from([0, -1])), *rest]
    scores = [k / 2 for k in draw(st.lists(st.integers(-4, 4), min_size=n, max_size=n))]
    return y, scores, draw(st.sampled_from([0.0, 0.5, -3.0, 3.0]))


@given(case=cases())
def test_equals_its_twin(case):
    y, scores, threshold = case
    metrics = evaluate(torch.tensor(y), twins.tensor(scores), threshold=threshold)
    called = [int(g >= threshold) for g in scores]
    hits, false_alarms, misses, rejected = twins.confusion(y, called)
    assert metrics.accuracy == pytest.approx((hits + rejected) / len(y))
    assert metrics.precision == pytest.approx(hits / (hits + false_alarms) if any(called) else 0)
    assert metrics.recall == pytest.approx(hits / (hits + misses))
    assert metrics.f1 == pytest.approx(2 * hits / (2 * hits + false_alarms + misses))
    assert metrics.auc == pytest.approx(twins.auc(y, scores))
    assert metrics.ap == pytest.approx(twins.average_precision(y, scores))
    # The hard flavours are AUC and AP of the 0/1 calls.
    assert metrics.auc_hard == pytest.approx(twins.auc(y, called), abs=1e-12)
    assert metrics.ap_hard == pytest.approx(twins.average_precision(y, called), abs=1e-12)


def test_perfect_scores_give_ones():
    metrics = evaluate(torch.tensor([1, 1, 0]), torch.tensor([2.0, 1.0, -1.0]))
    assert set(metrics.as_dict().values()) == {1.0}


def test_the_two_flavours_differ():
    # A perfect ranking with a bad threshold: the reason why they must never stand in one column.
    metrics = evaluate(torch.tensor([1, 1, 0, 0]), torch.tensor([4.0, 3.0, 2.0, 1.0]))
    assert (metrics.auc, metrics.ap) == (1.0, 1.0)
    assert (metrics.auc_hard, metrics.ap_hard) == (0.5, 0.5)


def test_calling_nothing_positive_is_not_an_error():
    metrics = evaluate(torch.tensor([1, 0]), torch.tensor([-1.0, -2.0]))
    assert (metrics.precision, metrics.recall, metrics.f1) == (0, 0, 0)
    assert metrics.ap_hard == 0.5


def test_hard_average_precision_is_a_mixture_of_precision_and_prior():
    assert ap_hard(0.8, 1.0, 0.3) == pytest.approx(0.8)
    assert ap_hard(0.8, 0.0, 0.3) == pytest.approx(0.3)
    assert ap_hard(0.8, 0.25, 0.3) == pytest.approx(0.425)


def test_one_list_of_metrics_serves_truth_estimates_and_scorers():
    true, estimated = ([field.name for field in fields(kind)] for kind in (Metrics, EstimatedMetrics))
    assert true == [*METRICS, *(f"{name}_hard" for name in RANKING)]
    assert estimated[: len(METRICS)] == list(METRICS) == list(BRIEF) == list(SCORERS)


def test_as_dict_names_every_metric():
    metrics = evaluate(torch.tensor([1, 0]), torch.tensor([1.0, -1.0]))
    assert list(metrics.as_dict()) == [field.name for field in fields(Metrics)]


@pytest.mark.parametrize("y", [[1, 1], [0, 0]])
def test_refuses_one_class(y):
    with pytest.raises(InvalidInput, match="need rows of both classes in y; found one class only"):
        evaluate(torch.tensor(y), torch.tensor([1.0, 2.0]))


def test_refuses_columns_and_other_lengths():
    y, scores = torch.tensor([1, 0]), torch.tensor([1.0, -1.0])
    with pytest.raises(InvalidInput, match=r"scores must be one-dimensional; got shape \(2, 1\)\. Use scores.squeeze"):
        evaluate(y, scores[:, None])
    with pytest.raises(InvalidInput, match=r"y must be one-dimensional; got shape \(2, 1\)\. Use y.squeeze"):
        evaluate(y[:, None], scores)
    with pytest.raises(InvalidInput, match="scores must have one entry for each of the 2 rows; got 3"):
        evaluate(y, torch.zeros(3))
