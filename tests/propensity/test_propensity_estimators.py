"""Estimators of e(x): recovery of a known truth, formulas against slow twins, weights, seeds and refusals."""

import pickle
from dataclasses import astuple, dataclass

import numpy as np
import pytest
import torch
import twins_propensity as twins
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from pue import PUClassifier
from pue.core.data import PUData, Scenario
from pue.core.regression import Regression
from pue.errors import InvalidInput
from pue.propensity import (
    LBE,
    SAREM,
    Anchor,
    Boosted,
    Constant,
    DeepSAREM,
    DoubleLogistic,
    Groups,
    Known,
    LocalCertainty,
    Logistic,
    PropensityEstimator,
    clip_propensity,
    training_propensity,
)
from pue.propensity.anchor import weighted_quantile
from pue.propensity.boosted import platt
from pue.propensity.double_logistic import negative_log_likelihood
from pue.propensity.latent import expectation, pooled_prior
from pue.propensity.newton import MOST_COLUMNS, Design

both = pytest.mark.parametrize("scenario", list(Scenario))
margins = st.lists(st.floats(-30, 30), min_size=1, max_size=8)


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


@dataclass(frozen=True)
class Drawn:
    """A drawn problem: what a learner sees, and the truth of each of its rows."""

    data: PUData
    positive: np.ndarray
    e: np.ndarray
    r: np.ndarray

    def error(self, estimator: PropensityEstimator, *, prior: float = 0.7) -> float:
        """Mean |ê − e| over the positives."""
        found, _ = clip_propensity(estimator.fit(self.data, prior=prior)(self.data.x))
        return float(np.abs(found.numpy() - self.e)[self.positive].mean())

    def correlation(self, estimator: PropensityEstimator) -> float:
        """That of log ê and log e over the positives."""
        found, _ = clip_propensity(estimator.fit(self.data, prior=0.5)(self.data.x))
        return float(np.corrcoef(np.log(found.numpy())[self.positive], np.log(self.e)[self.positive])[0, 1])


def drawn(scenario: Scenario, n: int, x: np.ndarray, f: np.ndarray, e: np.ndarray, seed: int = 0) -> Drawn:
    """Labels drawn from f and e. In case-control the labeled rows are copies that stand beside all the others."""
    rng = np.random.default_rng([seed, 1])
    y = rng.random(n) < f
    s = y & (rng.random(n) < e)
    if scenario is Scenario.SINGLE_SAMPLE:
        rows, labels = np.arange(n), s.astype(int)
    else:
        rows, labels = np.concatenate([np.flatnonzero(s), np.arange(n)]), np.repeat([1, 0], [s.sum(), n])
    data = PUData(torch.from_numpy(x[rows]), torch.from_numpy(labels), scenario)
    return Drawn(data, y[rows], e[rows], (e * f)[rows])


def logistic_problem(scenario: Scenario, n: int, seed: int = 0) -> Drawn:
    """f is logistic with mean 0.7, and e is of the form that the estimators assume: logistic, or in case-control its
    odds, exp(linear). So the truth can be found.
    """
    x = np.random.default_rng(seed).normal(size=(n, 3)).clip(-2.5, 2.5)
    f = sigmoid(1.5 + 3 * x[:, 0] - x[:, 1])
    margin = -1.5 + 1.2 * x[:, 2] - 0.5 * x[:, 1]
    e = sigmoid(margin) if scenario is Scenario.SINGLE_SAMPLE else np.exp(0.7 * margin - 1).clip(max=1)
    return drawn(scenario, n, x, f, e, seed)


def sharp_problem(scenario: Scenario, n: int) -> Drawn:
    """Two columns, one for the class and one for the labels: easy enough for a few gradient steps."""
    x = np.random.default_rng(0).normal(size=(n, 2)).clip(-2.5, 2.5)
    e = sigmoid(1.5 * x[:, 1] - 0.5) if scenario is Scenario.SINGLE_SAMPLE else np.exp(x[:, 1] - 1.2).clip(max=1)
    return drawn(scenario, n, x, sigmoid(4 * x[:, 0]), e)


