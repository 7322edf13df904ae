"""Class and labeling estimated together: each step against its slow twin, and what the whole recovers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from pue import PUClassifier, load
from pue.core.data import PUData, Scenario
from pue.core.weights import effective_sample_size
from pue.errors import InvalidInput
from pue.propensity import Auto
from pue.propensity.auto import Chosen
from pue.propensity.groups import ConstantModel
from pue.propensity.joint import STRENGTHS, Joint, JointModel, _Problem, with_mean
from pue.propensity.labeling import BINS, MEMBERS, bin_edges, binned, ridge

QUICK = Joint(rounds=3, trees=20)
every_scenario = pytest.mark.parametrize("scenario", list(Scenario))


def overlapping(
    n: int = 1000, seed: int = 0, *, biased: bool = True, scenario: Scenario = Scenario.SINGLE_SAMPLE
) -> tuple[PUData, torch.Tensor]:
    """Two overlapping classes; the second column, which says nothing about the class, drives the labeling. The data and
    the true e of the labeled rows."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    x = rng.normal(size=(n, 3))
    x[:, 0] += 2.5 * y
    e = 1 / (1 + np.exp(1.2 - 2.5 * x[:, 1])) if biased else np.full(n, 0.3)
    s = y & (rng.random(n) < e)
    if scenario is Scenario.CASE_CONTROL:
        half = np.arange(n) % 2 == 0
        rows = np.concatenate([np.flatnonzero(s & half), np.flatnonzero(~half)])
        labels = torch.arange(len(rows)) < int((s & half).sum())
        return PUData(torch.from_numpy(x[rows]), labels.long(), scenario), torch.from_numpy(e[s & half])
    return PUData(torch.from_numpy(x), torch.from_numpy(s.astype(np.int64))), torch.from_numpy(e[s])


# ----------------------------------------------------------------------------------------------------- steps and twins


def problem(data: PUData) -> _Problem:
    return _Problem.of(QUICK, data, 0.4, 0)


@every_scenario
def test_the_posterior_equals_its_slow_twin(scenario: Scenario) -> None:
    data, _ = overlapping(60, scenario=scenario)
    rng = np.random.default_rng(1)
    f, e = rng.uniform(0.01, 0.99, data.n_rows), rng.uniform(0.01, 0.99, data.n_rows)
    found = problem(data).posterior(f, e)
    for i in range(data.n_rows):
        if data.labels[i] == 1:
            expected = 1.0
        elif scenario is Scenario.CASE_CONTROL:
            expected = f[i]  # a row of U is a draw of p(x), whatever was labeled beside it
        else:
            hidden, negative = f[i] * (1 - e[i]), 1 - f[i]
            expected = hidden / (hidden + negative)
        assert found[i] == pytest.approx(expected)


def test_labeled_negatives_say_nothing_about_the_labeling_of_positives() -> None:
    labels = torch.tensor([1, 1, 1, 0, 0, 0, 0, 0, -1, -1])
    data = PUData(torch.arange(10.0)[:, None].double(), labels)
    q = problem(data).posterior(np.full(10, 0.5), np.full(10, 0.2))
    assert q[:3].tolist() == [1, 1, 1]
    assert (q[8:] < 1).all()


def test_the_forests_weigh_labeled_rows_by_their_inverse_propensity() -> None:
    data, _ = overlapping()
    x = data.x.numpy()
    e = 1 / (1 + np.exp(1.2 - 2.5 * x[:, 1]))
    rare = (x[:, 1] < -0.5) & (x[:, 0] > 2)  # positives that are hardly ever labeled
    own = problem(data)
    assert own.positive(e)[rare].mean() > own.positive(np.full(data.n_rows, 0.3))[rare].mean() + 0.05


def test_the_mean_is_reached_as_by_bisection() -> None:
    rng = np.random.default_rng(0)
    log_odds, mass = rng.normal(size=30) * 3, rng.uniform(0.5, 2, 30)
    low, high = -60.0, 60.0
    for _ in range(200):
        tau = (low + high) / 2
        mean = sum(m / (1 + math.exp(tau - g)) for g, m in zip(log_odds, mass, strict=True)) / sum(mass)
        low, high = (tau, high) if mean > 0.3 else (low, tau)
    np.testing.assert_allclose(with_mean(log_odds, 0.3, mass), 1 / (1 + np.exp(low - log_odds)), atol=1e-9)


def test_constant_log_odds_become_the_prior() -> None:
    np.testing.assert_allclose(with_mean(np.full(5, 7.0), 0.2, np.ones(5)), 0.2)


