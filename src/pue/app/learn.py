"""A classifier of some rows, and scores by models that have not seen what they score."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from pue.app.classifiers import make_classifier
from pue.app.preparation import Preparation
from pue.app.recipe import Recipe, Say
from pue.app.rows import Rows
from pue.app.stream import StreamedRows
from pue.core.data import PUData, possible_prior, select
from pue.core.folds import content_holdout
from pue.core.randomness import derive
from pue.core.weights import RowWeights
from pue.estimators.classifier import PUClassifier
from pue.estimators.held_out import dealt, out_of_fold
from pue.judging.worlds import pu_row_weights
from pue.training.processes import on_first

WHOLE = 50_000
"""Up to so many rows, every row is scored by a model that has not seen it; of larger tables, a fifth."""
ONCE, HELD_OUT = 250_000, 0.1
"""Of still larger tables this share is held out of the classifier itself: few of so many rows are missed, and a second
model would take as long again."""


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """Held-out scores of some rows and what they are judged by."""

    scores: Tensor
    labels: Tensor
    e: Tensor | None
    """Of the labeled ones among them."""
    readings: tuple[Tensor, ...]
    """Other propensities of these, that the labels do not rule out."""
    weights: RowWeights
    mass: Tensor | None = None
    """How many held-out rows each stands for; None: one."""
    fold: Tensor | None = None
    """Which of several models scored each row; None: one model."""


def epochs_in_all(n_rows: int, folds: int) -> float:
    """How often all rows are learnt from in an epoch of the classifier and one of every copy that holds rows out.

    >>> epochs_in_all(1_000, folds=5), epochs_in_all(100_000, folds=5)
    (5.0, 1.8)
    """
    if n_rows > ONCE:
        return 1 - HELD_OUT
    return 1.8 if n_rows > WHOLE else float(folds)


def learn(rows: Rows | StreamedRows, recipe: Recipe, prepared: Preparation, say: Say) -> tuple[Any, HeldOutScores]:
    """The classifier of a recipe and its held-out scores."""
    if isinstance(rows, Rows):
        return _learn(rows, recipe, prepared, say)
    return _learn_streamed(rows, recipe, prepared, say)


def _learn(rows: Rows, recipe: Recipe, prepared: Preparation, say: Say) -> tuple[Any, HeldOutScores]:
    """A classifier of all rows, and scores by others like it that have not seen what they score."""
    data = rows.data
    if data.n_rows > ONCE:
        return _learn_once(data, recipe, prepared, say)
    classifier = fitted(classifier_of(recipe, prepared), data, prepared.e)
    say("scoring rows with models that have not seen them")
    return classifier, score_held_out(classifier, data, prepared, prepared.e, recipe)


def _learn_once(data: PUData, recipe: Recipe, prepared: Preparation, say: Say) -> tuple[Any, HeldOutScores]:
    """A classifier of all rows but some, no copy of which it has seen, and their scores."""
    held = torch.from_numpy(content_holdout(data.x, data.labels, HELD_OUT, seed=derive(recipe.seed, 7)))
    seen = data.take(~held)
    prior = possible_prior(prepared.prior.value, seen.labels, seen.scenario, seen.sample_weight)
    e = None if prepared.e is None else prepared.e[~held[data.labeled]]
    classifier = fitted(classifier_of(recipe, prepared).set_params(prior=prior), seen, e)
    say("scoring rows that were held out")
    scores = torch.from_numpy(classifier.decision_function(select(data.x, held))).double()
    return classifier, _judged(scores, held, data, prepared)


def fitted(classifier: Any, data: PUData, e: Tensor | None) -> Any:
    """The classifier, fitted to these rows with these propensities of the labeled ones."""
    given: dict[str, Any] = {"propensity": e, "sample_weight": data.sample_weight}
    if isinstance(classifier, PUClassifier):
        return classifier.fit(data.x, data.labels, **given)
    # its model knows nothing of process groups
    return on_first(lambda: classifier.fit(data.x, data.labels, **given))


def _learn_streamed(rows: StreamedRows, recipe: Recipe, prepared: Preparation, say: Say) -> tuple[Any, HeldOutScores]:
    """A classifier of all rows but those held out, and their scores: with so many rows, few are missed."""
    e, data, held_out = prepared.e, rows.data, rows.held_out
    classifier = classifier_of(recipe, prepared).set_params(
        prior=possible_prior(prepared.prior.value, data.labels, data.scenario, data.sample_weight)
    )
    classifier.fit_stream(rows, propensity=None if e is None else e[: rows.n_training])
    e = None if prepared.judging is None else prepared.judging[rows.n_training :]
    readings = _columns(None if prepared.readings is None else prepared.readings[rows.n_training :])
    say("scoring rows that were held out")
    scores = torch.from_numpy(classifier.decision_function(held_out.x)).double()
    mass = held_out.sample_weight
    weights = pu_row_weights(held_out.labels, prepared.prior.value, e, rows.scenario, mass)
    return classifier, HeldOutScores(scores, held_out.labels, e, readings, weights, mass)


def classifier_of(recipe: Recipe, prepared: Preparation) -> Any:
    """The classifier of a recipe, with the prior found and room for the propensities found."""
    problem = {"prior": prepared.prior.value, "scenario": recipe.scenario, "labeled_rows": "weighted"}
    common: dict[str, Any] = {"epochs": recipe.epochs, "progress": recipe.progress, **problem}
    return make_classifier(recipe.method, seed=recipe.seed, **common)


def score_held_out(
    classifier: Any, data: PUData, prepared: Preparation, own: Tensor | None, recipe: Recipe
) -> HeldOutScores:
    """Out-of-fold scores of all rows, or of a fifth of a large table. A copy is trained with the propensities `own`
    and judged by `prepared.judging`."""
    folds, scored = (5, 1) if data.n_rows > WHOLE else (recipe.folds, None)
    prior, seed = prepared.prior.value, derive(recipe.seed, 7)
    fold = dealt(data, folds, seed=seed)
    scores = out_of_fold(
        classifier, data, prior=prior, propensity=own, folds=fold, scored=scored, jobs=recipe.jobs, seed=seed
    )
    kept = ~torch.isnan(scores)
    return replace(_judged(scores[kept], kept, data, prepared), fold=None if scored == 1 else fold[kept])


def _judged(scores: Tensor, held: Tensor, data: PUData, prepared: Preparation) -> HeldOutScores:
    """Scores of the rows held out, and what they are judged by."""
    labels = data.labels[held]
    chosen = held[data.labeled]
    e = None if prepared.judging is None else prepared.judging[chosen]
    readings = _columns(None if prepared.readings is None else prepared.readings[chosen])
    mass = None if data.sample_weight is None else data.sample_weight[held]
    weights = pu_row_weights(labels, prepared.prior.value, e, data.scenario, mass)
    return HeldOutScores(scores, labels, e, readings, weights, mass)


def _columns(readings: Tensor | None) -> tuple[Tensor, ...]:
    return () if readings is None else readings.unbind(1)