def repeated(data: PUData) -> tuple[PUData, PUData]:
    """The same rows twice: with weights 1, 2, 3, …, and standing there so often."""
    weight = torch.arange(data.n_rows).double() % 3 + 1
    times = weight.long()
    return (
        PUData(data.x, data.labels, data.scenario, weight),
        PUData(data.x.repeat_interleave(times, 0), data.labels.repeat_interleave(times), data.scenario),
    )


# ------------------------------------------------------------------------------------------ the model behind them


@given(margins, margins, st.data())
def test_expectation_equals_its_twin(f: list[float], e: list[float], draw: st.DataObject) -> None:
    n = min(len(f), len(e))
    f, e, s = f[:n], e[:n], draw.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    q, log_p = expectation(np.array(f), np.array(e), np.array(s, dtype=float))
    shares = [(twins.sigmoid(a), twins.sigmoid(b), label) for a, b, label in zip(f, e, s, strict=True)]
    # The twin computes 1 − f e with the cancellation that the library avoids.
    for i, (fi, ei, label) in enumerate(shares):
        if 1 - fi * ei > 1e-6:
            assert q[i] == pytest.approx(twins.posterior(fi, ei, label), rel=1e-8, abs=1e-12)
            assert log_p[i] == pytest.approx(twins.log_likelihood(fi, ei, label), rel=1e-8, abs=1e-9)


def test_expectation_does_not_lose_rows_that_are_almost_surely_labeled() -> None:
    q, log_p = expectation(np.array([40.0]), np.array([40.0]), np.array([0.0]))
    assert q[0] == pytest.approx(0.5, rel=1e-12)  # 1 − f e is 2e⁻⁴⁰, which 1 − f·e would round to zero
    assert log_p[0] == pytest.approx(np.log(2) - 40, rel=1e-12)


def test_the_pooled_prior_counts_the_labeled_rows_beside_the_population() -> None:
    labels = torch.tensor([1, 1, 0, 0, 0, 0, 0, 0])
    assert pooled_prior(PUData(torch.zeros(8, 1), labels), 0.5) == 0.5
    assert pooled_prior(PUData(torch.zeros(8, 1), labels, Scenario.CASE_CONTROL), 0.5) == (2 + 0.5 * 6) / 8
    weighted = PUData(torch.zeros(8, 1), labels, Scenario.CASE_CONTROL, torch.tensor([3.0, 3, 1, 1, 1, 1, 1, 1]))
    assert pooled_prior(weighted, 0.5) == pytest.approx((6 + 3) / 12, rel=1e-14)


# --------------------------------------------------------------------------------------------------------- newton


