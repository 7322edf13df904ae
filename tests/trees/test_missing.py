"""Values that are missing: which side of a split they take, who accepts them, and who says why not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from twins_trees import missing_split_risk

from pue import Forest, PUClassifier, PUData
from pue.core.weights import RowWeights, pu
from pue.errors import InvalidInput, PueWarning
from pue.trees.forest import _rows

LEARNERS = ["forest", "boosting", "blend"]


def column(seed: int, n: int = 40, *, share: float = 0.3) -> tuple[np.ndarray, PUData, RowWeights]:
    """One column with gaps; whether a value is missing says something about the class."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    x = rng.permutation(n) + 0.4 * n * y
    x = np.where(rng.random(n) < np.where(y, share, share / 3), np.nan, x)
    s = (y & (rng.random(n) < 0.5)).astype(int)
    s[:2], x[:2] = [1, 0], [n, 0]
    data = PUData(torch.from_numpy(x[:, None]), torch.from_numpy(s))
    return x.astype(np.float32).astype(float), data, pu(data.labels, None, prior=0.5)


@pytest.mark.parametrize("seed", range(8))
def test_the_first_split_has_the_smallest_risk_of_all_sides(seed: int) -> None:
    x, data, weights = column(seed)
    positive, negative = weights.positive.tolist(), weights.negative.tolist()
    many = PUData(data.x.expand(-1, 600), data.labels)  # 600 random thresholds: all gaps are tried
    trees = Forest(n_trees=1, min_leaf=4, max_features="all").fit(many, weights, seed=0)

    def risk(threshold: float, missing_left: bool) -> float:
        return missing_split_risk(x.tolist(), positive, negative, threshold, missing_left=missing_left)

    def enough(threshold: float, missing_left: bool) -> bool:
        left = np.where(np.isnan(x), missing_left, x <= threshold)
        return min(left.sum(), (~left).sum()) >= 4

    known = np.unique(x[~np.isnan(x)])
    every = [(threshold, side) for threshold in known for side in (False, True) if enough(threshold, side)]
    found = risk(float(trees.threshold[0]), bool(trees.missing_left[0]))
    assert found == pytest.approx(min(risk(*each) for each in every), abs=1e-7)


def test_missing_values_set_apart_are_found() -> None:
    x, labels = torch.ones(200, 1, dtype=torch.float64), torch.where(torch.arange(200) < 30, 1, 0)
    x[:60] = torch.nan
    trees = Forest(n_trees=3).fit(PUData(x, labels), pu(labels, None, prior=0.3), seed=0)
    assert trees.probability([[1.0], [np.nan]]).tolist() == [0.0, 1.0]


def test_where_none_was_missing_they_go_where_most_rows_go() -> None:
    _, data, weights = column(0, share=0.0)
    trees = Forest(n_trees=1, min_leaf=5).fit(data, weights, seed=0)
    leaves = trees._leaves(data.x.float().numpy())[0]
    on_the_left = np.isin(leaves, _below(trees, int(trees.left[0]))).sum()
    assert trees.missing_left[0] == (on_the_left > data.n_rows / 2)


def _below(trees: Any, node: int) -> list[int]:
    if trees.left[node] < 0:
        return [node]
    return _below(trees, int(trees.left[node])) + _below(trees, int(trees.right[node]))


def test_rows_stand_in_the_leaf_they_were_grown_in() -> None:
    rng = np.random.default_rng(0)
    x = np.where(rng.random((300, 3)) < 0.3, np.nan, rng.normal(size=(300, 3)))
    labels = torch.from_numpy((np.nan_to_num(x[:, 0]) > 0.5).astype(int))
    weights = pu(labels, None, prior=0.6)
    trees = Forest(n_trees=4, min_leaf=6).fit(PUData(torch.from_numpy(x), labels), weights, seed=0)
    for own in trees._leaves(x.astype(np.float32)):
        for leaf in np.unique(own):
            inside = torch.from_numpy(own == leaf)
            assert inside.sum() >= 6
            positive, background = float(weights.positive[inside].sum()), float(weights.background[inside].sum())
            assert trees.value[leaf] == pytest.approx(min(1, positive / background))


# ----------------------------------------------------------------------------------------------- behind the classifier


def table(n: int = 1500) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.random(n) < 0.4
    x = rng.normal(size=(n, 4)) + 1.5 * y[:, None]
    x[rng.random(x.shape) < 0.3] = np.nan
    return x, (y & (rng.random(n) < 0.4)).astype(int), y


