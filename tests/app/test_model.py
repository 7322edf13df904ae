"""The recipe of `pue fit` part by part: rows, thresholds, held-out scores, comparison and evaluation."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from torch import Tensor

import pue
from pue.app import compare as comparing
from pue.app import fit, learn, prior_range, top_rows
from pue.app import model as modelling
from pue.app import preparation as preparing
from pue.app import rows as reading
from pue.app.classifiers import choices, make_classifier, resolved
from pue.app.compare import Candidate, Result, alike, chosen, compare, winner
from pue.app.evaluate import Evaluation, evaluate_source
from pue.app.fit import _kept, _label_frequency
from pue.app.fit_source import fit_rows
from pue.app.learn import score_held_out
from pue.app.model import PUModel, special_columns, unlabeled_posterior
from pue.app.preparation import prepare
from pue.app.recipe import Recipe
from pue.app.roles import Roles
from pue.app.rows import Rows, feature_batches, read_rows
from pue.app.sources.opening import open_source
from pue.app.summary import json_safe
from pue.app.survey import Sampler
from pue.app.threshold import HeldOut, check_rule, choose_threshold
from pue.core.data import PUData, Scenario
from pue.core.weights import RowWeights, normalized_inverse_propensity, uniform
from pue.errors import InvalidInput, PueWarning, TrainingDiverged, UnknownName
from pue.estimators.held_out import out_of_fold
from pue.judging import calibration_error, estimate_metrics, evaluate
from pue.judging.estimates import ESTIMATED
from pue.methods import METHODS
from pue.priors import PriorEstimate
from pue.propensity import PROPENSITIES, Auto, PropensityModel
from pue.propensity.features import fit_reduction
from pue.trees import LEARNERS

PLAIN = Recipe(method="logistic", propensity=None, prior=0.5)


def table(n: int = 120, labeled: int = 30, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    positive = np.arange(n) < 2 * labeled
    frame = pd.DataFrame({"a": rng.normal(size=n) + 2 * positive, "b": rng.normal(size=n)})
    frame["e"] = np.round(rng.uniform(0.2, 0.9, n), 2)
    frame["y"] = positive.astype(int)
    frame["s"] = (np.arange(n) < labeled).astype(int)
    return frame.sample(frac=1, random_state=seed, ignore_index=True)


ROLES = Roles("s", ignore=("e",), truth="y")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    table().to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def made(path: Path, recipe: Recipe = PLAIN, roles: Roles = ROLES) -> tuple[Rows, PUModel]:
    source = open_source(path)
    rows = read_rows(source, roles, scenario=recipe.scenario)
    return rows, fit_rows(source, roles, rows, recipe)


# -------------------------------------------------------------------------------------------- thresholds


def held(seed: int = 0, n: int = 200, scenario: Scenario = Scenario.SINGLE_SAMPLE) -> HeldOut:
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.5
    p = np.round(1 / (1 + np.exp(-2 * rng.normal(size=n) - 2 * y + 1)), 2)  # with ties
    labels = torch.from_numpy((y & (rng.random(n) < 0.5)).astype(np.int8))
    e = torch.from_numpy(rng.uniform(0.2, 1, int(labels.sum())))
    w = normalized_inverse_propensity(labels, e, prior=0.5, scenario=scenario)
    return HeldOut(p, w.positive.numpy(), w.background.numpy())


def figures(h: HeldOut, t: float) -> tuple[float, float, float]:
    """Precision, F1 and the share called positive at a threshold, as in the definitions."""
    called = h.probabilities >= t
    hits, flagged = h.positive[called].sum(), h.background[called].sum()
    return hits / flagged if flagged else 0.0, 2 * hits / (h.positive.sum() + flagged), flagged


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("scenario", Scenario)
def test_rules_choose_what_they_promise(seed: int, scenario: Scenario) -> None:
    h = held(seed, scenario=scenario)
    every = np.unique(h.probabilities)
    value, rule = choose_threshold(h, "f1")
    assert rule == "the highest estimated F1"
    assert value in every
    assert figures(h, value)[1] == pytest.approx(max(figures(h, t)[1] for t in every), abs=1e-12)
    value, rule = choose_threshold(h, "prior")
    assert "as many rows" in rule
    higher = every[every > value]
    assert figures(h, value)[2] >= 0.5 - 1 / len(h.positive)
    assert len(higher) == 0 or figures(h, higher[0])[2] < 0.5
    value, rule = choose_threshold(h, precision=0.7)
    assert rule == "the lowest with an estimated precision of 0.7"
    enough = [t for t in every if h.positive[h.probabilities >= t].sum() >= 0.1 * h.positive.sum()]
    assert value == min(t for t in enough if figures(h, t)[0] >= 0.7 - 1e-12)


def test_a_target_precision_is_that_of_the_metrics() -> None:
    """They allow for a bias that overlap hides; a threshold that did not would promise more than the page says."""
    h = held()
    fewer = replace(h, believed=0.9 * h.positive)
    asked, told = choose_threshold(fewer, precision=0.7)[0], replace(h, positive=0.9 * h.positive)
    assert asked == choose_threshold(told, precision=0.7)[0] > choose_threshold(h, precision=0.7)[0]
    assert choose_threshold(fewer, "f1") == choose_threshold(h, "f1"), "the other rules are as they were"
    with pytest.raises(InvalidInput, match="vectors of one length"):
        replace(h, believed=h.positive[1:])


def test_a_threshold_may_be_given() -> None:
    assert choose_threshold(held(), 0.3) == (0.3, "given")
    assert choose_threshold(held(), 1) == (1.0, "given")
    assert choose_threshold(held(), "half") == (0.5, "probability one half: the highest accuracy")


@pytest.mark.parametrize(
    ("threshold", "precision", "message"),
    [
        ("f2", None, "unknown threshold rule 'f2'. Did you mean 'f1'?"),
        (1.1, None, "between 0 and 1; got 1.1"),
        (math.nan, None, "between 0 and 1; got nan"),
        ("f1", 0.0, r"must lie in \(0, 1\]; got 0"),
        ("f1", math.nan, r"must lie in \(0, 1\]"),
    ],
)
def test_other_thresholds_are_refused(threshold: Any, precision: float | None, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        choose_threshold(held(), threshold, precision=precision)
    with pytest.raises(InvalidInput, match=message):
        check_rule(threshold, precision)
    with pytest.raises(InvalidInput, match=message):
        Recipe(threshold=threshold, precision=precision)


def test_a_precision_that_no_threshold_has_is_said() -> None:
    h = held()
    with pytest.raises(InvalidInput, match=r"no threshold has an estimated precision of 0.9; the highest is 0.50"):
        choose_threshold(replace(h, probabilities=np.full(200, 0.5)), precision=0.9)


def test_held_out_rows_are_vectors_of_one_length() -> None:
    vector = np.ones(3)
    for wrong in (np.ones(2), np.ones((3, 1))):
        with pytest.raises(InvalidInput, match="vectors of one length"):
            HeldOut(vector, vector, wrong)
    with pytest.raises(InvalidInput, match="vectors of one length"):
        HeldOut(np.ones((3, 1)), np.ones((3, 1)), np.ones((3, 1)))


@pytest.mark.parametrize("scenario", Scenario)
def test_thinning_keeps_every_labeled_row_and_every_mass(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    h = held(n=2000, scenario=scenario)
    weights = RowWeights(torch.from_numpy(h.positive), torch.from_numpy(h.background - h.positive))
    p = torch.from_numpy(h.probabilities)
    whole = _kept(p, weights, h.positive, 0)
    assert np.array_equal(whole.probabilities, h.probabilities)
    monkeypatch.setattr(fit, "KEPT", 300)
    thin = _kept(p, weights, h.positive, 0)
    labeled = h.positive > 0
    assert len(thin.probabilities) == labeled.sum() + 300
    assert np.array_equal(np.sort(thin.probabilities[thin.positive > 0]), np.sort(h.probabilities[labeled]))
    assert thin.positive.sum() == pytest.approx(h.positive.sum())
    assert thin.believed is not None
    assert np.array_equal(thin.believed, thin.positive)
    assert thin.background.sum() == pytest.approx(h.background.sum())
    assert thin.background[thin.positive == 0].sum() == pytest.approx(h.background[~labeled].sum())
    assert np.array_equal(_kept(p, weights, h.positive, 0).probabilities, thin.probabilities)
    assert not np.array_equal(_kept(p, weights, h.positive, 1).probabilities, thin.probabilities)
    # What is left decides alike: rows that stand for many count as many.
    for rule in ("f1", "prior"):
        assert abs(choose_threshold(thin, rule)[0] - choose_threshold(h, rule)[0]) < 0.1


# ------------------------------------------------------------------------------------------------- rows


def test_columns_must_be_there_and_play_one_part() -> None:
    names = ["id", "a", "b", "e", "y", "s"]
    roles = Roles("s", "id", ("b",), "e", "y")
    roles.check(names)
    assert roles.features(names) == ["a"]
    assert roles.special == ["s", "id", "e", "y", "b"]
    with pytest.raises(UnknownName, match=r"unknown column 'ss'. Did you mean 's'\?"):
        Roles("ss").check(names)
    for twice in (Roles("s", "s"), Roles("s", None, ("s",)), Roles("s", truth="s"), Roles("s", "b", ("b",))):
        with pytest.raises(InvalidInput, match="is named twice: as label, id, truth, propensity or ignored"):
            twice.check(names)


def test_the_sampler_keeps_every_row_equally_often_and_in_order() -> None:
    counts = np.zeros(60)
    for seed in range(200):
        sampler = Sampler(10, seed)
        for start in range(0, 60, 7):
            sampler.add(pd.DataFrame({"row": range(start, min(60, start + 7))}))
        frame, numbers = sampler.sample()
        found = frame["row"].to_numpy()
        assert numbers.tolist() == found.tolist()
        assert len(found) == 10
        assert (np.diff(found) > 0).all()
        counts[found] += 1
    expected = 200 * 10 / 60
    assert ((counts - expected) ** 2 / expected).sum() < 90.0  # χ² with 59 degrees of freedom: p = 0.006
    few = Sampler(10, 0)
    few.add(pd.DataFrame({"row": [0, 1]}))
    assert few.sample()[0]["row"].tolist() == [0, 1]


def test_rows_are_features_labels_and_propensities(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BATCH", 50)
    rows = read_rows(open_source(path), Roles("s", propensity="e", truth="y"))
    frame = table()
    assert rows.vectorizer is not None
    assert rows.vectorizer.feature_names == ["a", "b"]
    np.testing.assert_array_equal(rows.data.x.numpy(), frame[["a", "b"]].to_numpy(np.float32))
    assert rows.data.labels.tolist() == frame["s"].tolist()
    assert rows.propensity is not None
    assert rows.propensity.tolist() == frame["e"][frame["s"] == 1].tolist()
    with pytest.raises(InvalidInput, match=r"column 'a': propensity must lie in \(0, 1\]"):
        read_rows(open_source(path), Roles("s", propensity="a"))


@pytest.mark.parametrize("change", [1, -1, 60])
def test_a_file_that_changes_while_it_is_read_is_noticed(path: Path, change: int) -> None:
    source = open_source(path)

    class Growing:
        path, kind, columns, n_rows = source.path, "table", source.columns, None
        passes = 0

        def batches(self, size: int, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
            self.passes += 1
            frame = pd.concat([source.read(columns)] * 2, ignore_index=True)
            yield frame.iloc[:120]
            if self.passes > 1:
                yield frame.iloc[120 : 120 + change] if change > 0 else frame.iloc[:0]
            if change < 0 and self.passes == 1:
                yield frame.iloc[120:121]

    with pytest.raises(InvalidInput, match=r"t.csv changed while it was read"):
        read_rows(Growing(), ROLES)  # type: ignore[arg-type]


def test_batches_of_features_are_the_features(path: Path) -> None:
    rows, model = made(path)
    parts = list(feature_batches(open_source(path), model.vectorizer, ["y", "e"], size=50))
    assert [len(features) for features, _ in parts] == [50, 50, 20]
    np.testing.assert_array_equal(np.concatenate([features for features, _ in parts]), rows.data.x.numpy())
    assert pd.concat([frame for _, frame in parts])["y"].tolist() == table()["y"].tolist()


# ------------------------------------------------------------------------------------------ classifiers


@pytest.mark.parametrize("method", choices())
def test_every_choice_makes_a_classifier(method: str) -> None:
    classifier = make_classifier(
        method, seed=3, epochs=2, prior=0.4, scenario="case_control", labeled_rows="weighted", progress=False
    )
    assert classifier.prior == 0.4
    assert classifier.scenario == "case_control"
    assert classifier.random_state == 3
    assert getattr(classifier, "method", method) == ("nnpu" if method in LEARNERS else resolved(method))
    assert getattr(classifier, "epochs", 2) == 2


def test_a_method_that_needs_truth_is_no_choice() -> None:
    with pytest.raises(UnknownName, match="unknown method 'supervised'"):
        make_classifier("supervised", seed=0)
    assert resolved("auto") == "nnpu"


def test_a_method_added_later_is_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "mine", METHODS["nnpu"])
    assert make_classifier("mine", seed=0).method == "mine"
    assert Recipe(method="mine").method == "mine"
    assert str(Candidate.parse("mine+auto")) == "mine+auto"


# ------------------------------------------------------------------------------------ prior, propensity


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"method": "nnpuu"}, "unknown method 'nnpuu'. Did you mean 'nnpu'?"),
        ({"propensity": "lgistic"}, "unknown propensity 'lgistic'. Did you mean 'logistic'?"),
        ({"prior": "estmate"}, "unknown prior 'estmate'. Did you mean 'estimate'?"),
        ({"scenario": "single"}, "unknown scenario 'single'. Did you mean 'single_sample'?"),
        ({"calibration": "plat"}, "unknown calibration 'plat'. Did you mean 'platt'?"),
    ],
)
def test_a_recipe_knows_its_names(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownName, match=message.replace("?", r"\?")):
        Recipe(**setting)


def test_a_prior_below_the_labels_is_refused(path: Path) -> None:
    rows = read_rows(open_source(path), ROLES)
    with pytest.raises(InvalidInput, match=r"prior=0.2 is below the share of labeled rows, 0.25"):
        prepare(rows, replace(PLAIN, prior=0.2))
    for prior in (0.0, 1.0, math.nan):
        with pytest.raises(InvalidInput, match=r"prior must lie in \(0, 1\)"):
            prepare(rows, replace(PLAIN, prior=prior))


def test_the_interval_of_a_prior_is_brought_to_95_percent(path: Path) -> None:
    rows = read_rows(open_source(path), ROLES)
    basis = prepare(rows, PLAIN)
    assert basis.prior_interval is None
    basis = replace(basis, prior=PriorEstimate(0.5, 0.5 - 2.5758, 0.5 + 2.5758, 0.99, "bbe", "SCAR", 50))
    assert basis.prior_interval == pytest.approx((0.5 - 1.96, 0.5 + 1.96), abs=1e-3)


@dataclass(frozen=True)
class Told(PropensityModel):
    """A propensity that only the first feature tells; for rows it was fitted on it kept other, "held-out" values."""

    kept: Tensor

    @property
    def held_out(self) -> Tensor:
        return self.kept

    def __call__(self, x: Tensor) -> Tensor:
        return torch.sigmoid(x[:, 0].double())


class Telling:
    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> Told:
        self.seen = data
        return Told(torch.linspace(0.31, 0.39, data.n_labeled, dtype=torch.float64))


def test_of_a_large_table_rows_outside_the_sample_are_scored_and_those_inside_keep_their_values(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = read_rows(open_source(path), ROLES)
    telling = Telling()
    monkeypatch.setitem(PROPENSITIES, "telling", telling)
    recipe = replace(PLAIN, propensity="telling")
    whole = prepare(rows, recipe)
    assert telling.seen.n_rows == 120
    assert whole.e is not None
    assert torch.equal(whole.e, torch.linspace(0.31, 0.39, 30, dtype=torch.float64))
    monkeypatch.setattr(preparing, "SAMPLE", 70)
    basis = prepare(rows, recipe)
    assert telling.seen.n_rows == 70
    assert basis.diagnosis.n_rows == 70
    assert basis.e is not None
    assert len(basis.e) == 30
    x = rows.data.x[rows.data.labeled]
    inside = torch.tensor([bool((telling.seen.x == row).all(dim=1).any()) for row in x])
    assert 0 < inside.sum() < 30
    assert inside.sum() == telling.seen.n_labeled
    kept = torch.linspace(0.31, 0.39, telling.seen.n_labeled, dtype=torch.float64)
    assert torch.equal(basis.e[inside], kept)
    assert torch.equal(basis.e[~inside], torch.sigmoid(x[~inside][:, 0].double()))


def test_known_propensities_are_taken_as_they_are(path: Path) -> None:
    rows = read_rows(open_source(path), Roles("s", propensity="e", truth="y"))
    basis = prepare(rows, PLAIN)
    assert basis.e is not None
    assert basis.propensity_model is None
    assert basis.e.tolist() == table()["e"][table()["s"] == 1].tolist()
    assert basis.report is not None
    assert basis.report.source == "known"


def test_the_label_frequency_counts_the_population(path: Path) -> None:
    rows = read_rows(open_source(path), ROLES)
    basis = prepare(rows, PLAIN)
    assert _label_frequency(rows, basis) == pytest.approx(30 / (0.5 * 120))
    beside = replace(rows, data=replace(rows.data, scenario=Scenario.CASE_CONTROL))
    assert _label_frequency(beside, basis) == pytest.approx(30 / (0.5 * 90))


# ------------------------------------------------------------------------------------- held-out scores


class Memory(BaseEstimator):  # type: ignore[misc]
    """Scores 1 for rows it was fitted on, and 0 for others."""

    log: ClassVar[list[dict[str, Any]]] = []
    """Shared by clones."""

    def __init__(self, prior: float = 0.5, propensity: Any = None, random_state: int = 0) -> None:
        self.prior, self.propensity, self.random_state = prior, propensity, random_state

    def fit(self, x: Tensor, labels: Tensor, *, propensity: Tensor | None, sample_weight: Any = None) -> Memory:
        self.rows_ = {tuple(row) for row in x.tolist()}
        self.log.append(
            {"x": x, "labels": labels, "propensity": propensity, "prior": self.prior, "seed": self.random_state}
        )
        return self

    def decision_function(self, x: Tensor) -> NDArray[np.float64]:
        return np.array([float(tuple(row) in self.rows_) for row in x.tolist()])


@pytest.fixture
def memory() -> Memory:
    Memory.log.clear()
    return Memory()


def copied(n: int = 90) -> PUData:
    """Every third row stands there three times, once labeled."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2)).round(3)
    x[::3], x[1::3] = x[2::3], x[2::3]
    labels = (np.arange(n) % 3 == 0) & (np.arange(n) % 2 == 0)
    lonely = rng.normal(size=(40, 2)).round(3)
    return PUData(torch.from_numpy(np.vstack([x, lonely])), torch.from_numpy(np.append(labels, np.zeros(40, bool))))