def regression_problem(n: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    z = np.column_stack([rng.normal(size=(n, 4)), np.ones(n)])
    return z, rng.random(n), rng.random(n) * 2


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_the_regression_is_scikit_learns(C: float) -> None:
    z, positive, negative = regression_problem()
    model = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    both_targets = np.repeat([1, 0], len(z))
    model.fit(np.concatenate([z, z])[:, :-1], both_targets, np.concatenate([positive, negative]))
    regression = Regression(z, C=C)
    found = regression.solve(positive, negative, regression.start())
    np.testing.assert_allclose(found.beta, [*model.coef_[0], model.intercept_[0]], rtol=1e-6)
    np.testing.assert_allclose(found.margin, z @ found.beta, atol=1e-12)


def test_a_warm_start_with_an_old_hessian_ends_at_the_same_place() -> None:
    z, positive, negative = regression_problem()
    regression = Regression(z, C=1.0)
    cold = regression.solve(positive, negative, regression.start())
    other = regression.solve(negative**2, 3 * positive, regression.start())
    np.testing.assert_allclose(regression.solve(positive, negative, other).beta, cold.beta, rtol=1e-5, atol=1e-7)


def test_separable_classes_and_constant_columns_have_a_finite_solution() -> None:
    z = np.column_stack([np.linspace(-50, 50, 40), np.zeros(40), np.ones(40)])
    regression = Regression(z, C=1e4)
    found = regression.solve((z[:, 0] > 0).astype(float), (z[:, 0] <= 0).astype(float), regression.start())
    assert np.isfinite(found.beta).all()
    assert ((found.margin > 0) == (z[:, 0] > 0)).all()
    assert found.beta[1] == 0


# --------------------------------------------------------------------------------------------------------- SAR-EM


def test_sar_em_is_the_em_that_refits_from_scratch_and_stops_where_it_does() -> None:
    problem = logistic_problem(Scenario.SINGLE_SAMPLE, 200)
    x = Design.of(problem.data.x, None)(problem.data.x)[:, :-1]
    labels = problem.data.labels.numpy()
    expected, iterations = twins.sar_em(x, labels, C=0.1)
    found = SAREM(C=0.1).maximize(np.column_stack([x, np.ones(200)]), labels.astype(float), np.ones(200))
    assert 12 <= iterations < 500
    assert len(found.history) == iterations + 1
    np.testing.assert_allclose(sigmoid(found.e.margin), expected, atol=2e-5)
    model = SAREM(C=0.1).fit(problem.data, prior=0.7)
    np.testing.assert_allclose(model(problem.data.x).numpy(), expected, atol=2e-5)


@both
def test_sar_em_never_lowers_the_likelihood(scenario: Scenario) -> None:
    data = logistic_problem(scenario, 2000).data
    z, s = Design.of(data.x, None)(data.x), data.labels.numpy().astype(float)
    found = SAREM(iterations=60, gain=-np.inf).maximize(z, s, np.ones(len(s)))
    assert len(found.history) == 61
    assert np.diff(found.history).min() > -1e-13
    assert found.history[-1] > found.history[0] + 1e-3
    beta = np.concatenate([found.f.beta, found.e.beta])
    value = twins.penalized_log_likelihood(beta.tolist(), z.tolist(), s.astype(int).tolist(), [1.0] * len(s), 1.0)
    assert found.history[-1] == pytest.approx(value / len(s), rel=1e-10)


def test_sar_em_ends_where_the_joint_likelihood_is_flat() -> None:
    data = logistic_problem(Scenario.SINGLE_SAMPLE, 1000).data
    z, s = Design.of(data.x, None)(data.x), data.labels.numpy().astype(float)
    regression = Regression(z, C=0.1)  # a stronger penalty: EM gets there sooner
    found = SAREM(C=0.1, iterations=3000, gain=1e-13, slope=1e-9).maximize(z, s, np.ones(1000))
    beta = np.concatenate([found.f.beta, found.e.beta])
    gradient = negative_log_likelihood(beta, z, s, np.ones(1000), regression.penalty)[1]
    start = negative_log_likelihood(np.zeros(8), z, s, np.ones(1000), regression.penalty)[1]
    assert np.abs(gradient).max() < 1e-5 * np.abs(start).max()


def test_sar_em_on_a_sparse_table_is_that_on_a_dense_one() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 4)) * (rng.random((500, 4)) < 0.5)
    labels = torch.from_numpy((rng.random(500) < sigmoid(x[:, 0] - 1)).astype(int))
    matrix = sparse.csr_matrix(x)
    dense = SAREM(iterations=20).fit(PUData(torch.from_numpy(x), labels), prior=0.5)(torch.from_numpy(x))
    found = SAREM(iterations=20).fit(PUData(matrix, labels), prior=0.5)(matrix)
    torch.testing.assert_close(found, dense, rtol=1e-3, atol=1e-4)  # columns are scaled, but not centered


# ------------------------------------------------------------------------------------------------ double logistic


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from([0.1, 1.0, 10.0]))
def test_value_and_gradient_of_the_joint_likelihood(seed: int, C: float) -> None:
    rng = np.random.default_rng(seed)
    z, beta = np.column_stack([rng.normal(size=(6, 2)), np.ones(6)]), rng.normal(size=6)
    s, mass = (rng.random(6) < 0.4).astype(float), rng.random(6) + 0.5
    penalty = np.array([1 / C, 1 / C, 0.0])

    def twin(at: np.ndarray) -> float:
        value = twins.penalized_log_likelihood(at.tolist(), z.tolist(), s.astype(int).tolist(), mass.tolist(), C)
        return -value / mass.sum()

    value, gradient = negative_log_likelihood(beta, z, s, mass, penalty)
    assert value == pytest.approx(twin(beta), rel=1e-10)
    slopes = [(twin(beta + h) - twin(beta - h)) / 2e-6 for h in 1e-6 * np.eye(6)]
    np.testing.assert_allclose(gradient, slopes, atol=1e-7)


