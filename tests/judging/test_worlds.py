"""Worlds: what they are made of, and that all numbers of a model come from the same ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pue.core.weights import uniform
from pue.errors import InvalidInput
from pue.judging import estimate_metrics
from pue.judging import worlds as worlds_module
from pue.judging.curves import spread_between, threshold_curve
from pue.judging.estimates import ESTIMATED, describe_excess
from pue.judging.worlds import Chance, Doubts, capped, depth


def scored(n: int = 300) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Probabilities, labels, and propensities of the labeled rows."""
    rng = np.random.default_rng(0)
    y = rng.random(n) < 0.4
    p = 1 / (1 + np.exp(-rng.normal(size=n) - 2 * y + 1))
    s = y & (rng.random(n) < 0.4)
    return torch.from_numpy(p), torch.from_numpy(s.astype(np.int64)), torch.from_numpy(rng.uniform(0.1, 0.9, s.sum()))


def test_the_center_weighs_labels_by_inverse_propensity_and_by_the_hidden_bias(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds_module, "BINS", 1)
    p, s, e = scored()
    found = Doubts(p, s, 0.4, propensity=e, hidden=(0.7, 0.0)).center
    labeled = np.flatnonzero(s.numpy() == 1)
    place = depth(p, s)
    twin = {row: math.exp(-0.7 * place[row]) / float(e[k]) for k, row in enumerate(labeled)}
    share = {row: weight / sum(twin.values()) for row, weight in twin.items()}
    for row in range(len(s)):
        assert found.positive[row] / found.positive.sum() == pytest.approx(share.get(row, 0.0))
    assert found.prior == 0.4
    assert found.times is None


def test_every_world_believes_one_reading_one_prior_and_one_hidden_bias(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds_module, "BINS", 1)
    monkeypatch.setattr(worlds_module, "UNSEEN", 1e-300)
    p, s, e = scored()
    other = torch.ones_like(e)
    doubts = Doubts(p, s, 0.4, propensity=e, prior_interval=(0.3, 0.6), readings=[other], hidden=(0.5, 1.0))
    worlds = list(doubts.draw(400, seed=1))
    again = list(doubts.draw(400, seed=1))
    assert all(
        np.array_equal(a.positive, b.positive) and a.prior == b.prior for a, b in zip(worlds, again, strict=True)
    )
    priors = np.array([world.prior for world in worlds])
    assert 0.9 < np.mean((priors >= 0.3) & (priors <= 0.6)) < 0.99
    labeled, place = s.numpy() == 1, depth(p, s)[s.numpy() == 1]
    slopes = []
    for world in worlds:
        logs = [np.log(world.positive[labeled] * reading.numpy()) for reading in (e, other)]
        fits = [np.polyfit(place, log, 1, full=True) for log in logs]
        exact = [fit[0][0] for fit in fits if fit[1][0] < 1e-18]
        assert len(exact) == 1
        slopes.append(exact[0])
    assert min(slopes) >= -1.5
    assert max(slopes) <= 0.5
    assert np.mean(slopes) == pytest.approx(-0.5, abs=0.1)


def test_no_bin_holds_more_positives_than_rows_and_the_rest_keep_their_proportions() -> None:
    rng = np.random.default_rng(0)
    place, background = rng.integers(0, 6, 200), rng.uniform(0.5, 1.5, 200)
    positive = np.where(rng.random(200) < 0.5, rng.exponential(size=200) * np.exp(0.8 * place), 0.0)
    found = capped(positive, place, background, prior=0.6)
    assert found.sum() == pytest.approx(0.6)
    held, room, before = (np.bincount(place, each) for each in (found, background / background.sum(), positive))
    full = held >= room - 1e-9
    assert (held <= room + 1e-9).all()
    assert 0 < full.sum() < 6
    ratios = held[~full] / before[~full]
    np.testing.assert_allclose(ratios, ratios[0])
    assert (room[full] / before[full] <= ratios[0] + 1e-9).all()  # else it would not be full


