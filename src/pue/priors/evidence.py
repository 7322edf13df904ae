"""What every estimator of the prior is given: who is labeled, how likely each row was to be, and a few features.

q is *cross-fitted*: the q of a row comes from a model that has seen neither the row nor a copy of it. A model's own
rows look more recognisable than they are, and every estimator below would come out too low.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pue.data import PUData, Scenario
from pue.errors import InvalidInput, PueWarning
from pue.folds import most_folds
from pue.propensity.auto import IMAGE_NETWORK
from pue.propensity.crossfit import CrossFit
from pue.propensity.logistic import Logistic
from pue.propensity.pool import label_probability
from pue.propensity.protocol import PropensityEstimator
from pue.reduction import fit_reduction

Floats = NDArray[np.float64]


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


def evidence(data: PUData, *, q: Any = None, fold: Any = None, embedding: Any = None, seed: int = 0) -> Evidence:
    """The evidence in `data`, or from a better q (a cross-fitted network's, with the fold of every row).

    An `embedding` replaces the features; it must mean the same in all folds, which the layers of cross-fitted networks
    do not.

    >>> data = PUData(torch.arange(8.0)[:, None], torch.tensor([0, 0, 0, 0, 0, 1, 1, 1]))
    >>> found = evidence(data)
    >>> found.q.shape, found.z.shape, found.labeled_mass
    ((8,), (8, 1), 3.0)
    """
    if q is None:
        q, fold = held_out_probability(data, seed=seed)
    q = _floats(q)
    fold = np.zeros(data.n_rows, dtype=np.int64) if fold is None else np.asarray(fold, dtype=np.int64)
    z = _floats(fit_reduction(data.x, seed=seed)(data.x) if embedding is None else embedding)
    if q.shape != (data.n_rows,) or not ((q >= 0) & (q <= 1)).all():
        raise InvalidInput(
            f"q must hold a probability for each of the {data.n_rows} rows; got shape {q.shape}. Pass P(labeled | x), "
            "out of fold; turn logits into probabilities first."
        )
    if fold.shape != q.shape:
        raise InvalidInput(f"fold must name the fold of each of the {data.n_rows} rows; got shape {fold.shape}.")
    if z.ndim != 2 or len(z) != data.n_rows or not np.isfinite(z).all():
        raise InvalidInput(
            f"embedding must be a finite matrix with one row for each of the {data.n_rows} rows; got shape {z.shape}."
        )
    return Evidence(data.labels.numpy(), data.scenario, data.mass.numpy(), q, z, fold)


def as_evidence(data: PUData | Evidence) -> Evidence:
    return data if isinstance(data, Evidence) else evidence(data)


def held_out_probability(data: PUData, *, folds: int | None = None, seed: int = 0) -> tuple[Tensor, Tensor]:
    """q of every row from a model that has seen neither the row nor a copy of it, and the fold of every row.

    The model is a logistic regression (five folds), or for images the small network of `propensity="auto"` (three).
    """
    images = len(data.x.shape) > 2
    estimator: PropensityEstimator = IMAGE_NETWORK if images else Logistic()
    folds = min(folds or (3 if images else 5), most_folds(data.x, data.labels))
    if folds < 2:
        warnings.warn(
            "too few distinct rows to hold any out: the prior is estimated on the rows the model was fitted to and "
            "will be too low. Pass the prior if you know it.",
            PueWarning,
            stacklevel=3,
        )
        fitted = estimator.fit(data, prior=0.5, seed=seed)
        return label_probability(fitted(data.x), data.scenario), torch.zeros(data.n_rows, dtype=torch.int64)
    # The prior of `fit` is read by none of these models.
    crossed = CrossFit(estimator, folds, rescale=False).fit(data, prior=0.5, seed=seed)
    return label_probability(crossed.out_of_fold(data.x), data.scenario), crossed.fold


def _floats(values: Any) -> Floats:
    return np.asarray(values.detach().cpu() if isinstance(values, Tensor) else values, dtype=np.float64)
