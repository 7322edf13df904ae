"""scikit-learn, no PU tool: labeled rows against all others, as if those were negative."""

from __future__ import annotations

from typing import Any

from problems import Fitted, Method, Problem
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression


def naive(base: Any) -> Method:
    def fit(problem: Problem, seed: int) -> Fitted:
        model = base(seed).fit(problem.x, problem.s)
        return Fitted(model.predict, lambda x: model.predict_proba(x)[:, 1])

    return Method(fit)


METHODS = {
    "unlabeled as negative": naive(lambda seed: LogisticRegression()),
    "unlabeled as negative, boosting": naive(lambda seed: HistGradientBoostingClassifier(random_state=seed)),
}