def test_what_fits_is_left_as_it_is() -> None:
    positive = np.array([0.2, 0.0, 0.1])
    np.testing.assert_allclose(capped(positive, np.array([0, 1, 2]), np.ones(3), prior=0.3), positive)


def test_the_curve_and_the_metrics_say_the_same_about_the_same_threshold() -> None:
    p, s, e = scored()
    given = {"propensity": e, "prior_interval": (0.35, 0.5), "readings": [torch.ones_like(e)], "hidden": (1.0, 2.0)}
    metrics = estimate_metrics(p, s, prior=0.4, threshold=0.5, draws=80, seed=3, **given)
    doubts = Doubts(p, s, 0.4, **given)
    curve = threshold_curve(p, doubts.weights, worlds=doubts, thresholds=np.array([0.0, 0.5]), draws=80, seed=3)
    for name in ("precision", "recall"):
        said = getattr(metrics, name)
        assert [part[1] for part in getattr(curve, name)] == pytest.approx([said.value, said.low, said.high])
    assert curve.f1[1] == pytest.approx(metrics.f1.value)


def test_chance_alone_keeps_prior_and_weights() -> None:
    _, s, _ = scored()
    weights = uniform(s, prior=0.4)
    worlds = list(Chance(weights).draw(5, seed=0))
    assert {round(world.prior, 12) for world in worlds} == {0.4}
    assert all(np.array_equal(world.positive, weights.positive.numpy()) for world in worlds)
    assert len({tuple(world.times.tolist()) for world in worlds if world.times is not None}) == 5


@pytest.mark.parametrize("hidden", [(math.nan, 1.0), (0.0, -1.0)])
def test_a_hidden_bias_that_is_no_bias_is_refused(hidden: tuple[float, float]) -> None:
    p, s, _ = scored()
    with pytest.raises(InvalidInput, match="hidden must be two numbers, the second not negative"):
        Doubts(p, s, 0.4, hidden=hidden)


# ------------------------------------------------------------------------------------------------ other accounts


def test_the_largest_prior_that_plain_labels_allow() -> None:
    """Twin: loops over every cut that has half of the labels above it, or more."""
    p, s, _ = scored()
    labeled = [float(p[row]) for row in range(len(s)) if int(s[row]) == 1]
    limits = []
    for cut in labeled:
        recall = sum(score >= cut for score in labeled) / len(labeled)
        if recall > 0.5 - 1e-12:
            limits.append(sum(float(score) >= cut for score in p) / len(p) / recall)
    assert 0.3 < min(limits) < 0.9
    for prior, interval in ((0.99, (0.2, 1.0)), (0.99, (min(limits) + 0.02, 1.0)), (0.2, (0.1, 0.9))):
        found = Doubts(p, s, prior, prior_interval=interval).plain_prior
        assert found == pytest.approx(min(max(min(limits), interval[0]), prior))


def test_where_the_prior_is_an_estimate_the_labels_as_they_are_are_an_account_too() -> None:
    p, s, e = scored()
    known = Doubts(p, s, 0.8, propensity=e, hidden=(1.0, 3.0))
    assert len(list(known.families(3, seed=0))) == 1
    guessed = Doubts(p, s, 0.8, propensity=e, hidden=(1.0, 3.0), prior_interval=(0.2, 0.9), readings=[e.flip(0)])
    believed, plain = (list(family) for family in guessed.families(50, seed=0))
    assert [world.positive.tolist() for world in believed] == [w.positive.tolist() for w in guessed.draw(50, seed=0)]
    assert {world.prior for world in plain} == {guessed.plain_prior}
    for world in plain:
        of_labeled = world.positive[s.numpy() == 1]
        assert of_labeled == pytest.approx(np.full(len(of_labeled), of_labeled.mean()), rel=0.2), "a random sample"