def test_exchanging_the_two_curves_changes_nothing_and_the_prior_decides() -> None:
    problem = logistic_problem(Scenario.SINGLE_SAMPLE, 3000)
    z, s = Design.of(problem.data.x, None)(problem.data.x), problem.data.labels.numpy().astype(float)
    beta, penalty = np.arange(8.0) / 8, np.ones(4)
    swapped = np.concatenate(np.split(beta, 2)[::-1])
    values = [negative_log_likelihood(at, z, s, np.ones(3000), penalty)[0] for at in (beta, swapped)]
    assert values[0] == pytest.approx(values[1], rel=1e-12)
    e, f = (DoubleLogistic().fit(problem.data, prior=prior)(problem.data.x) for prior in (0.7, 0.25))
    assert e.mean() + 0.2 < f.mean()
    assert float((e * f).mean()) == pytest.approx(s.mean(), abs=2e-3)  # both readings of one product


# ------------------------------------------------------------------------------------------------------- recovery


@both
@pytest.mark.parametrize(
    "estimator",
    [SAREM(iterations=1000, slope=1e-6, gain=1e-6), DoubleLogistic(starts=3)],
    ids=["sarem", "double_logistic"],
)
def test_the_truth_is_found_though_the_classes_overlap(estimator: PropensityEstimator, scenario: Scenario) -> None:
    problem = logistic_problem(scenario, 8000)
    error = problem.error(estimator)
    assert error < 0.03
    assert error < problem.error(Logistic()) / 2  # which finds e·P(positive | x)


def test_without_odds_case_control_would_be_wrong() -> None:
    # The pooled rows taken for a single sample give e / (1 + e): the test above can fail.
    problem = logistic_problem(Scenario.CASE_CONTROL, 8000)
    pooled = PUData(problem.data.x, problem.data.labels)
    found = DoubleLogistic(starts=3).fit(pooled, prior=0.7)(pooled.x).numpy()
    shrunk = problem.e / (1 + problem.e)
    errors = [np.abs(found - truth)[problem.positive].mean() for truth in (shrunk, problem.e)]
    assert errors[0] < 0.02 < 0.04 < errors[1]


@pytest.mark.parametrize(
    ("estimator", "scenario"),
    [
        (DeepSAREM("linear", lr=0.02, rounds=10), Scenario.SINGLE_SAMPLE),
        (DeepSAREM("linear", lr=0.02, rounds=10), Scenario.CASE_CONTROL),
        (LBE(rounds=20), Scenario.SINGLE_SAMPLE),  # in case-control its start is so far off that it needs very long
    ],
)
def test_networks_follow_the_bias_better_than_the_labels_alone(
    estimator: PropensityEstimator, scenario: Scenario
) -> None:
    problem = sharp_problem(scenario, 1000)
    assert problem.correlation(estimator) > problem.correlation(Logistic()) + 0.1


@both
def test_boosted_trees_find_a_labeling_rate_that_no_line_can(scenario: Scenario) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, size=(3000, 2))
    e = np.where(np.abs(x[:, 0]) < 0.5, 0.8, 0.1)
    problem = drawn(scenario, 3000, x, np.ones(3000), e)
    assert problem.error(Boosted(folds=2, iterations=40)) < 0.08
    assert problem.error(Logistic()) > 0.3


@both
def test_the_anchor_is_right_when_its_assumption_is(scenario: Scenario) -> None:
    # e = k f and r = k f². The base is told r exactly, so only the anchor's arithmetic is left.
    x = np.random.default_rng(0).uniform(0, 1, size=(5000, 1))
    f, k = x[:, 0], 0.6
    problem = drawn(scenario, 5000, x, f, k * f)
    exact = Known(lambda rows: 0.6 * rows[:, 0] ** 2)
    assert problem.error(Anchor(exact)) < 1e-3
    assert problem.error(LocalCertainty(exact)) > 0.05
    assert problem.error(Anchor(exact, quantile=0.5)) > 0.05


