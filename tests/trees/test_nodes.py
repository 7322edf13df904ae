"""`Trees`: what scikit-learn predicts, to the last bit, from arrays that cannot do harm."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from pue import Forest, PUClassifier, load
from pue.errors import InvalidInput, ModelError
from pue.persistence.folder import read_folder, write_folder
from pue.trees import Trees
from pue.trees import nodes as nodes_module


def from_sklearn(forest: Any) -> Trees:
    """The nodes of a fitted forest of scikit-learn."""
    trees = [estimator.tree_ for estimator in forest.estimators_]
    starts = np.cumsum([0] + [tree.node_count for tree in trees])

    def nodes(read: Any) -> np.ndarray:
        return np.concatenate([read(tree, start) for tree, start in zip(trees, starts, strict=False)])

    def child(name: str) -> np.ndarray:
        found = nodes(lambda tree, start: np.where(getattr(tree, name) < 0, -1, getattr(tree, name) + start))
        return found.astype(np.int32)

    return Trees(
        forest.n_features_in_,
        starts[:-1],
        child("children_left"),
        child("children_right"),
        nodes(lambda tree, start: tree.feature).astype(np.int32),
        nodes(lambda tree, start: tree.threshold),
        nodes(lambda tree, start: tree.missing_go_to_left.astype(bool)),
        nodes(lambda tree, start: tree.value[:, 0, 1]),
    )


TABLES = {
    "cancer": load_breast_cancer(return_X_y=True),
    "digits": (load_digits().data, load_digits().target % 2),
    "wine": (load_wine().data, load_wine().target == 1),
}


@pytest.mark.parametrize("kind", [ExtraTreesClassifier, RandomForestClassifier])
@pytest.mark.parametrize("name", TABLES)
def test_probabilities_are_those_of_scikit_learn_to_the_last_bit(name: str, kind: Any) -> None:
    x, y = TABLES[name]
    forest = kind(n_estimators=37, random_state=0, n_jobs=1).fit(x, y)
    np.testing.assert_array_equal(from_sklearn(forest).probability(x), forest.predict_proba(x)[:, 1])


def test_missing_values_go_where_scikit_learn_sends_them() -> None:
    x, y = load_breast_cancer(return_X_y=True)
    x = np.where(np.random.default_rng(0).random(x.shape) < 0.2, np.nan, x)
    forest = ExtraTreesClassifier(25, random_state=0, n_jobs=1).fit(x, y)
    np.testing.assert_array_equal(from_sklearn(forest).probability(x), forest.predict_proba(x)[:, 1])


def test_rows_at_a_threshold_beside_zero_and_far_away() -> None:
    x, y = load_wine(return_X_y=True)
    forest = ExtraTreesClassifier(20, random_state=0, n_jobs=1).fit(x, y == 1)
    trees = from_sklearn(forest)
    asked = trees.left >= 0
    rows = np.repeat(x, 10, axis=0)[: asked.sum()]
    rows[np.arange(len(rows)), trees.feature[asked][: len(rows)]] = trees.threshold[asked][: len(rows)]
    odd = np.array([-0.0, 0.0, 3e30, -3e30, 1e-45, np.nextafter(0, 1)])
    rows = np.concatenate([rows, np.nextafter(rows, np.inf), np.repeat(odd[:, None], x.shape[1], axis=1)])
    np.testing.assert_array_equal(trees.probability(rows), forest.predict_proba(rows)[:, 1])
    rows32 = rows.astype(np.float32)
    np.testing.assert_array_equal(trees.probability(rows32), forest.predict_proba(rows32)[:, 1])


def test_values_that_float32_does_not_reach_stay_on_their_side() -> None:
    trees = stump()
    assert trees.probability([[1e300], [np.inf], [-1e300], [-np.inf]]).tolist() == [0.9, 0.9, 0.1, 0.1]


def test_rows_are_scored_in_blocks_that_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = load_wine(return_X_y=True)
    trees = from_sklearn(ExtraTreesClassifier(10, random_state=0).fit(x, y == 1))
    whole = trees.probability(x)
    monkeypatch.setattr(nodes_module, "STEPS", 70)
    np.testing.assert_array_equal(trees.probability(x), whole)
    assert trees.probability(x[:0]).shape == (0,)


def test_the_compiled_walk_gives_the_same_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = load_wine(return_X_y=True)
    trees = from_sklearn(ExtraTreesClassifier(10, random_state=0).fit(x, y == 1))
    gaps = np.where(np.random.default_rng(0).random(x.shape) < 0.1, np.nan, x)
    whole, with_gaps = trees.probability(x), trees.probability(gaps)
    monkeypatch.setattr(nodes_module, "COMPILED", 1)
    monkeypatch.setattr(nodes_module, "ROWS", 50)
    np.testing.assert_array_equal(trees.probability(x), whole)
    np.testing.assert_array_equal(trees.probability(gaps), with_gaps)
    assert (with_gaps != whole).any()


def test_rows_of_another_width_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"grown on 1 features; these rows are \(2, 3\)"):
        stump().probability(np.zeros((2, 3)))


def test_log_odds_are_finite() -> None:
    sure = replace(stump(), value=np.array([0.5, 0.0, 1.0]))
    low, high = sure.log_odds([[0.0], [1.0]])
    assert np.isfinite(low)
    assert low == pytest.approx(-high)


def stump() -> Trees:
    return Trees(
        1,
        np.array([0]),
        np.array([1, -1, -1], dtype=np.int32),
        np.array([2, -1, -1], dtype=np.int32),
        np.array([0, -1, -1], dtype=np.int32),
        np.array([0.5, 0.0, 0.0]),
        np.array([False, False, False]),
        np.array([0.4, 0.1, 0.9]),
    )


@pytest.mark.parametrize(
    ("name", "node", "value", "words"),
    [
        ("left", 0, 0, "node 0 has a child that does not come after it"),
        ("left", 0, 3, "node 0 has a child that does not come after it in its own tree"),
        ("right", 0, 2**31 - 1, "node 0 has a child that does not come after it"),
        ("right", 0, -2, "node 0 has a child that does not come after it"),
        ("left", 0, -5, "node 0 has a child that does not come after it"),
        ("left", 0, -1, "node 0 has one child"),
        ("right", 1, 2, "node 1 has one child"),
        ("left", 0, 2, "node 1 is not the child of exactly one node"),
        ("feature", 0, 1, "node 0 asks for a feature that is not there"),
        ("feature", 0, -1, "node 0 asks for a feature that is not there"),
        ("threshold", 0, np.nan, "node 0 has no threshold"),
        ("threshold", 0, np.inf, "node 0 has no threshold"),
        ("value", 2, 1.5, "node 2 has a value that is no share"),
        ("value", 1, -0.1, "node 1 has a value that is no share"),
        ("value", 1, np.nan, "node 1 has a value that is no share"),
        ("starts", 0, 1, "the trees do not follow one another"),
        ("starts", 0, -1, "the trees do not follow one another"),
    ],
)
def test_nodes_that_cannot_be_are_refused(name: str, node: int, value: float, words: str) -> None:
    array = getattr(stump(), name).copy()
    array[node] = value
    with pytest.raises(InvalidInput, match=words):
        replace(stump(), **{name: array})


@pytest.mark.parametrize("name", [field.name for field in fields(Trees) if field.name != "n_features"])
def test_lengths_that_differ_are_refused(name: str) -> None:
    array = getattr(stump(), name)
    for wrong in (array[:0], array[:, None], np.concatenate([array, array])):
        with pytest.raises(InvalidInput, match=r"[fF]it again"):
            replace(stump(), **{name: wrong})


def test_a_child_in_another_tree_is_refused() -> None:
    one = stump()
    both = {field.name: np.tile(getattr(one, field.name), 2) for field in fields(Trees)[2:]}
    both["left"][3:] = [4, -1, -1]
    both["right"][3:] = [5, -1, -1]
    pair = Trees(1, np.array([0, 3]), **both)
    assert pair.probability([[0.0]]).tolist() == [0.1]
    both["left"][0], both["left"][3] = 4, 1
    with pytest.raises(InvalidInput, match="in its own tree"):
        Trees(1, np.array([0, 3]), **both)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Any:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    s = (x[:, 0] > 0.5).astype(int)
    clf = PUClassifier(prior=0.5, backbone=Forest(n_trees=3), random_state=0).fit(x, s)
    folder = tmp_path_factory.mktemp("forest") / "model"
    clf.save(folder)
    return folder, x, clf.decision_function(x)


def test_a_saved_forest_scores_as_before_to_the_last_bit(saved: Any) -> None:
    folder, x, scores = saved
    found = load(folder)
    np.testing.assert_array_equal(found.decision_function(x), scores)
    assert found.trees_.n_trees == 3
    assert not hasattr(found, "network_")


def test_altered_folders_are_refused_or_score(saved: Any, tmp_path: Any) -> None:
    """Whatever stands in the arrays, with a manifest that agrees: an error, or scores that are finite."""
    folder, x, _ = saved
    rng = np.random.default_rng(1)
    files, _ = read_folder(folder)
    refused = 0
    for turn in range(150):
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
    assert refused > 50


@pytest.mark.parametrize("change", [lambda fitted: fitted.pop("trees_"), lambda fitted: fitted.update(network_=None)])
def test_a_model_has_either_trees_or_a_network(saved: Any, tmp_path: Any, change: Any) -> None:
    files, _ = read_folder(saved[0])
    tree = json.loads(files["model.json"])
    change(tree["value"]["fitted"])
    write_folder(tmp_path / "other", {**files, "model.json": json.dumps(tree).encode()})
    with pytest.raises(ModelError, match="should have one of network_, trees_"):
        load(tmp_path / "other")


def altered(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    found = array.copy().reshape(-1)
    kind = rng.integers(3)
    if kind == 0:
        return found[: rng.integers(len(found))]
    at = rng.integers(len(found))
    if found.dtype == bool:
        found[at] = ~found[at]
    elif found.dtype.kind == "f":
        found[at] = rng.choice([np.nan, np.inf, -1.0, 2.0, 0.3])
    else:
        found[at] = rng.choice([-1, -2, 0, 1, 10**6, int(at)])
    return found.reshape(array.shape)
