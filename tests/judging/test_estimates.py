"""Metrics without negatives: slow twins, identities, coverage of the intervals, scorers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pue import PUClassifier
from pue.errors import InvalidInput, PueWarning, UnknownName
from pue.judging import SCORERS, calibration_error, estimate_metrics, evaluate, make_scorer, worlds
from pue.judging.estimates import ESTIMATED
from pue.judging.worlds import depth


def biased(n: int, seed: int, *, prior: float = 0.4) -> tuple[np.ndarray, ...]:
    """Scores, labels, propensities of all rows and true classes; the labels prefer positives with high scores."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < prior
    g = rng.normal(size=n) + np.where(y, 1.0, -1.0)
    e = 0.05 + 0.5 / (1 + np.exp(-2 * (g - 1)))
    return g, (y & (rng.random(n) < e)).astype(int), e, y


def twin(g, s, weight, prior, threshold, case_control):
    """Every metric by plain loops over rows and pairs, from its definition in the module's docstring."""
    labeled = [i for i in range(len(g)) if s[i] == 1]
    population = [i for i in range(len(g)) if not case_control or s[i] == 0]
    total = sum(weight[i] for i in labeled)
    recall = sum(weight[i] for i in labeled if g[i] >= threshold) / total
    flagged = sum(1 for i in population if g[i] >= threshold) / len(population)
    hits = prior * recall  # no more than there are rows called positive, no fewer than cannot lie outside of them
    if hits > flagged:
        recall = flagged / prior
    elif prior - hits > 1 - flagged:
        recall = (prior - (1 - flagged)) / prior
    wins = sum(
        weight[i] * (1.0 if g[i] > g[j] else 0.5 if g[i] == g[j] else 0.0) for i in labeled for j in population
    ) / (total * len(population))
    ap, seen = 0.0, 0.0
    for cut in sorted({g[i] for i in labeled}, reverse=True):
        now = sum(weight[i] for i in labeled if g[i] >= cut) / total
        share = sum(1 for j in population if g[j] >= cut) / len(population)
        ap += (now - seen) * (min(1.0, prior * now / share) if share else 1.0)
        seen = now
    values = {
        "accuracy": 1 - prior - flagged + 2 * prior * recall,
        "precision": prior * recall / flagged if flagged else 0.0,
        "recall": recall,
        "f1": 2 * prior * recall / (prior + flagged),
        "auc": (wins - prior / 2) / (1 - prior),
        "ap": ap,
        "flagged": flagged,
    }
    return {name: min(1.0, max(0.0, value)) for name, value in values.items()}


def test_other_readings_of_the_labels_widen_the_intervals_and_leave_the_estimate():
    g, s, e, _ = biased(3000, 0)
    chosen = e[s == 1]
    alone = estimate_metrics(g, s, prior=0.4, propensity=chosen)
    doubtful = estimate_metrics(g, s, prior=0.4, propensity=chosen, readings=[np.ones_like(chosen)])
    unbiased = estimate_metrics(g, s, prior=0.4)
    assert doubtful.recall.value == pytest.approx(alone.recall.value, abs=0.005)  # but for a bin that was too full
    assert doubtful.recall.high >= unbiased.recall.value > alone.recall.high
    assert doubtful.recall.low == pytest.approx(alone.recall.low, abs=0.02)


def test_a_hidden_bias_widens_the_intervals_both_ways():
    g, s, e, _ = biased(3000, 0)
    given = {"prior": 0.4, "propensity": e[s == 1]}
    alone, doubtful, skeptical = (
        estimate_metrics(g, s, **given, hidden=hidden) for hidden in ((0, 0), (0, 1.5), (1.0, 0))
    )
    assert doubtful.recall.value == pytest.approx(alone.recall.value, abs=0.005)  # but for a bin that was too full
    assert doubtful.recall.low < alone.recall.low
    assert doubtful.recall.high > alone.recall.high
    assert skeptical.recall.value < alone.recall.value  # clear positives stand for fewer, hence found ones for fewer
    for wrong in ((0.0, -1.0), (np.nan, 1.0)):
        with pytest.raises(InvalidInput, match="hidden must be two numbers, the second not negative"):
            estimate_metrics(g, s, prior=0.4, hidden=wrong)


