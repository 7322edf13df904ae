"""A threshold that was chosen from some rows is judged as if it had been chosen without them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from pue.app.threshold import as_unseen, unselected
from pue.core.decisions import best_f1
from pue.core.weights import RowWeights

KINDS = ("even", "ties", "few labels", "extremes")


def problem(kind: str, n: int = 300, seed: int = 0) -> tuple[Tensor, RowWeights, Tensor]:
    """Probabilities, weights of a single sample, and folds."""
    rng = np.random.default_rng(seed)
    p = torch.from_numpy(rng.random(n))
    labeled = rng.random(n) < (0.03 if kind == "few labels" else 0.2) * (p.numpy() > 0.3)
    labeled[np.argmax(p.numpy())] = True
    if kind == "ties":
        p = (10 * p).round() / 10
    if kind == "extremes":
        p = torch.where(p > 0.8, 1.0, torch.where(p < 0.2, 0.0, p))
    positive = torch.from_numpy(np.where(labeled, 0.4 / labeled.sum() * rng.uniform(0.5, 2, n), 0.0))
    return p, RowWeights(positive, 1 / n - positive), torch.from_numpy(rng.integers(0, 4, n))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_every_row_is_called_as_by_the_threshold_of_the_other_folds(kind: str, seed: int) -> None:
    p, weights, fold = problem(kind, seed=seed)
    at = best_f1(p, weights)
    moved = unselected(p, weights, fold, at)
    for row in range(len(p)):
        others = fold != fold[row]
        theirs = best_f1(p[others], RowWeights(weights.positive[others], weights.negative[others]))
        assert (moved[row] >= at) == (p[row] >= theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_order_inside_a_fold_stays_and_probabilities_stay_probabilities(kind: str) -> None:
    p, weights, fold = problem(kind)
    moved = unselected(p, weights, fold, best_f1(p, weights))
    assert moved.min() >= 0
    assert moved.max() <= 1
    for value in fold.unique():
        own = fold == value
        order = p[own].argsort()
        assert (moved[own][order].diff() >= 0).all()


def test_the_best_of_thresholds_that_say_nothing_is_no_longer_flattered() -> None:
    """Scores at random: a threshold can call all rows, some, or none, and the highest F1 of them is chance."""
    prior, n, labels = 0.3, 400, 24
    flattered, fair = [], []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        p = torch.from_numpy(rng.random(n))
        labeled = rng.permutation(n) < labels
        positive = torch.from_numpy(np.where(labeled, prior / labels, 0.0))
        weights = RowWeights(positive, 1 / n - positive)
        fold = torch.from_numpy(rng.integers(0, 5, n))
        at = best_f1(p, weights)
        for found, scores in ((flattered, p), (fair, unselected(p, weights, fold, at))):
            called = (scores >= at).numpy()
            found.append(positive.numpy()[called].sum() / prior - called.mean())  # recall minus its expectation
    error = np.std(fair) / len(fair) ** 0.5
    assert np.mean(flattered) > 0.02
    assert abs(np.mean(fair)) < 3 * error < np.mean(flattered)


def test_one_model_s_rows_are_dealt_into_parts_and_always_the_same_ones() -> None:
    p, weights, _ = problem("even")
    at = best_f1(p, weights)
    moved = unselected(p, weights, None, at)
    assert not torch.equal(moved, p)
    assert torch.equal(moved, unselected(p, weights, None, at))


def test_what_was_not_chosen_by_the_labels_is_judged_as_it_is() -> None:
    p, weights, fold = problem("even")
    for rule, precision in (("half", None), ("prior", None), (0.4, None), ("f1", 0.9)):
        assert as_unseen(p, weights, fold, 0.4, rule, precision) is p
    assert as_unseen(p, weights, fold, 0.4, "f1", None) is not p


def test_where_all_rows_are_called_there_is_nothing_to_move() -> None:
    p, weights, fold = problem("even")
    assert unselected(p, weights, fold, float(p.min())) is p
