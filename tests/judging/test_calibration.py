"""Probabilities without negatives: the convex likelihood against a slow twin, and against the truth."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from pue.core.data import Scenario
from pue.core.weights import normalized_inverse_propensity, supervised, uniform
from pue.errors import InvalidInput, UnknownName
from pue.judging import calibration_error
from pue.judging.calibration import CALIBRATIONS, Monotone, Sigmoid, calibrate, isotonic, platt


def known(n: int = 4000, seed: int = 0, scale: float = 3.0):
    """Scores that are `scale` times the true logit, biased labels, their propensities and the classes."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(size=n) * 2 - 0.5
    y = rng.random(n) < 1 / (1 + np.exp(-logit))
    e = 0.1 + 0.5 / (1 + np.exp(-logit))
    s = torch.from_numpy((y & (rng.random(n) < e)).astype(np.int8))
    g = torch.from_numpy(scale * logit + 1.0)
    return g, s, torch.from_numpy(e)[s == 1], torch.from_numpy(y.astype(int)), float(y.mean())


def test_platt_minimises_the_pu_likelihood():
    g, s, e, _, prior = known(300)
    w = normalized_inverse_propensity(s, e, prior=prior)
    positive, negative = w.positive.numpy(), w.negative.numpy()

    def risk(beta):  # the plain form, positive and negative part, row by row
        total = 0.0
        for row, score in enumerate(g.tolist()):
            m = beta[0] * score + beta[1]
            total += positive[row] * np.logaddexp(0, -m) + negative[row] * np.logaddexp(0, m)
        return total

    found = platt(g, w)
    best = minimize(risk, [0.1, 0.0], method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-12})
    assert risk([found.slope, found.intercept]) == pytest.approx(best.fun, abs=1e-4)  # but for the ridge
    assert found.slope == pytest.approx(best.x[0], rel=0.05)


def test_platt_with_all_classes_known_is_the_classical_one():
    g, _, _, y, _ = known(500)
    found = platt(g, supervised(y))
    margin = found.slope * g + found.intercept
    gap = torch.sigmoid(margin) - y
    assert abs(float(gap.mean())) < 1e-3
    assert abs(float((gap * (g - g.mean()) / g.std()).mean())) < 5e-3


@pytest.mark.parametrize("method", sorted(CALIBRATIONS))
@pytest.mark.parametrize("scenario", list(Scenario))
def test_calibrated_probabilities_are_near_the_truth_and_scar_is_not(method, scenario):
    errors = {"raw": [], "weighted": [], "scar": []}
    for seed in range(4):
        g, s, e, y, prior = known(6000, seed)
        rows = torch.arange(len(g))
        if scenario is Scenario.CASE_CONTROL:
            rows = torch.cat([torch.nonzero(s == 1)[:, 0], rows])
            s = (torch.arange(len(rows)) < int((s == 1).sum())).to(torch.int8)
        weights = {
            "weighted": normalized_inverse_propensity(s, e, prior=prior, scenario=scenario),
            "scar": uniform(s, prior=prior, scenario=scenario),
        }
        errors["raw"].append(calibration_error(y, torch.sigmoid(g)))
        for name, w in weights.items():
            errors[name].append(calibration_error(y, calibrate(g[rows], w, method)(g)))
    mean = {name: np.mean(values) for name, values in errors.items()}
    assert mean["weighted"] < 0.04, mean
    assert mean["weighted"] < 0.6 * mean["scar"], mean
    assert mean["weighted"] < 0.5 * mean["raw"], mean


@pytest.mark.parametrize("method", sorted(CALIBRATIONS))
def test_calibration_keeps_the_order_and_stays_in_range(method):
    g, s, e, _, prior = known(800, 1)
    found = calibrate(g, normalized_inverse_propensity(s, e, prior=prior), method)
    p = found(torch.linspace(-50, 50, 1001))
    assert bool((p.diff() >= 0).all())
    assert float(p.min()) >= 0
    assert float(p.max()) <= 1
    assert p.dtype == torch.float64


def test_isotonic_is_the_share_of_positives_in_each_step():
    g = torch.tensor([0.0, 0.0, 1.0, 1.0, 2.0, 2.0])
    s = torch.tensor([0, 0, 1, 0, 1, 1], dtype=torch.int8)
    found = isotonic(g, uniform(s, prior=0.5))
    assert found(torch.tensor([0.0, 0.5, 1.0, 2.0])).tolist() == pytest.approx([0.0, 0.25, 0.5, 1.0])


def test_scores_that_say_nothing_get_the_prior():
    s = torch.tensor([1, 0, 0, 0], dtype=torch.int8)
    p = calibrate(torch.zeros(4), uniform(s, prior=0.3))(torch.zeros(2))
    assert p.tolist() == pytest.approx([0.3, 0.3], abs=1e-6)


def test_scores_that_mislead_are_not_turned_around():
    s = torch.tensor([1, 1, 0, 0, 0, 0], dtype=torch.int8)
    g = torch.tensor([-2.0, -1.0, 1.0, 2.0, 3.0, 4.0])
    assert platt(g, uniform(s, prior=0.4)).slope == 0.0


def test_perfect_separation_stays_finite():
    g = torch.cat([torch.full((20,), 5.0), torch.full((80,), -5.0)])
    s = torch.cat([torch.ones(20), torch.zeros(80)]).to(torch.int8)
    found = platt(g, uniform(s, prior=0.2))
    assert np.isfinite([found.slope, found.intercept]).all()
    assert float(found(torch.tensor([5.0]))[0]) > 0.95


def test_calibrators_are_values():
    assert Sigmoid(1.0, 2.0) == Sigmoid(1.0, 2.0)
    line = Monotone(np.array([0.0, 1.0]), np.array([0.2, 0.8]))
    assert line(torch.tensor([-1.0, 0.5, 9.0])).tolist() == pytest.approx([0.2, 0.5, 0.8])


def test_bad_input_is_named():
    w = uniform(torch.tensor([1, 0], dtype=torch.int8), prior=0.5)
    with pytest.raises(UnknownName, match="Did you mean 'platt'"):
        calibrate(torch.zeros(2), w, "plat")
    with pytest.raises(InvalidInput, match="NaN or infinity"):
        calibrate(torch.tensor([0.0, torch.nan]), w)
    with pytest.raises(InvalidInput, match="one entry for each of the 2 rows"):
        calibrate(torch.zeros(3), w)