@pytest.mark.parametrize("backbone", LEARNERS)
def test_trees_learn_from_rows_with_gaps(backbone: str) -> None:
    x, s, y = table()
    clf = PUClassifier(prior=0.4, backbone=backbone, random_state=0)
    assert clf.__sklearn_tags__().input_tags.allow_nan
    clf.fit(x[:1000], s[:1000])
    assert roc_auc_score(y[1000:], clf.decision_function(x[1000:])) > 0.9
    assert np.isfinite(clf.score(x, s))
    known = PUClassifier(prior=0.4, backbone=backbone, propensity="known", random_state=0)
    assert np.isfinite(known.fit(x, s, propensity=np.full(len(x), 0.4)).decision_function(x)).all()


def test_prior_and_propensities_are_estimated_from_rows_with_gaps() -> None:
    x, _, y = table()
    rng = np.random.default_rng(1)
    bias = 1 / (1 + np.exp(1.5 - 3 * rng.normal(size=len(y))))
    x = np.column_stack([x, np.log(bias / (1 - bias))])
    x[rng.random(len(x)) < 0.1, 4] = np.nan
    s = (y & (rng.random(len(y)) < bias)).astype(int)
    clf = PUClassifier(backbone="forest", propensity="auto", random_state=0)
    with pytest.warns(PueWarning, match="may lie anywhere"):
        clf.fit(x[:1000], s[:1000])
    assert 0.2 < clf.prior_ < 0.6
    assert roc_auc_score(y[1000:], clf.decision_function(x[1000:])) > 0.7


@pytest.mark.parametrize("backbone", LEARNERS)
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_values_stay_an_error(backbone: str, value: float) -> None:
    x, s, _ = table(200)
    x[3, 2] = value
    with pytest.raises(InvalidInput, match=r"infinity in column\(s\) 2 \(row\(s\) 3\)\. Code missing values as NaN"):
        PUClassifier(prior=0.4, backbone=backbone).fit(x, s)


@pytest.mark.parametrize(
    "settings",
    [
        {"backbone": "auto", "prior": 0.4},
        {"backbone": "forest", "prior": "bbe"},
        {"backbone": "boosting", "prior": 0.4, "propensity": "logistic"},
    ],
)
def test_others_refuse_them(settings: dict[str, Any]) -> None:
    x, s, _ = table(200)
    clf = PUClassifier(**settings)
    assert not clf.__sklearn_tags__().input_tags.allow_nan
    with pytest.raises(InvalidInput, match=r"NaN or infinity in column\(s\) 0, 1, 2, 3 \(row\(s\) .*\)\. Impute"):
        clf.fit(x, s)


# ------------------------------------------------------------------------------------------------- many rows


def test_a_tree_gets_all_labeled_rows_up_to_a_half_and_weights_make_up_for_the_others() -> None:
    rng = np.random.default_rng(0)
    labels = torch.from_numpy((rng.random(1000) < 0.1).astype(int))
    data = PUData(torch.from_numpy(rng.normal(size=(1000, 2))), labels)
    weights = pu(labels, None, prior=0.3)
    for most, labeled in ((300, int(labels.sum())), (100, 50), (1000, int(labels.sum()))):
        rows = _rows(data, weights, most)
        own = rows.draw(np.random.default_rng(0))
        assert len(own) == len(set(own)) == most
        assert int(labels[own].sum()) == labeled
        assert rows.positive[own].sum() == pytest.approx(0.3)
        assert rows.background[own].sum() == pytest.approx(1)


def test_few_rows_a_tree_are_nearly_as_good_and_the_mean_is_the_prior() -> None:
    rng = np.random.default_rng(0)
    y = rng.random(6000) < 0.4
    x = rng.normal(size=(6000, 4)) + 1.2 * y[:, None]
    s = (y & (rng.random(6000) < 0.3)).astype(int)
    few, full = (
        PUClassifier(prior=0.4, backbone=Forest(n_trees=50, max_rows=most), random_state=0).fit(x[:4000], s[:4000])
        for most in (1000, None)
    )
    accuracy = [float(np.mean(clf.predict(x[4000:]) == y[4000:])) for clf in (few, full)]
    assert accuracy[0] > accuracy[1] - 0.02
    assert few.predict_proba(x)[:, 1].mean() == pytest.approx(0.4, abs=0.03)


def test_max_rows_that_cannot_be_are_refused() -> None:
    for wrong in (1, 0, 2.5):
        with pytest.raises(InvalidInput, match="max_rows must be a whole number, at least 2, or None"):
            Forest(max_rows=wrong)  # type: ignore[arg-type]