@both
def test_local_certainty_is_its_base_and_right_where_classes_do_not_overlap(scenario: Scenario) -> None:
    x = np.random.default_rng(0).normal(size=(5000, 2))
    problem = drawn(scenario, 5000, x, (x[:, 0] > -9).astype(float), np.where(x[:, 1] > 0, 0.3, 0.3))
    found = LocalCertainty(Logistic()).fit(problem.data, prior=0.9)(problem.data.x)
    assert torch.equal(found, Logistic().fit(problem.data, prior=0.9)(problem.data.x))
    assert problem.error(LocalCertainty()) < 0.03


# --------------------------------------------------------------------------------------------------- anchor's rank


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 4)), min_size=1, max_size=9), st.integers(1, 20))
def test_the_weighted_quantile_is_that_of_repeated_values(pairs: list[tuple[int, int]], twentieths: int) -> None:
    values, times = torch.tensor(pairs).double().T
    ordered = sorted(value for value, count in pairs for _ in range(count))
    place = -(-twentieths * len(ordered) // 20) - 1
    assert weighted_quantile(values, times, twentieths / 20) == ordered[place]


# ---------------------------------------------------------------------------------------------------------- groups

GROUP = [0, 0, 0, 0, 0, 1, 1, 1, 1, 5, 5, 5]
LABELS = [1, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0, 0]


@both
@pytest.mark.parametrize("by", [1, lambda x: x[:, 1]], ids=["column", "function"])
def test_groups_are_counted_as_by_hand(scenario: Scenario, by: object) -> None:
    priors = {0: 0.5, 1: 0.8, 5: 0.4}
    data = PUData(torch.tensor([[9.0, group] for group in GROUP]), torch.tensor(LABELS), scenario)
    expected = twins.group_propensity(GROUP, LABELS, priors, scenario.value)
    found = Groups(by, priors).fit(data, prior=0.6)(data.x)
    assert found.tolist() == pytest.approx([expected[group] for group in GROUP], rel=1e-14)
    alike = twins.group_propensity(GROUP, LABELS, dict.fromkeys(priors, 0.6), scenario.value)
    assert Groups(by).fit(data, prior=0.6)(data.x).tolist() == pytest.approx([alike[g] for g in GROUP], rel=1e-14)


@both
def test_a_group_never_seen_gets_the_propensity_of_all(scenario: Scenario) -> None:
    data = PUData(torch.tensor(GROUP)[:, None].double(), torch.tensor(LABELS), scenario)
    new = torch.tensor([[-1.0], [2.0], [7.0]], dtype=torch.float64)
    assert torch.equal(Groups(0).fit(data, prior=0.6)(new), Constant().fit(data, prior=0.6)(new))


def test_groups_recover_the_truth_and_read_sparse_columns() -> None:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 30_000)
    prior, rate = np.array([0.3, 0.6, 0.9])[group], np.array([0.8, 0.4, 0.2])[group]
    problem = drawn(Scenario.SINGLE_SAMPLE, 30_000, group[:, None].astype(float), prior, rate)
    estimator = Groups(0, {0: 0.3, 1: 0.6, 2: 0.9})
    assert problem.error(estimator) < 0.02
    assert problem.error(Groups(0), prior=0.6) > 0.1  # one prior for all is wrong here
    matrix = sparse.csr_matrix(problem.data.x.numpy())
    found = estimator.fit(PUData(matrix, problem.data.labels), prior=0.6)(matrix)
    assert torch.equal(found, estimator.fit(problem.data, prior=0.6)(problem.data.x))


# --------------------------------------------------------------------------------------------------------- boosted


def test_platt_minimises_its_cross_entropy() -> None:
    rng = np.random.default_rng(0)
    margin = rng.normal(size=60)
    s = (rng.random(60) < sigmoid(2 * margin - 1)).astype(float)
    found = astuple(platt(margin, s, np.ones(60)))
    best = twins.platt_loss(*found, margin.tolist(), s.astype(int).tolist())
    for step in ((1e-3, 0), (-1e-3, 0), (0, 1e-3), (0, -1e-3)):
        moved = (found[0] + step[0], found[1] + step[1])
        assert twins.platt_loss(*moved, margin.tolist(), s.astype(int).tolist()) > best