def test_a_hidden_bias_tilts_the_weights_of_the_labeled_rows(monkeypatch):
    monkeypatch.setattr(worlds, "BINS", 1)  # which holds all positives there are
    g, s, e, _ = biased(400, 0)
    labeled = np.flatnonzero(s == 1)
    weight = {i: math.exp(-1.3 * depth(torch.from_numpy(g), torch.from_numpy(s))[i]) / e[i] for i in labeled}
    recall = sum(weight[i] for i in labeled if g[i] >= 0) / sum(weight.values())
    found = estimate_metrics(g, s, prior=0.4, propensity=e[s == 1], hidden=(1.3, 0.0), draws=0)
    assert found.recall.value == pytest.approx(recall)


def test_depth_is_the_place_among_the_labeled_scores():
    g = torch.tensor([0.0, 1.0, 2.0, 3.0, 1.0]).double()
    s = torch.tensor([1, 1, 0, 1, 0])
    expected = []
    for value in g.tolist():
        own = [float(h) for h, label in zip(g, s, strict=True) if label == 1]
        below = sum(h < value for h in own) + 0.5 * sum(h == value for h in own)
        expected.append(below / len(own) - 0.5)
    np.testing.assert_allclose(depth(g, s), expected)


@pytest.mark.parametrize(("prior", "flagged"), [(0.9, 0.2), (0.2, 0.9), (0.6, 0.6)])
def test_no_metric_contradicts_another(prior, flagged):
    rng = np.random.default_rng(0)
    g = np.where(np.arange(400) < 400 * flagged, 1.0, -1.0)
    s = (rng.random(400) < 0.1).astype(int)
    for labeled in (s * (g > 0), s * (g < 0)):
        m = estimate_metrics(g, labeled, prior=prior, draws=0)
        true_positive = prior * m.recall.value
        true_negative = 1 - prior - (m.flagged.value - true_positive)
        assert -1e-12 <= true_positive <= min(prior, m.flagged.value) + 1e-12
        assert -1e-12 <= true_negative <= 1 - prior + 1e-12
        assert m.accuracy.value == pytest.approx(true_positive + true_negative)
        assert m.precision.value == pytest.approx(true_positive / m.flagged.value)


@given(
    data=st.data(),
    n=st.integers(6, 25),
    prior=st.floats(0.5, 0.9),
    case_control=st.booleans(),
    threshold=st.sampled_from([0.0, 1.0]),
)
@settings(max_examples=60, deadline=None)
def test_every_metric_equals_its_slow_twin(data, n, prior, case_control, threshold):
    g = np.array(data.draw(st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0]), min_size=n, max_size=n)))
    s = np.array([1, 1, 0, *data.draw(st.lists(st.sampled_from([0, 0, 1]), min_size=n - 3, max_size=n - 3))])
    if not case_control and s.mean() > prior:
        s[3:] = 0
    e = np.array(data.draw(st.lists(st.floats(0.05, 1.0), min_size=int(s.sum()), max_size=int(s.sum()))))
    scenario = "case_control" if case_control else "single_sample"
    found = estimate_metrics(g, s, prior=prior, propensity=e, scenario=scenario, threshold=threshold, draws=0)
    weight = np.zeros(n)
    weight[s == 1] = 1 / e
    expected = twin(g.tolist(), s.tolist(), weight.tolist(), prior, threshold, case_control)
    for name in ESTIMATED:
        assert getattr(found, name).value == pytest.approx(expected[name], abs=1e-9), name


def test_with_every_positive_labeled_estimates_are_the_exact_metrics():
    g, _, _, y = biased(500, 0)
    found = estimate_metrics(g, y.astype(int), prior=float(y.mean()), draws=0)
    exact = evaluate(torch.from_numpy(y.astype(int)), torch.from_numpy(g))
    for name in ("accuracy", "precision", "recall", "f1", "auc", "ap"):
        assert getattr(found, name).value == pytest.approx(getattr(exact, name), abs=1e-12), name


def test_true_propensities_repair_what_scar_gets_wrong():
    errors = {"propensity": [], "scar": []}
    for seed in range(5):
        g, s, e, y = biased(20_000, seed)
        exact = evaluate(torch.from_numpy(y.astype(int)), torch.from_numpy(g)).as_dict()
        for kind, given_e in (("propensity", e[s == 1]), ("scar", None)):
            found = estimate_metrics(g, s, prior=0.4, propensity=given_e, draws=0)
            errors[kind].append([getattr(found, name).value - exact[name] for name in ("recall", "f1", "auc")])
    assert np.abs(np.mean(errors["propensity"], axis=0)).max() < 0.01
    assert np.abs(np.mean(errors["scar"], axis=0)).min() > 0.04


def test_a_common_factor_on_propensities_changes_nothing():
    g, s, e, _ = biased(400, 1)
    one, two = (estimate_metrics(g, s, prior=0.4, propensity=k * e[s == 1], seed=3) for k in (1.0, 0.5))
    assert str(one) == str(two)