def test_bins_hold_equal_shares_and_gaps_stay_gaps() -> None:
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=960), rng.integers(0, 3, 960), np.full(960, 5.0), np.full(960, np.nan)])
    x[::7, 0] = np.nan
    edges = bin_edges(x)
    assert edges.shape == (4, BINS - 1)
    codes = binned(x, edges)
    assert np.isnan(codes[::7, 0]).all()
    assert np.isnan(codes[:, 3]).all()
    counts = np.bincount(codes[~np.isnan(codes[:, 0]), 0].astype(int))
    assert len(counts) == BINS
    assert counts.max() - counts.min() <= 2
    assert len(np.unique(codes[:, 1])) == 3
    assert len(np.unique(codes[:, 2])) == 1
    for i in range(0, 960, 97):
        for j in range(3):
            if not math.isnan(x[i, j]):
                assert codes[i, j] == sum(1 for edge in edges[j] if edge <= x[i, j])


def test_the_ridge_is_the_logistic_regression_of_its_best_strength() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 3))
    s = rng.random(600) < 1 / (1 + np.exp(-2 * x[:, 0]))
    weight = rng.uniform(0.2, 1, 600)
    found = ridge(x, s, weight, 0)
    z = (x - found.mean) / found.scale
    np.testing.assert_allclose(found.mean, np.average(x, axis=0, weights=weight))
    np.testing.assert_allclose(found.scale, np.sqrt(np.average((x - found.mean) ** 2, axis=0, weights=weight)))
    twins = {C: LogisticRegression(C=C, tol=1e-10, max_iter=5000).fit(z, s, weight).coef_[0] for C in (0.1, 0.3, 1.0)}
    assert min(np.abs(found.beta[:-1] - beta).max() for beta in twins.values()) < 1e-4
    assert found(np.full((1, 3), np.nan))[0] == pytest.approx(1 / (1 + math.exp(-found.beta[-1])))


@pytest.mark.parametrize("name", MEMBERS)
def test_every_member_learns_who_is_labeled(name: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(900, 4)).astype(np.float32)
    e = 1 / (1 + np.exp(-2 * x[:, 2]))
    s = rng.random(900) < e
    weight = np.where(x[:, 0] > 0, 1.0, 1e-9)  # the other rows are certainly negative: they must not count
    s[x[:, 0] <= 0] = False
    new = rng.normal(size=(500, 4)).astype(np.float32)
    new[:, 0] = np.abs(new[:, 0])
    found = MEMBERS[name](x, s, weight, 0)(new)
    assert np.corrcoef(found, 1 / (1 + np.exp(-2 * new[:, 2])))[0, 1] > 0.8
    assert abs(found.mean() - 0.5) < 0.1
    assert ((found >= 0) & (found <= 1)).all()


# --------------------------------------------------------------------------------------------------- what it recovers


@every_scenario
def test_it_finds_what_drives_the_labels_though_classes_overlap(scenario: Scenario) -> None:
    data, e = overlapping(scenario=scenario)
    model = Joint(rounds=4, trees=25).fit(data, prior=0.4, seed=0)
    assert np.corrcoef(model.held_out.log(), e.log())[0, 1] > 0.6
    rate = float(model.reference.mean()) if scenario is Scenario.SINGLE_SAMPLE else None
    if rate is not None:
        assert rate == pytest.approx(data.n_labeled / data.n_rows, rel=0.15)  # Σ ê f̂ is the number of labels
    new = torch.tensor([[2.5, -1.0, 0.0], [2.5, 1.0, 0.0]], dtype=torch.float64)
    low, high = model(new).tolist()
    assert high > 3 * low


def test_an_estimate_that_makes_the_class_less_certain_is_not_taken() -> None:
    """Here there is nothing to repair."""
    data, _ = overlapping(biased=False)
    model = replace(QUICK, strengths=(1.0,)).fit(data, prior=0.4, seed=0)
    assert model.strength == 0
    assert effective_sample_size(1 / model.held_out) == pytest.approx(data.n_labeled)


def test_the_strength_is_the_largest_that_leaves_the_class_as_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = overlapping(200)
    own, e = problem(data), np.random.default_rng(0).uniform(0.1, 0.5, 200)
    unbiased = np.full(200, own.frequency)

    def chosen(costs: dict[float, float]) -> float:
        def certainty(self: _Problem, given: np.ndarray) -> float:
            near = [k for k in STRENGTHS if np.allclose(given, own.raised(e, k))]
            return 0.8 - costs[near[0]] if near else 0.8 if np.allclose(given, unbiased) else math.nan

        monkeypatch.setattr(_Problem, "certainty", certainty)
        return own.strength(e)

    assert chosen(dict.fromkeys(STRENGTHS, 0.0)) == 1.0
    assert chosen({k: 0.026 * k for k in STRENGTHS}) == 0.75
    assert chosen({k: 0.03 * k for k in STRENGTHS}) == 0.5
    assert chosen(dict.fromkeys(STRENGTHS, 0.1)) == 0.0