def test_no_row_is_scored_by_a_model_that_saw_it_or_a_copy(memory: Memory) -> None:
    data = copied()
    scores = out_of_fold(memory, data, prior=0.5, folds=4)
    assert torch.equal(scores, torch.zeros(130, dtype=torch.float64))
    assert len(Memory.log) == 4
    seen = sum(len(entry["x"]) for entry in Memory.log)
    assert seen == 3 * 130, "every row is left out once"
    assert len({entry["seed"] for entry in Memory.log}) == 4
    # The test can fail: a row that was seen has another score.
    assert memory.fit(data.x, data.labels, propensity=None).decision_function(data.x[:5]).tolist() == [1.0] * 5


def test_only_some_folds_may_be_scored(memory: Memory) -> None:
    scores = out_of_fold(memory, copied(), prior=0.5, folds=5, scored=1)
    assert len(Memory.log) == 1
    known = ~torch.isnan(scores)
    assert 15 <= known.sum() <= 40
    assert (scores[known] == 0).all()


def test_propensities_stay_with_their_rows(memory: Memory) -> None:
    data = copied()
    e = torch.sigmoid(data.x[data.labeled][:, 0])
    out_of_fold(memory, data, prior=0.5, propensity=e, folds=3)
    for entry in Memory.log:
        expected = torch.sigmoid(entry["x"][entry["labels"] == 1][:, 0])
        assert torch.equal(entry["propensity"], expected)
    Memory.log.clear()
    out_of_fold(memory, data, prior=0.5, folds=3)
    assert all(entry["propensity"] is None for entry in Memory.log)


