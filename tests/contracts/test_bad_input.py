"""Bad input: a clear error with its remedy, before any work, and nothing half-written."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.exceptions import DataConversionWarning, NotFittedError
from torch import nn

from pue import PUClassifier
from pue.errors import InvalidInput, PueError, TrainingDiverged, UnknownName

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
S = (np.arange(60) < 15).astype(int)


def fit(
    features: Any = X, labels: Any = S, *, propensity: Any = None, sample_weight: Any = None, **options: Any
) -> Any:
    settings = {"prior": 0.5, "backbone": "linear", "epochs": 2, **options}
    return PUClassifier(**settings).fit(features, labels, propensity=propensity, sample_weight=sample_weight)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(60), "no row is labeled positive.*Mark known positives with 1"),
        (np.ones(60), "every row is labeled positive.*mark them with 0"),
        (S + 1, r"found 2.*Recode"),
        (np.where(S == 1, 1, -1), r"only 1 and -1, which is ambiguous.*Recode the unlabeled rows as 0"),
        (np.where(S == 1, "yes", ""), r"got values of type.*\.astype\(int\)"),
        (np.arange(60) % 4, "Only binary classification is supported"),
        (np.where(S == 1, 1, np.nan), "NaN.*code missing labels as 0"),
        (S[:-1], "60 rows but y has 59"),
        (None, "requires y to be passed"),
    ],
)
def test_labels(labels: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        fit(labels=labels)


def test_a_column_of_labels_is_taken_with_scikit_learns_warning() -> None:
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        fit(labels=S[:, None])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_features_that_are_not_finite_are_named(bad: float) -> None:
    spoiled = X.copy()
    spoiled[7, 1] = bad
    with pytest.raises(InvalidInput, match=r"NaN or infinity in column\(s\) 1 \(row\(s\) 7\)\. Impute"):
        fit(spoiled)
    with pytest.raises(InvalidInput, match=r"column\(s\) 1 \(row"):
        fit(sparse.csr_array(spoiled))
    frame = pd.DataFrame(spoiled, columns=["age", "income", "region"])
    if np.isnan(bad):
        assert fit(frame).vectorizer_.feature_names == ["age", "income", "income is missing", "region"], "a gap"
    else:
        with pytest.raises(InvalidInput, match=r"column\(s\) income \(row"):
            fit(frame)
    classifier = fit()
    with pytest.raises(InvalidInput, match=r"column\(s\) 1 \(row"):
        classifier.predict(spoiled)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (1.2, r'prior must lie in \(0, 1\); got 1.2. Pass the share of positives, or prior="estimate"'),
        (0.0, r"prior must lie in \(0, 1\)"),
        (-0.1, r"prior must lie in \(0, 1\)"),
        (0.2, "below the share of labeled rows, 0.25.*larger prior"),
        ("guess", "unknown prior 'guess'"),
    ],
)
def test_prior(prior: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        fit(prior=prior)


def test_a_small_prior_is_fine_in_case_control() -> None:
    assert fit(prior=0.2, scenario="case_control").prior_ == 0.2


@pytest.mark.parametrize(
    ("propensity", "message"),
    [
        (np.full(15, 1.5), r"must lie in \(0, 1\]; 15 of 15 labeled rows do not.*clip"),
        (np.zeros(15), r"must lie in \(0, 1\].*labeled row 0 with 0"),
        (np.full(15, -0.1), r"must lie in \(0, 1\]"),
        (np.full(15, np.nan), r"must lie in \(0, 1\]"),
        (np.full(14, 0.5), "one entry for each of the 15 labeled rows.*got 14"),
        (np.full((15, 1), 0.5), r"one-dimensional; got shape \(15, 1\).*ravel"),
    ],
)
def test_propensity(propensity: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        fit(propensity=propensity)


def test_known_propensities_and_an_estimator_contradict_each_other() -> None:
    with pytest.raises(InvalidInput, match="known ones were passed too"):
        PUClassifier(propensity="auto", prior=0.5).fit(X, S, propensity=np.full(15, 0.5))
    with pytest.raises(InvalidInput, match=r'"known" needs the values: fit\(X, y, propensity=e\)'):
        PUClassifier(propensity="known", prior=0.5).fit(X, S)


@pytest.mark.parametrize("weight", [np.full(60, -1.0), np.full(60, np.nan), np.ones(59), np.zeros(60)])
def test_sample_weight(weight: Any) -> None:
    with pytest.raises(ValueError, match=r"(?i)sample_weight|sample weights|NaN"):
        fit(sample_weight=weight)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "nnpuu"}, "unknown method 'nnpuu'. Did you mean 'nnpu'"),
        ({"backbone": "tabluar"}, "unknown backbone 'tabluar'. Did you mean 'tabular'"),
        ({"backbone": "no.such:thing"}, "cannot import the backbone"),
        ({"backbone": 3}, "backbone must be a name, an nn.Module or a callable"),
        ({"backbone": "cnn13"}, "needs images"),
        ({"backbone": lambda spec: nn.Linear(3, 2)}, r"one score a row.*gave \(2, 2\)"),
        ({"loss": "sigmod"}, "unknown loss 'sigmod'. Did you mean 'sigmoid'"),
        ({"scenario": "single-sample"}, "unknown scenario.*Did you mean 'single_sample'"),
        ({"optimizer": "adamm"}, "unknown optimizer 'adamm'. Did you mean 'adam"),
        ({"schedule": "cosin"}, "unknown schedule 'cosin'. Did you mean 'cosine'"),
        ({"dtype": "float16"}, "unknown dtype"),
        ({"device": "gpu"}, "unknown device 'gpu'"),
        ({"batch_size": 1}, "batch_size must be at least 2"),
        ({"batch_size": 32, "labeled_per_batch": 20}, "needs 20 labeled rows but there are only 15.*Lower"),
        ({"batching": "random"}, "'stratified', 'joint' or 'pooled'"),
        ({"batching": "joint", "labeled_rows": "drawn"}, "joint batches cannot"),
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"lr": 0.0}, "lr must be positive"),
        ({"patience": 3}, "needs patience of at least 1 and held-out rows"),
        ({"propensity_floor": 0.0, "propensity": "constant"}, "floor must lie in"),
        ({"method": "ipw"}, "weights by inverse propensity: pass propensity"),
        ({"method": "naive", "propensity": "auto"}, "has no use for propensities"),
    ],
)
def test_settings(options: dict[str, Any], message: str) -> None:
    propensity = options.pop("propensity", None)
    with pytest.raises(PueError, match=message):
        PUClassifier(**{"prior": 0.5, "backbone": "linear", "epochs": 2, **options}, propensity=propensity).fit(X, S)


@pytest.mark.parametrize(
    "options",
    [{"method": "nnpuu"}, {"loss": "sigmod"}, {"optimizer": "adamm"}, {"device": "gpu"}, {"checkpoint_dir": 3}],
)
def test_settings_are_read_before_anything_is_estimated(options: dict[str, Any]) -> None:
    class Estimator:
        def fit(self, *_: Any, **__: Any) -> None:
            raise AssertionError("the propensities were estimated first")

    with pytest.raises((PueError, TypeError)):
        PUClassifier(**{"prior": 0.5, "propensity": Estimator(), **options}).fit(X, S)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_missing_device_is_said() -> None:
    with pytest.raises(InvalidInput, match=r'not available on this machine\. Use device="cpu"'):
        fit(device="cuda")


def test_constant_features_do_no_harm() -> None:
    widened = np.column_stack([X, np.full(60, 7.0), np.zeros(60)])
    moved = widened.copy()
    moved[:, 3] = 8.0  # a constant feature carries no information, so a new value of it must change nothing
    for backbone in ("linear", "tabular"):
        classifier = fit(widened, backbone=backbone)
        assert np.isfinite(classifier.decision_function(widened)).all()
        np.testing.assert_array_equal(classifier.decision_function(moved), classifier.decision_function(widened))


def test_predict_before_fit() -> None:
    with pytest.raises(NotFittedError):
        PUClassifier().predict(X)


def test_too_few_labeled_rows_to_hold_any_out_are_said() -> None:
    labels = np.zeros(60)
    labels[0] = 1
    held_out = pytest.warns(UserWarning, match=r"too few distinct rows.*Pass the prior")
    with held_out, pytest.warns(UserWarning, match=r"may lie anywhere between 0\.02 and 1\.00"):
        PUClassifier(epochs=1, backbone="linear").fit(X, labels)


def test_a_diverging_run_says_where_and_leaves_no_checkpoint_behind(tmp_path: Path) -> None:
    huge = X * 1e29
    with pytest.raises(TrainingDiverged, match=r"(?s)step \d+ of epoch \d+.*smaller"):
        fit(huge, backbone=lambda spec: nn.Linear(3, 1), loss="squared", dtype="float32", lr=1e20, epochs=30,
            checkpoint_dir=tmp_path / "run", checkpoint_every=1000)  # fmt: skip
    assert not list(tmp_path.rglob("*.partial"))


def test_errors_of_settings_come_before_any_file_is_written(tmp_path: Path) -> None:
    with pytest.raises(UnknownName):
        fit(method="nope", checkpoint_dir=tmp_path / "run")
    assert not (tmp_path / "run").exists()
