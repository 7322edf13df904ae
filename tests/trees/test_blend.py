"""A blend: shares against slow twins, members that have not seen what they score, and what must not change it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from test_boosting import table
from test_nodes import altered
from test_shapley import all_subsets

import pue.trees.blend as blend_module
from pue import Blend, Boosting, Forest, PUClassifier, PUData, load
from pue.app.classifiers import choices, make_classifier
from pue.core.weights import RowWeights, pu
from pue.errors import InvalidInput, ModelError
from pue.persistence.folder import read_folder, write_folder
from pue.trees.blend import MOST, blending, labels_worth
from pue.trees.blended import VOTE, Blended, base_of, covers_of, effects_of, scores
from pue.trees.ridge import MOST_COLUMNS, contest, moments, standardized

QUICK = Blend(forest=Forest(n_trees=10), boosting=Boosting(rounds=5, folds=2))


def problem(n: int = 400, *, prior: float = 0.4, **settings: Any) -> tuple[PUData, RowWeights]:
    x, s, _ = table(n, **settings)
    data = PUData(torch.from_numpy(x), torch.from_numpy(s))
    return data, pu(data.labels, None, prior=prior)


def classifier(**settings: Any) -> PUClassifier:
    return PUClassifier(**{"prior": 0.4, "backbone": QUICK, "random_state": 0, **settings})


def same(one: Blended, other: Blended) -> bool:
    rows = np.random.default_rng(0).normal(size=(50, one.n_features))
    return np.array_equal(one.log_odds(rows), other.log_odds(rows))


# ------------------------------------------------------------------------------------------------- the shares


def slow_risk(columns: np.ndarray, weights: RowWeights, shares: np.ndarray, start: float, pull: float) -> float:
    """Row by row, from the two parts of the PU risk."""
    total = 0.0
    for row, a, negative in zip(columns, weights.positive.tolist(), weights.negative.tolist(), strict=True):
        score = sum(share * value for share, value in zip(shares, row, strict=True)) + start
        total += a * np.log1p(np.exp(-score)) + negative * np.log1p(np.exp(score))
    return total + pull * sum((share - 1 / len(shares)) ** 2 for share in shares)


def noisy_scores(seed: int, n: int = 300) -> tuple[np.ndarray, RowWeights]:
    """Three scores of which the second says most and the third nothing."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    labels = torch.from_numpy((y & (rng.random(n) < 0.5)).astype(int))
    columns = np.column_stack([(2 * y - 1) + rng.normal(size=n) * spread for spread in (2.0, 1.0, 50.0)])
    columns[:, 2] /= 20
    return columns, pu(labels, None, prior=0.4)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("pull", [0.0, 0.01])
def test_no_shares_nearby_have_a_smaller_risk(seed: int, pull: float) -> None:
    columns, weights = noisy_scores(seed)
    shares, start = blending(columns, weights, pull)
    best, rng = slow_risk(columns, weights, shares, start, pull), np.random.default_rng(seed)
    assert ((shares >= 0) & (shares <= MOST)).all()
    for size in (0.5, 0.1, 0.01):
        for _ in range(30):
            other = np.clip(shares + size * rng.normal(size=3), 0, MOST)
            assert slow_risk(columns, weights, other, start + size * rng.normal(), pull) > best - 1e-9
    assert shares[1] > shares[0] > shares[2] - 0.2
    assert slow_risk(columns, weights, np.full(3, 1 / 3), 0.0, pull) > best


