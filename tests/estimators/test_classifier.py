"""`PUClassifier` as users meet it: inputs of every kind, scikit-learn's tools, weights, propensities, checkpoints."""

import pickle
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from pue import Augmentation, PUClassifier
from pue.errors import PueWarning
from pue.propensity import Constant, Logistic
from pue.training import Batching, Training
from pue.training.settings import BATCHING

N = 600


@pytest.fixture(scope="module")
def problem() -> dict[str, np.ndarray]:
    """Two Gaussians; a positive with a large second coordinate is more likely to be labeled."""
    rng = np.random.default_rng(0)
    y = rng.random(N) < 0.4
    X = rng.normal(size=(N, 2)) + 2.5 * y[:, None]
    e = np.clip(1 / (1 + np.exp(3 - 2 * X[:, 1])), 0.05, 1)
    s = (y & (rng.random(N) < e)).astype(int)
    return {"X": X, "s": s, "e": e, "y": y.astype(int)}


def quick(**options: Any) -> PUClassifier:
    return PUClassifier(**{"prior": 0.4, "backbone": "linear", "epochs": 20, "lr": 0.02, "random_state": 0, **options})


def test_all_kinds_of_input_give_the_same_scores(problem: dict[str, np.ndarray]) -> None:
    X, s = problem["X"], problem["s"]
    reference = quick().fit(X, s).decision_function(X)
    kinds = {
        "list": (X.tolist(), s.tolist()),
        "boolean labels": (X, s.astype(bool)),
        "float labels": (X, s.astype(float)),
        "torch": (torch.from_numpy(X), torch.from_numpy(s)),
        "pandas": (pd.DataFrame(X, columns=["a", "b"]), pd.Series(s)),
        "csr": (sparse.csr_array(X), s),
        "coo": (sparse.coo_matrix(X), s),
        "fortran": (np.asfortranarray(X), s),
    }
    for kind, (features, labels) in kinds.items():
        scores = quick().fit(features, labels).decision_function(features)
        np.testing.assert_allclose(scores, reference, rtol=1e-7, atol=1e-9, err_msg=kind)


def test_float32_features_are_computed_in_float32_and_float64_in_float64(problem: dict[str, np.ndarray]) -> None:
    X, s = problem["X"], problem["s"]
    assert quick().fit(X, s).decision_function(X).dtype == np.float64
    assert quick().fit(X.astype(np.float32), s).decision_function(X).dtype == np.float32
    assert quick(dtype="float32").fit(X, s).decision_function(X).dtype == np.float32


def test_images_stay_bytes_and_equal_their_float_version() -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, size=(80, 1, 8, 8), dtype=np.uint8)
    s = (np.arange(80) < 20).astype(int)
    settings = {"backbone": "fast_cnn", "epochs": 2, "batch_size": 32}
    from_bytes = quick(**settings).fit(images, s).decision_function(images)
    as_floats = (images / np.float32(255)).astype(np.float32)
    from_floats = quick(**settings).fit(as_floats, s).decision_function(as_floats)
    np.testing.assert_allclose(from_bytes, from_floats, rtol=1e-4, atol=1e-5)


def test_known_propensities_correct_the_bias(problem: dict[str, np.ndarray]) -> None:
    X, s, e, y = (problem[key] for key in ("X", "s", "e", "y"))
    plain = quick(backbone="tabular", epochs=100, lr=1e-3).fit(X, s)
    corrected = quick(backbone="tabular", epochs=100, lr=1e-3).fit(X, s, propensity=e)
    assert np.mean(corrected.predict(X) == y) > np.mean(plain.predict(X) == y)
    assert corrected.propensity_report_.effective_sample_size < s.sum()
    assert plain.propensity_ is None


