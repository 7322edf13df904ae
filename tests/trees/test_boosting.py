"""Boosting: LightGBM's own scores to the last bit, rounds that stop in time, and what must not change a tree."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch
from sklearn.metrics import roc_auc_score
from test_nodes import altered

from pue import Boosting, Forest, PUClassifier, PUData, load
from pue.app.classifiers import choices, make_classifier
from pue.core.weights import RowWeights, pu
from pue.errors import InvalidInput, MissingExtra, ModelError
from pue.persistence.folder import read_folder, write_folder
from pue.trees import BoostedTrees, Ensemble
from pue.trees.boosted import read_lightgbm
from pue.trees.rounds import Sum


def table(
    n: int = 600, d: int = 4, *, missing: float = 0.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, PU labels, true classes."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    x = rng.normal(size=(n, d)) + 1.2 * y[:, None]
    x = np.where(rng.random(x.shape) < missing, np.nan, x)
    return x, (y & (rng.random(n) < 0.4)).astype(int), y


def problem(**settings: Any) -> tuple[PUData, RowWeights]:
    x, s, _ = table(**settings)
    data = PUData(torch.from_numpy(x), torch.from_numpy(s))
    return data, pu(data.labels, None, prior=0.4)


def classifier(**settings: Any) -> PUClassifier:
    return PUClassifier(**{"prior": 0.4, "backbone": "boosting", "random_state": 0, **settings})


# ------------------------------------------------------------------------------------------------- LightGBM's scores


@pytest.mark.parametrize("settings", [{}, {"missing": 0.2}, {"d": 1}])
def test_margins_are_those_of_lightgbm_to_the_last_bit(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    grown: list[tuple[Sum, int]] = []
    text = Sum.text
    monkeypatch.setattr(Sum, "text", lambda self, count: grown.append((self, count)) or text(self, count))
    data, weights = problem(**settings)
    trees = Boosting(folds=3).fit(data, weights, seed=0)
    rows = np.concatenate([data.x.numpy(), -50 + 100 * np.random.default_rng(1).random(data.x.shape)])
    asked = trees.left >= 0
    at_thresholds = np.repeat(rows[:1], asked.sum(), axis=0)
    at_thresholds[np.arange(asked.sum()), trees.feature[asked]] = trees.threshold[asked]
    odd = np.array([[-0.0], [0.0], [1e-300], [1e300], [-1e300], [np.nan]]) * np.ones(rows.shape[1])
    rows = np.concatenate([rows, at_thresholds, np.nextafter(at_thresholds, np.inf), odd])
    rows[::7, 0] = np.nan  # whether or not training had such values
    for margin, (own, count) in zip(trees.margins(rows), grown, strict=True):
        wanted = own._trees.predict(rows, raw_score=True, num_iteration=count)
        np.testing.assert_array_equal(margin, wanted)


def test_scores_are_the_start_and_the_mean_of_the_sums() -> None:
    data, weights = problem()
    trees = Boosting().fit(data, weights, seed=0)
    assert trees.start == pytest.approx(np.log(0.4 / 0.6))
    np.testing.assert_array_equal(trees.log_odds(data.x), trees.start + trees.margins(data.x).mean(axis=0))


def test_lightgbm_is_not_needed_to_predict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, s, _ = table(missing=0.1)
    clf = classifier().fit(x, s)
    scores = clf.decision_function(x)
    clf.save(tmp_path / "model")
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    found = load(tmp_path / "model")
    np.testing.assert_array_equal(found.decision_function(x), scores)
    assert isinstance(found.trees_, BoostedTrees)
    with pytest.raises(MissingExtra, match=r'lightgbm is not installed.*pip install "pue\[boosting\]"'):
        found.fit(x, s)


# ------------------------------------------------------------------------------------------------- rounds


def test_rounds_stop_where_the_held_out_risk_is_least(monkeypatch: pytest.MonkeyPatch) -> None:
    risks: list[float] = []
    held_out = Sum.held_out

    def watched(self: Sum) -> Any:
        found = held_out(self)
        risks.append(found[1])
        return found

    monkeypatch.setattr(Sum, "held_out", watched)
    data, weights = problem()
    trees = Boosting(folds=4, patience=5).fit(data, weights, seed=0)
    totals = np.array(risks).reshape(-1, 4).sum(axis=1)
    best = int(np.argmin(totals))
    assert len(totals) == best + 1 + 5 < 300
    assert trees.counts.max() == best + 1  # a sum may lack a tree: in a round without a split that lowers the risk
    assert trees.counts.min() > best - 4


def test_the_risk_on_new_rows_is_finite_and_below_that_of_the_prior_alone() -> None:
    x, s, y = table(4000)
    clf = classifier().fit(x[:2000], s[:2000])
    score = clf.trees_.log_odds(x[2000:])
    loss = np.log1p(np.exp(np.where(y[2000:], -score, score))).mean()
    assert loss < 0.9 * -(0.4 * np.log(0.4) + 0.6 * np.log(0.6))
    assert np.abs(score).max() < 8


def test_more_rounds_than_are_good_do_no_great_harm() -> None:
    """What the correction is for: uPU's risk would drive labeled rows apart without end."""
    x, s, y = table(1500)
    long = classifier(backbone=Boosting(rounds=300, patience=300, folds=2)).fit(x, s)
    assert np.abs(long.trees_.log_odds(x)).max() < 30
    assert roc_auc_score(y, long.decision_function(x)) > 0.85


