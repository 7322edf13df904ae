"""Prior, propensities and weights of a PU problem: the one place that decides them.

`PUClassifier`, `PUWrapper`, `pue fit`, `compare`, `diagnose`, `search` and the bench ask here, so that a word such as
prior="estimate" or propensity="auto" means the same to all of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
import torch
from scipy.stats import norm
from torch import Tensor

from pue.core.data import PUData, Scenario, labeled_share, possible_prior, require_prior
from pue.core.lesson import DOUBT, Lesson, combine
from pue.core.randomness import derive
from pue.core.weights import RowWeights, pu
from pue.errors import InvalidInput, PueWarning
from pue.priors import PriorEstimate, estimate_prior
from pue.propensity import PropensityEstimator, find_propensity, negatives_for_positives
from pue.propensity.clipping import FLOOR, clip_propensity
from pue.propensity.estimate import LabeledPropensity, estimate_propensity
from pue.propensity.recalibration import agreement, recalibrated
from pue.training.processes import on_first

KNOWN = "known"
"""The word for propensities that come with the labels."""
WIDE = 0.15
"""An interval of the prior wider than this is warned about: so large a share of the rows changes class inside it."""


@dataclass(frozen=True, eq=False)
class Basis:
    """What is known before a classifier is trained."""

    prior: PriorEstimate
    propensity: LabeledPropensity | None
    """None: labels are taken as unbiased."""

    @property
    def e(self) -> Tensor | None:
        """Propensities of the labeled rows, in order."""
        return None if self.propensity is None else self.propensity.e

    def weights(self, data: PUData) -> RowWeights:
        """PUe's normalised inverse propensities, or uniform ones."""
        return pu(data.labels, self.e, prior=self.prior.value, scenario=data.scenario, sample_weight=data.sample_weight)


@dataclass(frozen=True)
class Wishes:
    """What was asked for: settings that every user of a basis shares."""

    prior: float | str | PriorEstimate = "estimate"
    """A number, "estimate", a name in `PRIORS`, or an estimate there is already."""
    propensity: str | PropensityEstimator | None = None
    """None (unbiased labels), "known", a name in `PROPENSITIES`, or an estimator."""
    floor: float = FLOOR
    trim: bool = False


def settle(
    data: PUData,
    wishes: Wishes,
    *,
    known: Tensor | None = None,
    seed: int = 0,
    say: Callable[[str], None] = lambda text: None,
) -> Basis:
    """The basis of some data; `known` holds the propensities of the labeled rows, in order, where they are known.

    `say` is told what happens next. In a process group the first process estimates the prior.
    """
    say("estimating the share of positives" if isinstance(wishes.prior, str) else "checking the prior")
    prior = on_first(lambda: settle_prior(data, wishes.prior, seed=seed))
    if known is None and wishes.propensity is not None:
        name = wishes.propensity if isinstance(wishes.propensity, str) else type(wishes.propensity).__name__
        say(f"estimating propensities ({name})")
    return Basis(prior, settle_propensities(data, wishes, prior.value, known=known, seed=seed))


def settle_with_answers(
    data: PUData, wishes: Wishes, lesson: Lesson, *, known: Tensor | None = None, seed: int = 0
) -> tuple[PUData, Tensor, PriorEstimate]:
    """Rows with masses, propensities of the labeled and answered positives, and the prior that the answers prove: the
    problem whose risk is that of `core.lesson`."""
    if data.scenario is not Scenario.SINGLE_SAMPLE or data.sample_weight is not None:
        raise InvalidInput(
            "answers are about rows of a single sample, each of which counts once: leave out sample_weight, and with "
            "case-control data pass the prior that audit.read finds instead."
        )
    if not isinstance(wishes.prior, str):
        raise InvalidInput('the answers say the prior: leave prior="estimate", or leave out audit.')
    prior = _answered_prior(data, lesson)
    basis = settle(data, replace(wishes, prior=prior), known=known, seed=seed)
    e, model = basis.e, None if basis.propensity is None else basis.propensity.model
    a, b = agreement(e, model, data.x, lesson)
    agreed = None if e is None else recalibrated(e.double().numpy(), a, b)
    found = combine(data.labels.numpy().astype("int64"), agreed, lesson, doubt=DOUBT if known is None else 0.0)
    told = PUData(data.x, torch.from_numpy(found.labels), data.scenario, torch.from_numpy(found.mass))
    return told, torch.from_numpy(found.propensity), prior