def test_propensities_for_labeled_rows_and_for_all_rows_are_the_same(problem: dict[str, np.ndarray]) -> None:
    X, s, e = (problem[key] for key in ("X", "s", "e"))
    off_labeled = np.where(s == 1, e, np.nan)  # what is not known of an unlabeled row is not read
    scores = [quick().fit(X, s, propensity=p).decision_function(X) for p in (e, e[s == 1], off_labeled)]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[0], scores[2])


def test_constant_propensity_is_the_plain_method(problem: dict[str, np.ndarray]) -> None:
    X, s = problem["X"], problem["s"]
    for method in ("upu", "nnpu", "distpu", "imbpu"):
        plain = quick(method=method).fit(X, s).decision_function(X)
        constant = quick(method=method).fit(X, s, propensity=np.full(N, 0.37)).decision_function(X)
        np.testing.assert_allclose(constant, plain, rtol=1e-10, atol=1e-12, err_msg=method)


@pytest.mark.parametrize("propensity", ["auto", "logistic", "constant", Constant(), Logistic(C=0.1)])
def test_propensities_can_be_estimated(problem: dict[str, np.ndarray], propensity: Any) -> None:
    X, s = problem["X"], problem["s"]
    classifier = quick(propensity=propensity).fit(X, s)
    assert classifier.propensity_.shape == (s.sum(),)
    assert ((classifier.propensity_ > 0) & (classifier.propensity_ <= 1)).all()


@pytest.mark.filterwarnings("ignore:the estimated prior may lie")
def test_a_row_twice_is_a_row_of_weight_two(problem: dict[str, np.ndarray]) -> None:
    # The whole data in one batch, so that no chance is involved; the prior is estimated too.
    X, s = problem["X"][:120], problem["s"][:120]
    weight = np.random.default_rng(1).integers(0, 4, size=120)
    settings = {"prior": "elkan_noto", "propensity": "logistic", "batch_size": 1000}
    repeated = quick(**settings).fit(X.repeat(weight, 0), s.repeat(weight))
    weighted = quick(**settings).fit(X, s, sample_weight=weight)
    assert weighted.prior_ == pytest.approx(repeated.prior_, rel=1e-8)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-6, atol=1e-8)


def test_sample_weights_matter_in_mini_batches_too(problem: dict[str, np.ndarray]) -> None:
    X, s = problem["X"], problem["s"]
    few = np.where(X[:, 0] > 2, 0.01, 1.0)
    plain, weighted = quick(batch_size=64).fit(X, s), quick(batch_size=64).fit(X, s, sample_weight=few)
    assert np.abs(plain.decision_function(X) - weighted.decision_function(X)).max() > 0.1


def test_the_prior_is_estimated_by_default() -> None:
    rng = np.random.default_rng(3)
    y = rng.random(3000) < 0.4
    X = rng.normal(size=(3000, 2)) + 4 * y[:, None]
    s = (y & (rng.random(3000) < 0.3)).astype(int)
    with pytest.warns(PueWarning, match="the estimated prior may lie anywhere"):
        found = PUClassifier(epochs=1).fit(X, s)
    assert found.prior_ == pytest.approx(0.4, abs=0.1)
    assert found.prior_estimate_.low < 0.4 < found.prior_estimate_.high


def test_probabilities_decisions_and_scores_agree(problem: dict[str, np.ndarray]) -> None:
    X, s = problem["X"], problem["s"]
    classifier = quick().fit(X, s)
    scores, probabilities = classifier.decision_function(X), classifier.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-scores)), rtol=1e-12)
    np.testing.assert_array_equal(classifier.predict(X), (scores >= 0).astype(int))
    assert classifier.classes_.tolist() == [0, 1]