@pytest.mark.parametrize(("n_rows", "folds"), [(500, 10), (20_000, 10), (40_000, 5), (50_000, 4), (10**6, 4)])
def test_how_many_folds(n_rows: int, folds: int) -> None:
    assert Boosting()._folds(n_rows) == folds
    assert Boosting(folds=3)._folds(n_rows) == 3


# ------------------------------------------------------------------------------------------------- what changes nothing


def same(one: Ensemble, other: Ensemble) -> bool:
    return all(np.array_equal(value, vars(other)[name]) for name, value in vars(one).items())


def test_trees_depend_on_the_seed_alone() -> None:
    data, weights = problem()
    few = Boosting(folds=2, rounds=3)
    found = few.fit(data, weights, seed=1)
    assert same(found, replace(few, jobs=2).fit(data, weights, seed=1))
    assert not same(found, few.fit(data, weights, seed=2))


def test_the_order_of_rows_does_not_matter() -> None:
    data, weights = problem()
    order = torch.randperm(data.n_rows, generator=torch.Generator().manual_seed(0))
    shuffled = RowWeights(weights.positive[order], weights.negative[order])
    assert same(Boosting().fit(data, weights, seed=0), Boosting().fit(data.take(order), shuffled, seed=0))


@pytest.mark.parametrize("scenario", ["single_sample", "case_control"])
def test_weight_k_means_k_rows(scenario: str) -> None:
    x, s, _ = table(300)
    times = np.random.default_rng(0).integers(1, 4, 300)
    weighted = classifier(scenario=scenario).fit(x, s, sample_weight=times)
    repeated = classifier(scenario=scenario).fit(np.repeat(x, times, axis=0), np.repeat(s, times))
    np.testing.assert_allclose(weighted.decision_function(x), repeated.decision_function(x), atol=1e-6)


def test_rows_without_weight_teach_nothing() -> None:
    data, weights = problem()
    some = torch.arange(data.n_rows) < 400
    nothing = RowWeights(weights.positive * some, weights.negative * some)
    rest = RowWeights(weights.positive[some], weights.negative[some])
    assert same(Boosting().fit(data, nothing, seed=0), Boosting().fit(data.take(some), rest, seed=0))


# ------------------------------------------------------------------------------------------------- odd tables


def test_a_single_labeled_row_and_columns_that_do_not_vary() -> None:
    x, _, _ = table(50)
    few = classifier(prior=0.3).fit(x, (np.arange(50) == 0).astype(int))
    assert len(few.trees_.counts) == 1
    assert np.isfinite(few.decision_function(x)).all()
    flat = classifier(prior=0.3).fit(np.ones((50, 2)), (np.arange(50) < 9).astype(int))
    np.testing.assert_allclose(flat.decision_function(np.ones((3, 2))), np.log(0.3 / 0.7), atol=1e-6)


def test_images_are_rows_of_pixels() -> None:
    x = np.random.default_rng(0).integers(0, 255, (200, 1, 4, 4), dtype=np.uint8)
    clf = classifier(prior=0.5).fit(x, (x[:, 0, 0, 0] > 180).astype(int))
    assert clf.trees_.n_features == 16
    assert clf.trees_.threshold.max() <= 1