def test_a_fold_with_many_labels_raises_the_prior(memory: Memory) -> None:
    out_of_fold(memory, copied(), prior=0.01, folds=3)
    for entry in Memory.log:
        assert entry["prior"] == float((entry["labels"] == 1).double().mean()) > 0.01


def test_rows_that_cannot_be_held_out_are_an_error(memory: Memory) -> None:
    data = PUData(torch.tensor([[1.0], [1.0], [2.0], [3.0]]), torch.tensor([1, 1, 0, 0]))
    with pytest.raises(InvalidInput, match="not 2 distinct labeled and 2 distinct unlabeled rows"):
        out_of_fold(memory, data, prior=0.6)


def test_of_a_large_table_a_fifth_is_scored(path: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = read_rows(open_source(path), Roles("s", propensity="e", truth="y"))
    basis = prepare(rows, PLAIN)
    scored = score_held_out(memory, rows.data, basis, basis.e, replace(PLAIN, folds=3))
    assert len(scored.scores) == 120
    assert len(Memory.log) == 3
    assert scored.e is not None
    assert torch.equal(scored.e, basis.e)
    assert scored.fold is not None
    assert scored.fold.unique().tolist() == [0, 1, 2]
    Memory.log.clear()
    monkeypatch.setattr(learn, "WHOLE", 100)
    scored = score_held_out(memory, rows.data, basis, None, replace(PLAIN, folds=3))
    assert len(Memory.log) == 1
    assert Memory.log[0]["propensity"] is None, "trained with its own, judged by those of the basis"
    assert len(scored.scores) == len(scored.labels) == len(scored.weights.positive) == 24
    assert scored.fold is None, "one model"
    assert scored.e is not None
    assert len(scored.e) == int((scored.labels == 1).sum()) == 6
    expected = normalized_inverse_propensity(scored.labels, scored.e, prior=0.5)
    assert torch.equal(scored.weights.positive, expected.positive)


def test_of_a_very_large_table_a_tenth_is_held_out_of_the_one_classifier(
    path: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = read_rows(open_source(path), Roles("s", propensity="e", truth="y"))
    basis = prepare(rows, PLAIN)
    monkeypatch.setattr(learn, "ONCE", 100)
    monkeypatch.setattr(learn, "classifier_of", lambda recipe, prepared: memory)
    _, scored = learn.learn(rows, PLAIN, basis, lambda text: None)
    (entry,) = Memory.log
    assert len(entry["labels"]) == 108
    assert len(scored.scores) == len(scored.labels) == 12
    assert scored.e is not None
    assert basis.e is not None
    assert sorted([*entry["propensity"].tolist(), *scored.e.tolist()]) == sorted(basis.e.tolist())
    held = {tuple(row) for row in rows.data.x.tolist()} - {tuple(row) for row in entry["x"].tolist()}
    assert len(held) == 12, "no copy of a row is on both sides"


# ------------------------------------------------------------------------------------------- the model


def test_a_model_has_a_classifier_and_a_threshold(path: Path) -> None:
    _, model = made(path)
    with pytest.raises(InvalidInput, match="a dict is no classifier"):
        replace(model, classifier={})
    for threshold in (math.nan, -0.1, 1.1):
        with pytest.raises(InvalidInput, match="a threshold is a probability"):
            replace(model, threshold=threshold)
    with pytest.raises(InvalidInput, match="trained on a table: pass a pandas frame"):
        model.predict(np.ones((3, 2)))


def test_a_row_is_worth_the_same_in_any_company(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for recipe in (PLAIN, Recipe("nnpu", "logistic", 0.5, epochs=30)):
        _, model = made(path, recipe)
        frame = table()
        p, e = model.probability(frame), model.propensity(model.features(frame))
        assert np.array_equal((p >= model.threshold).astype(int), model.predict(frame))
        parts = [model.probability(frame.iloc[start : start + 7]) for start in range(0, 120, 7)]
        assert np.array_equal(np.concatenate(parts), p)
        parts = [model.propensity(model.features(frame.iloc[start : start + 7])) for start in range(0, 120, 7)]
        assert np.array_equal(np.concatenate(parts), e)
        monkeypatch.setattr(modelling, "BLOCK", 50)
        np.testing.assert_allclose(model.probability(frame), p, rtol=1e-5)
        monkeypatch.undo()
    assert model.probability(frame.iloc[:0]).shape == (0,)


def test_unlabeled_rows_are_less_likely_positive() -> None:
    rng = np.random.default_rng(0)
    f, e = rng.random(50), rng.random(50)
    np.testing.assert_allclose(unlabeled_posterior(f, e), f * (1 - e) / (f * (1 - e) + 1 - f), rtol=1e-12)
    assert unlabeled_posterior(np.array([1.0]), np.array([1.0])) == 0


def test_warnings_of_a_fit_are_kept_and_passed_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(*arguments: Any, **options: Any) -> Any:
        for text in ("look twice", "look twice"):
            warnings.warn(text, PueWarning, stacklevel=2)
        warnings.warn("of no interest", UserWarning, stacklevel=2)
        return real(*arguments, **options)

    real = fit.prepare
    monkeypatch.setattr(fit, "prepare", warn)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _, model = made(path)
    assert [str(w.message) for w in caught if w.category is PueWarning] == ["look twice"]
    assert model.summary["warnings"] == ["look twice"]


def test_facts_name_every_column_that_is_no_feature(path: Path) -> None:
    _, model = made(path, roles=Roles("s", "b", ("e",), None, "y"))
    assert special_columns(model) == ["s", "b", "y", "e"]
    _, model = made(path, roles=Roles("s", propensity="e", truth="y"))
    assert special_columns(model) == ["s", "y", "e"]


def test_the_best_unlabeled_rows_are_the_best(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.concat([table(), table()], ignore_index=True).assign(row="x")  # ties, and a column called "row"
    frame.loc[3, "row"] = None
    frame.to_csv(path, index=False)
    monkeypatch.setattr(reading.feature_batches, "__defaults__", ((), 50))
    _, model = made(path, roles=Roles("s", ignore=("e",), truth="y"))
    top = model.summary["top_rows"]
    assert top["columns"] == ["row", "P(positive)", "a", "b", "y", "row"]
    p = model.probability(frame)
    p[frame["s"] == 1] = -1
    expected = np.argsort(-p, kind="stable")[:20]
    assert [row[0] for row in top["rows"]] == expected.tolist()
    assert [row[1] for row in top["rows"]] == p[expected].tolist()
    assert [row[2] for row in top["rows"]] == pytest.approx(frame["a"][expected].tolist())
    assert {row[5] for row in top["rows"]} <= {"x", None}


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (None, None),
        (math.nan, None),
        (pd.NaT, None),
        (pd.NA, None),
        (True, "True"),
        (np.bool_(False), "False"),
        (np.int8(3), 3),
        (np.float32(0.5), 0.5),
        ("x" * 61, "x" * 59 + "…"),
        (pd.Timestamp("2024-01-02"), "2024-01-02 00:00:00"),
    ],
)
def test_cells_are_plain(value: Any, cell: Any) -> None:
    assert top_rows._cell(value) == cell
    assert type(top_rows._cell(value)) is type(cell)


def test_numbers_that_are_none_are_none() -> None:
    value = {"a": [1, 2.5, math.nan], "b": (math.inf, "x"), "c": {"d": None, "e": np.float64("nan")}, 2.0: True}
    found = json_safe(value)
    assert found == {"a": [1, 2.5, None], "b": [None, "x"], "c": {"d": None, "e": None}, 2.0: True}
    json.dumps(found, allow_nan=False)


def test_a_summary_is_json_everywhere(path: Path) -> None:
    for recipe in (PLAIN, Recipe("nnpu", "logistic", 0.5, epochs=30)):
        text = json.dumps(made(path, recipe)[1].summary, allow_nan=False)
        assert json.loads(text)["data"]["n_labeled"] == 30


# ------------------------------------------------------------------------------------------- comparison


def result(name: str, auc: float = 0.5, **rest: Any) -> Result:
    return Result(name, 1.0, dict.fromkeys(ESTIMATED, (auc, 0.0, 1.0)), **rest)


def test_candidates_inside_the_interval_of_the_best_are_not_told_apart() -> None:
    def result(name: str, value: float, **fate: str) -> Result:
        return Result(name, 1.0, {"auc": (value, value - 0.02, value + 0.02)}, **fate)

    results = [result("a", 0.9), result("b", 0.885), result("c", 0.8), result("d", 0.95, trivial="no")]
    assert alike(results, "auc") == ["a", "b"]
    assert alike(results[-1:], "auc") == []


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Result]], list[str]]:
    """Results that are known, and the names of those that were asked for."""

    def know(results: dict[str, Result]) -> list[str]:
        asked: list[str] = []

        def judge(candidate: Candidate, *_: Any) -> Result:
            asked.append(str(candidate))
            return results[str(candidate)]

        monkeypatch.setattr(comparing, "_judge", judge)
        monkeypatch.setattr(comparing, "prepare", lambda *_: asked.append("prepare") or object())
        return asked

    return know


