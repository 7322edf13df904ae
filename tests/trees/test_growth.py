"""Splits: the risk they lower, what scikit-learn's trees do instead, and what a tree must not depend on."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
import torch
from sklearn.tree import DecisionTreeClassifier
from twins_trees import gini_gain, leaf_risk, side, split_risk, splits

from pue import Forest, PUData
from pue.core.weights import RowWeights, pu
from pue.errors import InvalidInput
from pue.trees import Trees, prior_threshold
from pue.trees import forest as forest_module
from pue.trees.growth import Sums


def problem(seed: int, n: int = 40, d: int = 1, scenario: str = "single_sample") -> tuple[PUData, RowWeights]:
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    x = rng.normal(size=(n, d)) + 1.5 * y[:, None]
    s = (y & (rng.random(n) < 0.4)).astype(int)
    s[:2] = [1, 0]
    data = PUData(torch.from_numpy(x), torch.from_numpy(s), scenario)
    return data, pu(data.labels, None, prior=0.5, scenario=data.scenario)


def as_lists(data: PUData, weights: RowWeights) -> tuple[list[float], list[float], list[float]]:
    return data.x[:, 0].float().double().tolist(), weights.positive.tolist(), weights.negative.tolist()


def same(one: Trees, other: Trees) -> bool:
    names = [field.name for field in fields(Trees)]
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


@pytest.mark.parametrize("negative", [0.3, 0.0, -0.2])
def test_the_risk_of_a_leaf_equals_its_twin(negative: float) -> None:
    positive = [0.1, 0.25]
    total = sum(positive) + negative
    found = Sums(np.array([sum(positive)]), np.array([total]), np.array([9.0])).risk
    assert found[0] == pytest.approx(leaf_risk(positive, [negative]), abs=1e-8)


@pytest.mark.parametrize("scenario", ["single_sample", "case_control"])
@pytest.mark.parametrize("seed", range(5))
def test_the_first_split_has_the_smallest_risk(seed: int, scenario: str) -> None:
    data, weights = problem(seed, scenario=scenario)
    data = PUData(data.x.argsort(dim=0).argsort(dim=0).double(), data.labels, scenario)
    x, positive, negative = as_lists(data, weights)
    many = PUData(data.x.expand(-1, 600), data.labels, scenario)  # 600 random thresholds: all 39 gaps are tried
    root = Forest(n_trees=1, min_leaf=5, max_features="all").fit(many, weights, seed=0).threshold[0]
    least = min(split_risk(x, positive, negative, threshold) for threshold in splits(x, 5))
    assert split_risk(x, positive, negative, float(root)) == pytest.approx(least, abs=1e-7)


def test_scikit_learn_prefers_splits_that_leave_a_class_with_negative_weight() -> None:
    """Why these trees are not scikit-learn's: its documentation says that it ignores such splits. The day it does, this
    fails."""
    below_zero = 0
    for seed in range(10):
        data, weights = problem(seed)
        x, positive, negative = as_lists(data, weights)
        entries = np.concatenate([weights.positive.numpy(), weights.negative.numpy()])
        features, classes = np.tile(np.array(x), 2)[:, None], np.repeat([1, 0], len(x))
        used = entries != 0
        stump = DecisionTreeClassifier(max_depth=1).fit(features[used], classes[used], sample_weight=entries[used])
        parts = {
            threshold: [
                (side(positive, x, threshold, left=left), side(negative, x, threshold, left=left)) for left in (1, 0)
            ]
            for threshold in splits(x, 1)
        }
        gains = {threshold: sum(gini_gain(*part) for part in children) for threshold, children in parts.items()}
        chosen = min(gains, key=lambda threshold: abs(threshold - stump.tree_.threshold[0]))
        assert gains[chosen] == pytest.approx(max(gains.values()))
        below_zero += min(sum(negatives) for _, negatives in parts[chosen]) < 0
        deeper = DecisionTreeClassifier().fit(features[used], classes[used], sample_weight=entries[used]).tree_
        beyond = deeper.value[:, 0, 1] > 1 + 1e-9
        assert (deeper.impurity[beyond] < 0).all()
        assert (deeper.children_left[beyond] == -1).all()
    assert below_zero >= 5


@pytest.mark.parametrize("scenario", ["single_sample", "case_control"])
def test_a_leaf_holds_the_share_of_positive_weight_and_enough_rows(scenario: str) -> None:
    data, weights = problem(0, n=300, d=3, scenario=scenario)
    trees = Forest(n_trees=4, min_leaf=6).fit(data, weights, seed=0)
    leaves = trees._leaves(data.x.float().numpy())
    for own in leaves:
        for leaf in np.unique(own):
            inside = torch.from_numpy(own == leaf)
            assert inside.sum() >= 6
            positive, background = float(weights.positive[inside].sum()), float(weights.background[inside].sum())
            assert trees.value[leaf] == pytest.approx(min(1, positive / background) if background > 0 else 1)


@pytest.mark.parametrize("scenario", ["single_sample", "case_control"])
def test_weight_k_means_k_rows(scenario: str) -> None:
    data, _ = problem(3, n=150, d=4, scenario=scenario)
    times = torch.from_numpy(np.random.default_rng(0).integers(1, 4, data.n_rows))
    weighted = PUData(data.x, data.labels, scenario, times.double())
    repeated = data.take(torch.repeat_interleave(torch.arange(data.n_rows), times))
    one, other = (
        Forest(n_trees=10, min_leaf=4).fit(
            each, pu(each.labels, None, prior=0.6, scenario=each.scenario, sample_weight=each.sample_weight), seed=0
        )
        for each in (weighted, repeated)
    )
    np.testing.assert_array_equal(one.threshold, other.threshold)
    np.testing.assert_allclose(one.value, other.value, atol=1e-12)


def test_a_forest_depends_on_its_seed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    data, weights = problem(0, n=200, d=5)
    found = Forest(n_trees=12).fit(data, weights, seed=1)
    assert same(found, Forest(n_trees=12, jobs=2).fit(data, weights, seed=1))
    assert not same(found, Forest(n_trees=12).fit(data, weights, seed=2))
    monkeypatch.setattr(forest_module, "PAIRS", 1)
    assert same(found, Forest(n_trees=12).fit(data, weights, seed=1))


def test_rows_without_weight_teach_nothing() -> None:
    data, weights = problem(0, n=100, d=2)
    some = torch.arange(100) < 80
    nothing = RowWeights(weights.positive * some, weights.negative * some)
    rest = RowWeights(weights.positive[some], weights.negative[some])
    forest = Forest(n_trees=3)
    assert same(forest.fit(data, nothing, seed=0), forest.fit(data.take(some), rest, seed=0))


def test_a_column_that_varies_is_found_among_many_that_do_not() -> None:
    data, weights = problem(0, n=60)
    x = torch.zeros(60, 50, dtype=torch.float64)
    x[:, 17] = data.x[:, 0]
    trees = Forest(n_trees=20, min_leaf=1).fit(PUData(x, data.labels), weights, seed=0)
    assert (trees.feature[trees.starts] == 17).all()


def test_all_columns_are_asked_about_alike() -> None:
    data, weights = problem(0, n=60)
    x = torch.randn(60, 12, generator=torch.Generator().manual_seed(0))
    trees = Forest(n_trees=600, min_leaf=1, max_features=1).fit(PUData(x, data.labels), weights, seed=0)
    counts = np.bincount(trees.feature[trees.starts], minlength=12)
    assert counts.min() > 25
    assert counts.max() < 80


def test_constant_and_huge_features_do_no_harm() -> None:
    data, weights = problem(0, n=60)
    assert Forest(n_trees=2).fit(PUData(torch.ones(60, 3), data.labels), weights, seed=0).n_nodes == 2
    trees = Forest(n_trees=5).fit(PUData(data.x * 1e300, data.labels), weights, seed=0)
    assert np.isfinite(trees.threshold).all()


@pytest.mark.parametrize("prior", [0.1, 0.5])
def test_the_threshold_gives_probabilities_their_mean(prior: float) -> None:
    _data, _ = problem(0, n=300, d=2)
    weights = pu(torch.where(torch.arange(300) < 20, 1, 0), None, prior=prior)
    scores = np.random.default_rng(0).normal(size=300)
    tau = prior_threshold(scores, weights)
    assert np.mean(1 / (1 + np.exp(tau - scores))) == pytest.approx(prior)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_trees": 0}, "n_trees must be a whole number, at least 1"),
        ({"min_leaf": 0}, "min_leaf must be a number of rows above 0"),
        ({"min_leaf": float("nan")}, "min_leaf must be a number of rows above 0"),
        ({"max_features": "log"}, "max_features must be"),
        ({"max_features": 0}, "max_features must be"),
        ({"max_features": 1.5}, "max_features must be"),
        ({"jobs": 0}, "jobs must be"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        Forest(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(("wish", "draws"), [("sqrt", 4), ("all", 20), (3, 3), (50, 20), (0.5, 10), (0.01, 1)])
def test_how_many_splits_are_weighed(wish: int | float | str, draws: int) -> None:
    assert Forest(max_features=wish).draws(20) == draws


@pytest.mark.parametrize("missing", [False, True])
def test_what_trees_say_while_they_grow_is_what_they_say_after(missing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(300, 4))
    x[rng.random(x.shape) < 0.1 * missing] = np.nan
    data = PUData(torch.from_numpy(x), torch.from_numpy(((x[:, 0] > 0) & (rng.random(300) < 0.4)).astype(np.int64)))
    weights = pu(data.labels, None, prior=0.5)
    forest = Forest(n_trees=7)
    noted = forest.learn(data, weights, seed=1)
    monkeypatch.setattr(forest_module, "KEPT", 0)
    walked = forest.learn(data, weights, seed=1)
    assert noted[1] == walked[1]
    np.testing.assert_array_equal(noted[0].value, walked[0].value)
    rows = forest_module._rows(data, weights, None)
    grown = forest._grown(rows, 1, say=True)
    np.testing.assert_array_equal(forest_module._mean(grown), noted[0].probability(rows.x.T))
    assert all(block.said.size == 0 for block in forest._grown(rows, 1))