def test_labeled_negatives_are_rows_of_the_background() -> None:
    x, s, y = table(800)
    s[np.flatnonzero(~y)[:60]] = -1
    clf = classifier().fit(x, s)
    assert roc_auc_score(y, clf.decision_function(x)) > 0.85


def test_known_propensities_repair_what_the_labeling_broke() -> None:
    rng = np.random.default_rng(1)
    y = rng.random(8000) < 0.4
    x = rng.normal(size=(8000, 3)) + y[:, None]
    e = np.clip(1 / (1 + np.exp(3 - 3 * x[:, 1])), 0.05, 1)
    s, seen = (y & (rng.random(8000) < e)).astype(int), slice(4000)
    plain, corrected = (classifier().fit(x[seen], s[seen], propensity=known) for known in (None, e[seen]))
    assert np.mean(corrected.predict(x[4000:]) == y[4000:]) > np.mean(plain.predict(x[4000:]) == y[4000:])


# ------------------------------------------------------------------------------------------------- what cannot be


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rounds": 0}, "rounds must be a whole number, at least 1"),
        ({"leaves": 1}, "leaves must be a whole number, at least 2"),
        ({"folds": 1}, "folds must be a whole number, at least 2"),
        ({"folds": "many"}, "folds must be a whole number, at least 2"),
        ({"patience": 2.5}, "patience must be a whole number"),
        ({"learning_rate": 0}, r"learning_rate must lie in \(0, 1\]"),
        ({"max_features": 1.5}, r"max_features must lie in \(0, 1\]"),
        ({"min_leaf": -1}, "min_leaf must be a number, at least 0"),
        ({"l2": float("nan")}, "l2 must be a number, at least 0"),
        ({"jobs": 0}, "jobs must be"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        Boosting(**settings)


def small() -> BoostedTrees:
    data, weights = problem(n=200)
    return Boosting(rounds=2, folds=2).fit(data, weights, seed=0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"counts": np.array([1, 1])}, "the sums do not share the trees"),
        ({"counts": np.array([5, -1])}, "the sums do not share the trees"),
        ({"counts": np.array([[2, 2]])}, "the sums do not share the trees"),
        ({"start": np.nan}, "the score before the first tree is no number"),
    ],
)
def test_sums_that_cannot_be_are_refused(changes: dict[str, Any], words: str) -> None:
    trees = small()
    assert trees.n_trees == 4
    with pytest.raises(InvalidInput, match=words):
        replace(trees, **changes)
    with pytest.raises(InvalidInput, match="has a value that is no number"):
        replace(trees, value=np.where(np.arange(trees.n_nodes) == 1, np.inf, trees.value))


def test_altered_folders_are_refused_or_score(tmp_path: Path) -> None:
    x, s, _ = table(200)
    classifier(backbone=Boosting(rounds=3, folds=2)).fit(x, s).save(tmp_path / "model")
    files, _ = read_folder(tmp_path / "model")
    rng, refused = np.random.default_rng(1), 0
    for turn in range(100):
        tensors = safetensors.numpy.load(files["tensors.safetensors"])
        name = rng.choice(sorted(tensors))
        tensors[name] = altered(tensors[name], rng)
        write_folder(tmp_path / str(turn), {**files, "tensors.safetensors": safetensors.numpy.save(tensors)})
        try:
            scores = load(tmp_path / str(turn)).decision_function(x)
        except ModelError:
            refused += 1
        else:
            assert np.isfinite(scores).all()
    assert refused > 30


def test_a_model_without_trees_adds_nothing() -> None:
    trees = read_lightgbm([""], 2, 0.5)
    assert trees.log_odds(np.zeros((3, 2))).tolist() == [0.5] * 3


@pytest.mark.parametrize("backbone", ["boosting", "forest", Boosting(), Forest()])
def test_the_command_line_and_the_classifier_know_it(backbone: Any) -> None:
    assert {"boosting", "forest", "wrapped_boosting"} <= set(choices())
    clf = make_classifier("boosting", seed=0, prior=0.4)
    assert (clf.method, clf.backbone) == ("nnpu", "boosting")
    with pytest.raises(InvalidInput, match="has no use for loss"):
        classifier(backbone=backbone, loss="logistic").fit(*table(100)[:2])
