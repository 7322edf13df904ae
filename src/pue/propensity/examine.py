"""A fitted propensity model and its training data → propensities of the labeled rows, ready to use, and the report."""

from __future__ import annotations

from torch import Tensor

from pue.data import PUData, population_rows, select
from pue.propensity.crossfit import CrossFitted, reference_rows
from pue.propensity.patches import PatchesModel
from pue.propensity.pool import Pooled
from pue.propensity.process import PropensityReport, geometric_ratio, process
from pue.propensity.protocol import PropensityEstimator, PropensityModel, training_propensity


def examine(
    model: PropensityModel,
    data: PUData,
    *,
    estimator: PropensityEstimator | None = None,
    floor: float = 1e-4,
    trim: bool = False,
) -> tuple[Tensor, PropensityReport]:
    """ê of the labeled rows the model was fitted on (out of fold where it kept those), clipped and trimmed.

    The report also says whether ê has the right size (Σê over the population against the number of labels, from a
    sample of the population) and, where the model held some labeled rows out, how optimistic it is about the others.
    """
    e = training_propensity(model, data)
    mass = data.mass
    population = float(mass[population_rows(data.labels, data.scenario)].sum())
    rows = reference_rows(data)
    reference = getattr(model, "reference", None)
    on_population = model(select(data.x, rows)) if reference is None else reference
    mean = float(on_population.double() @ mass[rows] / mass[rows].sum())
    unseen: Tensor | None = getattr(model, "unseen", None)
    optimism = None
    if unseen is not None and bool(unseen.any()) and not bool(unseen.all()):
        optimism = geometric_ratio(e[~unseen], e[unseen])
    return process(
        e,
        floor=floor,
        trim=trim,
        mass=mass[data.labeled],
        source=_describe(model, estimator),
        population=population,
        expected_labels=mean * population / float(mass[data.labeled].sum()),
        optimism=optimism,
    )


def _describe(model: PropensityModel, estimator: PropensityEstimator | None) -> str:
    if isinstance(model, CrossFitted | Pooled | PatchesModel):
        return str(model)
    return "" if estimator is None else type(estimator).__name__
