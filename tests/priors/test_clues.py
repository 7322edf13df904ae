"""The prior weighed from several clues: the clues against their twins, and what the interval promises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import expit, logit

from pue.core.data import PUData, Scenario
from pue.priors import clues as clues_of
from pue.priors import estimate_prior, evidence
from pue.priors.clues import CASE_CONTROL, CLEAR, SINGLE, auc, clues, from_clues
from pue.priors.dedpul import dedpul
from pue.priors.interval import _drawn

every_scenario = pytest.mark.parametrize("scenario", list(Scenario))


def table(n: int = 400, scenario: Scenario = Scenario.SINGLE_SAMPLE, seed: int = 0, *, gap: float = 1.5) -> PUData:
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    x = rng.normal(size=(n, 3)) + gap * y[:, None]
    return PUData(torch.from_numpy(x), torch.from_numpy((y & (rng.random(n) < 0.4)).astype(np.int64)), scenario)


def test_the_auc_equals_a_loop_over_pairs() -> None:
    data = table(60)
    rows = evidence(data, forest=True)
    q = np.round(rows.q, 1)  # with ties
    mass = np.random.default_rng(0).uniform(0.5, 2, 60)
    wins = total = 0.0
    for i in range(60):
        for j in range(60):
            if data.labels[i] == 1 and data.labels[j] == 0:
                pair = mass[i] * mass[j]
                total += pair
                wins += pair * (1.0 if q[i] > q[j] else 0.5 if q[i] == q[j] else 0.0)
    found = auc(evidence_like(rows, q, mass))
    assert found == pytest.approx(wins / total)


def evidence_like(rows, q, mass):
    return replace(rows, q=q, mass=mass)


@every_scenario
def test_the_prior_is_a_line_in_the_clues(scenario: Scenario) -> None:
    data = table(scenario=scenario)
    rows = evidence(data, forest=True)
    single = scenario is Scenario.SINGLE_SAMPLE
    estimate = logit(dedpul(rows))
    expected = [estimate, estimate * logit(auc(rows))] + ([logit(data.n_labeled / data.n_rows)] if single else [])
    np.testing.assert_allclose(clues(rows), expected)
    line = SINGLE if single else CASE_CONTROL
    center = line.intercept + sum(slope * clue for slope, clue in zip(line.slopes, clues(rows), strict=True))
    value, low, high = from_clues(rows, 2.0)
    spread = np.sqrt((line.clear if auc(rows) >= CLEAR else line.spread) ** 2 + 2 / data.n_labeled)
    share = data.n_labeled / data.n_rows
    assert value == pytest.approx(expit(center))
    assert high == pytest.approx(expit(center + 2 * spread))
    lowest = max(share, min(expit(center - 2 * spread), share / 0.7)) if single else expit(center - 2 * spread)
    assert low == pytest.approx(lowest)


def test_the_interval_reaches_down_to_rare_positives() -> None:
    """1 % positives that look like the others, a quarter of them labeled: the clues take them for common."""
    rng = np.random.default_rng(0)
    y = np.arange(4000) < 40
    data = PUData(torch.from_numpy(rng.normal(size=(4000, 3))), torch.from_numpy((y & (np.arange(4000) % 4 == 0)) * 1))
    value, low, _ = from_clues(evidence(data, forest=True), 1.96)
    assert low <= 0.01 < value
    assert low == pytest.approx(0.0025 / 0.7)


def test_scores_that_tell_rows_apart_make_the_interval_narrower() -> None:
    wide, narrow = (from_clues(evidence(table(gap=gap), forest=True), 2.0) for gap in (1.0, 6.0))
    assert narrow[2] - narrow[1] < wide[2] - wide[1]


def test_the_prior_is_never_below_what_is_labeled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clues_of, "SINGLE", replace(SINGLE, intercept=-9.0))
    rows = evidence(table(), forest=True)
    value, low, high = from_clues(rows, 2.0)
    share = rows.labeled_mass / rows.mass.sum()
    assert share <= low <= value <= high
    assert value == pytest.approx(1.02 * share)


def test_an_estimate_says_what_single_assumptions_give() -> None:
    data = table()
    found = estimate_prior(data)
    assert found == estimate_prior(data)
    assert found.low < found.value < found.high
    assert found.level == 0.95
    assert list(found.readings) == [
        "no label is missing", "labels are unbiased (dedpul)", "labels are unbiased inside clusters"
    ]  # fmt: skip
    assert found.readings["no label is missing"] == pytest.approx(data.n_labeled / data.n_rows)
    wide = estimate_prior(data, level=0.99)
    assert wide.value == found.value
    assert wide.low <= found.low
    assert wide.high > found.high


@every_scenario
def test_of_many_rows_some_are_drawn_that_stand_for_all(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pue.priors.interval.MOST", 200)
    data = table(1000, scenario)
    few = _drawn(data)
    assert few.n_rows == 200
    assert few.n_labeled == 100
    for label in (0, 1):
        assert float(few.mass[few.labels == label].sum()) == pytest.approx(float((data.labels == label).sum()))
    assert _drawn(table(150)).n_rows == 150
