"""The model behind SAR-EM, LBE and the double logistic: a row is labeled if it is positive *and* was picked.

    P(s = 1 | x) = f(x) e(x),      f = P(positive | x), e = P(labeled | x, positive)

Exchanging f and e changes nothing in it: what tells them apart is where the search starts, or the prior.

Case-control. Pooled, the unlabeled rows bring a mass f of positives at x and the labeled ones e·f. So the pooled rows
are a single sample of another population, in which a positive is labeled with probability ẽ = e / (1 + e), whatever f
is. Each estimator fits that sample and returns the odds ẽ / (1 − ẽ) = e. What it models by a logistic curve is then ẽ.
"""

from __future__ import annotations

import numpy as np

from pue.core.data import PUData, Scenario, labeled_share
from pue.core.regression import Array, sigmoid


def expectation(f_scores: Array, e_scores: Array, labeled: Array) -> tuple[Array, Array]:
    """q = P(positive | x, s), which is 1 for labeled rows and f(1 − e) / (1 − f e) for the others, and log P(s | x).

    >>> q, log_p = expectation(np.zeros(2), np.zeros(2), np.array([1.0, 0.0]))  # f = e = 1/2
    >>> q.round(4).tolist(), np.exp(log_p).round(4).tolist()
    ([1.0, 0.3333], [0.25, 0.75])
    """
    f, e = sigmoid(f_scores), sigmoid(e_scores)
    hidden = f * sigmoid(-e_scores)
    unlabeled = np.maximum(sigmoid(-f_scores) + hidden, np.finfo(np.float64).tiny)  # 1 − f e, without cancellation
    labels = labeled > 0
    q = np.where(labels, 1.0, hidden / unlabeled)
    return q, np.log(np.where(labels, np.maximum(f * e, np.finfo(np.float64).tiny), unlabeled))


def pooled_prior(data: PUData, prior: float) -> float:
    """The share of positives among the rows as they stand: π, or with the labeled rows beside the population more."""
    if data.scenario is Scenario.SINGLE_SAMPLE:
        return prior
    share = labeled_share(data.labels, data.sample_weight)
    return share + (1 - share) * prior


def row_mass(data: PUData) -> Array:
    """How many rows each row stands for."""
    mass: Array = data.mass.numpy()
    return mass