def test_score_estimates_accuracy_without_true_classes(problem: dict[str, np.ndarray]) -> None:
    rng = np.random.default_rng(5)
    y = rng.random(20_000) < 0.4
    X = rng.normal(size=(20_000, 2)) + 2.5 * y[:, None]
    e = np.clip(1 / (1 + np.exp(3 - 2 * X[:, 1])), 0.05, 1)
    s = (y & (rng.random(20_000) < e)).astype(int)
    classifier = quick().fit(problem["X"], problem["s"], propensity=problem["e"])
    accuracy = np.mean(classifier.predict(X) == y)
    assert classifier.score(X, s, propensity=e) == pytest.approx(accuracy, abs=0.02)
    # Ignoring the bias, the same classifier looks better than it is.
    assert classifier.score(X, s) > accuracy + 0.02


def test_score_of_fully_labeled_data_is_the_accuracy(problem: dict[str, np.ndarray]) -> None:
    X, y = problem["X"], problem["y"]
    classifier = quick(prior=float(y.mean())).fit(X, y)
    assert classifier.score(X, y) == pytest.approx(np.mean(classifier.predict(X) == y), abs=1e-12)


def test_pipeline_grid_search_and_cross_validation(problem: dict[str, np.ndarray]) -> None:
    X, s, e = (problem[key] for key in ("X", "s", "e"))
    pipeline = make_pipeline(StandardScaler(), quick())
    assert np.isfinite(cross_val_score(pipeline, X, s, cv=3)).all()
    search = GridSearchCV(pipeline, {"puclassifier__method": ["upu", "nnpu"]}, cv=2, n_jobs=2).fit(X, s)
    assert search.best_params_["puclassifier__method"] in ("upu", "nnpu")
    with_propensity = GridSearchCV(quick(), {"weight_decay": [0.0, 0.01]}, cv=2).fit(X, s, propensity=e)
    assert with_propensity.best_estimator_.propensity_.shape == (s.sum(),)


def test_metadata_routing_takes_propensities_to_fit_and_score(problem: dict[str, np.ndarray]) -> None:
    X, s, e = (problem[key] for key in ("X", "s", "e"))
    with config_context(enable_metadata_routing=True):
        classifier = quick().set_fit_request(propensity=True, sample_weight=False)
        classifier.set_score_request(propensity=True, sample_weight=False)
        routed = cross_val_score(classifier, X, s, cv=2, params={"propensity": e})
    plain = cross_val_score(quick(), X, s, cv=2)
    assert not np.allclose(routed, plain)


def test_clone_and_pickle_keep_everything(problem: dict[str, np.ndarray]) -> None:
    X, s = problem["X"], problem["s"]
    classifier = quick(propensity=Logistic(C=0.5), augmentation=Augmentation(mixup=0.2)).fit(X, s)
    twin = clone(classifier).fit(X, s)
    np.testing.assert_array_equal(twin.decision_function(X), classifier.decision_function(X))
    revived = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(revived.decision_function(X), classifier.decision_function(X))
    assert revived.score(X, s) == classifier.score(X, s)


def test_same_seed_same_model_and_the_global_generators_stay_untouched(problem: dict[str, np.ndarray]) -> None:
    X, s = problem["X"], problem["s"]
    numpy_state, torch_state = np.random.get_state()[1].copy(), torch.get_rng_state()
    first = quick(backbone="tabular").fit(X, s).decision_function(X)
    second = quick(backbone="tabular").fit(X, s).decision_function(X)
    other = quick(backbone="tabular", random_state=1).fit(X, s).decision_function(X)
    np.testing.assert_array_equal(first, second)
    assert not np.allclose(first, other)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)
    assert torch.equal(torch.get_rng_state(), torch_state)


def test_own_networks_by_module_factory_and_import_path(problem: dict[str, np.ndarray]) -> None:
    X, s = problem["X"], problem["s"]
    module = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1)).double()
    before = [parameter.clone() for parameter in module.parameters()]
    for backbone in (module, lambda spec: nn.Linear(spec.size, 1), "pue.backbones.dense:linear"):
        assert quick(backbone=backbone).fit(X, s).decision_function(X).shape == (N,)
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))


