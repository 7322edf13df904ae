"""Cross-fitting: ê of a labeled row always comes from a model that has not seen that row, nor a copy of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from pue.core.data import Features, PUData, population_rows, select
from pue.core.folds import content_folds, held_out_values, most_folds, row_hash
from pue.core.randomness import derive
from pue.errors import InvalidInput
from pue.persistence import kept
from pue.propensity.logistic import Logistic
from pue.propensity.protocol import PropensityEstimator, PropensityModel, fit_estimator
from pue.training.processes import share_out

SMALL = 20_000
REFERENCE = 5_000
"""Rows of the population that are scored out of fold too: they set the scale of every fold."""


@kept
@dataclass(frozen=True)
class CrossFit:
    """`folds` models of `estimator`, each fitted without one fold; equal rows share a fold.

    The scale of every fold is set by its own held-out rows: ê is multiplied by

        labels in the fold / Σ ê over the fold's population rows,

    for fold models differ in level by chance, and that would be noise in the weights. (An estimator that leaves out a
    fold of all rows keeps the ratio of labels to rows, so without that noise the factor is 1.)
    """

    shares_out: ClassVar = True
    """Whether the processes of a group share its work, so that all of them must call it."""
    estimator: PropensityEstimator = field(default_factory=Logistic)
    folds: int = 3
    jobs: int = 1
    """Processes for the folds, each with one torch thread; −1: all cores."""
    rescale: bool = True

    def __post_init__(self) -> None:
        if self.folds < 2:
            raise InvalidInput(f"cross-fitting needs at least 2 folds; got {self.folds}.")

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> CrossFitted:
        fold = torch.from_numpy(content_folds(data.x, data.labels, self.folds, seed=seed))
        models = self._models(data, fold, prior, seed)
        rows = torch.cat([torch.nonzero(data.labeled)[:, 0], reference_rows(data)])
        columns = _out_of_fold(models, data.x, fold, rows)
        factors = torch.ones(self.folds, columns.shape[1], dtype=torch.float64)
        if self.rescale:
            factors = _fold_factors(data, fold, rows[data.n_labeled :], columns[data.n_labeled :], self.folds)
            columns = columns * factors[fold[rows]]
        held_out, reference = columns[: data.n_labeled], columns[data.n_labeled :]
        return CrossFitted(tuple(models), fold, factors, held_out, reference)

    def _models(self, data: PUData, fold: Tensor, prior: float, seed: int) -> list[PropensityModel]:
        """One for each fold; in a process group the folds are shared out."""
        work = partial(fit_without, self.estimator, data, fold, prior, seed)
        return share_out(work, range(self.folds), jobs=self.jobs, even_if_few=True)


@kept
@dataclass(frozen=True, eq=False)
class CrossFitted(PropensityModel):
    """The models of all folds; a new row gets the mean of their estimates."""

    models: tuple[PropensityModel, ...]
    fold: Tensor
    """Which fold each row it was fitted on belongs to."""
    factors: Tensor
    """(folds, columns): what the estimates of each fold were multiplied by."""
    labeled_columns: Tensor
    """ê of the labeled rows, out of fold; several columns if the estimator offers several candidates."""
    reference_columns: Tensor
    """The same of `reference_rows`."""

    @property
    def held_out(self) -> Tensor:
        """ê of the labeled rows it was fitted on, in order, each from a model that has not seen the row."""
        return self.labeled_columns.mean(1)

    def out_of_fold(self, x: Features) -> Tensor:
        """ê of all rows it was fitted on, given once more in the same order, each from a model that has not seen it."""
        columns = _out_of_fold(self.models, x, self.fold, torch.arange(len(self.fold)))
        return (columns * self.factors[self.fold]).mean(1)

    @property
    def reference(self) -> Tensor:
        """ê of `reference_rows`, out of fold."""
        return self.reference_columns.mean(1)

    @property
    def candidates(self) -> tuple[str, ...]:
        return self.models[0].candidates

    @property
    def description(self) -> str:
        return f"cross-fitted over {len(self.models)} folds"

    def few(self, n: int) -> CrossFitted:
        """The same with the first n models alone: for rows that none has seen each is honest, and n cost less."""
        return replace(self, models=self.models[:n], factors=self.factors[:n])

    def columns(self, x: Features) -> Tensor:
        per_fold = [model.columns(x) * factor for model, factor in zip(self.models, self.factors, strict=True)]
        return torch.stack(per_fold).mean(0)

    def __call__(self, x: Features) -> Tensor:
        return self.columns(x).mean(1)


def possible_folds(data: PUData) -> int:
    """How many folds the data allow; an error where there are no two."""
    most = most_folds(data.x, data.labels)
    if most < 2:
        raise InvalidInput(
            "estimating propensities needs at least 2 distinct labeled and 2 distinct unlabeled rows. Label more "
            'rows, pass known propensities, or use propensity="constant".'
        )
    return most


def reference_rows(data: PUData, most: int = REFERENCE) -> Tensor:
    """Some rows of the population, chosen by content: the same whoever asks."""
    population = population_rows(data.labels, data.scenario)
    order = torch.from_numpy(np.argsort(row_hash(data.x, seed=1), kind="stable"))
    return order[population[order]][:most].sort().values


def fit_without(
    estimator: PropensityEstimator, data: PUData, fold: Tensor, prior: float, seed: int, k: int
) -> PropensityModel:
    """The estimator on the rows outside of fold k, with one torch thread: for small networks that beats several.

    On small tables the threads of boosted trees wait for each other longer than they work.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1 if data.n_rows < SMALL else None, user_api="openmp"):
            return fit_estimator(estimator, data.take(fold != k), prior=prior, seed=derive(seed, k))
    finally:
        torch.set_num_threads(threads)


def _out_of_fold(models: Sequence[PropensityModel], x: Features, fold: Tensor, rows: Tensor) -> Tensor:
    """Columns of ê for some training rows, each row from the model of its own fold."""
    own = fold[rows]
    return held_out_values(own, lambda k: models[k].columns(select(x, rows[own == k])), len(models))


def _fold_factors(data: PUData, fold: Tensor, reference: Tensor, columns: Tensor, folds: int) -> Tensor:
    mass, population = data.mass, population_rows(data.labels, data.scenario)
    factors = torch.ones(folds, columns.shape[1], dtype=torch.float64)
    for k in range(folds):
        here = fold[reference] == k
        if not bool(here.any()):
            continue
        weight = mass[reference[here]]
        expected = (weight @ columns[here]) / weight.sum() * mass[population & (fold == k)].sum()
        factors[k] = mass[data.labeled & (fold == k)].sum() / expected.clamp(min=torch.finfo(torch.float64).tiny)
    return factors
