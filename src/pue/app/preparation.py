"""What is found out before a classifier is trained: the basis of all labeled rows, and the diagnosis."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from pue.app.recipe import Recipe, Say
from pue.app.rows import Rows
from pue.app.sources.vectors import parts_of
from pue.app.stream import StreamedRows
from pue.basis import Basis, Wishes, settle
from pue.core.data import is_image
from pue.core.machine import one_thread
from pue.core.randomness import derive
from pue.diagnosis.diagnose import diagnose
from pue.diagnosis.found import Diagnosis
from pue.errors import InvalidInput, UnknownName
from pue.priors import PriorEstimate
from pue.propensity import FLOOR, Auto, PropensityEstimator, PropensityModel, PropensityReport
from pue.propensity.features import fit_reduction
from pue.propensity.smooth import from_others
from pue.training.processes import on_first

SAMPLE = 100_000
"""Prior, propensities and diagnosis of larger tables come from so many rows drawn at random."""
FEW = 2
"""Rows outside the sample are given the propensities of so many models of a cross-fitted estimator, not of all."""


@dataclass(frozen=True, eq=False)
class Preparation:
    """What is known before a classifier is trained; comparisons share it."""

    prior: PriorEstimate
    e: Tensor | None
    """Propensities of all labeled rows, in order; None: unbiased."""
    judging: Tensor | None
    """Those that models are judged with."""
    readings: Tensor | None
    """(labeled rows, readings): other propensities that the labels do not rule out; see `PropensityModel.readings`."""
    propensity_model: PropensityModel | None
    report: PropensityReport | None
    diagnosis: Diagnosis

    audited: bool = False
    """Are the propensities recalibrated by answers?"""

    @property
    def hidden_bias(self) -> tuple[float, float]:
        """See `PropensityModel.hidden_bias`; known propensities, or labels said to be unbiased, hide nothing, and after
        an audit there is no side to lean to."""
        center, reach = (0.0, 0.0) if self.propensity_model is None else self.propensity_model.hidden_bias
        return (0.0 if self.audited else center), reach

    @property
    def prior_interval(self) -> tuple[float, float] | None:
        """The 95 % interval, whatever the level of the estimate; None for a given prior."""
        return None if self.prior.is_given else self.prior.interval(0.95)


def threads(rows: Rows | StreamedRows) -> AbstractContextManager[None]:
    """One thread for tables, which are small; images take all there are."""
    return nullcontext() if is_image(rows.data.x) else one_thread()


def prepare(
    rows: Rows | StreamedRows, recipe: Recipe, say: Say = lambda text: None, prior: PriorEstimate | None = None
) -> Preparation:
    """Prior, propensities of the labeled rows, and the diagnosis; `prior`: one that is there already, of an audit."""
    seed, wishes = recipe.seed, Wishes(prior or recipe.prior, _estimator(recipe, rows))
    with threads(rows):
        sample, chosen = rows.sample(SAMPLE, derive(seed, 5))
        known = None if rows.propensity is None else torch.from_numpy(rows.propensity)
        basis = settle(sample, wishes, known=known, seed=seed, say=say)
        prior, found = basis.prior, basis.propensity
        say("testing whether the labels are biased")
        names = None if rows.vectorizer is None else rows.vectorizer.feature_names
        estimated = basis if known is None else Basis(prior, None)
        diagnosis = on_first(lambda: diagnose(sample, basis=estimated, names=names, seed=seed))
        if found is None:
            return Preparation(prior, None, None, None, None, None, diagnosis)
        if found.model is None:
            return Preparation(prior, found.e, found.e, None, None, found.report, diagnosis)
        e, readings = _of_all_labeled(found.model, rows, chosen[sample.labeled], found.e)
        return Preparation(prior, e, _judging(rows, e, seed), readings, found.model, found.report, diagnosis)


def _estimator(recipe: Recipe, rows: Rows | StreamedRows) -> str | PropensityEstimator | None:
    """The estimator of the recipe, told which features the labeling may depend on, if columns were named."""
    asked, vectorizer = recipe.labeling_columns or recipe.ignore_for_labeling, rows.vectorizer
    if not asked:
        return recipe.propensity
    if vectorizer is None:
        raise InvalidInput("images have no columns: --labeling-columns and --ignore-for-labeling are for tables.")
    named = [part for name in asked for part in parts_of(name, list(vectorizer.columns))]
    for name in named:
        if name in vectorizer.dropped:
            raise InvalidInput(f"column {name!r} cannot drive the labeling: {vectorizer.dropped[name]}. Leave it out.")
        if name not in vectorizer.columns:
            raise UnknownName("column", name, list(vectorizer.columns))
    chosen = vectorizer.places(
        named if recipe.labeling_columns else [name for name in vectorizer.columns if name not in named]
    )
    if not chosen:
        raise InvalidInput("no column is left that the labeling could depend on. Ignore fewer columns for it.")
    return Auto(columns=chosen)


def _judging(rows: Rows | StreamedRows, e: Tensor, seed: int) -> Tensor:
    """Estimates of images come from the rows around; those of tables are kept from being low as they are."""
    if not is_image(rows.data.x):
        return e
    images = rows.labeled_features(torch.arange(len(e)))
    return from_others(e, fit_reduction(images, seed=seed)(images))


def _of_all_labeled(
    model: PropensityModel, rows: Rows | StreamedRows, sampled: Tensor, e: Tensor
) -> tuple[Tensor, Tensor]:
    """ê of all labeled rows, and what the model's other readings say of them. Rows outside the sample were never seen
    by the model; those inside keep their out-of-fold estimates.
    """
    numbers, order = rows.labeled_numbers().sort()
    inside = order[torch.searchsorted(numbers, sampled)]
    everywhere = torch.full((len(numbers),), math.nan, dtype=torch.float64)
    everywhere[inside] = e
    outside = torch.nonzero(everywhere.isnan())[:, 0]
    seen = _readings(model, rows, inside)
    readings = torch.empty((len(numbers), seen.shape[1]), dtype=torch.float64)
    readings[inside] = seen
    if len(outside):
        readings[outside] = _readings(model.few(FEW), rows, outside)
        everywhere[outside] = readings[outside, 0]
    return everywhere, readings[:, 1:]


def _readings(model: PropensityModel, rows: Rows | StreamedRows, labeled: Tensor) -> Tensor:
    """Of some labeled rows, counted among themselves; the first reading is ê."""
    parts = [model.readings(rows.labeled_features(part)).double() for part in torch.split(labeled, 65_536)]
    return torch.cat(parts).clamp(FLOOR, 1.0)