def test_the_interval_of_the_recall_holds_what_labels_say_of_it() -> None:
    """The prior is put too high, so that most worlds cannot have so many positives among the rows called; classes are
    well apart and labels a random sample, so that the labels are right."""
    rng = np.random.default_rng(0)
    y = np.arange(2000) < 600
    p = 1 / (1 + np.exp(-rng.normal(size=2000) * 2 - 8 * y + 4))
    s = y & (rng.random(2000) < 0.4)
    truth = np.mean(p[y] >= 0.5)
    assert truth > 0.95
    found = estimate_metrics(p, s.astype(int), prior=0.45, threshold=0.5, prior_interval=(0.24, 0.64), hidden=(1, 3))
    assert found.recall.value < 0.8
    assert found.recall.low < truth < found.recall.high


# ------------------------------------------------------------------------------------------------ several models


def judged_by_folds(unlike: float) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """Three models, whose scores are shifted against each other."""
    p, s, _ = scored()
    fold = np.arange(len(p)) % 3
    return (p + torch.from_numpy(unlike * (fold - 1.0))).clamp(0, 1), s, fold


def test_how_unlike_models_are_is_a_part_of_the_intervals() -> None:
    p, s, fold = judged_by_folds(0.15)
    alone, together = (estimate_metrics(p, s, prior=0.4, threshold=0.5, fold=f) for f in (None, fold))
    shares = [float(np.mean([float(p[row]) >= 0.5 for row in range(len(p)) if fold[row] == k])) for k in range(3)]
    mean = sum(shares) / 3
    spread = math.sqrt(sum((share - mean) ** 2 for share in shares) / 2)
    half = [(found.flagged.high - found.flagged.low) / 2 for found in (alone, together)]
    assert spread > 0.08
    assert half[1] == pytest.approx(math.hypot(half[0], 1.96 * spread), rel=0.15)
    for name in ("recall", "accuracy", "precision"):
        assert getattr(together, name).value == getattr(alone, name).value
    assert together.recall.high - together.recall.low > 1.2 * (alone.recall.high - alone.recall.low)
    assert together.auc == alone.auc, "a ranking has no threshold"


def test_one_model_has_no_spread_and_an_empty_fold_no_say() -> None:
    p, s, fold = judged_by_folds(0.15)
    alone, one = (estimate_metrics(p, s, prior=0.4, threshold=0.5, fold=f) for f in (None, np.zeros(len(p))))
    assert one == alone
    mass = torch.where(torch.from_numpy(fold == 2), 0.0, 1.0)
    found = spread_between(p.numpy(), np.array([0.5]), uniform(s, prior=0.4, sample_weight=mass), fold)
    both = [float((p[fold == k] >= 0.5).double().mean()) for k in range(2)]
    assert found[0] == pytest.approx(abs(both[0] - both[1]) / math.sqrt(2))


def test_curve_and_metrics_move_together_with_the_model() -> None:
    p, s, fold = judged_by_folds(0.1)
    given = {"prior_interval": (0.35, 0.5), "hidden": (1.0, 2.0)}
    metrics = estimate_metrics(p, s, prior=0.4, threshold=0.5, fold=fold, draws=80, seed=3, **given)
    doubts = Doubts(p, s, 0.4, **given)
    at = {"thresholds": np.array([0.0, 0.5]), "fold": fold, "draws": 80, "seed": 3}
    curve = threshold_curve(p, doubts.weights, worlds=doubts, **at)
    for name in ("precision", "recall"):
        said = getattr(metrics, name)
        assert [part[1] for part in getattr(curve, name)] == pytest.approx([said.value, said.low, said.high])


# ------------------------------------------------------------------------------------------------ what can be


