"""From raw estimates to usable propensities, in the open: what was clipped, and how healthy the weights are."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pue.errors import InvalidInput
from pue.weights import effective_sample_size


@dataclass(frozen=True)
class PropensityReport:
    """What was done to the propensities of the labeled rows and what weights they give."""

    n_labeled: int
    n_clipped: int
    floor: float
    mean: float
    effective_sample_size: float
    largest_weight: float
    """Largest of n_P·ω; 1 for uniform weights."""


def process(propensity: Tensor, *, floor: float = 1e-4) -> tuple[Tensor, PropensityReport]:
    """Propensities clipped to [floor, 1], and the report.

    >>> clipped, report = process(torch.tensor([0.5, 0.0, 1.5]), floor=0.01)
    >>> clipped, report.n_clipped
    (tensor([0.5000, 0.0100, 1.0000], dtype=torch.float64), 2)
    """
    if not 0 < floor < 1:
        raise InvalidInput(f"floor must lie in (0, 1); got {floor}.")
    raw = propensity.double()
    if not bool(torch.isfinite(raw).all()):
        raise InvalidInput("the propensity estimator gave values that are not finite. Check the features it was given.")
    clipped = raw.clamp(floor, 1.0)
    inverse = 1 / clipped
    report = PropensityReport(
        n_labeled=len(raw),
        n_clipped=int((clipped != raw).sum()),
        floor=floor,
        mean=float(clipped.mean()),
        effective_sample_size=effective_sample_size(inverse),
        largest_weight=float(inverse.max() / inverse.mean()),
    )
    return clipped, report
