"""How far a conclusion moves when the propensities are wrong.

Every e may be off by a factor of its own between 1/Γ and Γ. The normalised mean Σ (h/e) / Σ (1/e) is then
linear-fractional in the weights, so its extremes lie where the rows with the largest h have one extreme factor and all
others the other: sorting and trying every threshold is exact (Zhao, Small and Bhattacharya 2019, who bound odds).
"""

from __future__ import annotations

import math

from torch import Tensor

from pue.core.data import require_propensity, require_vector
from pue.errors import InvalidInput

GAMMAS = (1.0, 1.25, 1.5, 2.0)
"""Γ: by which factors a propensity may be wrong, wherever results are shown under that doubt."""


def worst_case(h: Tensor, propensity: Tensor, gamma: float) -> tuple[float, float]:
    """The smallest and the largest Σ ω h, ω ∝ 1/e', over all e' with e/Γ ≤ e' ≤ e Γ; both of the labeled rows.

    h = 1{called positive} gives the range of the recall, h = L(g, +1) − L(g, −1) that of PUe's correction over π. A
    common factor on all propensities changes nothing: only their ratios matter, and these may be off by Γ².

    >>> import torch
    >>> h, e = torch.tensor([1.0, 0.0]), torch.tensor([0.2, 0.2])
    >>> worst_case(h, e, 1.0), worst_case(h, e, 2.0)
    ((0.5, 0.5), (0.2, 0.8))
    """
    require_propensity(propensity, len(h))
    require_vector("h", h)
    if not 1 <= gamma < math.inf:
        raise InvalidInput(f"gamma must be at least 1, the factor by which a propensity may be wrong; got {gamma}.")
    values, order = h.double().sort(descending=True)
    weight = (1 / propensity.double())[order]
    return -_largest_mean(-values.flip(0), weight.flip(0), gamma), _largest_mean(values, weight, gamma)


def _largest_mean(values: Tensor, weight: Tensor, gamma: float) -> float:
    """The largest weighted mean of values in descending order, each weight times a factor in [1/Γ, Γ]."""
    # The first k rows are raised and the rest lowered, k = 1 … n; k = n leaves the mean as it is.
    total, moment = weight.cumsum(0), (weight * values).cumsum(0)
    raised = gamma * moment + (moment[-1] - moment) / gamma
    return float((raised / (gamma * total + (total[-1] - total) / gamma)).max())


def breaking_point(h: Tensor, propensity: Tensor, value: float, *, largest: float = 1e3) -> float:
    """The smallest Γ at which the mean of h could be `value`; infinite where it takes more than `largest`.

    >>> import torch
    >>> round(breaking_point(torch.tensor([1.0, 0.0]), torch.tensor([0.2, 0.2]), 0.8), 6)
    2.0
    """

    def reached(gamma: float) -> bool:
        low, high = worst_case(h, propensity, gamma)
        return low <= value <= high

    if reached(1.0):
        return 1.0
    if not reached(largest):
        return math.inf
    low, high = 1.0, largest
    for _ in range(60):  # by halves on the scale of factors
        middle = math.sqrt(low * high)
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high
