"""A logistic regression of standardised columns: few labels are enough for it, and where trees see steps it sees a
slope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pue.core.data import PUData
from pue.core.regression import Array, Regression, sigmoid
from pue.core.weights import RowWeights
from pue.persistence import kept
from pue.trees.nodes import dense

Matrix = NDArray[np.floating]

FAR = 5.0
"""Standardised values are cut here: no single row may pull a line."""
MOST_COLUMNS = 2_000
"""A Newton step solves a system of so many equations; with more columns `contest` draws no line."""


@kept
@dataclass(frozen=True, eq=False)
class Ridge:
    """sigmoid(zᵀβ) of standardised columns; a missing value counts as the mean."""

    mean: Array
    scale: Array
    beta: Array

    def __call__(self, x: Matrix) -> Array:
        return sigmoid(self.margin(x))

    def margin(self, x: Matrix) -> Array:
        return np.asarray(standardized(x, self.mean, self.scale) @ self.beta)

    def effects(self, x: Matrix) -> Array:
        """(rows, columns): what each column adds to the margin of a row whose columns were all at their means."""
        return np.asarray(standardized(x, self.mean, self.scale)[:, :-1] * self.beta[:-1])


def contest(data: PUData, weights: RowWeights) -> Ridge:
    """Labeled rows against the population, as many of each as there are: its odds rank as P(positive | x) does.

    The PU risk itself would do, but where labels are biased it follows them further: what speaks for a label gets no
    counterweight from the same row among the others. (Measured: docs/lab/blend.md.)

    >>> import torch
    >>> from pue.core.weights import uniform
    >>> data = PUData(torch.arange(9.0)[:, None], torch.tensor([0] * 6 + [1] * 3))
    >>> line = contest(data, uniform(data.labels, prior=0.5))
    >>> bool((np.diff(line.margin(data.x.numpy())) > 0).all())
    True
    """
    x, positive, background = dense(data.x), weights.positive.numpy(), weights.background.clamp(min=0).numpy()
    mass = data.mass.numpy()
    mean, scale = moments(x, background)
    if x.shape[1] > MOST_COLUMNS:
        return Ridge(mean, scale, np.zeros(x.shape[1] + 1))
    ours = positive * (mass[positive > 0].sum() / positive.sum())
    others = background * (mass[background > 0].sum() / background.sum())
    return Ridge(mean, scale, solved(standardized(x, mean, scale), ours, others, strength=1.0))


def moments(x: Matrix, weight: Array) -> tuple[Array, Array]:
    """Mean and spread of every column over the weighted rows, missing values left out; a constant has spread one."""
    known = np.isfinite(x)
    mass = np.maximum(weight @ known, np.finfo(np.float64).tiny)
    values = np.where(known, x, 0.0).astype(np.float64)
    mean = weight @ values / mass
    spread = np.sqrt(np.maximum(weight @ (np.where(known, x - mean, 0.0) ** 2) / mass, 0.0))
    return mean, np.where(spread > 1e-12 * (1 + np.abs(mean)), spread, 1.0)


def standardized(x: Any, mean: Array, scale: Array) -> Array:
    """Columns less their means over their spreads, and a column of ones."""
    z = np.clip(np.nan_to_num((np.asarray(x, dtype=np.float64) - mean) / scale, nan=0.0), -FAR, FAR)
    return np.asfortranarray(np.column_stack([z, np.ones(len(z))]))


def solved(z: Array, positive: Array, negative: Array, strength: float) -> Array:
    """The coefficients under these weights; `strength` is scikit-learn's C."""
    regression = Regression(z, C=strength)
    return regression.solve(positive, negative, regression.start(), tol=1e-9).beta
