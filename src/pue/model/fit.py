"""The recipe of `pue fit`: prior ─► propensities ─► classifier ─► held-out scores ─► probabilities ─► threshold."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import norm
from torch import Tensor

from pue.crossval import out_of_fold
from pue.data import PUData, Scenario, labeled_share
from pue.diagnostics import Diagnosis, diagnose
from pue.errors import InvalidInput, PueWarning, UnknownName
from pue.estimators import PUClassifier
from pue.metrics.estimates import pu_row_weights
from pue.model.classifiers import choices, make_classifier
from pue.model.model import HeldOut, PUModel, check_rule, choose_threshold
from pue.model.rows import Rows
from pue.model.stream import StreamedRows
from pue.model.summary import summarize
from pue.priors import PRIORS, PriorEstimate, estimate_prior
from pue.probabilities import CALIBRATIONS, calibrate
from pue.propensity import PROPENSITIES, PropensityModel, PropensityReport, examine, find_propensity, process
from pue.propensity.smooth import from_others
from pue.randomness import derive
from pue.reduction import fit_reduction
from pue.threads import one_thread
from pue.training.processes import on_first
from pue.weights import RowWeights

SAMPLE = 100_000
"""Prior, propensities and diagnosis of larger tables come from so many rows drawn at random."""
WHOLE = 50_000
"""Up to so many rows, every row is scored by a model that has not seen it; of larger tables, a fifth."""
KEPT = 100_000
"""Held-out rows that are stored with the model."""

FEW = 2
"""Rows outside the sample are given the propensities of so many models of a cross-fitted estimator, not of all."""

VAGUE = 0.3
"""An interval of the prior wider than this says little."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Recipe:
    """Everything about a fit but the rows."""

    method: str = "auto"
    propensity: str | None = "auto"
    """A name in `PROPENSITIES`, None (labels are taken as unbiased); known ones come with the rows."""
    prior: float | str = "estimate"
    scenario: str = "single_sample"
    calibration: str = "auto"
    """"platt", "isotonic", or "auto": isotonic where the labels are worth `MANY` rows or more."""
    threshold: float | str = "f1"
    precision: float | None = None
    folds: int = 5
    """Few folds make estimates pessimistic: their models see fewer labels than the final one."""
    epochs: int | None = None
    jobs: int = 1
    seed: int = 0
    progress: bool | None = None
    """Whether training shows a bar, as in `PUClassifier`."""

    def __post_init__(self) -> None:
        """What can be wrong about a recipe is said before anything takes time."""
        for kind, name, known in (
            ("method", self.method, choices()),
            ("propensity", self.propensity or "none", ["none", *PROPENSITIES]),
            ("prior", self.prior if isinstance(self.prior, str) else "estimate", ["estimate", *PRIORS]),
            ("calibration", self.calibration, ["auto", *CALIBRATIONS]),
        ):
            if name not in known:
                raise UnknownName(kind, name, known)
        Scenario.parse(self.scenario)
        check_rule(self.threshold, self.precision)


MANY = 500


@dataclass(frozen=True, eq=False)
class Basis:
    """What is known before a classifier is trained; comparisons share it."""

    prior: PriorEstimate
    e: Tensor | None
    """Propensities of all labeled rows, in order; None: unbiased."""
    judging: Tensor | None
    """Those that models are judged with."""
    propensity_model: PropensityModel | None
    report: PropensityReport | None
    diagnosis: Diagnosis

    @property
    def prior_interval(self) -> tuple[float, float] | None:
        """The 95 % interval, whatever the level of the estimate; None for a given prior."""
        prior = self.prior
        if prior.method == "given":
            return None
        shrink = norm.ppf(0.975) / norm.ppf((1 + prior.level) / 2)
        return prior.value - shrink * (prior.value - prior.low), prior.value + shrink * (prior.high - prior.value)


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
        basis = on_first(lambda: prepare(rows, recipe, say))
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
    e, held_out = basis.e, rows.held_out
    classifier = classifier_of(recipe, basis).set_params(
        prior=max(basis.prior.value, labeled_share(rows.data.labels, rows.data.sample_weight))
    )
    classifier.fit_stream(rows, propensity=None if e is None else e[: rows.n_training])
    e = None if basis.judging is None else basis.judging[rows.n_training :]
    say("scoring rows that were held out")
    scores = torch.from_numpy(classifier.decision_function(held_out.x)).double()
    mass = held_out.sample_weight
    weights = pu_row_weights(held_out.labels, basis.prior.value, e, rows.scenario, mass)
    return classifier, Scored(scores, held_out.labels, e, weights, mass)


