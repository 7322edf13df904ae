"""Scores of rows by models that have not seen them: calibration, thresholds and estimated metrics rest on them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from torch import Tensor

from pue.core.data import PUData, possible_prior, select
from pue.core.folds import content_folds, held_out_values, most_folds
from pue.core.randomness import derive
from pue.errors import InvalidInput
from pue.training.processes import share_out


def out_of_fold(
    classifier: Any,
    data: PUData,
    *,
    prior: float,
    propensity: Tensor | None = None,
    folds: int | Tensor = 3,
    scored: int | None = None,
    jobs: int = 1,
    groups: NDArray[np.int64] | None = None,
    seed: int = 0,
) -> Tensor:
    """The score of every row from a copy of `classifier` fitted without its fold; `folds`: how many, or the fold of
    every row (`dealt`). Equal rows share a fold, and so do rows of one of `groups`.

    `propensity` is ê of the labeled rows, in order, each already from models that have not seen the row. `scored` folds
    only are left out in turn (None: all), which is enough for large data; rows of the others get NaN. In a process
    group folds are shared out; where there are fewer of them than processes, each is trained by all.
    """
    fold = dealt(data, folds, groups=groups, seed=seed) if isinstance(folds, int) else folds
    e = None
    if propensity is not None:
        e = torch.full((data.n_rows,), torch.nan, dtype=torch.float64)
        e[data.labeled] = propensity
    scores = partial(_scores, classifier, data, fold, prior, e, seed)
    there = int(fold.max()) + 1
    return held_out_values(fold, scores, min(scored or there, there), run=partial(share_out, jobs=jobs))


def dealt(data: PUData, folds: int, *, groups: NDArray[np.int64] | None = None, seed: int = 0) -> Tensor:
    """The fold of every row; fewer folds where there are not so many distinct labeled and unlabeled rows."""
    possible = most_folds(data.x, data.labels, groups=groups)
    if possible < 2:
        raise InvalidInput(
            "rows cannot be held out: there are not 2 distinct labeled and 2 distinct unlabeled rows. Label more rows."
        )
    return torch.from_numpy(content_folds(data.x, data.labels, min(folds, possible), groups=groups, seed=seed))


def _scores(classifier: Any, data: PUData, fold: Tensor, prior: float, e: Tensor | None, seed: int, k: int) -> Tensor:
    held = fold == k
    seen = data.take(~held)
    model = clone(classifier).set_params(
        prior=possible_prior(prior, seen.labels, seen.scenario, seen.sample_weight),
        propensity=None,
        random_state=derive(seed, k) % 2**32,
    )
    model.fit(
        seen.x, seen.labels, propensity=None if e is None else e[~held][seen.labeled], sample_weight=seen.sample_weight
    )
    return torch.from_numpy(model.decision_function(select(data.x, held))).double()
