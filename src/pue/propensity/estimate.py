"""An estimator and its data → propensities of the labeled rows, ready to use, with the report."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from pue.core.data import PUData, population_rows, select
from pue.propensity.clipping import FLOOR, PropensityReport, clip_propensity, geometric_ratio
from pue.propensity.crossfit import reference_rows
from pue.propensity.protocol import PropensityEstimator, PropensityModel, SharedEstimator, fit_estimator
from pue.training.processes import on_first


@dataclass(frozen=True, eq=False)
class LabeledPropensity:
    """What labeled rows are weighted by."""

    e: Tensor
    """Of the labeled rows, in order, clipped; infinite for those that were trimmed."""
    report: PropensityReport
    model: PropensityModel | None = None
    """None: they were known."""


def estimate_propensity(
    estimator: PropensityEstimator,
    data: PUData,
    *,
    prior: float,
    seed: int = 0,
    floor: float = FLOOR,
    trim: bool = False,
) -> LabeledPropensity:
    """ê of the labeled rows (out of fold where the model kept those), clipped and trimmed.

    In a process group the folds are shared out where there are some; other estimators are the work of one process.
    """

    def fit() -> PropensityModel:
        return fit_estimator(estimator, data, prior=prior, seed=seed)

    shared = fit() if isinstance(estimator, SharedEstimator) else None
    model = on_first(fit if shared is None else lambda: shared)
    return judge_propensity(model, data, name=type(estimator).__name__, floor=floor, trim=trim)


def judge_propensity(
    model: PropensityModel, data: PUData, *, name: str = "", floor: float = FLOOR, trim: bool = False
) -> LabeledPropensity:
    """The propensities of a model that is fitted already; `name` is what the report calls its estimator.

    The report also says whether ê has the right size (Σê over the population against the number of labels, from a
    sample of the population) and, where the model held some labeled rows out, how optimistic it is about the others.
    """
    e = training_propensity(model, data)
    mass = data.mass
    population = float(mass[population_rows(data.labels, data.scenario)].sum())
    rows = reference_rows(data)
    on_population = model(select(data.x, rows)) if model.reference is None else model.reference
    mean = float(on_population.double() @ mass[rows] / mass[rows].sum())
    unseen, optimism = model.unseen, None
    if unseen is not None and bool(unseen.any()) and not bool(unseen.all()):
        optimism = geometric_ratio(e[~unseen], e[unseen])
    clipped, report = clip_propensity(
        e,
        floor=floor,
        trim=trim,
        mass=mass[data.labeled],
        source=model.description or name,
        population=population,
        expected_labels=mean * population / float(mass[data.labeled].sum()),
        optimism=optimism,
    )
    return LabeledPropensity(clipped, report, model)


def training_propensity(model: PropensityModel, data: PUData) -> Tensor:
    """ê of the labeled rows the model was fitted on: out of fold, where the model kept those."""
    return model(select(data.x, data.labeled)) if model.held_out is None else model.held_out
