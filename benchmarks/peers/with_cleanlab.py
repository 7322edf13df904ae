"""cleanlab: unlabeled rows as noisy negatives, the positive class as the one without errors (`pulearning=1`)."""

from __future__ import annotations

from typing import Any

from cleanlab.classification import CleanLearning
from problems import Fitted, Method, Problem
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression


def clean(base: Any, **options: Any) -> Method:
    def fit(problem: Problem, seed: int) -> Fitted:
        model = CleanLearning(base(seed), seed=seed, **options)
        model.fit(problem.x, problem.s)
        return Fitted(model.predict, lambda x: model.predict_proba(x)[:, 1])

    return Method(fit)


METHODS = {
    "CleanLearning": clean(lambda seed: LogisticRegression()),
    "CleanLearning, pulearning=1": clean(lambda seed: LogisticRegression(), pulearning=1),
    "CleanLearning, pulearning=1, boosting": clean(
        lambda seed: HistGradientBoostingClassifier(random_state=seed), pulearning=1
    ),
}
