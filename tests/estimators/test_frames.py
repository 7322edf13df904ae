"""Frames straight in: words, dates and gaps; labels in words; models in the hands of scikit-learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

import pue
from pue.app.fit import fit_model
from pue.app.model import PUModel
from pue.app.recipe import Recipe
from pue.app.roles import Roles
from pue.app.rows import read_rows
from pue.app.sources.opening import open_source
from pue.errors import InvalidInput
from pue.estimators import frames
from pue.estimators.vectorizer.vectorize import fit_vectorizer

FEW = {"prior": 0.4, "random_state": 0}


def mixed(n: int = 300, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    frame = pd.DataFrame(
        {
            "amount": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n) + 2 * y),
            "region": np.where(rng.random(n) < 0.2 + 0.6 * y, "north", "south"),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
            "online": rng.random(n) < 0.5,
        }
    )
    return frame, (y & (rng.random(n) < 0.5)).astype(int), y


def test_a_frame_goes_straight_in_and_gives_what_its_features_give(tmp_path: Path) -> None:
    frame, s, y = mixed()
    clf = pue.PUClassifier(backbone="forest", **FEW).fit(frame, s)
    vectorizer = fit_vectorizer(frame)
    by_hand = pue.PUClassifier(backbone="forest", **FEW).fit(vectorizer.transform(frame), s)
    assert np.array_equal(clf.decision_function(frame), by_hand.decision_function(vectorizer.transform(frame)))
    assert np.mean(clf.predict(frame) == y) > 0.8
    assert clf.feature_names_in_.tolist() == list(frame.columns)
    assert clf.n_features_in_ == 4
    assert clf.score(frame, s) > 0.5
    clf.save(tmp_path / "model")
    again = pue.load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(frame), clf.predict_proba(frame))
    with pytest.raises(InvalidInput, match="fitted on a frame whose columns it encodes"):
        clf.predict(frame.to_numpy())


def test_scikit_learn_splits_frames_too() -> None:
    frame, s, y = mixed()
    p = cross_val_predict(pue.PUWrapper(LogisticRegression(), **FEW), frame, s, cv=2, method="predict_proba")
    assert np.mean((p[:, 1] > 0.5) == y) > 0.6


def test_numbers_pass_as_they_are_and_a_second_fit_forgets() -> None:
    frame, s, _ = mixed()
    clf = pue.PUClassifier(backbone="forest", **FEW).fit(frame, s)
    numbers = frame[["amount", "online"]].fillna(0.0).astype(float)
    clf.fit(numbers, s)
    assert not hasattr(clf, "vectorizer_")
    assert np.array_equal(
        clf.decision_function(numbers),
        pue.PUClassifier(backbone="forest", **FEW).fit(numbers.to_numpy(), s).decision_function(numbers.to_numpy()),
    )


def test_gaps_stay_gaps_where_the_base_estimator_takes_them() -> None:
    frame, s, y = mixed()
    numbers = frame[["amount"]].assign(other=1.0 * frame["online"])
    boosted = pue.PUWrapper(HistGradientBoostingClassifier(max_iter=20), **FEW).fit(numbers, s)
    assert not hasattr(boosted, "vectorizer_")
    assert np.mean(boosted.predict(numbers) == y) > 0.7
    linear = pue.PUWrapper(LogisticRegression(), **FEW).fit(numbers, s)
    assert linear.vectorizer_.feature_names == ["amount", "amount is missing", "other"]


def test_without_the_libraries_the_error_names_column_and_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, s, _ = mixed()

    def absent(extra: str, *modules: str) -> None:
        raise pue.errors.MissingExtra(extra, ["skrub"])

    monkeypatch.setattr(frames, "require", absent)
    with pytest.raises(
        InvalidInput, match=r"column 'region' holds str values.*pip install \"pue\[app\]\".*get_dummies"
    ):
        pue.PUClassifier(**FEW).fit(frame, s)


def test_labels_may_be_words() -> None:
    frame, s, _ = mixed()
    words = np.where(s == 1, "fraud", "unknown")
    clf = pue.PUClassifier(backbone="forest", positive="fraud", **FEW).fit(frame, words)
    same = pue.PUClassifier(backbone="forest", **FEW).fit(frame, s)
    assert np.array_equal(clf.decision_function(frame), same.decision_function(frame))
    assert clf.score(frame, words) == same.score(frame, s)
    with pytest.raises(InvalidInput, match="no label is 'frauds'"):
        pue.PUClassifier(positive="frauds", **FEW).fit(frame, words)


def test_a_diagnosis_takes_a_frame_and_shows_itself_in_a_notebook() -> None:
    frame, s, _ = mixed()
    found = pue.diagnose(frame, s, prior=0.4, propensity="logistic")
    assert {driver.name for driver in found.drivers} == {"online", "when day"}, "columns by name"
    assert "<th>Recommendation</th>" in found._repr_html_()
    assert found._repr_html_().count("<th>Bounds</th>") == 1
    assert "Share of positives" in found.prior._repr_html_()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> PUModel:
    path = tmp_path_factory.mktemp("frames") / "rows.parquet"
    frame, s, _ = mixed()
    frame.assign(s=s).to_parquet(path)
    rows = read_rows(open_source(path), Roles("s"))
    fit_model(rows, Recipe(method="logistic", prior=0.4, propensity=None)).save(path.parent / "model")
    found = pue.load(path.parent / "model")
    assert isinstance(found, PUModel)
    return found


def test_a_loaded_model_is_a_classifier_of_scikit_learn(model: PUModel) -> None:
    frame, _, y = mixed(seed=1)
    assert is_classifier(model)
    check_is_fitted(model)
    assert clone(model) is model
    p = model.predict_proba(frame)
    assert p.shape == (300, 2)
    np.testing.assert_allclose(p.sum(1), 1)
    assert np.array_equal(p[:, 1], model.probability(frame))
    found = permutation_importance(model, frame, y.astype(int), scoring="roc_auc", n_repeats=2, random_state=0)
    assert frame.columns[found.importances_mean.argmax()] == "amount"
    pipeline = make_pipeline("passthrough", model)
    assert np.array_equal(pipeline.predict(frame), model.predict(frame))
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert model.explain(frame).values.shape == (300, 4)


def test_a_loaded_model_stays_as_it_is(model: PUModel) -> None:
    with pytest.raises(InvalidInput, match="fitted already"):
        model.fit(None)
    with pytest.raises(InvalidInput, match="no parameters to set; got threshold"):
        model.set_params(threshold=0.1)
    assert model.set_params() is model
    assert model.get_params() == {}


def test_a_model_shows_itself_in_a_notebook(model: PUModel) -> None:
    shown = model._repr_html_()
    assert "<th>precision</th>" in shown
    assert "300 rows, " in shown
