"""What boosting follows: the logistic PU risk of scores, its gradient, and the correction that keeps it from falling
without end.

With the logistic loss the two parts of the risk, Σ w⁺ log(1 + e^−g) and Σ w⁻ log(1 + e^g), add up to

    Σ b log(1 + e^g) − Σ w⁺ g,        b = w⁺ + w⁻,

which is convex, with the gradient b σ(g) − w⁺ and the second derivative b σ(g) (1 − σ(g)). Where trees set labeled rows
apart, w⁺ outweighs b and the risk falls without end as g grows: uPU's overfitting. A forest sees that in a leaf. Here
the rows with about the same score take the leaf's place: where w⁺ outweighs b among them, their negative part counts as
zero, as in nnPU, and what is left, −w⁺ (1 − σ(g)), goes out as g grows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BANDS = 10
"""So many bands of the probability, of one width, are looked at for labels that outweigh the rows."""
FLAT = 1e-3
"""Least second derivative of a row, in rows: labeled rows of case-control have no background."""


@dataclass(frozen=True, eq=False)
class Weighted:
    """w⁺ and background of some rows."""

    positive: Floats
    background: Floats

    def part(self, rows: NDArray[np.bool_]) -> Weighted:
        """Some rows, with the weight of all."""
        return Weighted(_as_much(self.positive, rows), _as_much(self.background, rows))

    def gradient(self, scores: Floats) -> tuple[Floats, Floats]:
        """First and second derivative at each row's score."""
        p = sigmoid(scores)
        curvature = np.maximum(self.background * p * (1 - p), FLAT)
        outweighed = self.outweighed(p)
        if not outweighed.any():
            return self.background * p - self.positive, curvature
        return np.where(outweighed, -self.positive * (1 - p), self.background * p - self.positive), curvature

    def outweighed(self, p: Floats) -> NDArray[np.bool_]:
        """Whether w⁺ outweighs the background among the rows of about the same probability."""
        band = np.minimum((p * BANDS).astype(np.int64), BANDS - 1)
        return np.asarray((np.bincount(band, self.background - self.positive, BANDS) < 0)[band])

    def risk(self, scores: Floats) -> float:
        """The non-negative PU risk with the logistic loss: nnPU's."""
        upward = softplus(scores)
        negative = float((self.background - self.positive) @ upward)
        return float(self.positive @ (upward - scores)) + max(negative, 0.0)


def sigmoid(scores: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(scores, -500, 500))))


def softplus(scores: Floats) -> Floats:
    """log(1 + e^g)."""
    return np.asarray(np.maximum(scores, 0) + np.log1p(np.exp(-np.abs(scores))))


def _as_much(weights: Floats, rows: NDArray[np.bool_]) -> Floats:
    some = weights[rows]
    return np.asarray(some * (weights.sum() / some.sum())) if some.sum() > 0 else some
