"""One look at a PU problem before learning: are the labels biased, by what, and can weights repair it?

`diagnose` only calls what stands elsewhere (the SCAR test, the basis of prior and propensities, the paper's bounds, the
worst case over wrong propensities) and says in words what follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from pue.basis import Basis, Wishes, settle
from pue.core.data import PUData, is_image, population_rows, select
from pue.core.inputs import as_problem, column_names
from pue.core.randomness import derive
from pue.core.theory import common_pu_bound, ipw_bound, normalization_bound, weighting_gap_bound
from pue.diagnosis.drivers import estimated_positives, find_drivers
from pue.diagnosis.found import Bound, Diagnosis
from pue.errors import InvalidInput
from pue.estimators.frames import encode, fit_encoder, not_numbers
from pue.judging.sensitivity import GAMMAS, worst_case
from pue.priors import PriorEstimate
from pue.propensity import FLOOR, LabeledPropensity, PropensityEstimator
from pue.propensity.auto import Chosen
from pue.propensity.clipping import MEMORIZED, geometric_ratio
from pue.propensity.duplicates import families
from pue.propensity.scar import FEWEST_LABELED, FEWEST_UNLABELED, ScarTest, scar_test

MOST_IMAGES, FEWEST_IMAGES = 10_000, 200
"""Images that are searched for near-identical ones: the first of them, for those of one scan stand together."""
SHOWN = 10_000
"""Of so many unlabeled rows at most the propensities are estimated: they are only shown."""


def diagnose(
    X: Any,
    s: Any = None,
    *,
    prior: float | str | PriorEstimate = "estimate",
    scenario: str = "single_sample",
    propensity: str | PropensityEstimator | None = "auto",
    basis: Basis | None = None,
    names: Sequence[str] | None = None,
    gammas: Sequence[float] = GAMMAS,
    seed: int = 0,
) -> Diagnosis:
    """Look at features `X` and PU labels `s` (1 labeled, 0 unlabeled), or at a `PUData`, before learning from them.

    `prior` is a number, "estimate", a name in `PRIORS`, or an estimate there is already. Prefer a number: an estimate
    that assumes SCAR hides the bias from the test. `propensity` is a name in `PROPENSITIES`, an estimator, or None (no
    weights). A `basis` that was settled already replaces both.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(600, 2)) + np.where(np.arange(600) < 300, 4.0, 0.0)[:, None] * [1, 0]
    >>> s = (np.arange(600) < 300) & (rng.random(600) < 1 / (1 + np.exp(-3 * x[:, 1])))
    >>> found = diagnose(x, s, prior=0.5, propensity="logistic", names=["size", "age"])
    >>> found.scar.rejected, found.drivers[0].name
    (True, 'age')
    """
    if (why := not_numbers(X, missing=False)) is not None:
        encoder = fit_encoder(X, why, seed)
        X, names = encode(encoder, X), encoder.feature_names
    names = names or column_names(X)
    data = as_problem(X, s, scenario, names=names)
    if names is not None and len(names) != data.x.shape[1]:
        raise InvalidInput(f"names must hold one name for each of the {data.x.shape[1]} columns; got {len(names)}.")
    basis = basis or settle(data, Wishes(prior, propensity), seed=seed)
    belief, found = basis.prior, basis.propensity
    scar, e = _scar(data, basis, seed), basis.e
    ranked = None if scar is None else estimated_positives(data, scar, e, belief.value, seed)
    return Diagnosis(
        n_rows=data.n_rows,
        n_labeled=data.n_labeled,
        scenario=data.scenario,
        prior=belief,
        scar=scar,
        drivers=() if ranked is None or is_image(data.x) else tuple(find_drivers(data, ranked, names, found)),
        propensity=e,
        unlabeled_propensity=None if found is None else _of_unlabeled(data, found, seed),
        report=None if found is None else found.report,
        memorized=found is not None and _memorized(data, found),
        bounds=() if e is None else tuple(_bounds(data, e, belief.value)),
        recall=() if e is None or ranked is None else tuple(_recall(ranked[data.labeled], e, gammas)),
        relatives=_relatives(data),
    )


def _relatives(data: PUData) -> float | None:
    """The share of images with a near-identical one among the population, if images come in families."""
    population = torch.nonzero(population_rows(data.labels, data.scenario))[:MOST_IMAGES, 0]
    if not is_image(data.x) or len(population) < FEWEST_IMAGES:
        return None
    found = families(select(data.x, population))
    return found.share if found.found else None


def _scar(data: PUData, basis: Basis, seed: int) -> ScarTest | None:
    """The test that the propensities rest on, or one of its own, which is told how far an estimated prior may be off;
    None where there are too few rows."""
    if data.n_labeled < FEWEST_LABELED or int(data.unlabeled.sum()) < FEWEST_UNLABELED:
        return None
    model = None if basis.propensity is None else basis.propensity.model
    tested = model.test if isinstance(model, Chosen) else None
    tested = tested or scar_test(data, prior=basis.prior.value, seed=seed)
    return tested if basis.prior.is_given else replace(tested, lowest=basis.prior.low)


def _of_unlabeled(data: PUData, found: LabeledPropensity, seed: int) -> Tensor | None:
    """ê of unlabeled rows, enough of them for a picture of their distribution."""
    if found.model is None:
        return None
    rows = torch.nonzero(data.unlabeled)[:, 0]
    if len(rows) > SHOWN:
        rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(derive(seed, 4)))[:SHOWN]]
    return found.model(select(data.x, rows)).clamp(FLOOR, 1.0)


def _memorized(data: PUData, found: LabeledPropensity) -> bool:
    """A model that knows its rows by heart gives them far more than equally labeled rows it has not seen."""
    if found.model is None:
        return False
    seen = found.model(select(data.x, data.labeled)).clamp(FLOOR, 1.0)
    return geometric_ratio(seen, found.e) > MEMORIZED


def _bounds(data: PUData, e: Tensor, prior: float) -> Iterator[Bound]:
    n = int(population_rows(data.labels, data.scenario).sum())
    lowest = float(e.min())
    yield Bound("weighting changes a risk by at most", weighting_gap_bound(1 / e, torch.ones_like(e), prior), True)
    yield Bound("normalising the weights, by at most", prior * normalization_bound(e, prior * n), True)
    yield Bound("chance in the weighted risk (Theorem 1, over the smallest e)", ipw_bound(n, loss_max=1 / lowest), True)
    yield Bound("the same as the paper prints it", ipw_bound(n), False)
    yield Bound("ignoring the bias (Theorem 2 as printed)", common_pu_bound(data.n_labeled, n, prior), False)


def _recall(found: Tensor, e: Tensor, gammas: Sequence[float]) -> Iterator[tuple[float, float, float]]:
    known = ~torch.isnan(found)
    for gamma in gammas:
        yield (gamma, *worst_case(found[known], e[known], gamma))
