"""Scores of rows by models that have not seen them: calibration, thresholds and estimated metrics rest on them."""

from __future__ import annotations

from typing import Any

import torch
from joblib import Parallel, delayed
from sklearn.base import clone
from torch import Tensor

from pue.data import PUData, labeled_share, select
from pue.errors import InvalidInput
from pue.folds import content_folds, most_folds
from pue.randomness import derive
from pue.training.processes import spread


def out_of_fold(
    classifier: Any,
    data: PUData,
    *,
    prior: float,
    propensity: Tensor | None = None,
    folds: int = 3,
    scored: int | None = None,
    jobs: int = 1,
    seed: int = 0,
) -> Tensor:
    """The score of every row from a copy of `classifier` fitted without its fold; equal rows share a fold.

    `propensity` is ê of the labeled rows, in order, each already from models that have not seen the row. `scored` folds
    only are left out in turn (None: all), which is enough for large data; rows of the others get NaN. In a process
    group folds are shared out; where there are fewer of them than processes, each is trained by all.
    """
    possible = most_folds(data.x, data.labels)
    if possible < 2:
        raise InvalidInput(
            "rows cannot be held out: there are not 2 distinct labeled and 2 distinct unlabeled rows. Label more rows."
        )
    folds = min(folds, possible)
    fold = torch.from_numpy(content_folds(data.x, data.labels, folds, seed=seed))
    e = torch.full((data.n_rows,), torch.nan, dtype=torch.float64)
    if propensity is not None:
        e[data.labeled] = propensity
    scores = torch.full((data.n_rows,), torch.nan, dtype=torch.float64)
    chosen = range(folds if scored is None else min(scored, folds))

    def given(k: int) -> tuple[Any, ...]:
        return classifier, data, fold == k, prior, None if propensity is None else e, derive(seed, k)

    found = spread(chosen, lambda k: _scores(*given(k)))
    if found is None:
        found = Parallel(n_jobs=jobs)(delayed(_scores)(*given(k)) for k in chosen)
    for k, values in zip(chosen, found, strict=True):
        scores[fold == k] = values
    return scores


def _scores(classifier: Any, data: PUData, held: Tensor, prior: float, e: Tensor | None, seed: int) -> Tensor:
    seen = data.take(~held)
    model = clone(classifier).set_params(
        prior=max(prior, labeled_share(seen.labels, seen.sample_weight)), propensity=None, random_state=seed % 2**32
    )
    model.fit(
        seen.x,
        seen.labels,
        propensity=None if e is None else e[~held][seen.labeled],
        sample_weight=seen.sample_weight,
    )
    return torch.from_numpy(model.decision_function(select(data.x, held))).double()
