"""One look at a PU problem before learning: are the labels biased, by what, and can weights repair it?

`diagnose` only calls what stands elsewhere (the SCAR test, a prior, a propensity estimator, the paper's bounds, the
worst case over wrong propensities) and says in words what follows.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array
from torch import Tensor

from pue.conversion import as_features, as_label_array, to_numpy
from pue.data import PUData, Scenario, as_matrix, population_rows, require_prior, select
from pue.errors import InvalidInput, UnknownName
from pue.folds import content_folds
from pue.priors import PriorEstimate, estimate_prior
from pue.propensity import (
    PROPENSITIES,
    PropensityEstimator,
    PropensityModel,
    PropensityReport,
    process,
    training_propensity,
)
from pue.propensity.logistic import labeled_probability
from pue.randomness import derive
from pue.scar import FEWEST_LABELED, FEWEST_UNLABELED, ScarTest, scar_test
from pue.sensitivity import worst_case
from pue.theory import common_pu_bound, ipw_bound, normalization_bound, weighting_gap_bound

GAMMAS = (1.0, 1.25, 1.5, 2.0)
SHOWN = 10_000
"""Of so many unlabeled rows at most the propensities are estimated: they are only shown."""


@dataclass(frozen=True)
class Driver:
    """A column in which the labeled rows differ from the estimated positives, in standard deviations of the latter."""

    name: str
    difference: float


@dataclass(frozen=True)
class Bound:
    """A bound of the paper on this data, for a loss in [0, 1]."""

    name: str
    value: float
    rigorous: bool


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What was found; `summary()` says it in words, `plot()` in four panels."""

    n_rows: int
    n_labeled: int
    scenario: Scenario
    prior: PriorEstimate
    """As given (then the interval is a point) or estimated."""
    scar: ScarTest | None
    """None where there are too few rows to test."""
    drivers: tuple[Driver, ...]
    """Largest difference first; empty for images and where nothing could be tested."""
    propensity: Tensor | None = field(repr=False)
    """ê of the labeled rows, clipped."""
    unlabeled_propensity: Tensor | None = field(repr=False)
    """ê of unlabeled rows, of at most 10,000 drawn at random."""
    report: PropensityReport | None
    memorized: bool
    """Does the propensity model give its own labeled rows far more than held-out ones?"""
    bounds: tuple[Bound, ...]
    recall: tuple[tuple[float, float, float], ...]
    """(Γ, lowest, highest) share of the positives that the test's ranking finds among its first π n rows."""

    @property
    def healthy(self) -> bool:
        """Are enough labeled rows left after weighting, and none of them in charge?"""
        r = self.report
        return r is not None and not self.memorized and r.effective_sample_size >= max(30, 0.1 * r.n_labeled)

    @property
    def recommendation(self) -> str:
        """What to do, in plain words."""
        return " ".join(_advice(self))

    def summary(self) -> str:
        """The report as text."""
        return "\n".join(
            textwrap.fill(text, 110, initial_indent=f"{name:16}", subsequent_indent=" " * 16)
            for name, text in _lines(self)
        )

    def __str__(self) -> str:
        return self.summary()

    def plot(self, path: str | Path | None = None) -> Any:
        """A matplotlib figure: propensities, weights, the SCAR test and the drivers; written to `path` if given."""
        from matplotlib.figure import Figure  # the only place that needs it, and slow to import

        figure = Figure(figsize=(10, 7), layout="constrained")
        panels = figure.subplots(2, 2).ravel()
        for panel, draw in zip(panels, (_draw_propensity, _draw_weights, _draw_null, _draw_drivers), strict=True):
            draw(panel, self)
        if path is not None:
            figure.savefig(path, dpi=120)
        return figure


