"""Threshold curves and reliability, against the estimates at single thresholds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from test_estimates import biased

from pue.core.weights import normalized_inverse_propensity
from pue.judging import estimate_metrics
from pue.judging.curves import reliability, threshold_curve


@pytest.fixture(scope="module")
def sample():
    g, s, e, y = biased(3000, 0)
    p = torch.from_numpy(1 / (1 + np.exp(-2 * g)))
    labels = torch.from_numpy(s.astype(np.int8))
    return p, labels, torch.from_numpy(e[s == 1]), normalized_inverse_propensity(
        labels, torch.from_numpy(e[s == 1]), prior=0.4
    ), y  # fmt: skip


def test_each_point_is_the_estimate_at_its_threshold(sample):
    p, labels, e, weights, _ = sample
    curve = threshold_curve(p, weights, thresholds=np.array([0.0, 0.2, 0.5, 0.9]), draws=20)
    for k, threshold in enumerate(curve.thresholds):
        found = estimate_metrics(p, labels, prior=0.4, propensity=e, threshold=threshold, draws=0)
        assert curve.recall[0][k] == pytest.approx(found.recall.value)
        assert curve.precision[0][k] == pytest.approx(found.precision.value)
        assert curve.f1[k] == pytest.approx(found.f1.value)
        assert curve.flagged[k] == pytest.approx(found.flagged.value)


def test_intervals_hold_the_values_and_recall_falls(sample):
    p, _, _, weights, _ = sample
    curve = threshold_curve(p, weights, draws=50)
    assert len(curve.thresholds) == 101
    for value, low, high in (curve.recall, curve.precision):
        known = ~np.isnan(value)
        assert (low[known] <= value[known]).all()
        assert (value[known] <= high[known]).all()
    assert (np.diff(curve.recall[0]) <= 1e-12).all()
    assert curve.recall[0][0] == pytest.approx(1.0)
    middle = slice(20, 80)
    assert (curve.recall[2] - curve.recall[1])[middle].min() > 0.005


def test_a_threshold_that_nobody_reaches_has_no_precision():
    labels = torch.tensor([1, 0, 0], dtype=torch.int8)
    weights = normalized_inverse_propensity(labels, torch.tensor([0.5]), prior=0.5)
    curve = threshold_curve(torch.tensor([0.3, 0.2, 0.1]), weights, draws=5)
    assert np.isnan(curve.precision[0][-1])
    assert curve.flagged[-1] == 0


def test_reliability_finds_what_is_true_and_what_is_not(sample):
    p, _, _, weights, y = sample
    bins = reliability(p, weights, draws=50)
    assert sum(found.share for found in bins) == pytest.approx(1.0)
    edges = np.quantile(p.numpy(), np.linspace(0, 1, 11))
    for k, found in enumerate(bins):
        rows = (p.numpy() >= edges[k]) & (p.numpy() <= edges[k + 1])
        assert found.predicted == pytest.approx(p.numpy()[rows].mean(), abs=0.01)
        assert found.low <= found.estimated <= found.high
        assert found.estimated == pytest.approx(y[rows].mean(), abs=0.12)
    doubled = reliability((2 * p).clamp(max=1.0), weights, draws=50)
    off = [found for found in doubled if not found.low <= found.predicted <= found.high]
    assert len(off) > len(doubled) / 3
