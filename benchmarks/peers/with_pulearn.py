"""pulearn: its classifiers with their defaults, around logistic regression or boosted trees where they take a model."""

from __future__ import annotations

from typing import Any

from problems import Fitted, Method, Problem
from pulearn import BaggingPuClassifier, ElkanotoPuClassifier, NNPUClassifier, WeightedElkanotoPuClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression


def fitted(model: Any) -> Fitted:
    return Fitted(model.predict, lambda x: model.predict_proba(x)[:, 1])


def nnpu(**options: Any) -> Method:
    def fit(problem: Problem, seed: int) -> Fitted:
        model = NNPUClassifier(problem.prior, random_state=seed, **options).fit(problem.x, problem.s)
        return Fitted(model.predict, model.decision_function)

    return Method(fit, case_control=True)


def elkan_noto(base: Any) -> Method:
    def fit(problem: Problem, seed: int) -> Fitted:
        return fitted(ElkanotoPuClassifier(base(seed), random_state=seed).fit(problem.x, problem.s))

    return Method(fit)


def weighted_elkan_noto(base: Any) -> Method:
    def fit(problem: Problem, seed: int) -> Fitted:
        labeled = int(problem.s.sum())
        model = WeightedElkanotoPuClassifier(base(seed), labeled, len(problem.s) - labeled, random_state=seed)
        return fitted(model.fit(problem.x, problem.s))

    return Method(fit)


def bagging(problem: Problem, seed: int) -> Fitted:
    """10 decision trees, every bag with as many unlabeled rows as there are in all: its defaults."""
    return fitted(BaggingPuClassifier(random_state=seed).fit(problem.x, problem.s))


def balanced_bagging(problem: Problem, seed: int) -> Fitted:
    """20 decision trees, as many unlabeled rows in a bag as there are labeled ones."""
    model = BaggingPuClassifier(n_estimators=20, max_samples=int(problem.s.sum()), random_state=seed)
    return fitted(model.fit(problem.x, problem.s))


def logistic(seed: int) -> Any:
    return LogisticRegression()


def boosting(seed: int) -> Any:
    return HistGradientBoostingClassifier(random_state=seed)


METHODS = {
    "nnPU, linear": nnpu(),
    "nnPU, linear, lr=1": nnpu(learning_rate=1.0),
    "Elkan-Noto": elkan_noto(logistic),
    "Elkan-Noto, boosting": elkan_noto(boosting),
    "Elkan-Noto, weighted": weighted_elkan_noto(logistic),
    "bagging": Method(bagging),
    "bagging, balanced": Method(balanced_bagging),
}
