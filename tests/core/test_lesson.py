"""Learning from answers: the combined risk is unbiased, by enumeration of all labelings and all draws."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from pue import PUClassifier
from pue.core.lesson import Lesson, best_share, combine
from pue.core.weights import pu
from pue.errors import InvalidInput
from pue.propensity.recalibration import recalibrate, recalibrated

Y = np.array([1, 0, 1, 1, 0, 0])
E = np.array([0.8, 0.5, 0.3, 0.5, 0.4, 0.6])
LOSS = {1: np.array([0.3, 1.1, 0.2, 0.7, 0.4, 0.9]), -1: np.array([0.6, 0.1, 1.3, 0.5, 0.8, 0.2])}


def risk(positive, negative):
    return float((positive * LOSS[1]).sum() + (negative * LOSS[-1]).sum())


def labelings():
    """All sets of labels that can happen, with their probabilities."""
    positives = np.flatnonzero(Y)
    for kept in itertools.product([0, 1], repeat=len(positives)):
        chance, s = 1.0, np.zeros(len(Y), dtype=np.int64)
        for row, label in zip(positives, kept, strict=True):
            chance *= E[row] if label else 1 - E[row]
            s[row] = label
        yield chance, s


def draws(s):
    """All samples of two unlabeled rows from either half of the rows, as lessons, with their probabilities."""
    halves = [[r for r in part if s[r] == 0] for part in (range(3), range(3, 6))]
    counts = [min(2, len(part)) for part in halves]
    samples = list(itertools.product(*(itertools.combinations(p, m) for p, m in zip(halves, counts, strict=True))))
    for sample in samples:
        rows = np.array([r for part in sample for r in part], dtype=np.int64)
        chance = np.array([m / len(p) for p, m in zip(halves, counts, strict=True) for _ in range(m)])
        yield 1 / len(samples), Lesson(rows, Y[rows] == 1, chance)


def true_risk():
    return risk((Y == 1) / len(Y), (Y == 0) / len(Y))


def test_the_risk_of_the_answers_is_unbiased_whatever_the_labeling():
    for _, s in labelings():
        if not s.any() or (s == 1).sum() == Y.sum():
            continue
        expected = 0.0
        for chance, lesson in draws(s):
            found = combine(s, None, lesson, share=1.0)
            prior = lesson.positives(s) / len(Y)
            if (found.labels == 1).any():
                w = pu(torch.from_numpy(found.labels), torch.from_numpy(found.propensity), prior=prior,
                       sample_weight=torch.from_numpy(found.mass))  # fmt: skip
                expected += chance * risk(w.positive.numpy(), w.negative.numpy())
        assert expected == pytest.approx(true_risk())


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
def test_the_combined_risk_is_unbiased_where_the_propensities_are_right(share):
    """Over all labelings × draws. The parts are IPW's, 1/(N e), whose mass is π in expectation only, as PUe's is."""
    expected = 0.0
    for probability, s in labelings():
        for chance, lesson in draws(s):
            answered = np.zeros(len(Y))
            answered[lesson.rows] = 1 / lesson.chance
            yes = np.zeros(len(Y))
            yes[lesson.rows] = lesson.yes / lesson.chance
            positive = (1 - share) * (s == 1) / (len(Y) * E) + share * ((s == 1) + yes) / len(Y)
            mass = 1 - share + share * np.where(s == 1, 1, answered)
            expected += probability * chance * risk(positive, mass / len(Y) - positive)
    assert expected == pytest.approx(true_risk())


def test_the_weights_are_those_of_the_two_risks_added_up():
    s, e = np.array([1, 0, 1, 0, 0, 0]), np.array([0.8, 0.3])
    lesson = Lesson(np.array([1, 3, 4]), Y[[1, 3, 4]] == 1, np.array([1.0, 2 / 3, 2 / 3]))
    n, share, prior = len(Y), 0.4, lesson.positives(s) / len(Y)
    found = combine(s, e, lesson, share=share)
    w = pu(torch.from_numpy(found.labels), torch.from_numpy(found.propensity), prior=prior,
           sample_weight=torch.from_numpy(found.mass))  # fmt: skip
    positive, background = np.zeros(n), np.zeros(n)
    for row in range(n):  # the twin: row by row, in words
        background[row] += (1 - share) / n
        if s[row] == 1:
            omega = (1 / e[[0, 2].index(row)]) / sum(1 / v for v in e)
            positive[row] += (1 - share) * prior * omega + share / n
            background[row] += share / n
        for k, answered in enumerate(lesson.rows):
            if answered == row:
                background[row] += share / n / lesson.chance[k]
                positive[row] += share / n / lesson.chance[k] * lesson.yes[k]
    np.testing.assert_allclose(w.positive.numpy(), positive)
    np.testing.assert_allclose(w.background.numpy(), background)
    assert background.sum() == pytest.approx(1)
    assert positive.sum() == pytest.approx(prior)


def test_the_share_minimises_the_squared_error():
    lesson = Lesson(np.arange(30), np.arange(30) < 10, np.full(30, 0.05))
    omega, prior, n, q = np.full(20, 1 / 20), 0.3, 600, 0.1
    biased = sum(4 * prior**2 * q * (1 - q) * w * w for w in omega)
    unbiased = sum(q * (1 - q) / (n * d) ** 2 for d in lesson.chance)
    shares = np.linspace(0, 1, 2001)
    for doubt in (0.0, 0.2):
        wrong = biased + 4 * prior**2 * q * (1 - q) * doubt**2
        best = shares[np.argmin((1 - shares) ** 2 * wrong + shares**2 * unbiased)]
        assert best_share(prior, omega, lesson, n, doubt) == pytest.approx(best, abs=1e-3)


def test_recalibration_learns_slope_and_level_from_weighted_answers():
    rng = np.random.default_rng(0)
    e = rng.uniform(0.05, 0.8, 20_000)
    label = rng.random(len(e)) < e
    shown = 1 / (1 + np.exp(-(0.4 * np.log(e / (1 - e)) + 0.7)))  # too flat, too high
    drawn = ~label & (rng.random(len(e)) < 0.02)
    a, b = recalibrate(shown[label], shown[drawn], np.full(drawn.sum(), 1 / 0.02))
    found = recalibrated(shown, a, b)
    assert np.abs(found - e).mean() < 0.05 < np.abs(shown - e).mean()


def test_few_answers_change_little():
    a, b = recalibrate(np.full(50, 0.3) + 0.01 * np.arange(50) / 50, np.array([0.31, 0.3]), np.full(2, 60.0))
    assert b == pytest.approx(1, abs=0.2)
    assert math.isfinite(a)
    assert recalibrate(np.array([0.3]), np.array([]), np.array([])) == (0.0, 1.0)


def test_rows_that_were_labeled_since_are_refused():
    lesson = Lesson(np.array([0]), np.array([True]), np.array([0.5]))
    with pytest.raises(InvalidInput, match="labeled in the table now"):
        combine(np.array([1, 0, 0]), None, lesson)
    with pytest.raises(InvalidInput, match="must differ"):
        Lesson(np.array([0, 0]), np.array([True, False]), np.array([0.5, 0.5]))


def told(n=600):
    """Rows of two kinds of positives, one of which is hardly labeled, and answers about some."""
    rng = np.random.default_rng(0)
    kind = rng.choice(3, n, p=[0.6, 0.2, 0.2])
    x = rng.normal(size=(n, 2)) + np.array([[0, 0], [2.5, 0], [0, 2.5]])[kind]
    s = (rng.random(n) < np.array([0, 0.6, 0.05])[kind]).astype(int)
    rows = rng.choice(np.flatnonzero(s == 0), 160, replace=False)
    return x, s, kind > 0, Lesson(rows, kind[rows] > 0, np.full(160, 160 / (s == 0).sum()))


@pytest.mark.parametrize("propensity", [None, "logistic"])
def test_a_classifier_takes_answers(propensity):
    x, s, y, lesson = told()
    clf = PUClassifier(backbone="forest", propensity=propensity, random_state=0).fit(x, s, audit=lesson)
    assert clf.prior_ == pytest.approx(lesson.positives(s) / len(s))
    assert clf.prior_estimate_.low < clf.prior_ < clf.prior_estimate_.high
    assert clf.prior_estimate_.method == "audit"
    plain = PUClassifier(backbone="forest", prior=clf.prior_, propensity=propensity, random_state=0).fit(x, s)
    assert np.mean(clf.predict(x) == y) > np.mean(plain.predict(x) == y)
    assert len(clf.propensity_) == (s == 1).sum() + lesson.yes.sum()


@pytest.mark.parametrize(("settings", "given", "text"), [
    ({"prior": 0.4}, {}, 'leave prior="estimate"'),
    ({"scenario": "case_control"}, {}, "pass the prior that audit.read finds"),
    ({}, {"sample_weight": np.ones(600)}, "leave out sample_weight"),
])  # fmt: skip
def test_what_answers_do_not_go_with_is_refused(settings, given, text):
    x, s, _, lesson = told()
    with pytest.raises(InvalidInput, match=text):
        PUClassifier(backbone="forest", **settings).fit(x, s, audit=lesson, **given)