def test_results_are_ranked_and_the_best_that_tells_rows_apart_wins(
    path: Path, judged: Callable[[dict[str, Result]], list[str]]
) -> None:
    results = {
        "upu": result("upu", 0.6),
        "nnpu+auto": result("nnpu+auto", 0.9, trivial="calls every row positive"),
        "naive": Result("naive", 1.0, {}, failed="diverged"),
        "boosting": result("boosting", 0.8),
    }
    judged(results)
    rows = read_rows(open_source(path), ROLES)
    found = compare(rows, PLAIN, list(results))
    assert [each.candidate for each in found] == ["boosting", "upu", "nnpu+auto", "naive"]
    assert winner(found) == Candidate("boosting")
    assert winner(found[2:]) is None


def test_finished_candidates_are_found_again(
    path: Path, tmp_path: Path, judged: Callable[[dict[str, Result]], list[str]]
) -> None:
    asked = judged({"upu": result("upu", 0.6), "nnpu": Result("nnpu", 2.0, {}, failed="diverged")})
    rows = read_rows(open_source(path), ROLES)
    told: list[tuple[str, bool]] = []

    def again(rows: Rows = rows, recipe: Recipe = PLAIN) -> list[Result]:
        asked.clear()
        told.clear()
        return compare(
            rows,
            recipe,
            ["upu", "nnpu", "upu"],
            folder=tmp_path / "out",
            done=lambda result, found: told.append((result.candidate, found)),
        )

    first = again()
    assert asked == ["prepare", "upu", "nnpu"]
    assert told == [("upu", False), ("nnpu", False)]
    assert again() == first
    assert (asked, told) == ([], [("upu", True), ("nnpu", True)])
    # What does not change a result does not change its name; everything else does.
    again(recipe=replace(PLAIN, jobs=2, method="naive", progress=False))
    assert asked == []
    known = np.full(30, 0.5)
    for other in (
        {"recipe": replace(PLAIN, seed=1)},
        {"recipe": replace(PLAIN, prior=0.4)},
        {"recipe": replace(PLAIN, propensity="logistic")},
        {"rows": replace(rows, propensity=known)},
        {"rows": replace(rows, propensity=known / 2)},
        {"rows": replace(rows, data=PUData(rows.data.x * 2, rows.data.labels))},
        {"rows": replace(rows, data=PUData(rows.data.x, rows.data.labels.roll(1)))},
        {"rows": replace(rows, data=replace(rows.data, scenario=Scenario.CASE_CONTROL))},
    ):
        again(**other)
        assert asked == ["prepare", "upu", "nnpu"], other
    file = next((tmp_path / "out").glob("upu-*.json"))
    for text in ("", "{", "[]", '{"metrics": {}}', file.read_text().replace("0.6", '"x"', 1),
                 file.read_text().replace("0.6", "0.9", 1)):  # fmt: skip
        kept = file.read_text()
        file.write_text(text)
        said: list[str] = []
        assert comparing._read(file, said.append) is None, text
        assert "is not used, and computed anew" in said[0]
        file.write_text(kept)
    assert comparing._read(file) == result("upu", 0.6)
    assert not list((tmp_path / "out").glob(".*"))