def test_certainty_is_the_mean_of_the_likelier_class(monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = overlapping(60)
    f = np.random.default_rng(0).random(60)
    monkeypatch.setattr(_Problem, "positive", lambda self, e: f)
    found = problem(data).certainty(np.full(60, 0.3))
    assert found == pytest.approx(sum(p if p > 0.5 else 1 - p for p in f.tolist()) / 60)


def test_without_a_strength_every_row_has_the_same_chance_of_a_label(monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = overlapping(300)
    monkeypatch.setattr(_Problem, "strength", lambda self, e: 0.0)
    model = QUICK.fit(data, prior=0.4, seed=0)
    assert len(torch.cat([model.held_out, model(data.x)]).unique()) == 1
    assert float(model.held_out[0]) == pytest.approx(data.n_labeled / (0.4 * data.n_rows), rel=1e-6)
    assert "unbiased" in model.description


@pytest.mark.parametrize("strengths", [(), (0.0, 1.0), (1.0, 0.5)])
def test_strengths_that_cannot_be_searched_are_refused(strengths: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInput, match="strengths must be positive numbers, weakest first"):
        Joint(strengths=strengths)


def test_the_labeling_depends_on_the_named_columns_alone() -> None:
    data, _ = overlapping(800)
    model = Joint(rounds=2, trees=10, columns=(1,)).fit(data, prior=0.4)
    rows = data.x[:50].clone()
    before = model(rows)
    rows[:, [0, 2]] = 99.0
    torch.testing.assert_close(model(rows), before)
    rows[:, 1] += 3
    assert not torch.equal(model(rows), before)


def test_the_same_seed_gives_the_same_estimate_and_another_does_not() -> None:
    data, _ = overlapping(400)
    one, same, other = (Joint(rounds=2, trees=10).fit(data, prior=0.4, seed=seed).held_out for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_of_many_rows_some_are_drawn_and_all_labeled_ones_get_an_estimate() -> None:
    data, _ = overlapping(900)
    model = Joint(rounds=2, trees=10, most=300).fit(data, prior=0.4)
    assert model.held_out.shape == (data.n_labeled,)
    assert bool(((model.held_out > 0) & (model.held_out < 1)).all())
    assert model.few(1)(data.x[:5]).shape == (5,)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidInput, match="rounds and trees must be at least 1 and folds at least 2; got 0, 50 and 3"):
        Joint(rounds=0)
    data = PUData(sparse.random(40, 3, 0.5, format="csr", random_state=0), torch.tensor([1] * 12 + [0] * 28))
    with pytest.raises(InvalidInput, match=r'needs a dense table. Use propensity="logistic"'):
        Joint().fit(data, prior=0.5)


# ------------------------------------------------------------------------------------------------------------- "auto"


def test_auto_takes_labels_as_unbiased_where_the_test_does_not_reject() -> None:
    fair, _ = overlapping(biased=False)
    model = Auto().fit(fair, prior=0.4, seed=0)
    assert isinstance(model.model, ConstantModel)
    assert model.p_value > 0.05
    assert "labels taken as unbiased (test of SCAR: p = " in model.description
    assert model.readings(fair.x[:4]).shape == (4, 2)  # what it would be otherwise is kept


def test_auto_estimates_where_the_test_rejects() -> None:
    data, e = overlapping()
    model = Auto().fit(data, prior=0.4, seed=0)
    assert isinstance(model, Chosen)
    assert isinstance(model.model, JointModel)
    assert model.p_value <= 0.05
    assert np.corrcoef(model.held_out.log(), e.log())[0, 1] > 0.6
    torch.testing.assert_close(model.readings(data.x[:4])[:, 0], model(data.x[:4]))


def test_auto_with_few_labels_says_that_it_could_not_test() -> None:
    data = PUData(torch.randn(60, 2, generator=torch.Generator().manual_seed(0)), torch.tensor([1] * 6 + [0] * 54))
    model = Auto().fit(data, prior=0.3)
    assert model.description == "labels taken as unbiased (not tested)"
    assert model(data.x).unique().tolist() == pytest.approx([6 / (0.3 * 60)])


def test_named_columns_need_no_test() -> None:
    data, _ = overlapping(300, biased=False)
    assert isinstance(Auto(columns=(1,)).fit(data, prior=0.4).model, JointModel)


def test_a_saved_model_gives_the_same_propensities(tmp_path) -> None:
    data, _ = overlapping(500)
    X, s = data.x.numpy(), data.labels.numpy()
    clf = PUClassifier(propensity="auto", prior=0.4, backbone="forest", random_state=0).fit(X, s)
    assert isinstance(clf._propensity_model.model, JointModel)
    clf.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_propensity(X), clf.predict_propensity(X))


def test_of_rare_positives_a_bias_is_not_told_from_the_class() -> None:
    """Their estimated propensities ranked worse than none; named columns identify them all the same."""
    data, _ = overlapping(1500)
    rare = Auto().fit(data, prior=0.099, seed=0)
    assert isinstance(rare, Chosen)
    assert isinstance(rare.model, ConstantModel)
    assert rare.others == ()
    assert rare.p_value is not None
    named = Auto(columns=(1,)).fit(data, prior=0.099, seed=0)
    assert isinstance(named, Chosen)
    assert isinstance(named.model, JointModel)