@both
def test_boosted_trees_do_not_remember_labels(scenario: Scenario) -> None:
    # Labels are a coin toss. In case-control each labeled row has a copy beside it that must not give it away.
    x = np.random.default_rng(0).normal(size=(2000, 3))
    problem = drawn(scenario, 2000, x, np.ones(2000), np.full(2000, 0.2))
    model = Boosted(folds=3, iterations=20).fit(problem.data, prior=0.9)
    held_out = training_propensity(model, problem.data)
    assert held_out.shape == (problem.data.n_labeled,)
    assert float(held_out.mean()) == pytest.approx(0.2, abs=0.02)
    assert float(held_out.mean()) < float(model(problem.data.x[problem.data.labeled]).mean())


def test_weights_reach_the_trees_and_their_calibration() -> None:
    # Three distinct rows: none can be held out, and no two splits are equally good.
    x = torch.tensor([0.0, 1.0, 2.0]).repeat(40)[:, None]
    labels = (torch.arange(120) % torch.tensor([2, 3, 7]).repeat(40) == 0).int()
    weighted, expanded = repeated(PUData(x, labels))
    estimator = Boosted(iterations=20, smallest_leaf=1)
    found, wanted, plain = (estimator.fit(data, prior=0.9)(x) for data in (weighted, expanded, PUData(x, labels)))
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=0)
    assert not torch.allclose(found, plain, rtol=1e-3)
    margin, s, times = np.linspace(-2, 2, 30), (np.arange(30) % 4 > 1).astype(float), np.arange(30) % 3 + 1
    expanded = platt(margin.repeat(times), s.repeat(times), np.ones(times.sum()))
    assert astuple(platt(margin, s, times.astype(float))) == pytest.approx(astuple(expanded), rel=1e-8)


def test_boosted_takes_seeds_of_any_size_and_follows_them() -> None:
    data = logistic_problem(Scenario.SINGLE_SAMPLE, 400).data
    small = Boosted(folds=2, iterations=3)
    found = [small.fit(data, prior=0.7, seed=seed)(data.x) for seed in (2**62 + 1, 2**62 + 1, 5)]
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


# ------------------------------------------------------------------------------------------ weights, seeds, pickles