@pytest.mark.parametrize("scenario", ["single_sample", "case_control"])
def test_intervals_cover_the_truth(scenario):
    inside, widths = np.zeros(6), []
    names = ("accuracy", "precision", "recall", "f1", "auc", "ap")
    for seed in range(60):
        g, s, e, y = biased(1500, seed)
        if scenario == "case_control":  # labeled rows once more beside everything
            g, e = np.concatenate([g[s == 1], g]), np.concatenate([e[s == 1], e])
            s = np.concatenate([np.ones(int(s.sum()), dtype=int), np.zeros(len(y), dtype=int)])
        found = estimate_metrics(
            g, s, prior=0.4, propensity=e[s == 1], scenario=scenario, level=0.9, draws=200, seed=seed
        )
        inside += [getattr(found, name).low <= POPULATION[name] <= getattr(found, name).high for name in names]
        widths.append(found.recall.high - found.recall.low)
    assert (inside / 60 >= 0.75).all(), inside / 60  # nominal 0.9; five standard errors below
    assert np.mean(widths) < 0.2


def _population() -> dict[str, float]:
    g, _, _, y = biased(400_000, 99)
    return evaluate(torch.from_numpy(y.astype(int)), torch.from_numpy(g)).as_dict()


POPULATION = _population()


def test_a_doubtful_prior_widens_the_intervals():
    g, s, e, _ = biased(3000, 2)
    sure = estimate_metrics(g, s, prior=0.4, propensity=e[s == 1])
    doubtful = estimate_metrics(g, s, prior=0.4, propensity=e[s == 1], prior_interval=(0.3, 0.55))
    for name in ("accuracy", "precision", "f1"):
        one, two = getattr(sure, name), getattr(doubtful, name)
        assert two.high - two.low > 1.5 * (one.high - one.low)
        assert one.value == two.value
    with pytest.raises(InvalidInput, match=r"prior_interval must hold the prior, 0\.4"):
        estimate_metrics(g, s, prior=0.4, prior_interval=(0.5, 0.6))


def test_worst_cases_hold_every_reweighting_inside_gamma():
    g, s, e, _ = biased(300, 3)
    chosen = e[s == 1]
    found = estimate_metrics(g, s, prior=0.4, propensity=chosen, gammas=(1.0, 1.5), draws=0)
    rng = np.random.default_rng(0)
    for _ in range(200):
        other = np.clip(chosen * np.exp(rng.uniform(-1, 1, len(chosen)) * np.log(1.5)), 1e-6, 1)
        inner = estimate_metrics(g, s, prior=0.4, propensity=other, draws=0)
        for name in ("recall", "precision", "f1", "accuracy"):
            low, high = found.bounds[1.5][name]
            assert low - 1e-9 <= getattr(inner, name).value <= high + 1e-9
    assert found.bounds[1.0]["recall"] == pytest.approx((found.recall.value,) * 2)
    assert found.bounds[1.5]["recall"][1] - found.bounds[1.5]["recall"][0] > 0.05


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ([1.0, 2.0, 3.0, 4.0], "calls every row positive"),
        ([-1.0, -2.0, -3.0, -4.0], "calls no row positive"),
        ([1.0] * 4, "gives every row the same score"),
    ],
)
def test_a_predictor_that_tells_nothing_apart_is_named(scores, said):
    found = estimate_metrics(scores, [1, 0, 0, 0], prior=0.5, draws=10)
    assert found.trivial == said
    assert str(found).startswith(f"This predictor {said}")


def test_the_same_seed_gives_the_same_intervals_and_another_one_others():
    g, s, _, _ = biased(500, 4)
    one, same, other = (estimate_metrics(g, s, prior=0.4, seed=seed) for seed in (1, 1, 2))
    assert one == same
    assert one.f1 != other.f1


def test_weights_are_rows_that_stand_there_more_than_once():
    g, s, e, _ = biased(200, 5)
    times = np.random.default_rng(0).integers(1, 4, len(g))
    weighted = estimate_metrics(g, s, prior=0.5, propensity=e[s == 1], sample_weight=times.astype(float), draws=0)
    many = np.repeat(np.arange(len(g)), times)
    repeated = estimate_metrics(g[many], s[many], prior=0.5, propensity=e[many][s[many] == 1], draws=0)
    for name in ESTIMATED:
        assert getattr(weighted, name).value == pytest.approx(getattr(repeated, name).value)