def test_the_gradient_is_that_of_the_risk(monkeypatch: pytest.MonkeyPatch) -> None:
    columns, weights = noisy_scores(0)
    seen: list[Any] = []
    minimize = blend_module.minimize
    monkeypatch.setattr(blend_module, "minimize", lambda f, *rest, **more: seen.append(f) or minimize(f, *rest, **more))
    blending(columns, weights, 0.02)
    at = np.array([0.4, 0.9, 0.1, -0.3])
    value, gradient = seen[0](at)
    slow = lambda there: slow_risk(columns, weights, there[:3], there[3], 0.02)  # noqa: E731
    assert value == pytest.approx(slow(at), abs=1e-12)
    steps = 1e-5 * np.eye(4)
    numeric = [(slow(at + step) - slow(at - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(gradient, numeric, atol=1e-8)


def test_shares_stay_where_labels_outweigh_the_rows() -> None:
    """The risk falls without end there: nothing but the bound keeps the shares."""
    columns, weights = noisy_scores(0)
    heavy = RowWeights(3 * weights.positive, weights.background - 3 * weights.positive)
    columns = np.where((weights.positive > 0).numpy()[:, None], np.abs(columns) + 1, columns)
    shares, start = blending(columns, heavy, 0.0)
    assert shares.max() == MOST
    assert np.isfinite(start)


def test_a_strong_pull_leaves_a_third_each() -> None:
    columns, weights = noisy_scores(1)
    np.testing.assert_allclose(blending(columns, weights, 1e6)[0], 1 / 3, atol=1e-4)


@pytest.mark.parametrize("times", [None, 3])
def test_how_many_labels_they_are_worth(times: int | None) -> None:
    labels = torch.tensor([1, 1, 1, 0, 0, 0])
    mass = np.ones(6) if times is None else np.full(6, float(times))
    even = pu(labels, None, prior=0.5, sample_weight=None if times is None else torch.from_numpy(mass))
    assert labels_worth(even, mass) == pytest.approx(3 * (times or 1))
    uneven = pu(labels, torch.tensor([1.0, 1.0, 0.01]), prior=0.5)
    assert labels_worth(uneven, np.ones(6)) < 1.1


def test_a_slope_is_left_to_the_line_and_steps_to_the_trees() -> None:
    rng = np.random.default_rng(0)
    x, seen, found, gain = rng.normal(size=(3000, 8)), slice(1500), {}, {}
    slope = rng.random(3000) < 1 / (1 + np.exp(-x @ rng.normal(size=8)))
    for name, y in (("slope", slope), ("steps", (x[:, 0] > 0) ^ (x[:, 1] > 0))):
        s = (y & (rng.random(3000) < 0.2)).astype(int)
        both = (classifier(prior=float(y.mean()), backbone=each) for each in ("blend", "forest"))
        fitted = [each.fit(x[seen], s[seen]) for each in both]
        blended, forest = (roc_auc_score(y[1500:], each.decision_function(x[1500:])) for each in fitted)
        found[name], gain[name] = fitted[0].trees_.shares, blended - forest
    assert found["slope"][2] > 0.4 > 0.15 > found["steps"][2]
    assert gain["slope"] > 0.02
    assert gain["steps"] > -0.01


# ------------------------------------------------------------------------------------------------- held out


@pytest.mark.parametrize(("enough", "rounds"), [(10_000, 3), (100, 1)])
def test_no_member_has_seen_what_it_scores_for_the_shares(
    enough: int, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    taught: list[PUData] = []
    scored: list[np.ndarray] = []
    contest_, scores_ = blend_module.contest, blend_module.scores
    monkeypatch.setattr(blend_module, "ENOUGH", enough)
    monkeypatch.setattr(blend_module, "contest", lambda d, w: taught.append(d) or contest_(d, w))
    monkeypatch.setattr(blend_module, "scores", lambda *m: scored.append(m[-1]) or scores_(*m))
    data, weights = problem(300)
    doubled = torch.cat([torch.arange(300), torch.arange(300)])
    data, twice = data.take(doubled), RowWeights(weights.positive[doubled] / 2, weights.negative[doubled] / 2)
    QUICK.learn(data, twice, seed=0)
    assert len(scored) == rounds
    assert len(taught) == 1 + rounds
    for learnt, rows in zip(taught[1:], scored, strict=True):
        seen = {row.tobytes() for row in learnt.x.numpy()}
        assert not seen & {row.tobytes() for row in rows}
        assert bool((learnt.labels == 1).any())
    if rounds == 3:
        assert sum(map(len, scored)) == 600


def test_the_threshold_gives_the_held_out_scores_the_prior_as_their_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    columns: list[np.ndarray] = []
    held_out = Blend._held_out

    def watched(self: Blend, *rest: Any) -> Any:
        found = held_out(self, *rest)
        columns.append(found[1])
        return found

    monkeypatch.setattr(Blend, "_held_out", watched)
    data, weights = problem(prior=0.3)
    blended, threshold = QUICK.learn(data, weights, seed=0)
    margin = columns[0] @ blended.shares + blended.start - threshold
    assert np.mean(1 / (1 + np.exp(-margin))) == pytest.approx(0.3, abs=1e-6)


def test_a_score_is_the_sum_of_the_shares() -> None:
    data, weights = problem()
    found, x = QUICK.fit(data, weights, seed=0), data.x.numpy()
    votes = VOTE * (found.forest.probability(x) - 0.5)
    each = [votes, found.boosted.log_odds(x), found.line.margin(x)]
    wanted = found.start + sum(share * own for share, own in zip(found.shares, each, strict=True))
    np.testing.assert_allclose(found.log_odds(x), wanted, atol=1e-12)
    np.testing.assert_array_equal(scores(found.forest, found.boosted, found.line, x), np.column_stack(each))


# ------------------------------------------------------------------------------------------------- the line


@pytest.mark.parametrize("uneven", [False, True])
def test_the_line_is_that_of_scikit_learn_on_the_pooled_rows(uneven: bool) -> None:
    data, _ = problem()
    e = None
    if uneven:
        e = torch.from_numpy(np.random.default_rng(0).uniform(0.1, 1, data.n_labeled))
    weights = pu(data.labels, e, prior=0.4)
    x, s = data.x.numpy(), data.labels.numpy() == 1
    z = (x - x.mean(0)) / x.std(0)
    ours = weights.positive.numpy()[s]
    pooled, target = np.concatenate([z[s], z]), np.repeat([1, 0], [s.sum(), len(z)])
    heavy = np.concatenate([ours / ours.mean(), np.ones(len(z))])
    twin = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-10).fit(pooled, target, heavy)
    np.testing.assert_allclose(contest(data, weights).margin(x), twin.decision_function(z), atol=1e-4)


def test_a_missing_value_counts_as_the_mean_and_a_far_one_is_cut() -> None:
    data, weights = problem(missing=0.2)
    line = contest(data, weights)
    gap = np.full((1, 4), np.nan)
    np.testing.assert_allclose(line.margin(gap), line.margin(line.mean[None]), atol=1e-12)
    np.testing.assert_array_equal(line.margin(np.full((1, 4), 1e30)), line.margin(np.full((1, 4), 1e9)))
    np.testing.assert_allclose(line.effects(data.x.numpy()).sum(1) + line.beta[-1], line.margin(data.x.numpy()))


def test_moments_are_weighted() -> None:
    x, times = np.array([[1.0, 2.0], [4.0, 2.0], [np.nan, 2.0]]), np.array([2.0, 1.0, 5.0])
    mean, scale = moments(x, times)
    np.testing.assert_allclose(mean, [2, 2])
    np.testing.assert_allclose(scale, [np.sqrt(2), 1])
    np.testing.assert_allclose(standardized(x, mean, scale)[:, 0], [-1 / np.sqrt(2), np.sqrt(2), 0])


def test_so_many_columns_get_no_line() -> None:
    rng = np.random.default_rng(0)
    data = PUData(torch.from_numpy(rng.normal(size=(40, MOST_COLUMNS + 1))), torch.tensor([1] * 10 + [0] * 30))
    line = contest(data, pu(data.labels, None, prior=0.5))
    assert not line.beta.any()
    assert len(line.beta) == MOST_COLUMNS + 2


# ------------------------------------------------------------------------------------------------- what changes nothing


def test_it_depends_on_the_seed_alone() -> None:
    data, weights = problem()
    found = QUICK.fit(data, weights, seed=1)
    jobs = Blend(replace(QUICK.forest, jobs=2), replace(QUICK.boosting, jobs=2))
    assert same(found, jobs.fit(data, weights, seed=1))
    assert not same(found, QUICK.fit(data, weights, seed=2))


@pytest.mark.parametrize("scenario", ["single_sample", "case_control"])
def test_weight_k_means_k_rows(scenario: str) -> None:
    x, s, _ = table(300)
    times = np.random.default_rng(0).integers(1, 4, 300)
    weighted = classifier(scenario=scenario).fit(x, s, sample_weight=times)
    repeated = classifier(scenario=scenario).fit(np.repeat(x, times, axis=0), np.repeat(s, times))
    np.testing.assert_allclose(weighted.decision_function(x), repeated.decision_function(x), atol=1e-5)


def test_rows_without_weight_teach_nothing() -> None:
    data, weights = problem()
    some = torch.arange(data.n_rows) < 300
    nothing = RowWeights(weights.positive * some, weights.negative * some)
    rest = RowWeights(weights.positive[some], weights.negative[some])
    assert same(QUICK.fit(data, nothing, seed=0), QUICK.fit(data.take(some), rest, seed=0))


# ------------------------------------------------------------------------------------------------- odd tables


def test_a_single_labeled_row_and_columns_that_do_not_vary() -> None:
    x, _, _ = table(50)
    few = classifier(prior=0.3).fit(x, (np.arange(50) == 0).astype(int))
    np.testing.assert_allclose(few.trees_.shares, 1 / 3)
    assert np.isfinite(few.decision_function(x)).all()
    flat = classifier(prior=0.3).fit(np.ones((50, 2)), (np.arange(50) < 9).astype(int))
    assert np.ptp(flat.decision_function(np.ones((3, 2)))) == 0


def test_labels_that_were_trimmed_do_not_leave_a_fold_without_any() -> None:
    x, s, _ = table(300)
    e = np.full(300, 0.5)
    e[np.flatnonzero(s)[3:]] = 1.0
    data = PUData(torch.from_numpy(x), torch.from_numpy(s))
    weights = pu(data.labels, None, prior=0.4)
    kept = torch.zeros(300, dtype=torch.bool)
    kept[np.flatnonzero(s)[:3]] = True
    few = RowWeights(weights.positive * kept, weights.background - weights.positive * kept)
    blended, threshold = QUICK.learn(data, few, seed=0)
    assert np.isfinite(blended.log_odds(x)).all()
    assert np.isfinite(threshold)


def test_labeled_negatives_and_missing_values() -> None:
    x, s, y = table(600, missing=0.1)
    s[np.flatnonzero(~y)[:60]] = -1
    clf = classifier().fit(x, s)
    assert roc_auc_score(y, clf.decision_function(x)) > 0.8


def test_case_control_recovers_the_class() -> None:
    x, _, y = table(900)
    labeled, unlabeled = np.flatnonzero(y)[:150], np.arange(300, 900)
    rows = np.concatenate([labeled, unlabeled])
    clf = classifier(scenario="case_control").fit(x[rows], np.repeat([1, 0], [150, 600]))
    assert np.mean(clf.predict(x[unlabeled]) == y[unlabeled]) > 0.75


# ------------------------------------------------------------------------------------------------- explanations, files


@pytest.mark.parametrize("owners", [[0, 1, 2, 3], [0, 1, 1, 0]], ids=["each its own", "two columns of two"])
def test_explanations_are_the_shares_of_the_members(owners: list[int]) -> None:
    data, weights = problem(200, missing=0.1)
    found = Blend(Forest(n_trees=3, min_leaf=20), Boosting(rounds=2, folds=2, leaves=4)).fit(data, weights, seed=0)
    x, players = data.x.numpy(), np.array(owners)
    covers = covers_of(found, x)
    parts = np.split(covers, [found.forest.n_nodes])
    effects = effects_of(found, x[:3], covers, players)
    np.testing.assert_allclose(effects.sum(1) + base_of(found, covers), found.log_odds(x[:3]), atol=1e-9)
    for row, own in zip(x[:3], effects, strict=True):
        wanted = VOTE * found.shares[0] * all_subsets(found.forest, row.astype(np.float32), parts[0], players)
        wanted = wanted + found.shares[1] * all_subsets(found.boosted, row, parts[1], players)
        line = found.line.effects(row[None])[0]
        for column, owner in enumerate(owners):
            wanted[owner] += found.shares[2] * line[column]
        np.testing.assert_allclose(own, wanted, atol=1e-9)
    with pytest.raises(InvalidInput, match="need as many covers"):
        effects_of(found, x[:3], covers[1:])


def test_saved_and_loaded_it_scores_the_same_to_the_last_bit(tmp_path: Path) -> None:
    x, s, _ = table(missing=0.1)
    clf = classifier().fit(x, s)
    clf.save(tmp_path / "model")
    found = load(tmp_path / "model")
    assert isinstance(found.trees_, Blended)
    assert found.backbone == QUICK
    np.testing.assert_array_equal(found.decision_function(x), clf.decision_function(x))


def test_altered_folders_are_refused_or_score(tmp_path: Path) -> None:
    x, s, _ = table(200)
    classifier().fit(x, s).save(tmp_path / "model")
    files, _ = read_folder(tmp_path / "model")
    rng, refused = np.random.default_rng(1), 0
    for turn in range(100):
        tensors = safetensors.numpy.load(files["tensors.safetensors"])
        name = rng.choice(sorted(tensors))
        tensors[name] = altered(tensors[name], rng)
        write_folder(tmp_path / str(turn), {**files, "tensors.safetensors": safetensors.numpy.save(tensors)})
        try:
            found = load(tmp_path / str(turn)).decision_function(x)
        except (ModelError, InvalidInput):
            refused += 1
        else:
            assert np.isfinite(found).all()
    assert refused > 30


def small() -> Blended:
    data, weights = problem(100)
    return Blend(Forest(n_trees=2), Boosting(rounds=2, folds=2)).fit(data, weights, seed=0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"shares": np.array([1.0, 1.0])}, "three shares"),
        ({"shares": np.array([1.0, -1.0, 0.0])}, "none below zero"),
        ({"shares": np.array([1.0, np.nan, 0.0])}, "three shares"),
        ({"start": np.inf}, "what is no number"),
    ],
)
def test_blends_that_cannot_be_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        replace(small(), **changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"beta": np.zeros(3)}, "the same features"),
        ({"mean": np.zeros(7)}, "the same features"),
        ({"beta": np.full(5, np.nan)}, "what is no number"),
        ({"scale": np.zeros(4)}, "not above zero"),
    ],
)
def test_lines_that_cannot_be_are_refused(changes: dict[str, Any], words: str) -> None:
    blended = small()
    with pytest.raises(InvalidInput, match=words):
        replace(blended, line=replace(blended.line, **changes))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"folds": 1}, "folds must be a whole number, at least 2"),
        ({"folds": 2.5}, "folds must be a whole number, at least 2"),
        ({"pull": -1}, "pull must be a number, at least 0"),
        ({"pull": float("nan")}, "pull must be a number, at least 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        Blend(**settings)


def test_the_command_line_and_the_classifier_know_it() -> None:
    assert "blend" in choices()
    clf = make_classifier("blend", seed=0, prior=0.4)
    assert (clf.method, clf.backbone) == ("nnpu", "blend")
    with pytest.raises(InvalidInput, match="a blend has no use for loss"):
        classifier(loss="logistic").fit(*table(100)[:2])
