"""What `pue fit` does: prior ─► propensities ─► classifier ─► held-out scores ─► probabilities ─► threshold."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pue.crossval import out_of_fold
from pue.data import PUData, Scenario, labeled_share
from pue.errors import PueWarning
from pue.estimators import PUClassifier
from pue.metrics.estimates import pu_row_weights
from pue.model.basis import Basis, prepare, threads
from pue.model.classifiers import make_classifier
from pue.model.model import HeldOut, PUModel, choose_threshold
from pue.model.recipe import Recipe, Say
from pue.model.rows import Rows
from pue.model.stream import StreamedRows
from pue.model.summary import summarize
from pue.probabilities import calibrate
from pue.randomness import derive
from pue.training.processes import on_first
from pue.weights import RowWeights

WHOLE = 50_000
"""Up to so many rows, every row is scored by a model that has not seen it; of larger tables, a fifth."""
KEPT = 100_000
"""Held-out rows that are stored with the model."""
MANY = 500
"""Labels worth so many rows, or more, are calibrated by an isotonic curve."""


@dataclass(frozen=True, eq=False)
class Scored:
    """Held-out scores of some rows and what they are judged by."""

    scores: Tensor
    labels: Tensor
    e: Tensor | None
    """Of the labeled ones among them."""
    weights: RowWeights
    mass: Tensor | None = None
    """How many held-out rows each stands for; None: one."""


def fit_model(
    rows: Rows | StreamedRows, recipe: Recipe, *, facts: dict[str, Any] | None = None, say: Say = lambda text: None
) -> PUModel:
    """A model of these rows. `say` is told what happens next."""
    started = time.perf_counter()
    with threads(rows), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PueWarning)
        basis = prepare(rows, recipe, say)
        say("training")
        if isinstance(rows, Rows):
            classifier, scored = _train(rows, recipe, basis, say)
        else:
            classifier, scored = _train_streamed(rows, recipe, basis, say)
        say("probabilities, threshold and estimated metrics")
        worth = scored.weights.positive[scored.labels == 1]
        many = float(worth.sum() ** 2 / worth.square().sum()) >= MANY
        method = recipe.calibration if recipe.calibration != "auto" else "isotonic" if many else "platt"
        calibrator = calibrate(scored.scores, scored.weights, method)
        probabilities = calibrator(scored.scores)
        held_out = _kept(probabilities, scored.weights, recipe.seed)
        threshold, rule = choose_threshold(held_out, recipe.threshold, precision=recipe.precision)
    said = list(dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, PueWarning)))
    for text in said:
        warnings.warn(text, PueWarning, stacklevel=2)
    facts = {"label_frequency": _label_frequency(rows, basis), "warnings": said, **(facts or {})}
    summary = summarize(
        rows, recipe, basis, classifier, scored, probabilities, threshold, rule, method,
        facts=facts, seconds=time.perf_counter() - started,
    )  # fmt: skip
    shape = tuple(rows.data.x.shape[1:]) if rows.vectorizer is None else None
    return PUModel(
        classifier,
        calibrator,
        threshold,
        rule,
        held_out,
        rows.vectorizer,
        basis.propensity_model,
        shape,
        facts,
        summary,
    )


def _train(rows: Rows, recipe: Recipe, basis: Basis, say: Say) -> tuple[Any, Scored]:
    """A classifier of all rows, and scores by others like it that have not seen what they score."""
    data = rows.data
    classifier = classifier_of(recipe, basis)
    if isinstance(classifier, PUClassifier):
        classifier.fit(data.x, data.labels, propensity=basis.e)
    else:  # its model knows nothing of process groups
        classifier = on_first(lambda: classifier.fit(data.x, data.labels, propensity=basis.e))
    say("scoring rows with models that have not seen them")
    return classifier, score_held_out(classifier, data, basis, basis.e, recipe)


def _train_streamed(rows: StreamedRows, recipe: Recipe, basis: Basis, say: Say) -> tuple[Any, Scored]:
    """A classifier of all rows but those held out, and their scores: with so many rows, few are missed."""
    e, data, held_out = basis.e, rows.data, rows.held_out
    classifier = classifier_of(recipe, basis).set_params(
        prior=max(basis.prior.value, labeled_share(data.labels, data.sample_weight))
    )
    classifier.fit_stream(rows, propensity=None if e is None else e[: rows.n_training])
    e = None if basis.judging is None else basis.judging[rows.n_training :]
    say("scoring rows that were held out")
    scores = torch.from_numpy(classifier.decision_function(held_out.x)).double()
    mass = held_out.sample_weight
    weights = pu_row_weights(held_out.labels, basis.prior.value, e, rows.scenario, mass)
    return classifier, Scored(scores, held_out.labels, e, weights, mass)


def classifier_of(recipe: Recipe, basis: Basis) -> Any:
    """The classifier of a recipe, with the prior found and room for the propensities found."""
    return make_classifier(
        recipe.method,
        seed=recipe.seed,
        epochs=recipe.epochs,
        prior=basis.prior.value,
        scenario=recipe.scenario,
        labeled_rows="weighted",
        progress=recipe.progress,
    )


def score_held_out(classifier: Any, data: PUData, basis: Basis, own: Tensor | None, recipe: Recipe) -> Scored:
    """Out-of-fold scores of all rows, or of a fifth of a large table. A copy is trained with the propensities `own`
    and judged by `basis.judging`."""
    large = data.n_rows > WHOLE
    scores = out_of_fold(
        classifier,
        data,
        prior=basis.prior.value,
        propensity=own,
        folds=5 if large else recipe.folds,
        scored=1 if large else None,
        jobs=recipe.jobs,
        seed=derive(recipe.seed, 7),
    )
    kept = ~torch.isnan(scores)
    labels = data.labels[kept]
    e = None if basis.judging is None else basis.judging[kept[data.labeled]]
    weights = pu_row_weights(labels, basis.prior.value, e, data.scenario)
    return Scored(scores[kept], labels, e, weights)


def _label_frequency(rows: Rows | StreamedRows, basis: Basis) -> float:
    counts = rows.counts
    population = sum(counts.values()) if rows.scenario is Scenario.SINGLE_SAMPLE else counts[0]
    return min(1.0, counts[1] / (basis.prior.value * population))


def _kept(probabilities: Tensor, weights: RowWeights, seed: int) -> HeldOut:
    """All labeled rows and a sample of the others, which then stand for all of them."""
    p, positive, background = (
        v.double().numpy() for v in (probabilities, weights.positive, weights.background.clamp(min=0))
    )
    others = np.flatnonzero(positive == 0)
    if len(others) <= KEPT:
        return HeldOut(p, positive, background)
    chosen = np.sort(np.random.default_rng(seed).choice(others, KEPT, replace=False))
    background = background.copy()
    background[chosen] *= background[others].sum() / background[chosen].sum()
    rows = np.concatenate([np.flatnonzero(positive > 0), chosen])
    return HeldOut(p[rows], positive[rows], background[rows])
