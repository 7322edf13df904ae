"""Scores → P(positive | x), calibrated without negatives.

The logistic PU risk Σ w⁺ ℓ(m) + Σ w⁻ ℓ(−m) of m = logit p is, because ℓ(m) − ℓ(−m) = −m,

    Σ b softplus(m) − Σ w⁺ m,        b = w⁺ + w⁻, a sample of p(x),

which is convex in m: labeled rows pull up, the sample holds down, and its minimum over all functions is the posterior
π p(g | positive) / p(g). Fit it on rows the scores were *not* trained on; otherwise probabilities are too extreme.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import sklearn
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

from pue.core.data import require_scores
from pue.core.weights import RowWeights
from pue.errors import lookup
from pue.persistence import kept

STEPS = 100


class Calibrator(Protocol):
    """Non-decreasing: scores → probabilities."""

    def __call__(self, scores: Tensor) -> Tensor: ...


@kept
@dataclass(frozen=True)
class Sigmoid:
    """sigmoid(slope · g + intercept), slope ≥ 0 (Platt 1999).

    >>> Sigmoid(2.0, 0.0)(torch.tensor([0.0]))
    tensor([0.5000], dtype=torch.float64)
    """

    slope: float
    intercept: float

    def __call__(self, scores: Tensor) -> Tensor:
        return torch.sigmoid(self.slope * scores.double() + self.intercept)


@kept
@dataclass(frozen=True, eq=False)
class Monotone:
    """Straight lines between points (score, probability), flat outside."""

    scores: NDArray[np.float64]
    probabilities: NDArray[np.float64]

    def __call__(self, scores: Tensor) -> Tensor:
        return torch.from_numpy(np.interp(scores.double().numpy(), self.scores, self.probabilities))


def calibrate(scores: Tensor, weights: RowWeights, method: str = "platt") -> Calibrator:
    """The calibrator of held-out scores; "platt" needs few labeled rows, "isotonic" many but no shape.

    >>> from pue.core.weights import uniform
    >>> g = torch.linspace(-4, 4, 400)
    >>> labels = (g > 0).long()  # all positives have a label, and the score tells them apart
    >>> p = calibrate(g, uniform(labels, prior=0.5))(torch.tensor([-2.0, 2.0]))
    >>> bool(p[0] < 0.1), bool(p[1] > 0.9)
    (True, True)
    """
    require_scores(scores, len(weights.positive))
    return lookup("calibration", method, CALIBRATIONS)(scores, weights)


def platt(scores: Tensor, weights: RowWeights, *, steps: int = 100) -> Sigmoid:
    """Newton's method on the convex PU likelihood, with a ridge that counts as one row in a thousand."""
    scores = scores.double()
    positive, background = weights.positive.double(), weights.background.double().clamp(min=0)
    center = background @ scores / background.sum()
    spread = (background @ (scores - center) ** 2 / background.sum()).sqrt()
    if not spread > 0:
        prior = weights.positive.sum().clamp(1e-6, 1 - 1e-6)
        return Sigmoid(0.0, float(torch.logit(prior)))
    z = torch.stack([(scores - center) / spread, torch.ones_like(scores)], dim=1)
    pull, ridge = positive @ z, torch.tensor([1e-3, 1e-6], dtype=torch.float64)

    def risk(beta: Tensor) -> Tensor:
        return background @ softplus(z @ beta) - pull @ beta + (ridge * beta**2).sum() / 2

    beta = torch.zeros(2, dtype=torch.float64)
    for _ in range(steps):
        p = torch.sigmoid(z @ beta)
        gradient = z.T @ (background * p) - pull + ridge * beta
        curvature = (z * (background * p * (1 - p))[:, None]).T @ z + torch.diag(ridge)
        step = torch.linalg.solve(curvature, gradient)
        size = 1.0
        while size > 1e-8 and risk(beta - size * step) > risk(beta) - 1e-4 * size * gradient @ step:
            size /= 2
        beta = beta - size * step
        if float(gradient @ step) < 1e-14:
            break
    slope = max(float(beta[0]), 0.0) / float(spread)
    return Sigmoid(slope, float(beta[1]) - slope * float(center))


def isotonic(scores: Tensor, weights: RowWeights, *, steps: int = STEPS) -> Monotone:
    """π p(g | positive) / p(g) in steps of equally many rows of the population, made monotone, joined by lines."""
    g, positive, background = (v.double().numpy() for v in (scores, weights.positive, weights.background.clamp(min=0)))
    edges = _quantiles(g, background, steps)
    place = np.searchsorted(edges, g, side="right")
    n = len(edges) + 1
    mass, hits = (np.bincount(place, weights=w, minlength=n) for w in (background, positive))
    moment = np.bincount(place, weights=background * g, minlength=n)
    full = mass > 0
    center, share = (np.asarray(sums[full] / mass[full], dtype=np.float64) for sums in (moment, hits))
    fitted = sklearn.isotonic.IsotonicRegression(y_min=0, y_max=1).fit(center, share, sample_weight=mass[full])
    return Monotone(center, np.asarray(fitted.predict(center), dtype=np.float64))


def _quantiles(values: NDArray[np.float64], mass: NDArray[np.float64], steps: int) -> NDArray[np.float64]:
    """Values that cut the mass into so many equal parts: the lowest of each part but the first, none twice."""
    order = np.argsort(values, kind="stable")
    values, below = values[order], mass[order].cumsum() - mass[order]
    cuts = np.searchsorted(below, mass.sum() * np.arange(1, steps) / steps * (1 - 1e-12))
    found: NDArray[np.float64] = np.unique(values[np.minimum(cuts, len(values) - 1)])
    return found


CALIBRATIONS: dict[str, Callable[[Tensor, RowWeights], Calibrator]] = {"isotonic": isotonic, "platt": platt}