@given(st.integers(0, 10_000), st.floats(0.05, 0.95), st.floats(0, 1), st.booleans(), st.sampled_from([0.0, 3.0]))
@settings(max_examples=60, deadline=None)
def test_numbers_that_stand_together_can_be_together(
    seed: int, prior: float, threshold: float, doubted: bool, reach: float
) -> None:
    """Whatever scores, labels, propensities, prior and doubts are: there are four shares that sum to one, none of them
    negative, from which precision, recall, F1, accuracy and the share called positive follow."""
    rng = np.random.default_rng(seed)
    p, s = rng.random(40).round(2), (rng.random(40) < 0.3).astype(int)
    s[0] = 1
    share = max(prior, s.mean() + 0.01)
    around = (max(0.0, share - 0.2), min(1.0, share + 0.2)) if doubted else None
    m = estimate_metrics(
        p, s, prior=share, propensity=rng.uniform(0.05, 1, s.sum()), threshold=threshold, draws=20,
        prior_interval=around, hidden=(reach / 3, reach), seed=seed,
    )  # fmt: skip
    both, flagged = share * m.recall.value, m.flagged.value
    shares = np.array([both, flagged - both, share - both, 1 - share - flagged + both])
    assert shares.min() >= -1e-9
    assert m.precision.value == pytest.approx(both / flagged if flagged else 0.0, abs=1e-9)
    assert m.f1.value == pytest.approx(2 * both / (share + flagged), abs=1e-9)
    assert m.accuracy.value == pytest.approx(shares[0] + shares[3], abs=1e-9)
    for name in ESTIMATED:
        found = getattr(m, name)
        assert 0 <= found.low <= found.value <= found.high <= 1


def test_five_labels_that_are_all_called_do_not_prove_a_recall_of_one() -> None:
    rng = np.random.default_rng(0)
    p, s = np.concatenate([np.full(5, 0.9), rng.random(595) * 0.8]), np.arange(600) < 5
    few = estimate_metrics(p, s.astype(int), prior=0.02, threshold=0.7)
    assert few.recall.value == 1
    assert few.recall.low < 0.8
    many = estimate_metrics(np.tile(p, 40), np.tile(s, 40).astype(int), prior=0.02, threshold=0.7)
    assert many.recall.low > few.recall.low + 0.1


def test_a_world_adds_a_positive_that_may_be_any_row() -> None:
    """Twin: with n labels the added share is Beta(1, n), and it lies where all rows lie, or the clearest ones."""
    p, s, _ = scored()
    n = int(s.sum())
    worlds = list(Doubts(p, s, 0.4).draw(2000, seed=0))
    elsewhere = np.array([world.positive[s.numpy() == 0].sum() / world.positive.sum() for world in worlds])
    top = sorted(range(len(s)), key=lambda row: -float(p[row]))[: int(0.4 * len(s))]
    outside = [1 - n / len(s), sum(int(s[row]) == 0 for row in top) / len(top)]
    assert elsewhere.mean() == pytest.approx(sum(outside) / 2 / (n + 1), rel=0.1)
    assert Doubts(p, s, 0.4).center.positive[s.numpy() == 0].sum() == 0


# ------------------------------------------------------------------------------------------------ what is said


def test_a_prior_that_cannot_be_is_said() -> None:
    """Every labeled row is called positive, but only a tenth of all rows is: half of them cannot be positive."""
    s = (np.arange(1000) < 60).astype(int)
    p = np.where(np.arange(1000) < 100, 0.9, 0.1)
    wrong, right = (estimate_metrics(p, s, prior=prior, threshold=0.5) for prior in (0.5, 0.09))
    assert right.contradiction is None
    assert wrong.contradiction is not None
    assert "called so would be 50.0 % of all rows, but only 10.0 % are called" in wrong.contradiction
    assert "contradict each other" in str(wrong)
    unsure = estimate_metrics(p, s, prior=0.5, threshold=0.5, prior_interval=(0.08, 0.9))
    assert unsure.contradiction is None
    high = np.where((np.arange(1000) < 60) | (np.arange(1000) > 990), 0.1, 0.9)
    assert "not called" in str(estimate_metrics(high, s, prior=0.5, threshold=0.5).contradiction)


def test_chance_is_no_contradiction() -> None:
    assert describe_excess(1.0, 0.28, 0.3, 0.3, labels=5, rows=600) is None
    assert describe_excess(1.0, 0.28, 0.3, 0.3, labels=500, rows=60_000) is not None
