"""The estimated prior in the classifier, its warning, and the sweep over priors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from pue import PUClassifier, estimate_prior, prior_sweep
from pue.core.data import PUData
from pue.errors import InvalidInput, PueWarning, UnknownName


def problem(n: int = 1500, gap: float = 6.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two kinds of positives, labeled with 0.6 and 0.15, 40 % of the rows; far from the negatives."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, size=n, p=[0.2, 0.2, 0.6])
    centers = gap * np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    X = centers[kind] + rng.normal(size=(n, 2))
    s = (rng.random(n) < np.array([0.6, 0.15, 0.0])[kind]).astype(int)
    return X, s, (kind < 2).astype(int)


def test_the_estimated_prior_stands_biased_labels_where_elkan_noto_does_not() -> None:
    X, s, _ = problem()
    safe = PUClassifier(prior="clustered", epochs=1, random_state=0).fit(X, s)
    plain = PUClassifier(prior="elkan_noto", epochs=1, random_state=0).fit(X, s)
    assert safe.prior_ == pytest.approx(0.4, abs=0.05)
    assert plain.prior_ < 0.33
    assert safe.prior_estimate_.low <= safe.prior_ <= safe.prior_estimate_.high
    assert safe.prior_estimate_.method == "clustered"
    with pytest.warns(PueWarning, match="the estimated prior may lie anywhere"):
        default = PUClassifier(epochs=1, random_state=0).fit(X, s)
    assert default.prior_estimate_.low < 0.4 < default.prior_estimate_.high
    assert PUClassifier(prior=0.4, epochs=1).fit(X, s).prior_estimate_ is None


def test_a_wide_interval_is_warned_about_and_a_narrow_one_is_not() -> None:
    X, s, _ = problem(150, gap=1.0)
    with pytest.warns(PueWarning, match=r"between \d\.\d\d and \d\.\d\d; between the two about \d+% of the rows"):
        PUClassifier(epochs=1, random_state=0).fit(X, s)
    X, s, _ = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PUClassifier(prior="clustered", epochs=1, random_state=0).fit(X, s)


def test_an_unknown_prior_is_named() -> None:
    X, s, _ = problem(100)
    with pytest.raises(UnknownName, match="elkan_noto"):
        PUClassifier(prior="elkan").fit(X, s)


def test_the_classifier_takes_the_estimate_of_the_library() -> None:
    X, s, _ = problem()
    clf = PUClassifier(prior="clustered", epochs=1, random_state=0).fit(X, s)
    alone = estimate_prior(PUData(torch.from_numpy(X), torch.from_numpy(s)), method="clustered")
    assert clf.prior_ == pytest.approx(alone.value, abs=0.02)


def test_the_sweep_refits_and_leaves_the_classifier_alone() -> None:
    X, s, y = problem()
    clf = PUClassifier(prior=0.4, epochs=15, random_state=0).fit(X, s)
    before = clf.decision_function(X)
    sweep = prior_sweep(clf, X, s, priors=[0.6, 0.4, 0.2])
    assert [row.prior for row in sweep.rows] == [0.2, 0.4, 0.6]
    assert sweep.rows[1].agreement == 1.0  # the same prior and seed: the same classifier
    assert sweep.rows[0].positive_share < sweep.rows[1].positive_share < sweep.rows[2].positive_share
    np.testing.assert_array_equal(clf.decision_function(X), before)
    assert clf.prior_ == 0.4
    assert "called positive" in str(sweep)
    assert np.mean(clf.predict(X) == y) > 0.9


def test_the_sweep_keeps_the_known_propensities_of_the_fit() -> None:
    X, s, _ = problem(gap=1.0)
    e = np.where(X[:, 0] > np.median(X[s == 1, 0]), 0.9, 0.1)
    clf = PUClassifier(prior=0.4, epochs=5, random_state=0).fit(X, s, propensity=e)
    row = prior_sweep(clf, X, s, priors=[0.4]).rows[0]
    assert row.agreement == 1.0
    assert row.accuracy == clf.score(X, s, propensity=e)
    plain = PUClassifier(prior=0.4, epochs=5, random_state=0).fit(X, s)
    assert np.mean(plain.predict(X) == clf.predict(X)) < 1.0


def test_the_sweep_goes_over_the_interval_by_default() -> None:
    X, s, _ = problem()
    clf = PUClassifier(prior="clustered", epochs=1, random_state=0).fit(X, s)
    found = [row.prior for row in prior_sweep(clf, X, s).rows]
    estimate = clf.prior_estimate_
    assert found == pytest.approx(sorted([estimate.low, estimate.value, estimate.high]))
    given = PUClassifier(prior=0.4, epochs=1, random_state=0).fit(X, s)
    assert [row.prior for row in prior_sweep(given, X, s).rows] == pytest.approx([0.3, 0.4, 0.5])
    with pytest.raises(InvalidInput, match="priors is empty"):
        prior_sweep(given, X, s, priors=[])