def threads(rows: Rows | StreamedRows) -> AbstractContextManager[None]:
    """One thread for tables, which are small; images take all there are."""
    return nullcontext() if rows.vectorizer is None else one_thread()


def prepare(rows: Rows | StreamedRows, recipe: Recipe, say: Say = lambda text: None) -> Basis:
    """Prior, propensities of the labeled rows, and the diagnosis."""
    with threads(rows):
        return _prepare(rows, recipe, say)


def _prepare(rows: Rows | StreamedRows, recipe: Recipe, say: Say) -> Basis:
    seed = recipe.seed
    sample, chosen = rows.sample(SAMPLE, derive(seed, 5))
    say("estimating the share of positives" if isinstance(recipe.prior, str) else "checking the prior")
    prior = _prior(sample, recipe)
    model, e, report = None, None, None
    if rows.propensity is not None:
        e, report = process(torch.from_numpy(rows.propensity), source="known")
    elif recipe.propensity is not None:
        say(f"estimating propensities ({recipe.propensity})")
        estimator = find_propensity(recipe.propensity)
        model = estimator.fit(sample, prior=prior.value, seed=derive(seed, 1))
        e, report = examine(model, sample, estimator=estimator)
        e = _of_all_labeled(model, rows, chosen[sample.labeled], e)
    say("testing whether the labels are biased")
    names = None if rows.vectorizer is None else rows.vectorizer.feature_names
    diagnosis = diagnose(
        sample.x, sample.labels, prior=prior, scenario=recipe.scenario, names=names, seed=seed,
        propensity=None if model is None else _Fitted(model),
    )  # fmt: skip
    return Basis(prior, e, _judging(rows, e, seed) if model is not None else e, model, report, diagnosis)


def _judging(rows: Rows | StreamedRows, e: Tensor | None, seed: int) -> Tensor | None:
    """Estimates of images come from the rows around; those of tables are kept from being low as they are."""
    if e is None or rows.data.x.ndim == 2:
        return e
    images = rows.labeled_features(torch.arange(len(e)))
    return from_others(e, fit_reduction(images, seed=seed)(images))


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


@dataclass(frozen=True, eq=False)
class _Fitted:
    """An estimator that is already fitted: a diagnosis need not do it again."""

    model: PropensityModel

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> PropensityModel:
        return self.model


def _prior(data: PUData, recipe: Recipe) -> PriorEstimate:
    if recipe.prior == "estimate":
        return _hedged(data, derive(recipe.seed, 2))
    if isinstance(recipe.prior, str):
        return estimate_prior(data, recipe.prior, seed=derive(recipe.seed, 2))
    value = float(recipe.prior)
    share = float(data.labeled.double().mean())
    if not 0 < value < 1 or (data.scenario is Scenario.SINGLE_SAMPLE and value < share):
        raise InvalidInput(
            f"the prior, the share of positives, must lie in (0, 1) and not below the share of labeled rows, "
            f"{share:.3g}; got {value:g}. Leave it out to have it estimated."
        )
    return PriorEstimate(value, value, value, 1.0, "given", "nothing", 0)


def _hedged(data: PUData, seed: int) -> PriorEstimate:
    """The estimator that stands biased labels; where its interval says little, the mean of it and of one for SCAR.

    Under biased labels the second is too low, and the first, where classes overlap, often too high.
    """
    first = estimate_prior(data, seed=seed)
    if first.high - first.low <= VAGUE:
        return first
    second = estimate_prior(data, "dedpul", seed=seed)
    return PriorEstimate(
        (first.value + second.value) / 2,
        min(first.low, second.low),
        max(first.high, second.high),
        first.level,
        f"mean of {first.method} and {second.method}",
        "that their errors differ in sign",
        first.n_boot,
    )


def _of_all_labeled(model: PropensityModel, rows: Rows | StreamedRows, sampled: Tensor, e: Tensor) -> Tensor:
    """Rows outside the sample were never seen by the model; those inside keep their out-of-fold estimates."""
    numbers, order = rows.labeled_numbers().sort()
    everywhere = torch.full((len(numbers),), math.nan, dtype=torch.float64)
    everywhere[order[torch.searchsorted(numbers, sampled)]] = e
    others = torch.nonzero(everywhere.isnan())[:, 0]
    asked = model.few(FEW) if hasattr(model, "few") else model
    for part in torch.split(others, 65_536) if len(others) else ():
        everywhere[part] = asked(rows.labeled_features(part)).clamp(1e-4, 1.0)
    return everywhere


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
