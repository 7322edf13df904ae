"""Any scikit-learn classifier as a PU classifier."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import estimator_checks_generator
from test_check_estimator import EXEMPT

from pue import PUWrapper
from pue.core.weights import normalized_inverse_propensity
from pue.errors import InvalidInput
from pue.estimators.wrapper import repetitions
from pue.judging import calibration_error


def biased(n: int, seed: int = 0, prior: float = 0.4):
    """Two normal classes; which positives are labeled depends on the second column."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < prior
    x = rng.normal(size=(n, 3)) + 1.7 * y[:, None]
    e = np.clip(1 / (1 + np.exp(3 - 1.5 * x[:, 1])), 0.03, 1)
    return x, (y & (rng.random(n) < e)).astype(int), e, y


class Recorder(LogisticRegression):
    """Keeps what it was given."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        Recorder.seen.append((X.copy(), y.copy(), sample_weight.copy()))
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("scenario", ["single_sample", "case_control"])
def test_labeled_rows_stand_against_the_population_and_no_weight_is_negative(scenario):
    x, s, e, _ = biased(200)
    Recorder.seen.clear()
    PUWrapper(Recorder(), prior=0.4, scenario=scenario, random_state=0).fit(x, s, propensity=e)
    rows, target, weight = Recorder.seen[0]
    population = x if scenario == "single_sample" else x[s == 0]
    np.testing.assert_array_equal(rows, np.vstack([x[s == 1], population]))
    np.testing.assert_array_equal(target, np.r_[np.ones(s.sum()), np.zeros(len(population))])
    w = normalized_inverse_propensity(torch.from_numpy(s), torch.from_numpy(e[s == 1]), prior=0.4)
    np.testing.assert_allclose(weight[: s.sum()], w.positive[s == 1].numpy() * len(population))
    np.testing.assert_allclose(weight[s.sum() :], 1.0)
    assert all((weights >= 0).all() for _, _, weights in Recorder.seen)
    assert len(Recorder.seen) == 4  # all rows, and three folds left out in turn


def test_odds_of_the_contest_are_the_posterior():
    """Two cells, every number known: 0.4 of the rows are positive, in cell 1 nine of ten, in cell 0 one of fifteen."""
    y = np.repeat([1, 0, 1, 0], [90, 10, 10, 140])
    x = np.repeat([1.0, 0.0], [100, 150])[:, None]
    s = np.zeros(250, dtype=int)
    s[:90:2], s[100:110:5] = 1, 1  # half of one cell's positives, a fifth of the other's
    e = np.where(x[:, 0] == 1, 0.5, 0.2)
    fitted = PUWrapper(LogisticRegression(C=1e6, tol=1e-8), prior=0.4, random_state=0).fit(x, s, propensity=e)
    odds = np.exp(fitted.estimator_.decision_function([[1.0], [0.0]]))
    np.testing.assert_allclose(odds, [y[:100].mean(), y[100:].mean()], rtol=1e-3)


@pytest.mark.parametrize(
    "base",
    [
        make_pipeline(StandardScaler(), LogisticRegression()),
        HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=8, random_state=0),
        RandomForestClassifier(50, min_samples_leaf=10, random_state=0),
    ],
    ids=["logistic", "boosting", "forest"],
)
def test_the_correction_helps_and_probabilities_mean_something(base):
    ranking: dict[str, list[float]] = {"plain": [], "corrected": []}
    errors = []
    for seed in range(3):
        x, s, e, _ = biased(1500, seed)
        test, _, _, truth = biased(2000, 100 + seed)
        for kind, known in (("plain", None), ("corrected", e)):
            p = PUWrapper(base, prior=0.4, random_state=0).fit(x, s, propensity=known).predict_proba(test)[:, 1]
            ranking[kind].append(roc_auc_score(truth, p))
        errors.append(calibration_error(torch.from_numpy(truth.astype(int)), torch.from_numpy(p)))
    assert np.mean(ranking["corrected"]) > 0.93
    assert np.mean(ranking["corrected"]) > np.mean(ranking["plain"]), ranking
    assert np.mean(errors) < 0.1


def test_estimated_prior_and_propensities():
    x, s, _, y = biased(800)
    fitted = PUWrapper(LogisticRegression(), propensity="logistic", prior=0.4, random_state=0).fit(x, s)
    assert fitted.propensity_report_.n_labeled == s.sum()
    assert fitted.predict_propensity(x).shape == (800,)
    assert np.mean(fitted.predict(x) == y) > 0.85
    assert 0.5 < fitted.score(x, s) <= 1.0


def test_proba_and_decision_agree():
    x, s, e, _ = biased(300)
    fitted = PUWrapper(LogisticRegression(), prior=0.4, random_state=0).fit(x, s, propensity=e)
    p, g = fitted.predict_proba(x), fitted.decision_function(x)
    np.testing.assert_allclose(p.sum(1), 1)
    np.testing.assert_array_equal(p[:, 1] >= 0.5, g >= 0)
    np.testing.assert_array_equal(fitted.predict(x), (g >= 0).astype(int))


def test_sparse_tables_and_clones():
    x, s, e, _ = biased(300)
    wrapper = PUWrapper(LogisticRegression(), prior=0.4, random_state=0)
    dense = wrapper.fit(x, s, propensity=e).decision_function(x)
    again = clone(wrapper).fit(sparse.csr_matrix(x), s, propensity=e).decision_function(sparse.csr_matrix(x))
    np.testing.assert_allclose(again, dense, atol=1e-4)


def test_few_labels_are_not_calibrated():
    x, s, _, _ = biased(60)
    s[np.flatnonzero(s)[5:]] = 0
    fitted = PUWrapper(LogisticRegression(), prior=0.4, random_state=0).fit(x, s)
    odds = np.exp(fitted.estimator_.decision_function(x))
    np.testing.assert_array_equal(fitted.predict(x), (odds >= 0.5).astype(int))


@pytest.mark.parametrize(
    ("base", "said"),
    [
        (LinearRegression(), "must be a scikit-learn classifier with predict_proba"),
        (LinearSVC(), "CalibratedClassifierCV"),
        ("trees", "must be a scikit-learn classifier"),
    ],
)
def test_what_cannot_be_wrapped_is_refused(base, said):
    x, s, _, _ = biased(50)
    with pytest.raises(InvalidInput, match=said):
        PUWrapper(base, prior=0.5).fit(x, s)


def test_weights_may_be_repetitions():
    mass = torch.tensor([0.3, 2.7, 1.0, 0.25, 0.25, 0.5, 4.1], dtype=torch.float64)
    times = repetitions(mass)
    gaps = (times.double() - mass).cumsum(0)
    assert float(gaps.abs().max()) <= 0.5 + 1e-9
    x, s, e, y = biased(800)
    weighted, repeated = (
        PUWrapper(LogisticRegression(), prior=0.4, repeat=repeat, random_state=0).fit(x, s, propensity=e)
        for repeat in (False, True)
    )
    assert np.mean(repeated.predict(x) == weighted.predict(x)) > 0.9  # rounding is noise in the weights
    neighbors = PUWrapper(KNeighborsClassifier(50), prior=0.4, random_state=0).fit(x, s, propensity=e)
    assert np.mean(neighbors.predict(x) == y) > 0.8
    with pytest.raises(InvalidInput, match=r"KNeighborsClassifier does not take sample_weight.*repeat=True"):
        PUWrapper(KNeighborsClassifier(), prior=0.4, repeat=False).fit(x, s)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(subject, check, id=getattr(check, "func", check).__name__)
        for subject, check in estimator_checks_generator(
            PUWrapper(LogisticRegression()), expected_failed_checks=EXEMPT, mark=None
        )
    ],
)
def test_scikit_learn_check(estimator, check):
    if getattr(check, "func", check).__name__ in EXEMPT:
        with pytest.raises((AssertionError, ValueError)):
            check(estimator)
    else:
        check(estimator)