def diagnose(
    X: Any,
    s: Any,
    *,
    prior: float | str | PriorEstimate = "estimate",
    scenario: str = "single_sample",
    propensity: str | PropensityEstimator | None = "auto",
    names: Sequence[str] | None = None,
    level: float = 0.05,
    gammas: Sequence[float] = GAMMAS,
    floor: float = 1e-4,
    seed: int = 0,
) -> Diagnosis:
    """Look at features `X` and PU labels `s` (1 labeled, 0 unlabeled) before learning from them.

    `prior` is a number, "estimate", a name in `PRIORS`, or an estimate there is already. Prefer a number: an estimate
    that assumes SCAR hides the bias from the test. `propensity` is a name in `PROPENSITIES`, an estimator, or None (no
    weights).

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(600, 2)) + np.where(np.arange(600) < 300, 4.0, 0.0)[:, None] * [1, 0]
    >>> s = (np.arange(600) < 300) & (rng.random(600) < 1 / (1 + np.exp(-3 * x[:, 1])))
    >>> found = diagnose(x, s, prior=0.5, propensity="logistic", names=["size", "age"])
    >>> found.scar.rejected, found.drivers[0].name
    (True, 'age')
    """
    names = _names(X, names)
    x = as_features(
        check_array(to_numpy(X), accept_sparse="csr", allow_nd=True, ensure_all_finite=False, dtype="numeric"), names
    )
    data = PUData(x, torch.from_numpy(np.array(as_label_array(s, x.shape[0]))), Scenario.parse(scenario))
    belief = _prior(data, prior, seed)
    enough = data.n_labeled >= FEWEST_LABELED and int(data.unlabeled.sum()) >= FEWEST_UNLABELED
    scar = scar_test(data, prior=belief.value, level=level, seed=seed) if enough else None
    e, unlabeled, report, memorized = _propensities(data, propensity, belief.value, floor, seed)
    ranked = None if scar is None else _estimated_positives(data, scar, e, belief.value, seed)
    return Diagnosis(
        n_rows=data.n_rows,
        n_labeled=data.n_labeled,
        scenario=data.scenario,
        prior=belief,
        scar=scar,
        drivers=() if ranked is None or _is_image(data) else tuple(_drivers(data, ranked, names)),
        propensity=e,
        unlabeled_propensity=unlabeled,
        report=report,
        memorized=memorized,
        bounds=() if e is None else tuple(_bounds(data, e, belief.value)),
        recall=() if e is None or ranked is None else tuple(_recall(ranked[data.labeled], e, gammas)),
    )


def _names(X: Any, names: Sequence[str] | None) -> Sequence[str] | None:
    if names is None:
        names = [str(column) for column in X.columns] if hasattr(X, "columns") else None
    elif len(names) != X.shape[1]:
        raise InvalidInput(f"names must hold one name for each of the {X.shape[1]} columns; got {len(names)}.")
    return names


def _prior(data: PUData, prior: float | str | PriorEstimate, seed: int) -> PriorEstimate:
    if isinstance(prior, PriorEstimate):
        return prior
    if isinstance(prior, str):
        return estimate_prior(data, seed=seed) if prior == "estimate" else estimate_prior(data, prior, seed=seed)
    value = float(prior)
    require_prior(value, data.labels, data.scenario)
    return PriorEstimate(value, value, value, 1.0, "given", "nothing", 0)


def _propensities(
    data: PUData, propensity: str | PropensityEstimator | None, prior: float, floor: float, seed: int
) -> tuple[Tensor | None, Tensor | None, PropensityReport | None, bool]:
    if propensity is None:
        return None, None, None, False
    if isinstance(propensity, str):
        if propensity not in PROPENSITIES:
            raise UnknownName("propensity", propensity, PROPENSITIES)
        propensity = PROPENSITIES[propensity]
    model = propensity.fit(data, prior=prior, seed=derive(seed, 1))
    e, report = process(training_propensity(model, data), floor=floor)
    rows = torch.nonzero(data.unlabeled)[:, 0]
    if len(rows) > SHOWN:  # enough for a picture of their distribution
        rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(derive(seed, 4)))[:SHOWN]]
    unlabeled = model(select(data.x, rows)).clamp(floor, 1.0)
    return e, unlabeled, report, _memorized(model, data, e, floor)


def _memorized(model: PropensityModel, data: PUData, e: Tensor, floor: float) -> bool:
    """A model that knows its rows by heart gives them twice what it gives equally labeled rows it has not seen."""
    seen = model(select(data.x, data.labeled)).clamp(floor, 1.0)
    return float(seen.mean()) > 2 * float(e.mean())


