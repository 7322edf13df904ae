"""From raw estimates to usable propensities, in the open: what was clipped or trimmed, how healthy the weights are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from pue.core.weights import effective_sample_size
from pue.errors import InvalidInput
from pue.persistence import kept

FLOOR = 1e-4
"""The smallest propensity that is used unless told otherwise: no labeled row weighs more than 10,000 sure ones."""
MEMORIZED = 2.0
"""A model knows its rows by heart if it gives labeled rows it was trained on so many times what it gives the others."""


@kept
@dataclass(frozen=True)
class PropensityReport:
    """What was done to the propensities of the labeled rows and what weights they give."""

    n_labeled: int
    n_clipped: int
    floor: float
    n_trimmed: int
    trimmed_below: float
    """Rows with a smaller ê got no weight (Crump trimming); 0: no trimming."""
    mean: float
    effective_sample_size: float
    largest_weight: float
    """Largest of n_P·ω; 1 for uniform weights."""
    source: str = ""
    """Which estimator, and what it chose."""
    expected_labels: float | None = None
    """Σê over the population / n_P: one for an estimate of the right size; None: not known."""
    implied_prior: float | None = None
    """Σ_P 1/ê over the size of the population: the share of positives these propensities stand for."""
    optimism: float | None = None
    """ê of labeled rows the model was trained on over that of rows it was not, geometric means; None: not known."""

    @property
    def alarm(self) -> str | None:
        """Why these propensities should not be trusted, or None."""
        if self.optimism is not None and self.optimism > MEMORIZED:
            return (
                f"the propensity model has memorised its rows: labeled rows it was trained on get {self.optimism:.1f} "
                "times the estimate of those held out. Cross-fit it (CrossFit), regularise it or stop it earlier."
            )
        uniform = self.effective_sample_size > 0.95 * self.n_labeled
        if uniform and self.mean > 0.8 and self.optimism is None and "cross-fitted" not in self.source:
            return (
                f"the mean estimated propensity of the labeled rows is {self.mean:.2f} and their weights are all but "
                "equal: either nearly every positive is labeled, or the model has memorised them. Cross-fit it "
                "(CrossFit) to know."
            )
        if self.effective_sample_size < 0.05 * self.n_labeled:
            return (
                f"few labeled rows carry all the weight: {self.n_labeled} rows are worth "
                f"{self.effective_sample_size:.0f}. Trim them (propensity_trim=True) or raise propensity_floor."
            )
        return None

    def __str__(self) -> str:
        lines = [
            f"{self.n_labeled} labeled rows, worth {self.effective_sample_size:.0f} equally weighted ones; "
            f"largest weight {self.largest_weight:.1f} times the mean",
            f"clipped {self.n_clipped} to [{self.floor:g}, 1], trimmed {self.n_trimmed}",
        ]
        if self.source:
            lines.insert(0, f"propensity: {self.source}")
        if self.expected_labels is not None:
            lines.append(f"expected labels / labels: {self.expected_labels:.2f}")
        if self.implied_prior is not None:
            lines.append(f"share of positives these propensities stand for: {self.implied_prior:.3f}")
        return "\n".join(lines + ([f"ALARM: {self.alarm}"] if self.alarm else []))


def clip_propensity(
    propensity: Tensor,
    *,
    floor: float = FLOOR,
    trim: bool = False,
    mass: Tensor | None = None,
    source: str = "",
    population: float | None = None,
    expected_labels: float | None = None,
    optimism: float | None = None,
) -> tuple[Tensor, PropensityReport]:
    """Propensities clipped to [floor, 1], those of trimmed rows infinite (they get no weight), and the report.

    `mass` is the sample weight of the labeled rows, `population` that of the population; the rest only goes into the
    report.

    >>> clipped, report = clip_propensity(torch.tensor([0.5, 0.0, 1.5]), floor=0.01)
    >>> clipped, report.n_clipped
    (tensor([0.5000, 0.0100, 1.0000], dtype=torch.float64), 2)
    """
    if not 0 < floor < 1:
        raise InvalidInput(f"floor must lie in (0, 1); got {floor}.")
    raw = propensity.double()
    if not bool(torch.isfinite(raw).all()):
        raise InvalidInput("the propensity estimator gave values that are not finite. Check the features it was given.")
    mass = torch.ones_like(raw) if mass is None else mass.double()
    clipped = raw.clamp(floor, 1.0)
    below = crump_threshold(clipped, mass) if trim else 0.0
    kept = clipped >= below
    final = torch.where(kept, clipped, torch.inf)
    weight = mass / final
    report = PropensityReport(
        n_labeled=len(raw),
        n_clipped=int((clipped != raw).sum()),
        floor=floor,
        n_trimmed=int((~kept).sum()),
        trimmed_below=below,
        mean=float(clipped.mean()),
        effective_sample_size=effective_sample_size(weight),
        largest_weight=float((1 / final).max() / (weight.sum() / mass.sum())),
        source=source,
        expected_labels=expected_labels,
        implied_prior=None if population is None else float(weight.sum()) / population,
        optimism=optimism,
    )
    return final, report


def crump_threshold(propensity: Tensor, mass: Tensor | None = None) -> float:
    """The smallest propensity worth keeping (after Crump et al. 2009): α with 1/α = 2 E[1/e | e ≥ α] over positives.

    The variance of a weighted mean over all positives with e ≥ α is proportional to E[1/e | e ≥ α] / P(e ≥ α), which
    this α minimises; means over positives are Σ_P (1/e) · / Σ_P (1/e). Unlike theirs the rule has one side: a row of
    propensity near one is as good as any here. Keeping all rows is the answer when 1 / min(e) is already below.

    >>> crump_threshold(torch.tensor([0.5] * 1000 + [0.01]))
    0.5
    """
    ordered, place = propensity.double().sort(descending=True)
    weight = (torch.ones_like(ordered) if mass is None else mass.double()[place]) / ordered
    mean = (weight / ordered).cumsum(0) / weight.cumsum(0)  # E[1/e] over the rows kept so far
    keep = 1 / ordered <= 2 * mean
    # The set is an interval from above: it ends at the first row that would cost more than it brings.
    last = len(keep) if bool(keep.all()) else int((~keep).int().argmax())
    return float(ordered[max(last, 1) - 1])


def geometric_ratio(seen: Tensor, unseen: Tensor) -> float:
    """exp(mean log ê of rows a model was trained on − mean log ê of rows it was not): its optimism."""
    tiny = torch.finfo(torch.float64).tiny
    gap = seen.double().clamp(min=tiny).log().mean() - unseen.double().clamp(min=tiny).log().mean()
    return math.exp(min(float(gap), 50.0))