def _answered_prior(data: PUData, lesson: Lesson) -> PriorEstimate:
    """Horvitz and Thompson's; rows of one chance are taken to be a random sample of their kind."""
    variance = 0.0
    for d in np.unique(lesson.chance):
        yes = lesson.yes[lesson.chance == d]
        variance += (len(yes) / d) ** 2 * (1 - d) * yes.mean() * (1 - yes.mean()) / max(len(yes) - 1, 1)
    half = norm.ppf(0.975) * variance**0.5 / data.n_rows
    value = possible_prior(lesson.positives(data.labels.numpy()) / data.n_rows, data.labels, data.scenario)
    low, high = max(value - half, labeled_share(data.labels)), min(value + half, 1.0)
    return PriorEstimate(value, low, high, 0.95, "audit", "nothing", 0)


def settle_prior(data: PUData, prior: float | str | PriorEstimate, *, seed: int = 0) -> PriorEstimate:
    """A given prior, checked, or an estimate."""
    if isinstance(prior, PriorEstimate):
        return prior
    if isinstance(prior, str):
        return estimate_prior(data, method=prior, seed=derive(seed, 2))
    if not isinstance(prior, Real):
        raise InvalidInput(
            f'prior must be one number in (0, 1), "estimate" or the name of an estimator; got {prior!r}. Pass the '
            "share of positives among all rows."
        )
    require_prior(float(prior), data.labels, data.scenario, data.sample_weight)
    return PriorEstimate.given(float(prior))


def settle_propensities(
    data: PUData, wishes: Wishes, prior: float, *, known: Tensor | None = None, seed: int = 0
) -> LabeledPropensity | None:
    """Known propensities, clipped, or estimated ones; None where labels are taken as unbiased."""
    if known is not None:
        mass = None if data.sample_weight is None else data.sample_weight[data.labeled]
        return LabeledPropensity(*clip_propensity(known, floor=wishes.floor, trim=wishes.trim, mass=mass, source=KNOWN))
    if wishes.propensity is None:
        return None
    if wishes.propensity == KNOWN:
        raise InvalidInput('propensity="known" needs the values: fit(X, y, propensity=e).')
    estimator = find_propensity(wishes.propensity)
    return estimate_propensity(estimator, data, prior=prior, seed=derive(seed, 1), floor=wishes.floor, trim=wishes.trim)


def settle_negative_propensity(
    data: PUData, wishes: Wishes, prior: float, *, known: Tensor | None = None, seed: int = 0
) -> Tensor | None:
    """Propensities of the rows labeled *negative*: the same estimator, negatives for positives.

    `known` are those of all rows, not a number where they are not known.
    """
    negative = data.labels == -1
    if not bool(negative.any()):
        return None
    if known is not None:
        if bool(known[negative].isnan().any()):
            raise InvalidInput("labeled negatives are weighted too: pass their negative_propensity.")
        return clip_propensity(known[negative], floor=wishes.floor)[0]
    if wishes.propensity is None:
        return None
    seen, estimator = negatives_for_positives(data), find_propensity(wishes.propensity)
    return estimate_propensity(estimator, seen, prior=1 - prior, seed=derive(seed, 3), floor=wishes.floor).e


def warn_of_doubts(basis: Basis, *, stacklevel: int) -> None:
    """Say where the prior may lie anywhere, and why estimated propensities should not be trusted."""
    prior, found = basis.prior, basis.propensity
    if prior.high - prior.low > WIDE:
        warnings.warn(
            f"the estimated prior may lie anywhere between {prior.low:.2f} and {prior.high:.2f}; between the two about "
            f"{prior.high - prior.low:.0%} of the rows change their class. Pass the prior if you know it, and look at "
            "pue.prior_sweep(classifier, X, y).",
            PueWarning,
            stacklevel=stacklevel + 1,
        )
    if found is not None and found.model is not None and found.report.alarm:
        warnings.warn(found.report.alarm, PueWarning, stacklevel=stacklevel + 1)