@both
@pytest.mark.parametrize(
    ("estimator", "tolerance"),
    [
        (SAREM(iterations=40), 1e-6),
        (DoubleLogistic(starts=2), 1e-4),
        (Anchor(), 1e-7),
        (LocalCertainty(), 1e-7),
        (Groups(lambda x: (x[:, 0] > 0).long()), 1e-12),
        (DeepSAREM("linear", steps=20, round_steps=5, rounds=3, validation=0, batch_size=600), 1e-7),
        (LBE(steps=20, round_steps=5, rounds=3, validation=0, batch_size=600), 1e-7),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_weight_of_three_is_the_row_three_times(
    estimator: PropensityEstimator, tolerance: float, scenario: Scenario
) -> None:
    data = logistic_problem(scenario, 200).data
    weighted, expanded = repeated(data)
    plain = estimator.fit(data, prior=0.7)(data.x)
    found = estimator.fit(weighted, prior=0.7)(data.x)
    torch.testing.assert_close(found, estimator.fit(expanded, prior=0.7)(data.x), rtol=tolerance, atol=1e-9)
    assert not torch.allclose(found, plain, rtol=10 * tolerance)  # weights do matter here


SMALL = {
    "anchor": Anchor(),
    "boosted": Boosted(folds=2, iterations=5),
    "deep": DeepSAREM(steps=10, round_steps=2, rounds=2),
    "double_logistic": DoubleLogistic(),
    "groups": Groups(0),
    "known": Known(0),
    "lbe": LBE(steps=10, round_steps=2, rounds=2),
    "local_certainty": LocalCertainty(),
    "sarem": SAREM(iterations=3),
}


@pytest.mark.parametrize("name", SMALL)
def test_models_pickle_and_follow_their_seed(name: str) -> None:
    data = logistic_problem(Scenario.CASE_CONTROL, 300).data
    data = PUData(data.x.abs() / 3, data.labels, data.scenario)  # so that column 0 can be a propensity
    first, second = (SMALL[name].fit(data, prior=0.7, seed=4) for _ in range(2))
    found = first(data.x)
    assert found.dtype == torch.float64
    assert found.shape == (data.n_rows,)
    assert torch.equal(found, second(data.x))
    assert torch.equal(found, pickle.loads(pickle.dumps(first))(data.x))


def test_another_seed_starts_other_networks() -> None:
    data = logistic_problem(Scenario.SINGLE_SAMPLE, 300).data
    found = [SMALL["deep"].fit(data, prior=0.7, seed=seed)(data.x) for seed in (0, 1)]
    assert not torch.equal(*found)


def test_labeled_negatives_count_as_unlabeled() -> None:
    data = logistic_problem(Scenario.SINGLE_SAMPLE, 400).data
    labels = data.labels.clone()
    labels[torch.nonzero(labels == 0)[::5, 0]] = -1
    before, after = (
        SAREM(iterations=5).fit(PUData(data.x, version), prior=0.7)(data.x) for version in (data.labels, labels)
    )
    assert torch.equal(before, after)


def test_images_of_bytes_go_through_the_network_and_the_regression() -> None:
    pixels = torch.randint(0, 256, (200, 1, 3, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    data = PUData(pixels, (pixels[:, 0, 1, 1] > 128).int() * (torch.arange(200) % 2))
    for estimator in (SAREM(iterations=5), SMALL["lbe"], SMALL["boosted"]):
        assert estimator.fit(data, prior=0.6)(pixels).shape == (200,)


def test_an_outlier_is_clipped_and_not_refused() -> None:
    data = logistic_problem(Scenario.CASE_CONTROL, 400).data
    far = torch.full((1, 3), 1e6, dtype=torch.float64)
    for estimator in (SAREM(iterations=5), SMALL["lbe"]):
        clipped, _ = clip_propensity(estimator.fit(data, prior=0.7)(far))
        assert 0 < clipped.item() <= 1


def test_a_classifier_takes_them_by_name() -> None:
    problem = logistic_problem(Scenario.SINGLE_SAMPLE, 500)
    classifier = PUClassifier(propensity="sarem", prior=0.7, epochs=1, random_state=0)
    classifier.fit(problem.data.x, problem.data.labels)
    expected, _ = clip_propensity(SAREM().fit(problem.data, prior=0.7)(problem.data.x[problem.data.labeled]))
    np.testing.assert_allclose(classifier.propensity_, expected.numpy(), rtol=1e-6)


# -------------------------------------------------------------------------------------------------------- refusals


def tiny(**changes: object) -> PUData:
    parts = {"x": torch.tensor([[0.5, 2.0], [0.2, 1.0], [0.1, 1.0]]), "labels": torch.tensor([1, 0, 0])}
    return PUData(**{**parts, **changes})


@pytest.mark.parametrize(
    ("estimator", "data", "message"),
    [
        (Known(7), tiny(), r"no column 7 in rows of shape \(2,\)\. Pass the index"),
        (Known(0), tiny(x=torch.zeros(3, 1, 2, 2)), r"no column 0 in rows of shape \(1, 2, 2\)"),
        (Known(1), tiny(), r"propensity must lie in \(0, 1\]; 1 of 1 labeled rows do not"),
        (Known(lambda x: x[:, :1]), tiny(), r"propensity must be one-dimensional"),
        (Groups(1, {1: 0.5}), tiny(), r"no entry for group 2\. Give π of every group"),
        (Groups(1, {1: 0.5, 2: 0.0}), tiny(), r"priors must lie in \(0, 1\]"),
        (Boosted(), tiny(x=sparse.csr_matrix(np.eye(3))), r"dense table; got a sparse one\. Pass X\.toarray\(\)"),
        (SAREM(), tiny(x=torch.zeros(3, MOST_COLUMNS + 1)), rf"at most {MOST_COLUMNS}; got 5001.*use a network"),
        (DoubleLogistic(), tiny(x=torch.zeros(3, MOST_COLUMNS + 1)), r"Select or project columns first"),
    ],
)
def test_what_cannot_be_estimated_is_refused(estimator: PropensityEstimator, data: PUData, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        estimator.fit(data, prior=0.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Anchor(quantile=0), r"quantile must lie in \(0, 1\]; got 0"),
        (lambda: DoubleLogistic(starts=0), "starts must be at least 1; got 0"),
        (lambda: LBE(round_steps=0), "round_steps and patience must be at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()