def _is_image(data: PUData) -> bool:
    return not sparse.issparse(data.x) and (data.x.ndim > 2 or data.x.dtype == torch.uint8)


def _estimated_positives(data: PUData, scar: ScarTest, e: Tensor | None, prior: float, seed: int) -> Tensor:
    """1 for rows among the π n that rank highest by a score they did not help to fit, 0 for others, NaN for unknown.

    The score is a logistic regression of the labeled rows, weighted by 1/ê, against the population: unweighted it would
    take the bias of the labels for a mark of the class. Images keep the ranking of the SCAR test, in which it does.
    """
    if _is_image(data):
        return torch.where(torch.isnan(scar.depth), torch.nan, (scar.depth <= 1).double())
    population = population_rows(data.labels, data.scenario)
    weight = torch.ones(data.n_rows, dtype=torch.float64)
    if e is not None:
        weight[data.labeled] = (1 / e) / (1 / e).mean()
    folds = torch.from_numpy(content_folds(data.x, data.labels, 3, seed=seed))
    called = torch.empty(data.n_rows, dtype=torch.float64)
    for fold in range(3):
        labeled, background = (torch.nonzero(rows & (folds != fold))[:, 0] for rows in (data.labeled, population))
        rows = torch.cat([labeled, background])
        target = torch.arange(len(rows)) < len(labeled)
        weights = torch.cat([weight[labeled], torch.ones(len(background), dtype=torch.float64)])
        scores = labeled_probability(select(data.x, rows), target, weights, C=1.0)(select(data.x, folds == fold))
        cut = scores[population[folds == fold]].quantile(1 - prior)
        called[folds == fold] = (scores >= cut).double()
    return called


def _drivers(data: PUData, ranked: Tensor, names: Sequence[str] | None) -> Iterator[Driver]:
    """Standardised mean differences of labeled rows and estimated positives, column by column."""
    positives = (ranked == 1) & population_rows(data.labels, data.scenario)
    labeled, reference = (_moments(as_matrix(select(data.x, rows))) for rows in (data.labeled, positives))
    spread = np.sqrt(reference[1])
    difference = (labeled[0] - reference[0]) / np.where(spread > 0, spread, 1.0)
    for column in np.argsort(-np.abs(difference), kind="stable"):
        yield Driver(str(column) if names is None else names[column], float(difference[column]))


