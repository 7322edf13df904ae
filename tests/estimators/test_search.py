"""Search: the same rows and weights judge all trials, a search that is interrupted ends as one that is not."""

from __future__ import annotations

import ast
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
import torch
from optuna.trial import TrialState
from scipy import sparse

import pue.estimators.search
from pue import PUClassifier
from pue.core.criteria import CRITERIA
from pue.core.data import PUData, Scenario
from pue.errors import CheckpointMismatch, InvalidInput, TrainingDiverged, UnknownName
from pue.estimators.search import SearchResult, search
from pue.methods import pu_weights
from pue.propensity import Logistic, clip_propensity
from pue.training.feeds import restrict, split_rows

PRIOR = 0.4


def problem(n: int = 240) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features (the first is the number of the row), labels, propensities: rows further out are labeled more often."""
    rng = np.random.default_rng(1)
    y = rng.random(n) < PRIOR
    X = np.column_stack([np.arange(n) / n, rng.normal(size=(n, 2)) + 2 * y[:, None]])
    e = np.clip(1 / (1 + np.exp(3 - 2 * X[:, 1])), 0.05, 1)
    return X, (y & (rng.random(n) < e)).astype(int), e


X, S, E = problem()


def classifier(**options: Any) -> PUClassifier:
    return PUClassifier(**{"prior": PRIOR, "backbone": "linear", "epochs": 3, "lr": 0.05, **options})


def make(trial: optuna.Trial) -> PUClassifier:
    return classifier(
        lr=trial.suggest_float("lr", 1e-4, 1.0, log=True), optimizer=trial.suggest_categorical("o", ["adam", "sgd"])
    )


def run(make: Callable[[optuna.Trial], PUClassifier] = make, n_trials: int = 2, **options: Any) -> SearchResult:
    return search(make, **{"X": X, "s": S, "n_trials": n_trials, "prior": PRIOR, "reference": None, **options})


def finished(result: SearchResult) -> list[tuple[dict[str, Any], float | None]]:
    trials = result.study.get_trials(states=(TrialState.COMPLETE, TrialState.PRUNED))
    return [(trial.params, trial.value) for trial in trials]


class Spy(PUClassifier):
    """Remembers the rows it was fitted on and those it was asked about."""

    fitted: list[set[int]] = []  # noqa: RUF012
    judged: list[set[int]] = []  # noqa: RUF012

    def fit(self, X: Any, y: Any, **options: Any) -> PUClassifier:
        self.fitted.append(rows_of(X))
        return super().fit(X, y, **options)

    def decision_function(self, X: Any) -> np.ndarray:
        self.judged.append(rows_of(X))
        return super().decision_function(X)


def rows_of(features: np.ndarray) -> set[int]:
    return {round(row) for row in features[:, 0] * len(X)}


# -------------------------------------------------------------------------------------------------- what judges


@pytest.mark.parametrize("scenario", list(Scenario))
def test_held_out_rows_are_in_no_training_and_all_trials_share_them(scenario: str) -> None:
    # In case-control every labeled row stands there twice, with and without its label; the copies stay together.
    rows, labels = X, S
    if scenario == "case_control":
        rows, labels = np.concatenate([X[S == 1], X]), np.concatenate([np.ones(S.sum(), int), np.zeros_like(S)])
    Spy.fitted, Spy.judged = [], []
    result = run(
        lambda trial: Spy(prior=PRIOR, scenario=scenario, lr=trial.suggest_float("lr", 1e-3, 1), epochs=1),
        X=rows,
        s=labels,
        scenario=scenario,
        n_trials=3,
        validation=0.25,
    )
    assert len(Spy.fitted) == 3
    assert Spy.fitted[0] == Spy.fitted[1] == Spy.fitted[2]
    assert Spy.judged == [rows_of(rows[result.held_out])] * 3
    assert Spy.fitted[0] & Spy.judged[0] == set()
    assert Spy.fitted[0] | Spy.judged[0] == set(range(len(X)))
    assert len(Spy.judged[0]) / len(X) == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("reference", [None, "logistic", Logistic(C=0.1), E, E[S == 1]], ids=type)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_value_is_the_criterion_of_the_held_out_rows_with_the_reference_weights(
    criterion: str, reference: Any
) -> None:
    result = run(n_trials=1, criterion=criterion, reference=reference, seed=5)
    data = PUData(torch.from_numpy(X), torch.from_numpy(S))
    rest, held_out = split_rows(data, 0.2, 5)
    assert result.held_out.tolist() == held_out.tolist()
    if reference is None:
        e = None
    elif isinstance(reference, np.ndarray):
        e = torch.from_numpy(E[S == 1])
    else:  # fitted without the rows that judge
        estimator = Logistic() if reference == "logistic" else reference
        others = PUData(data.x[rest], data.labels[rest])
        e, _ = clip_propensity(estimator.fit(others, prior=PRIOR)(data.x[data.labeled]))
    weights = restrict(pu_weights(data, PRIOR, e), data.labels, held_out)
    torch.testing.assert_close(result.weights.positive, weights.positive, rtol=0, atol=1e-12)
    assert result.weights.positive.sum() == pytest.approx(PRIOR)
    [params] = [params for params, _ in finished(result)]
    fitted = classifier(lr=params["lr"], optimizer=params["o"], random_state=5).fit(X[rest], S[rest])
    expected = CRITERIA[criterion](torch.from_numpy(fitted.decision_function(X[held_out])), weights)
    assert result.best_value == pytest.approx(expected, abs=1e-12)


def test_a_trial_does_not_judge_itself_with_its_own_propensities() -> None:
    # Whatever a trial believes about the labels, the exam is the same: equal scores get equal values.
    class Flattering:
        """Believes that all labels are where it wants them."""

        def fit(self, data: PUData, *, prior: float, seed: int = 0) -> Callable[[torch.Tensor], torch.Tensor]:
            return lambda x: torch.sigmoid(9 * x[:, 1]).double()

    def frozen(trial: optuna.Trial) -> PUClassifier:
        own = Flattering() if trial.suggest_categorical("own", [0, 1]) else None
        return classifier(propensity=own, backbone="tabular", lr=1e-30)  # it stays at its initial weights

    result = run(frozen, n_trials=8, reference="logistic")
    assert {params["own"] for params, _ in finished(result)} == {0, 1}
    assert len({value for _, value in finished(result)}) == 1


def test_known_propensities_reach_those_trials_that_ask_for_them() -> None:
    def asks(trial: optuna.Trial) -> PUClassifier:
        return classifier(propensity=trial.suggest_categorical("propensity", [None, "known"]), epochs=20)

    result = run(asks, n_trials=8, reference=E)
    values = {params["propensity"]: value for params, value in finished(result)}
    rest = np.setdiff1d(np.arange(len(X)), result.held_out)
    for name, e in ((None, None), ("known", E[rest])):
        fitted = classifier(propensity=name, epochs=20, random_state=0).fit(X[rest], S[rest], propensity=e)
        scores = torch.from_numpy(fitted.decision_function(X[result.held_out]))
        assert values[name] == pytest.approx(CRITERIA["pa"](scores, result.weights), abs=1e-12)
    with pytest.raises(InvalidInput, match=r'propensity="known" needs the values: search\(…, reference=e\)'):
        run(lambda trial: classifier(propensity="known"), reference="logistic")


def test_the_best_parameters_come_back_as_a_classifier_to_fit() -> None:
    result = run(n_trials=4)
    best = max(result.study.trials, key=lambda trial: trial.value)
    assert (result.best_value, result.best_params) == (best.value, best.params)
    assert (result.classifier.lr, result.classifier.optimizer) == (best.params["lr"], best.params["o"])
    assert len(result.classifier.fit(X, S).predict(X)) == len(X)


def test_frames_tensors_and_sparse_tables_are_searched_alike() -> None:
    values = [
        run(n_trials=1, X=features).best_value
        for features in (X, pd.DataFrame(X, columns=["a", "b", "c"]), torch.from_numpy(X))
    ]
    assert values[0] == values[1] == values[2]
    assert 0 < run(n_trials=1, X=sparse.csr_matrix(X)).best_value < 1.5


def test_without_a_prior_it_is_estimated_on_the_training_rows() -> None:
    result = run(n_trials=1, prior="estimate")
    assert 0.05 < float(result.weights.positive.sum()) < 0.99


# -------------------------------------------------------------------------------------- determinism and resuming


def test_the_seed_alone_decides_the_trials() -> None:
    first = finished(run(n_trials=4, seed=3))
    assert first == finished(run(n_trials=4, seed=3))
    assert first != finished(run(n_trials=4, seed=4))
    assert len({str(params) for params, _ in first}) == 4


def test_a_search_in_pieces_ends_as_one_that_was_not_interrupted(tmp_path: Path) -> None:
    # Twelve trials: the last two are proposed by the model of the first ten. One is stopped by Ctrl-C, one is killed.
    whole = run(n_trials=12)
    calls = iter(range(100))

    def interrupted(trial: optuna.Trial) -> PUClassifier:
        candidate = make(trial)
        if next(calls) in (2, 11):
            raise KeyboardInterrupt
        return candidate

    storage = tmp_path / "deep" / "study.db"
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            run(interrupted, n_trials=12, storage=storage)
    study = optuna.load_study(study_name="pue", storage=f"sqlite:///{storage}")
    study.ask().suggest_float("lr", 1e-4, 1.0, log=True)  # as a killed process leaves it: "running" for ever
    pieces = run(n_trials=12, storage=storage)
    assert finished(pieces) == finished(whole)
    states = [trial.state for trial in pieces.study.trials]
    assert (states.count(TrialState.FAIL), states.count(TrialState.RUNNING), len(states)) == (2, 1, 15)


def test_a_complete_search_is_read_and_not_run_again(tmp_path: Path) -> None:
    def never(trial: optuna.Trial) -> PUClassifier:
        if not isinstance(trial, optuna.trial.FixedTrial):
            raise AssertionError("there is nothing left to try")
        return make(trial)

    first = run(n_trials=2, storage=tmp_path / "study.db")
    trials = finished(first)
    again = run(never, n_trials=2, storage=str(tmp_path / "study.db"))
    assert (again.best_params, again.best_value) == (first.best_params, first.best_value)
    assert finished(again) == trials
    more = run(n_trials=3, storage=f"sqlite:///{tmp_path / 'study.db'}")
    assert finished(more)[:2] == trials
    assert len(finished(more)) == 3


OTHERS: dict[str, dict[str, Any]] = {
    "features": {"X": X + 1e-9},
    "labels": {"s": np.roll(S, 1)},
    "criterion": {"criterion": "pauc"},
    "reference": {"reference": E},
    "prior": {"prior": 0.5},
    "validation": {"validation": 0.3},
    "seed": {"seed": 1},
    "scenario": {"scenario": "case_control"},
}


def test_a_study_of_other_data_or_settings_is_refused(tmp_path: Path) -> None:
    run(n_trials=1, storage=tmp_path / "study.db")
    for options in OTHERS.values():
        with pytest.raises(CheckpointMismatch, match=r"the study 'pue' in .*other data or settings .*Use another name"):
            run(n_trials=1, storage=tmp_path / "study.db", **options)
    run(n_trials=1, storage=tmp_path / "study.db", name="another", seed=1)


def test_a_study_made_by_others_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'study.db'}"
    optuna.create_study(storage=url, study_name="pue").optimize(lambda trial: 1.0, n_trials=1)
    with pytest.raises(CheckpointMismatch, match="other data or settings"):
        run(n_trials=1, storage=url)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "study.db").write_bytes(b"no database" * 100)
    with pytest.raises(
        CheckpointMismatch, match=r"(?s)study.db cannot be opened as a study .*Delete it, or use another"
    ):
        run(n_trials=1, storage=tmp_path / "study.db")


# --------------------------------------------------------------------------------------------------- what goes wrong


def explodes(trial: optuna.Trial) -> PUClassifier:
    """Diverges at high learning rates."""
    lr = trial.suggest_float("lr", 1e-2, 1e30, log=True)
    if lr > 1.0:
        raise TrainingDiverged("the risk is not finite")
    return classifier(lr=lr)


def test_a_trial_that_diverges_counts_and_does_not_stop_the_search() -> None:
    result = run(explodes, n_trials=14)
    assert len(result.study.trials) == 14
    diverged = [trial for trial in result.study.trials if trial.state is TrialState.PRUNED]
    assert 0 < len(diverged) < 14
    assert {trial.user_attrs["diverged"] for trial in diverged} == {"the risk is not finite"}
    assert result.best_params["lr"] <= 1.0


def test_training_that_diverges_does_so_in_a_search_too() -> None:
    def always(trial: optuna.Trial) -> PUClassifier:
        return classifier(lr=3e38, optimizer="sgd", loss="logistic", dtype="float32")

    with pytest.raises(TrainingDiverged, match=r"all 2 trials diverged\. Search smaller .* said: .*not finite"):
        run(always, X=(1e3 * X).astype(np.float32), n_trials=2)


def test_other_errors_stop_the_search_and_leave_a_failed_trial(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="unknown method 'nnpuu'"):
        run(lambda trial: classifier(method="nnpuu"), storage=tmp_path / "study.db")
    study = optuna.load_study(study_name="pue", storage=f"sqlite:///{tmp_path / 'study.db'}")
    assert [trial.state for trial in study.trials] == [TrialState.FAIL]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"n_trials": 0}, "n_trials must be at least 1; got 0"),
        ({"criterion": "acc"}, "unknown criterion 'acc'"),
        ({"reference": "logitsic"}, "unknown reference 'logitsic'. Did you mean 'logistic'"),
        ({"reference": E[:7]}, "propensity must have one entry for each of the"),
        ({"prior": "guess"}, "unknown prior 'guess'"),
        ({"prior": 0.01}, "below the share of labeled rows"),
        ({"validation": 0.0}, r"validation must lie in \(0, 0.5\]: some rows must judge; got 0.0"),
        ({"validation": 0.6}, r"validation must lie in \(0, 0.5\]"),
        ({"scenario": "case_control"}, "the classifier has scenario='single_sample', the search 'case_control'"),
        ({"s": S[:7]}, "rows but y has 7"),
    ],
)
def test_wrong_arguments_are_refused_with_a_remedy(options: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        run(**options)


# ------------------------------------------------------------------------------------------------------------- noise


@pytest.mark.parametrize(("progress", "lines"), [(None, 0), (False, 0), (True, 3)])
def test_it_reports_a_line_a_trial_to_standard_error_if_asked_to(
    progress: bool | None, lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    before = optuna.logging.get_verbosity()
    run(n_trials=3, progress=progress)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == err.count("search trial ") == err.count("best 0.") == lines
    assert optuna.logging.get_verbosity() == before != logging.ERROR


def test_optuna_is_not_loaded_before_a_search() -> None:
    # It takes half a second, and whoever imports the library would wait for it.
    tree = ast.parse((Path(pue.__file__).parent / "estimators" / "search.py").read_text())
    loaded = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert len(loaded) > 10
    assert [ast.unparse(node) for node in loaded if "optuna" in ast.unparse(node)] == []
