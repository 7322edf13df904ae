"""A forest behind `PUClassifier`: the same weights, another thing that is fitted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV

from pue import METHODS, Augmentation, Forest, PUClassifier, load
from pue.app.classifiers import choices, make_classifier
from pue.errors import InvalidInput, UnknownName
from pue.methods import Composition, Thresholded

SMALL = Forest(n_trees=30)


def table(n: int = 1500) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features, PU labels, propensities, true classes; labels are biased."""
    rng = np.random.default_rng(0)
    y = rng.random(n) < 0.4
    x = rng.normal(size=(n, 3)) + 2 * y[:, None]
    e = np.clip(1 / (1 + np.exp(3 - 2 * x[:, 1])), 0.02, 1)
    return x, (y & (rng.random(n) < e)).astype(int), e, y


def forest(**settings: Any) -> PUClassifier:
    return PUClassifier(**{"prior": 0.4, "backbone": SMALL, "random_state": 0, **settings})


ONE_STAGE = [
    name
    for name, method in METHODS.items()
    if isinstance(base := method.base if isinstance(method, Thresholded) else method, Composition)
    and base.weights_alone
]


@pytest.mark.parametrize("scenario", ["single_sample", "case_control"])
@pytest.mark.parametrize("method", ONE_STAGE)
def test_every_method_of_one_stage_grows_a_forest(method: str, scenario: str) -> None:
    x, s, e, y = table()
    if scenario == "case_control":  # the labeled rows are collected beside the sample
        x, e, y = (np.concatenate([each, each[s == 1]]) for each in (x, e, y))
        s = np.concatenate([np.zeros_like(s), s[s == 1]])
    known = {"propensity": e} if method in ("ipw", "nnipw", "nnpu", "upu", "pusb") else {}
    clf = forest(method=method, scenario=scenario).fit(x, s, **known)
    assert roc_auc_score(y[: len(table()[0])], clf.decision_function(x)[: len(table()[0])]) > 0.9
    assert np.isfinite(clf.score(x, s, **known))
    assert not hasattr(clf, "network_")
    assert clf.history_ == []


def test_the_correction_repairs_what_the_labeling_broke() -> None:
    rng = np.random.default_rng(1)
    y = rng.random(6000) < 0.4
    x = rng.normal(size=(6000, 3)) + y[:, None]
    e = np.clip(1 / (1 + np.exp(3 - 3 * x[:, 1])), 0.02, 1)
    s, seen = (y & (rng.random(6000) < e)).astype(int), slice(3000)
    plain, corrected = (forest().fit(x[seen], s[seen], propensity=known) for known in (None, e[seen]))
    assert np.mean(corrected.predict(x[3000:]) == y[3000:]) > np.mean(plain.predict(x[3000:]) == y[3000:]) + 0.01


def test_a_forest_sees_the_weights_alone() -> None:
    x, s, e, _ = table(400)
    one, other = (forest(method=method).fit(x, s, propensity=e) for method in ("upu", "nnpu"))
    np.testing.assert_array_equal(one.decision_function(x), other.decision_function(x))
    shifted = forest().fit(x, s, propensity=e / 2)  # normalised: a common factor cancels
    np.testing.assert_allclose(shifted.decision_function(x), one.decision_function(x))


@pytest.mark.parametrize("prior", [0.3, 0.6])
def test_the_mean_of_the_probabilities_is_the_prior(prior: float) -> None:
    x, s, _, _ = table()
    assert forest(prior=prior).fit(x, s).predict_proba(x)[:, 1].mean() == pytest.approx(prior, abs=1e-6)


def test_the_name_means_the_defaults() -> None:
    x, s, _, _ = table(300)
    one, other = (forest(backbone=backbone).fit(x, s) for backbone in ("forest", Forest()))
    np.testing.assert_array_equal(one.decision_function(x), other.decision_function(x))
    assert one.trees_.n_trees == 100


def test_weight_k_means_k_rows() -> None:
    x, s, _, _ = table(200)
    times = np.random.default_rng(0).integers(1, 4, 200)
    weighted = forest().fit(x, s, sample_weight=times)
    repeated = forest().fit(np.repeat(x, times, axis=0), np.repeat(s, times))
    np.testing.assert_allclose(weighted.decision_function(x), repeated.decision_function(x), atol=1e-6)


def test_names_of_columns_clones_and_searches() -> None:
    x, s, _, _ = table(300)
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    search = GridSearchCV(forest(), {"backbone": [Forest(n_trees=5), "forest"]}, cv=2).fit(frame, s)
    assert search.best_estimator_.feature_names_in_.tolist() == ["a", "b", "c"]
    assert clone(forest()).get_params()["backbone"] == SMALL


def test_another_fit_leaves_nothing_of_the_first(tmp_path: Path) -> None:
    x, s, _, _ = table(200)
    clf = forest(backbone="linear", epochs=1).fit(x, s)
    clf.set_params(backbone=SMALL).fit(x, s)
    assert not hasattr(clf, "network_")
    clf.save(tmp_path / "model")
    assert load(tmp_path / "model").backbone == SMALL
    clf.set_params(backbone="linear").fit(x, s)
    assert not hasattr(clf, "trees_")


def test_images_are_rows_of_pixels() -> None:
    x = np.random.default_rng(0).integers(0, 255, (60, 1, 4, 4), dtype=np.uint8)
    s = (x[:, 0, 0, 0] > 180).astype(int)
    clf = forest(prior=0.5).fit(x, s)
    assert clf.trees_.n_features == 16
    assert clf.trees_.threshold.max() <= 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"method": "vpu"}, "method 'vpu' needs a network"),
        ({"method": "pubn"}, "method 'pubn' needs a network"),
        ({"method": "imbpu"}, "method 'imbpu' needs a network"),
        ({"loss": "logistic"}, "a forest has no use for loss: leave loss=None"),
        ({"augmentation": Augmentation(mixup=1)}, "a forest has no use for augmentation"),
        ({"checkpoint_dir": "somewhere"}, "a forest has no use for checkpoint_dir"),
    ],
)
def test_what_a_forest_cannot_do_is_refused_before_anything_is_estimated(settings: dict[str, Any], words: str) -> None:
    x, s, _, _ = table(100)
    clf = forest(**settings)
    with pytest.raises(InvalidInput, match=words):
        clf.fit(x, s)
    assert not hasattr(clf, "prior_")


def test_sparse_rows_are_refused_with_a_remedy() -> None:
    x, s, _, _ = table(100)
    with pytest.raises(InvalidInput, match=r"does not take sparse rows. Pass X.toarray\(\)"):
        forest().fit(sparse.csr_matrix(x), s)


def test_a_stream_is_refused_with_a_remedy() -> None:
    with pytest.raises(InvalidInput, match=r"must fit into memory\. Use a network"):
        forest().fit_stream(None)  # type: ignore[arg-type]


def test_a_name_that_is_nearly_right_is_suggested() -> None:
    x, s, _, _ = table(100)
    with pytest.raises(UnknownName, match="Did you mean 'forest'"):
        forest(backbone="forrest").fit(x, s)


def test_the_command_line_knows_it() -> None:
    assert "forest" in choices()
    clf = make_classifier("forest", seed=0, prior=0.4, progress=None, labeled_rows="weighted")
    assert (clf.method, clf.backbone) == ("nnpu", "forest")