def _moments(matrix: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and variance of every column; sparse tables stay sparse."""
    mean = np.asarray(matrix.mean(axis=0), dtype=np.float64).ravel()
    square = matrix.multiply(matrix) if sparse.issparse(matrix) else matrix.astype(np.float64) ** 2
    return mean, np.maximum(np.asarray(square.mean(axis=0)).ravel() - mean**2, 0.0)


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


def _lines(d: Diagnosis) -> Iterator[tuple[str, str]]:
    yield "Data", f"{d.n_rows} rows, {d.n_labeled} labeled, {d.scenario.value}"
    yield "Prior", f"{d.prior.value:.3g} (given)" if d.prior.method == "given" else str(d.prior)
    yield "SCAR", "too few rows to test" if d.scar is None else str(d.scar)
    if d.drivers:
        yield "Drivers", ", ".join(f"{driver.name} {driver.difference:+.2f} sd" for driver in d.drivers[:5])
    if d.report is not None:
        yield "Weights", _weights_in_words(d.report) + "; the propensity model knows its rows by heart" * d.memorized
    for number, (gamma, low, high) in enumerate(d.recall):
        doubt = "as estimated" if gamma == 1 else f"wrong by up to a factor {gamma:g}"
        share = f"{low:.2f}" if gamma == 1 else f"{low:.2f} to {high:.2f}"
        yield "" if number else "Recall", f"{share} of the positives rank in the first π n if e is {doubt}"
    for number, bound in enumerate(d.bounds):
        status = "proved, for these e" if bound.rigorous else "not proved"
        yield "" if number else "Bounds", f"{bound.name}: {bound.value:.3g} ({status})"
    yield "Recommendation", d.recommendation


def _weights_in_words(r: PropensityReport) -> str:
    return (
        f"{r.effective_sample_size:.0f} effective of {r.n_labeled} labeled rows, largest weight {r.largest_weight:.1f} "
        f"times the mean, {r.n_clipped} clipped"
    )


def _advice(d: Diagnosis) -> Iterator[str]:
    if d.scar is None:
        yield f"Label at least {FEWEST_LABELED} rows; with fewer neither the bias nor its repair can be judged."
        return
    if not d.scar.rejected:
        yield 'The labels may be a random sample of the positives: start with a plain method such as "nnpu".'
        if d.report is not None and d.report.effective_sample_size < 0.5 * d.report.n_labeled:
            yield "Weights would cost more than half of the labeled rows here."
    elif d.healthy:
        yield 'The labels are biased: estimate propensities (propensity="auto") and let the method weight by them.'
    elif d.report is None:
        yield "The labels are biased: estimate propensities and look at their weights."
    else:
        yield (
            "The labels are biased, but the weights rest on few rows: weighting may do more harm than good. Compare "
            "both, raise propensity_floor or choose a simpler propensity estimator."
        )
    if d.scar.rejected:
        yield _collect(d)
    if d.prior.method != "given":
        yield "The prior is an estimate; one from outside the data would make all of this firmer."


def _collect(d: Diagnosis) -> str:
    if not d.drivers:
        return "Next, label positives that look unlike those labeled so far."
    top = d.drivers[0]
    rare = "low" if top.difference > 0 else "high"
    return f"Next, label positives with {rare} {top.name}: they are rare among the labels."


def _draw_propensity(panel: Any, d: Diagnosis) -> None:
    panel.set_title("Propensity")
    if d.propensity is None or d.unlabeled_propensity is None:
        panel.text(0.5, 0.5, "not estimated", ha="center", transform=panel.transAxes)
        return
    bins = np.linspace(0, float(max(d.propensity.max(), d.unlabeled_propensity.max())), 31)
    for values, name in ((d.unlabeled_propensity, "unlabeled rows"), (d.propensity, "labeled rows")):
        panel.hist(values.numpy(), bins=bins, density=True, alpha=0.6, label=name)
    panel.set_xlabel("estimated propensity")
    panel.legend()


def _draw_weights(panel: Any, d: Diagnosis) -> None:
    panel.set_title("Weights")
    if d.propensity is None or d.report is None:
        panel.text(0.5, 0.5, "not estimated", ha="center", transform=panel.transAxes)
        return
    weight = (1 / d.propensity).sort(descending=True).values
    panel.plot(np.arange(1, len(weight) + 1) / len(weight), (weight.cumsum(0) / weight.sum()).numpy())
    panel.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    panel.set_xlabel("share of the labeled rows, heaviest first")
    panel.set_ylabel("share of the weight")
    panel.text(0.95, 0.05, f"effective: {d.report.effective_sample_size:.0f} of {d.n_labeled}", ha="right")


def _draw_null(panel: Any, d: Diagnosis) -> None:
    panel.set_title("SCAR test")
    if d.scar is None:
        panel.text(0.5, 0.5, "too few rows", ha="center", transform=panel.transAxes)
        return
    panel.hist(d.scar.null.numpy(), bins=30, color="0.7", label="artificial SCAR labelings")
    panel.axvline(d.scar.statistic, color="C3", label=f"these labels, p = {d.scar.p_value:.2g}")
    panel.set_xlabel("excess of labels where they are densest")
    panel.legend()


def _draw_drivers(panel: Any, d: Diagnosis) -> None:
    panel.set_title("Labeled rows minus estimated positives")
    if not d.drivers:
        panel.text(0.5, 0.5, "no table", ha="center", transform=panel.transAxes)
        return
    top = d.drivers[:10][::-1]
    panel.barh([driver.name for driver in top], [driver.difference for driver in top])
    panel.axvline(0, color="0.3", linewidth=1)
    panel.set_xlabel("standard deviations")