def test_fit_continues_from_its_checkpoint(problem: dict[str, np.ndarray], tmp_path: Any) -> None:
    X, s = problem["X"], problem["s"]

    class StopAfterFour(nn.Module):
        """A linear score whose forward pass is interrupted in the fifth epoch of its first life."""

        calls = 0

        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.training:
                StopAfterFour.calls += 1
                if StopAfterFour.calls == 45:
                    raise KeyboardInterrupt
            return self.layer(x)

    settings = {"backbone": lambda spec: StopAfterFour(), "batch_size": 64, "checkpoint_dir": tmp_path / "run"}
    with pytest.raises(KeyboardInterrupt):
        quick(**settings).fit(X, s)
    assert len(list((tmp_path / "run").glob("epoch-*"))) == 1
    resumed = quick(**settings).fit(X, s)
    whole = quick(**{**settings, "checkpoint_dir": None}).fit(X, s)
    np.testing.assert_array_equal(resumed.decision_function(X), whole.decision_function(X))


def test_feature_names_are_checked_at_predict(problem: dict[str, np.ndarray]) -> None:
    frame = pd.DataFrame(problem["X"], columns=["age", "income"])
    classifier = quick().fit(frame, problem["s"])
    assert classifier.feature_names_in_.tolist() == ["age", "income"]
    with pytest.raises(ValueError, match="feature names should match"):
        classifier.predict(frame.rename(columns={"income": "salary"}))
    with pytest.raises(ValueError, match="income"):
        classifier.predict(frame[["age"]])
    with pytest.raises(ValueError, match="expecting 2 features"):
        quick().fit(problem["X"], problem["s"]).predict(problem["X"][:, :1])


def test_progress_is_silent_unless_asked(problem: dict[str, np.ndarray], capsys: pytest.CaptureFixture[str]) -> None:
    X, s = problem["X"], problem["s"]
    quick(epochs=2).fit(X, s)
    assert capsys.readouterr() == ("", "")
    quick(epochs=2, progress=True).fit(X, s)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "epoch 2/2" in captured.err
    assert "risk" in captured.err


def test_labeled_negatives_are_accepted(problem: dict[str, np.ndarray]) -> None:
    s = problem["s"].copy()
    s[np.flatnonzero(problem["y"] == 0)[:30]] = -1
    assert quick(batch_size=64).fit(problem["X"], s).decision_function(problem["X"]).shape == (N,)


@pytest.mark.parametrize(
    ("rows", "epochs"),
    [(300, 500), (2_000, 128), (60_000, 20), (256_000, 20), (1_000_000, 6), (50_000_000, 2), (10**9, 1)],
)
def test_the_number_of_epochs_follows_the_number_of_rows(rows: int, epochs: int) -> None:
    assert PUClassifier()._training(rows).epochs == epochs


def test_every_training_option_is_a_parameter_with_the_same_default_and_reaches_the_training() -> None:
    options = {name: getattr(Batching(), field) for name, field in BATCHING.items()}
    options |= {field.name: getattr(Training(), field.name) for field in fields(Training) if field.name != "batching"}
    given = PUClassifier().get_params()
    assert {name: given[name] for name in options} == {
        **options, "epochs": "auto", "batch_size": "auto", "augmentation": None
    }  # fmt: skip
    other = {
        "epochs": 3, "batch_size": 64, "batching": "stratified", "labeled_per_batch": 5, "labeled_rows": "drawn",
        "optimizer": "sgd", "lr": 0.1, "weight_decay": 0.0, "schedule": "constant", "ema": 0.9,
        "augmentation": Augmentation(mixup=1.0), "validation": 0.2, "criterion": "auc", "patience": 4, "keep": "last",
    }  # fmt: skip
    assert set(other) == set(options)
    found = PUClassifier(**other)._training(1000)
    assert found.batching == Batching(64, "stratified", 5, "drawn")
    assert {name: getattr(found, name) for name in other if name not in BATCHING} == {
        name: value for name, value in other.items() if name not in BATCHING
    }
