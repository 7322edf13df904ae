"""Every line of METHODS trains, and an e-variant with equal propensities is its base method."""

import numpy as np
import pytest

from pue import METHODS, PUClassifier
from pue.errors import InvalidInput, UnknownName
from pue.methods import find_method

WEIGHTED = ["ipw", "nnipw"]
"""Methods that are nothing without propensities."""
ALONE = ["anchor", "communities", "lbe", "naive", "quantile", "sarem", "supervised", "tmi"]
"""Methods that have no use for propensities."""
BASES = sorted(set(METHODS) - {*ALONE, *WEIGHTED})
"""Methods that take propensities but do not need them."""


def table(n: int = 256, labeled: int = 32) -> tuple[np.ndarray, np.ndarray]:
    """One half positive; with π = 1/2 and 32 of 128 positives labeled the label frequency is a power of two."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 4)) + 1.5 * y[:, None]
    s = np.zeros(n, dtype=int)
    s[rng.choice(np.flatnonzero(y), labeled, replace=False)] = 1
    return X, s


def case_control() -> tuple[np.ndarray, np.ndarray]:
    X, s = table()
    return np.concatenate([X[s == 1], X]), np.repeat([1, 0], [32, 256])


DATA = {"single_sample": table, "case_control": case_control}


def classifier(method: str, scenario: str, **options: object) -> PUClassifier:
    return PUClassifier(method, prior=0.5, scenario=scenario, epochs=3, batch_size=64, random_state=0, **options)


@pytest.mark.filterwarnings("ignore:at a share of:pue.errors.PueWarning")  # communities of so few rows
@pytest.mark.parametrize("scenario", sorted(DATA))
@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_trains(method: str, scenario: str) -> None:
    X, s = DATA[scenario]()
    fitted = classifier(method, scenario, propensity="auto" if method in WEIGHTED else None).fit(X, s)
    scores = fitted.decision_function(X)
    assert np.isfinite(scores).all()
    assert scores.std() > 0
    if method in ("communities", "lbe", "sarem"):  # their rounds are not epochs
        assert fitted.history_ == []
        return
    assert len(fitted.history_) == (6 if method == "pubn" else 3)
    if method not in ("distpu", "pubn", "selfpu", "teacher"):  # their stages minimise different things
        assert fitted.history_[-1].risk < fitted.history_[0].risk


@pytest.mark.parametrize("scenario", sorted(DATA))
@pytest.mark.parametrize("method", BASES)
def test_equal_propensities_change_not_a_bit(method: str, scenario: str) -> None:
    # A propensity of 1/4 is a power of two, so not even the rounding of 1/e can differ.
    X, s = DATA[scenario]()
    plain = classifier(method, scenario).fit(X, s).decision_function(X)
    known = classifier(method, scenario).fit(X, s, propensity=np.full(32, 0.25)).decision_function(X)
    estimated = classifier(method, scenario, propensity="constant").fit(X, s)
    assert set(estimated.propensity_) == {0.25}
    np.testing.assert_array_equal(known, plain)
    np.testing.assert_array_equal(estimated.decision_function(X), plain)


@pytest.mark.parametrize("method", BASES)
def test_equal_propensities_of_any_size_change_rounding_at_most(method: str) -> None:
    X, s = table()
    plain = classifier(method, "single_sample").fit(X, s).decision_function(X)
    known = classifier(method, "single_sample").fit(X, s, propensity=np.full(32, 0.3)).decision_function(X)
    np.testing.assert_allclose(known, plain, rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", BASES)
def test_unequal_propensities_do_change_the_scores(method: str) -> None:
    X, s = table()
    plain = classifier(method, "single_sample").fit(X, s).decision_function(X)
    known = classifier(method, "single_sample").fit(X, s, propensity=np.linspace(0.05, 0.95, 32)).decision_function(X)
    assert np.abs(known - plain).max() > 1e-3


@pytest.mark.parametrize(("weighted", "base"), [("ipw", "upu"), ("nnipw", "nnpu")])
@pytest.mark.parametrize("scenario", sorted(DATA))
def test_unnormalised_weights_of_the_label_frequency_are_the_base_method(
    weighted: str, base: str, scenario: str
) -> None:
    # 1 / (n e) with e = n_P / (π n) is π / n_P.
    X, s = DATA[scenario]()
    one = classifier(weighted, scenario, propensity="constant").fit(X, s).decision_function(X)
    np.testing.assert_array_equal(one, classifier(base, scenario).fit(X, s).decision_function(X))


@pytest.mark.parametrize("method", WEIGHTED)
def test_inverse_propensity_methods_ask_for_propensities(method: str) -> None:
    with pytest.raises(InvalidInput, match=r'inverse propensity: pass propensity="auto"'):
        classifier(method, "single_sample").fit(*table())


def test_unlabeled_as_negative_has_no_use_for_propensities() -> None:
    with pytest.raises(InvalidInput, match=r"no use for propensities: leave propensity=None"):
        classifier("naive", "single_sample", propensity="auto").fit(*table())


def test_an_unknown_method_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UnknownName, match=r"unknown method 'nnPUe'\. Did you mean 'nnpu'\?"):
        find_method("nnPUe")


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_says_what_it_is(method: str) -> None:
    assert find_method(method) is METHODS[method]
    assert METHODS[method].summary
