"""What every estimator of the prior is given: who is labeled, how likely each row was to be, and a few features.

q is *cross-fitted*: the q of a row comes from a model that has seen neither the row nor a copy of it. A model's own
rows look more recognisable than they are, and every estimator below would come out too low.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pue.core.data import Features, PUData, Scenario, as_matrix, is_image
from pue.core.folds import most_folds
from pue.core.weights import unlabeled_as_negative
from pue.errors import PueWarning
from pue.propensity.auto import IMAGE_NETWORK
from pue.propensity.crossfit import CrossFit
from pue.propensity.features import fit_reduction
from pue.propensity.logistic import Logistic
from pue.propensity.pool import label_probability
from pue.propensity.protocol import PropensityEstimator, fit_estimator
from pue.propensity.scar import without_gaps
from pue.trees.forest import Forest

Floats = NDArray[np.float64]
SURE = 1e-4
"""A forest's shares are kept so far from zero and one: a leaf of few rows knows no more."""


@dataclass(frozen=True)
class Rate:
    """P(labeled | x) by a forest; it is only asked here, and never kept."""

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> Callable[[Features], Tensor]:
        trees = Forest(min_leaf=5).fit(data, unlabeled_as_negative(data.labels, data.sample_weight), seed)
        odds = data.scenario is Scenario.CASE_CONTROL

        def rate(x: Features) -> Tensor:
            p = torch.from_numpy(np.clip(trees.probability(as_matrix(x)), SURE, 1 - SURE))
            return p / (1 - p) if odds else p

        return rate


@dataclass(frozen=True, eq=False)
class Evidence:
    """The rows of a PU problem as an estimator of the prior sees them."""

    labels: NDArray[np.int8]
    scenario: Scenario
    mass: Floats
    """Weight of every row; a weight of k is the row k times."""
    q: Floats
    """P(labeled | x) among the pooled rows, out of fold."""
    z: Floats
    """Few and comparable features, one row each."""
    fold: NDArray[np.int64]
    """Rows of one fold got their q from one model."""
    x: Features = None
    """The rows themselves, for who looks at more than `z`."""

    @property
    def labeled(self) -> NDArray[np.bool_]:
        return np.asarray(self.labels == 1)

    @property
    def unlabeled(self) -> NDArray[np.bool_]:
        return np.asarray(self.labels == 0)

    @property
    def labeled_mass(self) -> float:
        return float(self.mass[self.labeled].sum())

    @property
    def unlabeled_mass(self) -> float:
        return float(self.mass[self.unlabeled].sum())

    def reweighted(self, mass: Floats) -> Evidence:
        """The same rows with other weights: what a bootstrap does."""
        return replace(self, mass=mass)

    def rows(self, chosen: NDArray[Any]) -> Evidence:
        """Some of the rows, by mask or index: a cluster, say."""
        picked = {name: getattr(self, name)[chosen] for name in ("labels", "mass", "q", "z", "fold")}
        return replace(self, **picked)


def evidence(data: PUData, *, forest: bool = False, scored: bool = True, seed: int = 0) -> Evidence:
    """The evidence in `data`; of a table its scores may be those of a `forest`, and who needs none leaves them out.

    >>> data = PUData(torch.arange(8.0)[:, None], torch.tensor([0, 0, 0, 0, 0, 1, 1, 1]))
    >>> found = evidence(data)
    >>> found.q.shape, found.z.shape, found.labeled_mass
    ((8,), (8, 1), 3.0)
    """
    nothing = torch.zeros(data.n_rows)
    q, fold = held_out_probability(data, forest=forest, seed=seed) if scored else (nothing, nothing)
    whole = without_gaps(data.x)
    z = fit_reduction(whole, seed=seed)(whole)
    rows = None if scored else whole
    numbers = q.double().numpy(), z.double().numpy(), fold.numpy().astype(np.int64)
    return Evidence(data.labels.numpy(), data.scenario, data.mass.numpy(), *numbers, rows)


def as_evidence(data: PUData | Evidence) -> Evidence:
    return data if isinstance(data, Evidence) else evidence(data)


def held_out_probability(
    data: PUData, *, folds: int | None = None, forest: bool = False, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """q of every row from a model that has seen neither the row nor a copy of it, and the fold of every row.

    The model is a logistic regression or a forest (five folds), or for images the small network of `propensity="auto"`
    (three).
    """
    images = is_image(data.x)
    if not forest:  # trees take missing values
        data = replace(data, x=without_gaps(data.x))
    estimator: PropensityEstimator = IMAGE_NETWORK if images else Rate() if forest else Logistic()
    folds = min(folds or (3 if images else 5), most_folds(data.x, data.labels))
    if folds < 2:
        warnings.warn(
            "too few distinct rows to hold any out: the prior is estimated on the rows the model was fitted to and "
            "will be too low. Pass the prior if you know it.",
            PueWarning,
            stacklevel=3,
        )
        fitted = fit_estimator(estimator, data, prior=0.5, seed=seed)
        return label_probability(fitted(data.x), data.scenario), torch.zeros(data.n_rows, dtype=torch.int64)
    # The prior of `fit` is read by none of these models.
    crossed = CrossFit(estimator, folds, rescale=False).fit(data, prior=0.5, seed=seed)
    return label_probability(crossed.out_of_fold(data.x), data.scenario), crossed.fold