def test_more_labels_than_the_prior_allows_in_a_small_sample_is_no_error():
    found = estimate_metrics([1.0, 1.0, 1.0, -1.0], [1, 1, 1, 0], prior=0.5, draws=5)
    assert 0 <= found.accuracy.value <= 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"scores": [0.0, np.nan, 1.0]}, "NaN or infinity"),
        ({"scores": [0.0, 1.0]}, "one entry for each of the 3 rows"),
        ({"labels": [0, 0, 0]}, "no row is labeled positive"),
        ({"prior": 1.2}, "prior must lie in"),
        ({"propensity": [0.5, 0.5]}, "one entry for each of the 1 labeled rows"),
        ({"level": 1.0}, "level must lie in"),
    ],
)
def test_bad_input_is_named(arguments, said):
    usual = {"scores": [0.0, 1.0, 2.0], "labels": [1, 0, 0], "prior": 0.5}
    with pytest.raises(InvalidInput, match=said):
        estimate_metrics(**{**usual, **arguments})


# ------------------------------------------------------------------------------------------------------- scorers


def table(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.5
    x = rng.normal(size=(n, 3)) + 2.5 * y[:, None]
    return x, (y & (rng.random(n) < 0.4)).astype(int), y


def test_scorers_work_in_cross_validation_and_grid_search():
    x, s, _ = table()
    scores = cross_val_score(LogisticRegression(), x, s, scoring=make_scorer("auc", prior=0.5), cv=3)
    assert (scores > 0.9).all()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced")),
        {"logisticregression__C": [1e-6, 1.0]},
        scoring=make_scorer("accuracy", prior=0.5),
        cv=3,
    ).fit(x, s)
    assert search.best_score_ > 0.8


def test_a_pu_classifier_brings_its_own_prior_and_propensities():
    x, s, y = table(600)
    fitted = PUClassifier(prior=0.5, propensity="logistic", epochs=5, random_state=0).fit(x, s)
    found = SCORERS["accuracy"](fitted, x, s)
    assert found == pytest.approx(np.mean(fitted.predict(x) == y), abs=0.08)
    assert SCORERS["auc"](fitted, x, s) != make_scorer("auc", scar=True)(fitted, x, s)


class EverythingPositive:
    prior_ = 0.5

    def predict(self, X):
        return np.ones(len(X))


def test_a_trivial_predictor_gets_no_good_score():
    x, s, _ = table()
    for name in ("accuracy", "f1", "precision", "recall"):
        with pytest.warns(PueWarning, match="gives every row the same score; its"):
            assert SCORERS[name](EverythingPositive(), x, s) == 0.0
    assert SCORERS["auc"](EverythingPositive(), x, s) == pytest.approx(0.5)


def test_scorers_say_what_they_lack():
    x, s, _ = table()
    with pytest.raises(InvalidInput, match="does not know the share of positives"):
        SCORERS["f1"](LogisticRegression().fit(x, s), x, s)
    with pytest.raises(UnknownName, match="Did you mean 'recall'"):
        make_scorer("recal")


# --------------------------------------------------------------------------------------------------- calibration


def test_calibration_error_by_a_slow_twin():
    rng = np.random.default_rng(0)
    p, y = rng.random(103), rng.random(103) < 0.4
    order, expected, start = np.argsort(p, kind="stable"), 0.0, 0
    for k in range(10):
        size = 103 // 10 + (k < 103 % 10)
        rows = order[start : start + size]
        expected += size / 103 * abs(np.mean(p[rows]) - np.mean(y[rows]))
        start += size
    found = calibration_error(torch.from_numpy(y.astype(int)), torch.from_numpy(p), bins=10)
    assert found == pytest.approx(expected)
    with pytest.raises(InvalidInput, match="bins must lie between 1"):
        calibration_error(torch.tensor([1]), torch.tensor([0.5]), bins=2)


def test_what_decides_moves_calls_and_nothing_that_ranks() -> None:
    rng = np.random.default_rng(3)
    y = rng.random(600) < 0.4
    scores, s = rng.normal(size=600) + 1.5 * y, (y & (rng.random(600) < 0.3)).astype(int)
    deciding = scores + rng.normal(size=600)
    ranking, calling, both = (
        estimate_metrics(*given, prior=0.4, draws=20, **more)
        for given, more in (((scores, s), {}), ((deciding, s), {}), ((scores, s), {"deciding": deciding}))
    )
    for name in ("auc", "ap"):
        assert getattr(both, name) == getattr(ranking, name) != getattr(calling, name)
    for name in ("accuracy", "precision", "recall", "f1", "flagged"):
        assert getattr(both, name).value == getattr(calling, name).value != getattr(ranking, name).value
