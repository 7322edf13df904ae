"""What `pue fit` does: prior ─► propensities ─► classifier ─► held-out scores ─► probabilities ─► threshold."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pue.app.audit.learning import Taught
from pue.app.default_method import settled
from pue.app.learn import HeldOutScores, learn
from pue.app.model import PUModel
from pue.app.preparation import Preparation, prepare, threads
from pue.app.prior_range import over_the_range
from pue.app.recipe import Recipe, Say
from pue.app.reference import make_profiles, make_reference
from pue.app.rows import Rows
from pue.app.stream import StreamedRows
from pue.app.summary import doubts_of, summarize
from pue.app.threshold import HeldOut, choose_threshold
from pue.app.time_budget import timed
from pue.core.data import Scenario, is_image
from pue.core.weights import RowWeights, effective_sample_size
from pue.errors import InvalidInput, PueWarning
from pue.judging.calibration import calibrate, platt

KEPT = 100_000
"""Held-out rows that are stored with the model."""
FALLBACK = "wrapped_boosting"
MANY = 500
"""Labels worth so many rows, or more, are calibrated by an isotonic curve."""


def fit_model(
    rows: Rows | StreamedRows,
    recipe: Recipe,
    *,
    facts: dict[str, Any] | None = None,
    audit: Taught | None = None,
    say: Say = lambda text: None,
) -> PUModel:
    """A model of these rows. `say` is told what happens next; `audit` holds answers about some of them."""
    started = time.perf_counter()
    recipe, reason = settled(recipe, rows)
    with threads(rows), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PueWarning)
        prepared = prepare(rows, recipe, say, None if audit is None else audit.prior)
        learning, prepared = (rows, prepared) if audit is None else audit.teach(rows, prepared)
        recipe = timed(learning, recipe, prepared, time.perf_counter() - started, say)
        say("training")
        recipe, classifier, scored = _learn_or_fall_back(learning, recipe, prepared, say)
        say("probabilities, threshold and estimated metrics")
        many = effective_sample_size(scored.weights.positive[scored.labels == 1]) >= MANY
        method = recipe.calibration if recipe.calibration != "auto" else "isotonic" if many else "platt"
        calibrator = calibrate(scored.scores, scored.weights, method)
        probabilities = calibrator(scored.scores)
        believed = doubts_of(rows, prepared, scored, probabilities).center.positive
        held_out = _kept(probabilities, scored.weights, believed, recipe.seed)
        threshold, rule = choose_threshold(held_out, recipe.threshold, precision=recipe.precision)
        moves = over_the_range(learning, recipe, prepared, classifier)
    said = list(dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, PueWarning)))
    for text in said:
        warnings.warn(text, PueWarning, stacklevel=2)
    facts = {"label_frequency": _label_frequency(rows, prepared), "warnings": said, "why": reason, **(facts or {})}
    summary = summarize(
        rows, recipe, prepared, classifier, scored, probabilities, threshold, rule, method,
        facts=facts, seconds=time.perf_counter() - started,
    )  # fmt: skip
    summary["prior"]["range"] = moves
    vectorizer, shape = rows.vectorizer, tuple(rows.data.x.shape[1:]) if rows.vectorizer is None else None
    return PUModel(
        classifier, calibrator, threshold, rule, held_out, vectorizer, prepared.propensity_model, shape, facts, summary,
        make_reference(classifier, rows, recipe.seed), make_profiles(rows, recipe.seed),
    )  # fmt: skip


def _learn_or_fall_back(
    rows: Rows | StreamedRows, recipe: Recipe, prepared: Preparation, say: Say
) -> tuple[Recipe, Any, HeldOutScores]:
    """The classifier of the recipe; if it ranks nothing, the plain ranking of labeled rows against the rest.

    Few labels of a rare class may leave a PU risk nothing to gain: calling every row negative is then its minimum. A
    constant ranks nothing, so it is never kept.
    """
    classifier, scored = learn(rows, recipe, prepared, say)
    if not _ranks_nothing(scored):
        return recipe, classifier, scored
    plain = replace(recipe, method=FALLBACK)
    if recipe.method != FALLBACK and isinstance(rows, Rows) and not is_image(rows.data.x):
        say("a plain ranking instead")
        classifier, scored = learn(rows, plain, prepared, say)
        if not _ranks_nothing(scored):
            warnings.warn(
                f"method {recipe.method!r} did not tell labeled rows from the others; {FALLBACK!r} takes its place, "
                "which learns just that. Its ranking can be used; label more rows to trust its probabilities.",
                PueWarning,
                stacklevel=3,
            )
            return plain, classifier, scored
    raise InvalidInput(
        "nothing in the features tells labeled rows from the others: no row scores higher than another for it. Label "
        "more rows, add columns, or check that the label column is the right one."
    )


def _ranks_nothing(scored: HeldOutScores) -> bool:
    """One score for all rows, or labeled rows that score no higher than the others: probabilities would be constant."""
    constant = bool((scored.scores == scored.scores[0]).all())
    return constant or platt(scored.scores, scored.weights).slope == 0


def _label_frequency(rows: Rows | StreamedRows, prepared: Preparation) -> float:
    counts = rows.counts
    population = sum(counts.values()) if rows.scenario is Scenario.SINGLE_SAMPLE else counts[0]
    return min(1.0, counts[1] / (prepared.prior.value * population))


def _kept(probabilities: Tensor, weights: RowWeights, believed: NDArray[np.float64], seed: int) -> HeldOut:
    """All labeled rows and a sample of the others, which then stand for all of them."""
    p, positive, background = (
        v.double().numpy() for v in (probabilities, weights.positive, weights.background.clamp(min=0))
    )
    others = np.flatnonzero(positive == 0)
    if len(others) <= KEPT:
        return HeldOut(p, positive, background, believed)
    chosen = np.sort(np.random.default_rng(seed).choice(others, KEPT, replace=False))
    background = background.copy()
    background[chosen] *= background[others].sum() / background[chosen].sum()
    rows = np.concatenate([np.flatnonzero(positive > 0), chosen])
    return HeldOut(p[rows], positive[rows], background[rows], believed[rows])