def test_candidates_and_criteria_are_names(path: Path) -> None:
    rows = read_rows(open_source(path), ROLES)
    assert [str(Candidate.parse(text)) for text in ("nnpu", "nnpu+auto")] == ["nnpu", "nnpu+auto"]
    for candidates, by, message in (
        (["nnpuu"], "auc", "unknown method 'nnpuu'"),
        (["nnpu+atuo"], "auc", "unknown propensity 'atuo'. Did you mean 'auto'"),
        (["nnpu"], "acu", "unknown criterion 'acu'. Did you mean 'auc'"),
        ([], "auc", "there is nothing to compare"),
        (["nnpu+known"], "auc", "there are no known propensities"),
    ):
        with pytest.raises(InvalidInput, match=message):
            compare(rows, PLAIN, candidates, by=by)


def test_the_winner_is_fitted_as_it_was_judged(path: Path) -> None:
    rows = read_rows(open_source(path), Roles("s", propensity="e", truth="y"))
    kept, recipe = chosen(Candidate("upu", "known"), rows, replace(PLAIN, propensity="auto"))
    assert (kept, recipe.method, recipe.propensity) == (rows, "upu", None)
    kept, recipe = chosen(Candidate("upu", "logistic"), rows, PLAIN)
    assert (kept.propensity, recipe.propensity) == (None, "logistic")
    kept, recipe = chosen(Candidate("upu"), rows, replace(PLAIN, propensity="auto"))
    assert (kept.propensity, recipe.propensity) == (None, None)


