"""What an uncertain share of positives changes, and what it does not: the same trees at both ends of its interval.

The ranking of rows often stays while the number that is called positive doubles. Who only wants the best K rows then
need not know the prior at all; that is worth saying beside a wide interval.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pue.app.learn import classifier_of, fitted
from pue.app.preparation import Preparation
from pue.app.recipe import Recipe
from pue.app.rows import Rows
from pue.core.data import PUData, possible_prior
from pue.trees import LEARNERS

MOST = 50_000
"""Rows of a table up to which two more models are worth their time."""
BEST = 100
"""So many of the best unlabeled rows are compared, at most a tenth of them."""


def over_the_range(
    rows: Any, recipe: Recipe, prepared: Preparation, classifier: Any
) -> list[dict[str, float | int]] | None:
    """At the low end of the prior's interval, at the prior, and at the high end: the share of the rows that trees with
    this prior call positive, and how many of the best unlabeled rows they share with the model.

    None where there is nothing to ask: a prior that is given, a network, or a very large table.
    """
    interval = prepared.prior_interval
    if interval is None or recipe.method not in LEARNERS or not isinstance(rows, Rows) or rows.data.n_rows > MOST:
        return None
    data = rows.data
    own = _scores(classifier, data)
    best = _best(own, data)
    found: list[dict[str, float | int]] = []
    for prior in (interval[0], prepared.prior.value, interval[1]):
        scores = own if prior == prepared.prior.value else _scores(_refitted(data, recipe, prepared, prior), data)
        shared = len(np.intersect1d(best, _best(scores, data)))
        found.append({"prior": prior, "called": float(np.mean(scores >= 0)), "best": len(best), "shared": shared})
    return found


def _refitted(data: PUData, recipe: Recipe, prepared: Preparation, prior: float) -> Any:
    """A classifier with another prior and the same propensities."""
    possible = min(possible_prior(prior, data.labels, data.scenario, data.sample_weight), 0.99)
    other = replace(prepared, prior=replace(prepared.prior, value=possible))
    return fitted(classifier_of(recipe, other), data, prepared.e)


def _scores(classifier: Any, data: PUData) -> NDArray[np.float64]:
    return np.asarray(classifier.decision_function(data.x), dtype=np.float64)


def _best(scores: NDArray[np.float64], data: PUData) -> NDArray[np.int64]:
    unlabeled = np.flatnonzero((data.labels == 0).numpy())
    k = max(1, min(BEST, len(unlabeled) // 10))
    chosen = torch.topk(torch.from_numpy(scores[unlabeled]), k).indices.numpy()
    return np.asarray(unlabeled[chosen], dtype=np.int64)
