"""What is found out before a classifier is trained: prior, propensities of the labeled rows, diagnosis."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from scipy.stats import norm
from torch import Tensor

from pue.data import PUData, Scenario
from pue.diagnostics import Diagnosis, diagnose
from pue.errors import InvalidInput
from pue.model.recipe import Recipe, Say
from pue.model.rows import Rows
from pue.model.stream import StreamedRows
from pue.priors import PriorEstimate, estimate_prior
from pue.propensity import PropensityEstimator, PropensityModel, PropensityReport, examine, find_propensity, process
from pue.propensity.smooth import from_others
from pue.randomness import derive
from pue.reduction import fit_reduction
from pue.threads import one_thread
from pue.training.processes import on_first

SAMPLE = 100_000
"""Prior, propensities and diagnosis of larger tables come from so many rows drawn at random."""
FEW = 2
"""Rows outside the sample are given the propensities of so many models of a cross-fitted estimator, not of all."""
VAGUE = 0.3
"""An interval of the prior wider than this says little."""


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
    prior = on_first(lambda: _prior(sample, recipe))
    model, e, report = None, None, None
    if rows.propensity is not None:
        e, report = process(torch.from_numpy(rows.propensity), source="known")
    elif recipe.propensity is not None:
        say(f"estimating propensities ({recipe.propensity})")
        estimator = find_propensity(recipe.propensity)
        model = _fitted(estimator, sample, prior.value, derive(seed, 1))
        e, report = examine(model, sample, estimator=estimator)
        e = _of_all_labeled(model, rows, chosen[sample.labeled], e)
    say("testing whether the labels are biased")
    names = None if rows.vectorizer is None else rows.vectorizer.feature_names
    diagnosis = on_first(
        lambda: diagnose(
            sample.x, sample.labels, prior=prior, scenario=recipe.scenario, names=names, seed=seed,
            propensity=None if model is None else _Fitted(model),
        )
    )  # fmt: skip
    return Basis(prior, e, _judging(rows, e, seed) if model is not None else e, model, report, diagnosis)


def _fitted(estimator: PropensityEstimator, data: PUData, prior: float, seed: int) -> PropensityModel:
    """In a process group folds are shared out where there are some; other estimators are the work of one process."""

    def fit() -> PropensityModel:
        return estimator.fit(data, prior=prior, seed=seed)

    found = fit() if getattr(estimator, "shares_out", False) else None
    return on_first(fit if found is None else lambda: found)


def _judging(rows: Rows | StreamedRows, e: Tensor | None, seed: int) -> Tensor | None:
    """Estimates of images come from the rows around; those of tables are kept from being low as they are."""
    if e is None or rows.data.x.ndim == 2:
        return e
    images = rows.labeled_features(torch.arange(len(e)))
    return from_others(e, fit_reduction(images, seed=seed)(images))


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