def test_all_candidates_are_judged_by_the_same_propensities(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = read_rows(open_source(path), Roles("s", propensity="e", truth="y"))
    own: dict[str, Any] = {}
    judges: list[Any] = []
    real_scores, real_metrics = comparing.score_held_out, comparing.estimate_metrics

    def score(classifier: Any, data: PUData, basis: Any, e: Tensor | None, recipe: Recipe) -> Any:
        own[str(len(own))] = e
        return real_scores(classifier, data, basis, e, recipe)

    def metrics(*arguments: Any, **options: Any) -> Any:
        judges.append(options["propensity"])
        return real_metrics(*arguments, **options)

    monkeypatch.setattr(comparing, "score_held_out", score)
    monkeypatch.setattr(comparing, "estimate_metrics", metrics)
    compare(rows, PLAIN, ["logistic", "logistic+known", "logistic+constant"])
    known = torch.from_numpy(np.array(rows.propensity))
    assert own["0"] is None
    assert torch.equal(own["1"], known)
    assert own["2"].std() == pytest.approx(0, abs=1e-12)
    assert all(torch.equal(e, known) for e in judges)


def test_a_candidate_that_fails_is_reported_and_the_others_go_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = read_rows(open_source(path), ROLES)
    real = comparing.score_held_out

    def score(classifier: Any, *rest: Any) -> Any:
        if getattr(classifier, "method", "") == "upu":
            raise TrainingDiverged("the risk is no longer finite")
        return real(classifier, *rest)

    monkeypatch.setattr(comparing, "score_held_out", score)
    found = compare(rows, PLAIN, ["upu", "logistic"])
    assert [(each.candidate, each.failed) for each in found] == [
        ("logistic", None),
        ("upu", "the risk is no longer finite"),
    ]


# ------------------------------------------------------------------------------------------- evaluation


def test_evaluation_is_the_metrics_of_the_models_probabilities(path: Path) -> None:
    _, model = made(path, Recipe("logistic", "logistic", 0.5))
    frame = table()
    found = evaluate_source(model, open_source(path), truth="y", level=0.9, seed=3)
    assert isinstance(found, Evaluation)
    p = model.probability(frame)
    labels, y = frame["s"].to_numpy(copy=True), torch.from_numpy(frame["y"].to_numpy(copy=True))
    assert found.n_rows == 120
    assert found.truth == evaluate(y, torch.from_numpy(p), threshold=model.threshold)
    assert found.calibration_error == calibration_error(y, torch.from_numpy(p), bins=15)
    e = model.propensity(model.features(frame))[labels == 1]
    given: dict[str, Any] = {"prior": 0.5, "threshold": model.threshold, "level": 0.9, "seed": 3}
    assert found.estimated == estimate_metrics(p, labels, propensity=e, gammas=(1.0, 1.25, 1.5, 2.0), **given)
    assert found.scar == estimate_metrics(p, labels, **given)
    assert found.estimated != found.scar
    json.dumps(json_safe(found.as_dict()), allow_nan=False)


def test_evaluation_of_a_model_that_takes_labels_as_unbiased(path: Path) -> None:
    _, model = made(path)
    found = evaluate_source(model, open_source(path))
    assert found.estimated is not None
    assert found.scar is not None
    assert found.estimated.assumption == "labels are a random sample of the positives"
    assert (found.estimated.auc, found.truth) == (found.scar.auc, None)


def test_known_propensities_of_later_rows_are_used(path: Path) -> None:
    _, model = made(path, roles=Roles("s", propensity="e", truth="y"))
    found = evaluate_source(model, open_source(path))
    frame = table()
    expected = estimate_metrics(
        model.probability(frame),
        frame["s"].to_numpy(copy=True),
        prior=0.5,
        propensity=frame["e"][frame["s"] == 1].to_numpy(copy=True),
        threshold=model.threshold,
        gammas=(1.0, 1.25, 1.5, 2.0),
    )
    assert found.estimated == expected
    frame.drop(columns="e").to_csv(path, index=False)
    without = evaluate_source(model, open_source(path)).estimated
    assert without is not None
    assert without.assumption == "labels are a random sample of the positives"


def test_an_evaluation_needs_something_to_compare_with(path: Path) -> None:
    _, model = made(path)
    nameless = replace(model, facts={})
    with pytest.raises(InvalidInput, match=r"name the label column \(--label\) or true classes \(--truth\)"):
        evaluate_source(nameless, open_source(path))
    with pytest.raises(InvalidInput, match="cannot hold both PU labels and true classes"):
        evaluate_source(model, open_source(path), label="y", truth="y")
    with pytest.raises(UnknownName, match="unknown column 'ss'"):
        evaluate_source(model, open_source(path), label="ss", truth="y")
    with pytest.warns(PueWarning, match="columns the model never saw are not used: e, y"):
        evaluate_source(nameless, open_source(path), label="s")
    assert evaluate_source(model, open_source(path), truth="s").truth is not None


def test_a_saved_model_is_the_same_model(path: Path, tmp_path: Path) -> None:
    _, model = made(path, Recipe("upu", "logistic", 0.5, epochs=30))
    model.save(tmp_path / "model")
    again = pue.load(tmp_path / "model")
    assert np.array_equal(again.probability(table()), model.probability(table()))
    summary = modelling.without_times(model.summary)
    assert (again.threshold, again.rule, again.facts, again.summary) == (
        *(model.threshold, model.rule, model.facts, summary),
    )
    assert np.array_equal(again.held_out.background, model.held_out.background)
    assert again.with_threshold("prior").threshold == model.with_threshold("prior").threshold


def test_uniform_weights_make_the_prior_rule_a_quantile() -> None:
    labels = torch.tensor([1, 1, 0, 0, 0, 0, 0, 0, 0, 0])
    w = uniform(labels, prior=0.4)
    h = HeldOut(np.arange(10) / 10, w.positive.numpy(), w.background.numpy())
    assert choose_threshold(h, "prior")[0] == 0.6


def test_models_of_images_are_judged_with_the_propensities_of_the_rows_around() -> None:
    rng = np.random.default_rng(0)
    y = rng.random(150) < 0.5
    images = rng.integers(0, 120, (150, 1, 5, 5)) + 100 * y[:, None, None, None]
    x, s = torch.from_numpy(images.astype(np.uint8)), torch.from_numpy((y & (rng.random(150) < 0.6)).astype(int))
    recipe = Recipe(prior=0.5, propensity="logistic")
    basis = prepare(Rows(PUData(x, s), None, None), recipe)
    assert basis.e is not None
    assert basis.judging is not None
    z = fit_reduction(x[s == 1], seed=0)(x[s == 1])
    distance = torch.cdist(z, z).fill_diagonal_(torch.inf)
    expected = [float(basis.e[row.argsort()[:10]].mean()) for row in distance]
    np.testing.assert_allclose(basis.judging, expected, rtol=1e-9)
    table = prepare(Rows(PUData(x.flatten(1).float(), s), None, None), recipe)
    assert table.judging is table.e


# ------------------------------------------------------------------------------------------------- never a constant


def _constant(scored: Any) -> Any:
    return replace(scored, scores=torch.zeros_like(scored.scores))


def test_a_constant_score_is_replaced_by_a_plain_ranking_and_said_so(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = learn.learn

    def one_is_constant(rows: Any, recipe: Recipe, *rest: Any) -> tuple[Any, Any]:
        classifier, scored = real(rows, recipe, *rest)
        return classifier, _constant(scored) if recipe.method == "blend" else scored

    monkeypatch.setattr("pue.app.fit.learn", one_is_constant)
    recipe = Recipe(prior=0.4, propensity=None, progress=False, folds=2)
    with pytest.warns(PueWarning, match="'blend' did not tell labeled rows from the others; 'wrapped_boosting' takes"):
        model = fit.fit_model(read_rows(open_source(path), ROLES), recipe)
    assert model.summary["method"]["name"] == "wrapped_boosting"


def test_scores_that_turn_labeled_rows_down_are_no_ranking_either(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their probabilities would all be the prior."""
    real = learn.learn

    def one_is_reversed(rows: Any, recipe: Recipe, *rest: Any) -> tuple[Any, Any]:
        classifier, scored = real(rows, recipe, *rest)
        return classifier, replace(scored, scores=-scored.scores) if recipe.method == "blend" else scored

    monkeypatch.setattr("pue.app.fit.learn", one_is_reversed)
    recipe = Recipe(prior=0.4, propensity=None, progress=False, folds=2)
    with pytest.warns(PueWarning, match="did not tell labeled rows from the others"):
        model = fit.fit_model(read_rows(open_source(path), ROLES), recipe)
    assert len(np.unique(model.held_out.probabilities)) > 10


def test_where_nothing_tells_rows_apart_there_is_no_model(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = learn.learn

    def always_constant(*given: Any) -> tuple[Any, Any]:
        classifier, scored = real(*given)
        return classifier, _constant(scored)

    monkeypatch.setattr("pue.app.fit.learn", always_constant)
    recipe = Recipe(prior=0.4, propensity=None, progress=False, folds=2)
    with pytest.raises(InvalidInput, match="nothing in the features tells labeled rows from the others"):
        fit.fit_model(read_rows(open_source(path), ROLES), recipe)


# -------------------------------------------------------------------------------------------- columns of the labeling


@pytest.mark.parametrize(
    ("named", "places"), [({"labeling_columns": ("b",)}, (1,)), ({"ignore_for_labeling": ("b",)}, (0,))]
)
def test_columns_of_the_labeling_become_features(path: Path, named: dict[str, Any], places: tuple[int, ...]) -> None:
    rows = read_rows(open_source(path), ROLES)
    assert rows.vectorizer.feature_names == ["a", "b"]
    found = preparing._estimator(Recipe(**named), rows)
    assert isinstance(found, Auto)
    assert found.columns == places
    assert preparing._estimator(Recipe(propensity="logistic"), rows) == "logistic"


@pytest.mark.parametrize(
    ("named", "match"),
    [
        ({"labeling_columns": ("aa",)}, "unknown column 'aa'. Did you mean 'a'"),
        ({"ignore_for_labeling": ("a", "b")}, "no column is left that the labeling could depend on"),
    ],
)
def test_columns_that_are_not_there_are_refused(path: Path, named: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        preparing._estimator(Recipe(**named), read_rows(open_source(path), ROLES))


def test_columns_of_the_labeling_contradict_each_other_or_the_propensity() -> None:
    with pytest.raises(InvalidInput, match="for the labeling were both named"):
        Recipe(labeling_columns=("a",), ignore_for_labeling=("b",))
    with pytest.raises(InvalidInput, match="columns of the labeling go with propensity 'auto'; got 'none'"):
        Recipe(labeling_columns=("a",), propensity=None)


def test_a_fit_takes_the_columns_of_the_labeling(path: Path) -> None:
    recipe = Recipe(prior=0.5, labeling_columns=("b",), progress=False, folds=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PueWarning)
        model = fit.fit_model(read_rows(open_source(path), ROLES), recipe)
    features = np.array([[0.0, 1.0], [9.0, 1.0]], dtype=np.float32)
    first, second = model.propensity(features)
    assert first == second


# ------------------------------------------------------------------------------------------- over the prior's range


def test_the_ends_of_the_priors_interval_are_tried(path: Path) -> None:
    rows = read_rows(open_source(path), ROLES)
    recipe = Recipe("forest", None, "estimate", progress=False, folds=2)
    prepared = preparing.prepare(rows, recipe)
    classifier = learn.classifier_of(recipe, prepared).fit(rows.data.x, rows.data.labels)
    low, own, high = prior_range.over_the_range(rows, recipe, prepared, classifier)
    assert (low["prior"], high["prior"]) == prepared.prior_interval
    assert own["shared"] == own["best"] == 9  # a tenth of 90 unlabeled rows
    assert low["called"] < own["called"] < high["called"]
    unlabeled = np.flatnonzero(rows.data.labels.numpy() == 0)
    scores = classifier.decision_function(rows.data.x)
    best = set(sorted(unlabeled, key=lambda row: -scores[row])[:9])
    other = learn.classifier_of(recipe, replace(prepared, prior=replace(prepared.prior, value=high["prior"])))
    scores = other.fit(rows.data.x, rows.data.labels).decision_function(rows.data.x)
    assert high["called"] == pytest.approx(np.mean(scores >= 0))
    assert high["shared"] == len(best & set(sorted(unlabeled, key=lambda row: -scores[row])[:9]))


@pytest.mark.parametrize("recipe", [Recipe("forest", None, 0.5), Recipe("nnpu", None, "estimate")])
def test_a_given_prior_or_a_network_is_not_tried_again(path: Path, recipe: Recipe) -> None:
    rows = read_rows(open_source(path), ROLES)
    prepared = preparing.prepare(rows, recipe)
    assert prior_range.over_the_range(rows, recipe, prepared, None) is None
