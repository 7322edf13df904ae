"""Cross-fitting, the pool, neighbors, the network estimator and what is reported about them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from torch import Tensor

from pue import PUClassifier
from pue.bench.labeling import class_mix
from pue.core.data import PUData, Scenario, population_rows
from pue.core.folds import content_folds, row_hash
from pue.core.losses import logistic
from pue.core.risks import label_likelihood
from pue.core.weights import RowWeights, supervised
from pue.errors import InvalidInput, PueWarning, TrainingDiverged, UnknownName
from pue.propensity import (
    Auto,
    Boosted,
    Constant,
    CrossFit,
    Logistic,
    Neighbors,
    Network,
    Pool,
    PropensityModel,
    clip_propensity,
    judge_propensity,
    training_propensity,
)
from pue.propensity.auto import Chosen
from pue.propensity.clipping import crump_threshold
from pue.propensity.crossfit import reference_rows
from pue.propensity.network import FORMS
from pue.propensity.pool import certain_floor, label_probability, mixture_shares
from pue.propensity.smooth import smooth_over_labeled
from pue.training import Batching, Training

every_scenario = pytest.mark.parametrize("scenario", list(Scenario))


def clusters(scenario: Scenario, *, n: int = 600, seed: int = 0) -> tuple[PUData, Tensor, Tensor]:
    """Two far positive clusters, labeled with 0.5 and 0.05, and a negative one: (data, cluster of each row, e)."""
    rng = np.random.default_rng(seed)
    centers = np.array([[0.0, 8.0], [8.0, 0.0], [-8.0, -8.0]])
    group = np.repeat([0, 1, 2], n)
    x = torch.from_numpy(centers[group] + rng.normal(size=(3 * n, 2)))
    rates = {0: 0.5, 1: 0.05}
    if scenario is Scenario.CASE_CONTROL:
        mix = {0: 10 / 11, 1: 1 / 11}
        data, truth = class_mix(x, torch.from_numpy(group), mix=mix, n_labeled=round(0.55 * n), counts="exact", rng=rng)
        return data, truth.classes, truth.labeled_propensity(data)
    chance = np.array([rates.get(g, 0.0) for g in group])
    labels = torch.from_numpy((rng.random(3 * n) < chance).astype(np.int8))
    return PUData(x, labels), torch.from_numpy(group), torch.from_numpy(chance)[labels == 1]


@dataclass(frozen=True)
class Memoriser:
    """Gives 0.9 to rows it was fitted on and 0.2 to all others: any look at a row in training shows."""

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> MemoriserModel:
        return MemoriserModel(frozenset(row_hash(data.x).tolist()))


@dataclass(frozen=True)
class MemoriserModel(PropensityModel):
    seen: frozenset[int]

    def __call__(self, x: Tensor) -> Tensor:
        return torch.tensor([0.9 if h in self.seen else 0.2 for h in row_hash(x).tolist()], dtype=torch.float64)


# ------------------------------------------------------------------------------------------------- cross-fitting


@every_scenario
def test_no_labeled_row_is_judged_by_a_model_that_saw_it_or_its_copy(scenario: Scenario) -> None:
    data, _, _ = clusters(scenario, n=60)
    model = CrossFit(Memoriser(), 4, rescale=False).fit(data, prior=0.5)
    assert model.held_out.tolist() == [0.2] * data.n_labeled
    assert (model.reference == 0.2).all()
    # The same model without cross-fitting: this is what the test can see.
    assert (training_propensity(Memoriser().fit(data, prior=0.5), data) == 0.9).all()


@every_scenario
@pytest.mark.parametrize("weighted", [False, True])
def test_every_fold_expects_as_many_labels_as_it_has(scenario: Scenario, weighted: bool) -> None:
    data, _, _ = clusters(scenario, n=80)
    if weighted:
        weight = torch.from_numpy(np.random.default_rng(1).uniform(0.5, 2, data.n_rows))
        data = PUData(data.x, data.labels, scenario, weight)
    folds, seed = 3, 5
    model = CrossFit(Logistic(C=1e-3), folds).fit(data, prior=0.5, seed=seed)
    raw = CrossFit(Logistic(C=1e-3), folds, rescale=False).fit(data, prior=0.5, seed=seed)
    fold, population, mass = content_folds(data.x, data.labels, folds, seed=seed), [], data.mass.tolist()
    population = population_rows(data.labels, scenario).tolist()
    reference = reference_rows(data).tolist()
    assert len(reference) == sum(population)  # few rows: all of them are the reference
    for k in range(folds):
        expected = sum(mass[row] * float(e) for row, e in zip(reference, raw.reference, strict=True) if fold[row] == k)
        labels = sum(mass[row] for row in range(data.n_rows) if fold[row] == k and data.labels[row] == 1)
        assert float(model.factors[k, 0]) == pytest.approx(labels / expected, rel=1e-10)


@every_scenario
def test_the_scale_is_that_of_e_in_both_scenarios(scenario: Scenario) -> None:
    data, group, e = clusters(scenario)
    model = CrossFit(Neighbors((20,))).fit(data, prior=2 / 3)  # balls large enough for the ½ not to matter
    groups = group[data.labeled]
    for cluster, rate in ((0, 0.5), (1, 0.05)):
        realised = int((groups == cluster).sum()) / 600
        assert float(model.held_out[groups == cluster].mean()) == pytest.approx(realised, rel=0.15)
        assert float(e[groups == cluster].mean()) == pytest.approx(rate, rel=1e-9)


def test_folds_in_other_processes_give_the_same() -> None:
    data, _, _ = clusters(Scenario.CASE_CONTROL, n=60)
    one, two = (CrossFit(Logistic(), 3, jobs=jobs).fit(data, prior=0.5) for jobs in (1, 2))
    assert torch.equal(one.held_out, two.held_out)
    assert torch.equal(one(data.x), two(data.x))


def test_new_rows_get_the_mean_over_the_folds() -> None:
    data, _, _ = clusters(Scenario.SINGLE_SAMPLE, n=60)
    model = CrossFit(Logistic(), 3).fit(data, prior=0.5)
    x = data.x[:5]
    by_hand = sum(m(x) * f for m, f in zip(model.models, model.factors[:, 0], strict=True)) / 3
    torch.testing.assert_close(model(x), by_hand, rtol=1e-12, atol=0)


@pytest.mark.parametrize("folds", [4, 50])
def test_more_folds_than_labeled_rows_is_an_error(folds: int) -> None:
    data = PUData(torch.randn(40, 2, generator=torch.Generator().manual_seed(0)), torch.tensor([1] * 3 + [0] * 37))
    with pytest.raises(InvalidInput, match=rf"{folds} folds need at least {folds} distinct labeled .* Use fewer folds"):
        CrossFit(Logistic(), folds).fit(data, prior=0.5)


def test_one_fold_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="at least 2 folds; got 1"):
        CrossFit(Logistic(), 1)


def test_auto_with_one_labeled_row_says_what_to_do() -> None:
    data = PUData(torch.randn(40, 2, generator=torch.Generator().manual_seed(0)), torch.tensor([1] + [0] * 39))
    with pytest.raises(InvalidInput, match=r'at least 2 distinct labeled .* propensity="constant"'):
        Auto().fit(data, prior=0.5)


# ------------------------------------------------------------------------------------------------------- the pool


def test_shares_maximise_the_likelihood_of_the_mixture() -> None:
    rng = np.random.default_rng(0)
    like, weight = rng.uniform(0.01, 1, (50, 3)), rng.uniform(0.5, 2, 50)
    found = mixture_shares(like, weight)
    best = max(
        ((a, b, 1 - a - b) for a in np.linspace(0, 1, 101) for b in np.linspace(0, 1 - a, 101)),
        key=lambda s: sum(w * math.log(sum(x * y for x, y in zip(s, row, strict=True)))
                          for w, row in zip(weight, like, strict=True)),
    )  # fmt: skip
    assert found == pytest.approx(best, abs=0.02)
    assert found.sum() == pytest.approx(1)


@every_scenario
def test_the_pool_trusts_the_member_whose_held_out_labels_are_likely(scenario: Scenario) -> None:
    data, _, e = clusters(scenario)
    members = {"memoriser": CrossFit(Memoriser()), "constant": CrossFit(Constant()), "neighbors": CrossFit(Neighbors())}
    model = Pool(members).fit(data, prior=2 / 3)
    assert sum(model.shares.values()) == pytest.approx(1)
    assert sum(share for name, share in model.shares.items() if name.startswith("neighbors")) > 0.6
    assert model.shares["memoriser"] < 0.05
    assert float(torch.corrcoef(torch.stack([model.held_out.log(), e.log()]))[0, 1]) > 0.9
    assert model.description.startswith("cross-fitted neighbors")
    # A pool is a mixture of probabilities: no member's floor is undercut.
    p = label_probability(model.held_out, scenario)
    for column, share in enumerate(list(model.shares.values())[:2]):
        member = list(model.members.values())[column].held_out
        assert (p >= share * label_probability(member, scenario) - 1e-12).all()


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 40), st.floats(0.05, 0.95), st.integers(0, 2**31), st.booleans())
def test_the_floor_gives_the_classes_their_prior(n: int, prior: float, seed: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    r = rng.random(n) ** 3 * (rng.random(n) < 0.8)
    mass = rng.random(n) + 0.1 if weighted else np.ones(n)

    def mean_of_f(floor: float) -> float:
        return sum(m * (min(1.0, x / floor)) for m, x in zip(mass, r, strict=True)) / sum(mass)

    floor = certain_floor(torch.from_numpy(r), prior, torch.from_numpy(mass) if weighted else None)
    possible = float(mass[r > 0].sum() / mass.sum())
    if possible < prior - 1e-9:
        assert floor == 0
    elif possible > prior + 1e-9:
        assert mean_of_f(floor) == pytest.approx(prior)


def test_the_floor_is_exact_for_certain_classes_and_for_unbiased_labels() -> None:
    rng = np.random.default_rng(0)
    certain = torch.from_numpy(np.where(rng.random(1000) < 0.4, rng.uniform(0.1, 0.9, 1000), 0.0))
    prior = float((certain > 0).double().mean())
    assert certain_floor(certain, prior) <= float(certain[certain > 0].min()) + 1e-12
    posterior = torch.from_numpy(rng.beta(0.5, 0.7, 1000))
    assert certain_floor(0.3 * posterior, float(posterior.mean())) == pytest.approx(0.3)


def test_overlapping_classes_without_bias_get_nearly_equal_weights() -> None:
    """P(labeled | x) itself gives rows in the overlap several times the weight of the others."""
    rng = np.random.default_rng(0)
    y = rng.random(4000) < 0.4
    x = rng.normal(size=(4000, 2)) + 1.5 * y[:, None]
    s = y & (rng.random(4000) < 0.3)
    data = PUData(torch.from_numpy(x), torch.from_numpy(s.astype(np.int64)))
    members = {"logistic": CrossFit(Logistic())}
    spread = {}
    for overlap in (False, True):
        model = Pool(members, smooth=False, overlap=overlap).fit(data, prior=0.4)
        weight = 1 / model.held_out
        spread[overlap] = float(weight.std() / weight.mean())
        assert float(model.reference.mean()) == pytest.approx(s.mean(), rel=0.05)
        assert float(model(data.x).min()) >= model.floor
    assert spread[False] > 0.7
    assert spread[True] < 0.25


@every_scenario
def test_the_default_repairs_the_weights_of_a_biased_table(scenario: Scenario) -> None:
    data, group, _ = clusters(scenario, seed=3)
    model = Auto().fit(data, prior=2 / 3, seed=1)
    weight = 1 / training_propensity(model, data)
    share = float(weight[group[data.labeled] == 1].sum() / weight.sum())
    assert share == pytest.approx(0.5, abs=0.1)  # half of the positives; uniform weights would give it 0.09
    assert (model(data.x[:3]) > 0).all()


def test_images_get_a_network_and_tables_do_not() -> None:
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (60, 1, 6, 6), generator=generator, dtype=torch.uint8)
    labels = torch.tensor([1] * 12 + [0] * 48)
    quick = Network(alpha=0.0, backbone="linear", training=Training(epochs=1, batching=Batching(32, "pooled")))
    pooled = Auto(folds=2, image_network=quick).fit(PUData(images, labels), prior=0.5)
    assert {name.split(" ")[0] for name in pooled.shares} == {"network", "neighbors"}
    table = Auto(folds=2).fit(PUData(images.flatten(1).double(), labels), prior=0.5)
    assert isinstance(table, Chosen)
    thin = Auto(folds=2).fit(PUData(sparse.csr_matrix(images.flatten(1).double().numpy()), labels), prior=0.5)
    assert {name.split(" ")[0] for name in thin.shares} == {"logistic", "neighbors"}


# ------------------------------------------------------------------------------------------------------ neighbors


@every_scenario
@pytest.mark.parametrize("weighted", [False, True])
def test_neighbors_count_as_a_loop_does(scenario: Scenario, weighted: bool) -> None:
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(60, 2, generator=generator, dtype=torch.float64)
    labels = torch.tensor([1] * 15 + [0] * 45)
    weight = torch.rand(60, generator=generator, dtype=torch.float64) + 0.5 if weighted else None
    data = PUData(x, labels, scenario, weight)
    model = Neighbors((1, 3)).fit(data, prior=0.5)
    z = model.reduction(x).double()
    population = [i for i in range(60) if scenario is Scenario.SINGLE_SAMPLE or labels[i] == 0]
    mass = data.mass.tolist()
    rate = sum(mass[:15]) / sum(mass[i] for i in population)
    queries = x[:4] + 0.1
    reduced = model.reduction(queries).double()
    for column, k in enumerate(model.k):
        for row, query in enumerate(reduced):
            far = [float((query - z[i]).norm()) for i in range(60)]
            nearest = sorted(population, key=lambda i: far[i])[:k]
            radius = far[nearest[-1]]
            labeled = sum(mass[i] for i in range(15) if far[i] <= radius)
            by_hand = (labeled + 0.5) / (sum(mass[i] for i in nearest) + 0.5 / rate)
            assert float(model.columns(queries)[row, column]) == pytest.approx(by_hand, rel=1e-5)


def test_balls_hold_the_wanted_number_of_labels_on_average() -> None:
    data, _, _ = clusters(Scenario.CASE_CONTROL)
    model = Neighbors((1, 2, 4)).fit(data, prior=0.5)
    rate = data.n_labeled / int(data.unlabeled.sum())
    assert list(model.k) == [round(size / rate) for size in (1, 2, 4)]
    assert all(a < b for a, b in pairwise(model.k))


@pytest.mark.parametrize("labels", [(), (0,), (-1, 2)])
def test_neighbors_need_balls(labels: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInput, match="positive numbers of labels"):
        Neighbors(labels)


# -------------------------------------------------------------------------------------------- the paper's network


def slow_objective(scores: list[float], s: list[int], alpha: float, form: str, n: int, n_labeled: int) -> float:
    """Eq. 14 on one batch, term by term, in the four readings."""
    size = len(s)
    p = [1 / (1 + math.exp(-g)) for g in scores]
    loss = -sum(math.log(q) if label else math.log(1 - q) for q, label in zip(p, s, strict=True)) / size
    gap = {
        "mean": abs(sum(p) / size - sum(s) / size),
        "full_mean": abs(sum(p) / size - n_labeled / n),
        "sum_batch": abs(sum(p) - sum(s)),
        "sum_scaled": abs(n / size * sum(p) - n_labeled),
    }[form]
    return loss + alpha * gap


@pytest.mark.parametrize("form", FORMS)
def test_every_reading_of_the_regulariser_is_the_written_one(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The estimator's own risk is caught on its way into the training loop and compared on a batch of 8 of 40 rows.
    caught = {}
    monkeypatch.setattr("pue.propensity.network.train", lambda *args, **options: caught.update(risk=args[3]))
    x = torch.randn(40, 2, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([1] * 10 + [0] * 30)
    training = Training(epochs=1, batching=Batching(8, "pooled"))
    Network(alpha=3.0, form=form, backbone="linear", training=training).fit(PUData(x, labels), prior=0.5)
    scores = torch.linspace(-3, 1, 8, dtype=torch.float64)
    s = [1, 0, 0, 1, 0, 1, 0, 0]  # another share of labels than that of all rows
    w = torch.full((8,), 1 / 8, dtype=torch.float64)
    positive = w * torch.tensor(s)
    found = float(caught["risk"](scores, RowWeights(positive, w - positive)))
    assert found == pytest.approx(slow_objective(scores.tolist(), s, 3.0, form, 40, 10), rel=1e-12)


def test_without_the_regulariser_it_is_the_cross_entropy() -> None:
    labels = torch.tensor([1, 0, 0])
    weights = supervised(labels)
    scores = torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64)
    expected = (logistic(scores[:1]).sum() + logistic(-scores[1:]).sum()) / 3
    assert float(label_likelihood()(scores, weights)) == pytest.approx(float(expected), rel=1e-14)


def test_the_gradient_of_the_regularised_likelihood_is_right() -> None:
    weights = supervised(torch.tensor([1, 0, 1, 0, 0]))
    scores = torch.randn(5, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    for risk in (label_likelihood(15.0), label_likelihood(2.0, scale=5.0, target=0.1)):
        assert torch.autograd.gradcheck(lambda g, risk=risk: risk(g, weights), scores)


@every_scenario
def test_the_network_finds_the_rates_and_odds_are_explicit(scenario: Scenario) -> None:
    data, group, _ = clusters(scenario)
    training = Training(epochs=30, batching=Batching(128, "pooled"), lr=3e-3, validation=0.1,
                        criterion="likelihood", keep="best")  # fmt: skip
    network = Network(alpha=0.0, training=training)
    e = network.fit(data, prior=2 / 3)(data.x[data.labeled])
    groups = group[data.labeled]
    assert float(e[groups == 0].mean()) == pytest.approx(0.5, rel=0.2)
    assert float(e[groups == 1].mean()) == pytest.approx(0.05, rel=0.5)
    literal = replace(network, odds=False).fit(data, prior=2 / 3)(data.x[data.labeled])
    pooled = e / (1 + e) if scenario is Scenario.CASE_CONTROL else e
    torch.testing.assert_close(literal, pooled, rtol=1e-6, atol=1e-9)


def test_a_network_that_diverges_says_so() -> None:
    data, _, _ = clusters(Scenario.SINGLE_SAMPLE, n=60)
    training = Training(epochs=3, batching=Batching(32, "pooled"), optimizer="sgd", lr=1e30)
    with pytest.raises(TrainingDiverged, match="smaller learning rate"):
        Network(backbone="tabular", training=training).fit(data, prior=0.5)


def test_bad_settings_of_the_network() -> None:
    with pytest.raises(UnknownName, match="form"):
        Network(form="median")
    with pytest.raises(InvalidInput, match="alpha must not be negative"):
        Network(alpha=-1.0)


# -------------------------------------------------------------------------------------------- processing in the open


def test_the_trimming_threshold_minimises_the_variance() -> None:
    rng = np.random.default_rng(0)
    e = torch.from_numpy(np.concatenate([rng.uniform(0.2, 0.9, 60), 10 ** rng.uniform(-3, -1.5, 6)]))

    def variance(threshold: float) -> float:
        """E[1/e | kept] / P(kept) over positives, each labeled row standing for 1/e of them."""
        kept = [v for v in e.tolist() if v >= threshold]
        positives = sum(1 / v for v in kept)
        return (sum(1 / v**2 for v in kept) / positives) / (positives / sum(1 / v for v in e.tolist()))

    best = min(e.tolist(), key=variance)
    assert crump_threshold(e) == pytest.approx(best)
    assert best > float(e.min())  # there is something to trim


def test_trimmed_rows_get_no_weight() -> None:
    e = torch.tensor([0.5] * 1000 + [0.01])
    final, report = clip_propensity(e, trim=True)
    assert report.n_trimmed == 1
    assert math.isinf(float(final[-1]))
    assert report.effective_sample_size == pytest.approx(1000)
    assert clip_propensity(e)[1].n_trimmed == 0


def test_a_trimmed_classifier_ignores_the_row() -> None:
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(300, 2)), np.repeat([1, 0], [60, 240])
    e = np.r_[np.full(59, 0.5), 0.001]
    plain = PUClassifier(prior=0.4, epochs=2, random_state=0)
    trimmed = PUClassifier(prior=0.4, epochs=2, random_state=0, propensity_trim=True)
    assert plain.fit(X, s, propensity=e).propensity_report_.n_trimmed == 0
    # One row of weight 1000 stands for nearly all positives, so it is kept; of weight 1/e = 100 among many it is not.
    e[-1] = 0.02
    report = trimmed.fit(X, s, propensity=e).propensity_report_
    assert report.n_trimmed == 1
    assert np.isinf(trimmed.propensity_[-1])


def test_the_report_says_how_many_labels_were_expected() -> None:
    data, _, _ = clusters(Scenario.CASE_CONTROL)
    model = Constant().fit(data, prior=2 / 3)
    report = judge_propensity(model, data, name="Constant").report
    rows = int(data.unlabeled.sum())
    assert report.expected_labels == pytest.approx(float(model(data.x[:1])) * rows / data.n_labeled)
    assert report.implied_prior == pytest.approx(data.n_labeled / float(model(data.x[:1])) / rows)
    assert report.implied_prior == pytest.approx(2 / 3)
    assert "Constant" in str(report)


def test_a_memorising_network_raises_the_alarm_and_its_cross_fit_does_not() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(300, 40, generator=generator)  # nothing to learn, much to memorise
    data = PUData(x, torch.tensor([1] * 60 + [0] * 240))
    training = Training(epochs=150, batching=Batching(64, "pooled"), lr=3e-3, weight_decay=0.0,
                        validation=0.2, criterion="likelihood", keep="last")  # fmt: skip
    network = Network(alpha=15.0, backbone="tabular", training=training)
    report = judge_propensity(network.fit(data, prior=0.5), data).report
    assert report.optimism > 2
    assert "memorised" in report.alarm
    clf = PUClassifier(prior=0.5, propensity=network, epochs=1, random_state=0)
    with pytest.warns(PueWarning, match="memorised its rows"):
        clf.fit(x, data.labels)
    early = replace(network, training=replace(training, epochs=3, keep="best"))
    report = judge_propensity(CrossFit(early, 3).fit(data, prior=0.5), data).report
    assert report.alarm is None


def test_uniform_weights_near_one_are_suspicious_unless_cross_fitted() -> None:
    _, report = clip_propensity(torch.full((100,), 0.95))
    assert "all but equal" in report.alarm
    _, report = clip_propensity(torch.full((100,), 0.95), source="cross-fitted over 3 folds")
    assert report.alarm is None
    _, report = clip_propensity(torch.full((100,), 0.3))
    assert report.alarm is None


def test_a_few_rows_with_all_the_weight_raise_the_alarm() -> None:
    _, report = clip_propensity(torch.tensor([0.5] * 200 + [1e-4]))
    assert "few labeled rows carry all the weight" in report.alarm


def test_the_classifier_says_what_auto_chose() -> None:
    data, _, _ = clusters(Scenario.SINGLE_SAMPLE, n=100)
    clf = PUClassifier(prior=2 / 3, propensity="auto", epochs=1, random_state=0).fit(data.x, data.labels)
    assert clf.propensity_report_.source.startswith("cross-fitted")
    assert 0.5 < clf.propensity_report_.expected_labels < 2
    assert clf.propensity_.shape == (data.n_labeled,)


def test_boosted_trees_keep_their_own_held_out_estimates() -> None:
    data, _, _ = clusters(Scenario.SINGLE_SAMPLE, n=100)
    model = Boosted().fit(data, prior=2 / 3)
    assert torch.equal(training_propensity(model, data), model.held_out)
    assert len(model.held_out) == data.n_labeled


# ------------------------------------------------------------------------------------------------------- smoothing


def slow_leave_one_out(e: list[float], z: list[list[float]], k: int) -> float:
    log_e, total = [math.log(v) for v in e], sum(1 / v for v in e)
    error = 0.0
    for i in range(len(e)):
        others = sorted((j for j in range(len(e)) if j != i), key=lambda j: math.dist(z[i], z[j]))[:k]
        error += (1 / e[i]) / total * (log_e[i] - sum(log_e[j] for j in others) / k) ** 2
    return error


def test_smoothing_takes_the_size_with_the_smallest_leave_one_out_error() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(60, 2)) + np.repeat([[0, 0], [20, 20]], 30, axis=0)
    e = np.exp(np.repeat([-1.0, -3.0], 30) + 0.5 * rng.normal(size=60))
    smoothed, k = smooth_over_labeled(torch.from_numpy(e), torch.from_numpy(z))
    errors = {size: slow_leave_one_out(e.tolist(), z.tolist(), size) for size in (1, 2, 3, 5, 8, 12, 20, 40)}
    assert k == min(errors, key=lambda size: errors[size])
    row = 7
    near = sorted(range(60), key=lambda j: math.dist(z[row], z[j]))[: k + 1]
    assert float(smoothed[row]) == pytest.approx(math.exp(np.log(e[near]).mean()), rel=1e-6)
    # It comes closer to the truth, and does not mix the two kinds.
    truth = np.repeat([-1.0, -3.0], 30)
    assert np.mean((smoothed.log().numpy() - truth) ** 2) < 0.5 * np.mean((np.log(e) - truth) ** 2)
    assert k < 30


def test_a_single_row_is_left_alone() -> None:
    e = torch.tensor([0.3], dtype=torch.float64)
    alone, k = smooth_over_labeled(e, torch.zeros(1, 2))
    assert k == 0
    assert torch.equal(alone, e)


def test_sample_weights_decide_whose_errors_count() -> None:
    rng = np.random.default_rng(2)
    z = torch.from_numpy(np.concatenate([np.arange(40.0), 1000 + np.arange(40.0)]))[:, None]
    rough = np.where(np.arange(40) // 4 % 2 == 0, -1.0, -3.0)  # only the nearest agree here
    slope = np.linspace(-1, -3, 40) + 0.5 * rng.normal(size=40)  # and here many neighbors are better than few
    e = torch.from_numpy(np.exp(np.concatenate([rough, slope])))
    mass = torch.cat([torch.full((40,), 1e-6), torch.ones(40)])
    _, for_slope = smooth_over_labeled(e, z, mass)
    _, for_rough = smooth_over_labeled(e, z, mass.flip(0))
    assert for_slope > for_rough


def test_a_few_models_of_a_pool_give_nearly_what_all_give() -> None:
    rng = np.random.default_rng(0)
    y = rng.random(1500) < 0.4
    x = torch.from_numpy(rng.normal(size=(1500, 3)) + 2 * y[:, None])
    data = PUData(x[:1000], torch.from_numpy((y & (rng.random(1500) < 0.5)).astype(int))[:1000])
    pooled = Pool({"logistic": CrossFit(Logistic()), "neighbors": CrossFit(Neighbors(), 5)}).fit(data, prior=0.4)
    everyone, few = pooled(x[1000:]), pooled.few(2)(x[1000:])
    assert {len(member.models) for member in pooled.few(2).members.values()} == {2}
    assert float((few.log() - everyone.log()).abs().mean()) < 0.1
    assert torch.equal(pooled.few(100)(x[1000:]), everyone)
