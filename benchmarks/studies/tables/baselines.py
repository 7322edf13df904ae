"""Simple ways that need no PU library, and the ceiling: the true classes of all training rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from answers import Answer, Method
from problems import Problem
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_predict

FOLDS = 5


def boosting(seed: int) -> Any:
    return HistGradientBoostingClassifier(random_state=seed)


def forest(seed: int) -> Any:
    return ExtraTreesClassifier(200, min_samples_leaf=3, n_jobs=1, random_state=seed)


def naive(problem: Problem) -> Answer:
    """Unlabeled rows are taken for negatives."""
    p = _fitted(boosting, problem, problem.train.s)
    return Answer(p, p >= 0.5)


def elkan_noto(problem: Problem) -> Answer:
    """P(labeled | x) divided by c, its mean over labeled rows out of fold; they must be a random sample for that."""
    p, prior = _fitted(boosting, problem, problem.train.s), elkan_noto_prior(problem)
    c = problem.train.s.mean() / prior
    return Answer(p, p >= c / 2, {"prior": min(1.0, prior), "true_prior": problem.prior})


def elkan_noto_prior(problem: Problem) -> float:
    """Labeled share over c; more than one where labels cannot be a random sample."""
    return float(problem.train.s.mean() / _out_of_fold(problem)[problem.train.s].mean())


def ranking(problem: Problem) -> Answer:
    """Labeled against the rest; the top π of the scores are positive. π is the true one."""
    p = _fitted(boosting, problem, problem.train.s)
    return Answer(p, p >= np.quantile(_out_of_fold(problem), 1 - problem.prior))


def ceiling(problem: Problem, *, learner: Any) -> Answer:
    """Nothing is hidden."""
    p = _fitted(learner, problem, problem.train.y)
    return Answer(p, p >= 0.5)


def _fitted(learner: Any, problem: Problem, target: Any) -> Any:
    model = learner(problem.seed).fit(problem.train.x, target)
    return model.predict_proba(problem.test.x)[:, 1]


def _out_of_fold(problem: Problem) -> Any:
    train = problem.train
    return cross_val_predict(boosting(problem.seed), train.x, train.s, cv=FOLDS, method="predict_proba")[:, 1]


BASELINES: dict[str, Method] = {
    "baseline/naive": naive,
    "baseline/elkan-noto": elkan_noto,
    "baseline/ranking": ranking,
}
CEILINGS: dict[str, Method] = {
    "ceiling/forest": partial(ceiling, learner=forest),
    "ceiling/boosting": partial(ceiling, learner=boosting),
}
