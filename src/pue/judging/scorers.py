"""Metrics without negatives as scikit-learn scorers: `GridSearchCV(…, scoring=SCORERS["f1"])`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn

from pue.errors import InvalidInput, PueWarning, lookup
from pue.judging.estimates import estimate_metrics
from pue.judging.truth import METRICS, RANKING


@dataclass(frozen=True)
class PUScorer:
    """scorer(estimator, X, s) → the estimated metric; higher is better.

    A predictor that calls every row positive, or none, gets 0 and a warning: its recall and F1 would look fine.
    """

    metric: str
    prior: float | None = None
    """None: the fitted estimator's `prior_`."""
    scar: bool = False
    """Take the labels for a random sample of the positives, even where the estimator knows propensities."""
    scenario: str | None = None
    """None: the estimator's, else a single sample."""

    def __post_init__(self) -> None:
        lookup("metric", self.metric, METRICS)

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        model, rows = _last_step(estimator, X)
        prior = self.prior if self.prior is not None else getattr(model, "prior_", None)
        if prior is None:
            raise InvalidInput(
                f"{type(model).__name__} does not know the share of positives: make_scorer({self.metric!r}, prior=0.3)."
            )
        labels = np.asarray(y)
        found = estimate_metrics(
            _scores(model, rows),
            labels,
            prior=prior,
            propensity=None if self.scar else _propensity(model, rows, labels == 1),
            scenario=self.scenario or str(getattr(model, "scenario", "single_sample")),
            draws=0,
        )
        if found.trivial and self.metric not in RANKING:  # no threshold makes an order of the scores trivial
            warnings.warn(f"this predictor {found.trivial}; its {self.metric} counts as 0.", PueWarning, stacklevel=2)
            return 0.0
        value: float = getattr(found, self.metric).value
        return value


def make_scorer(
    metric: str, *, prior: float | None = None, scar: bool = False, scenario: str | None = None
) -> PUScorer:
    """A scorer for "accuracy", "precision", "recall", "f1", "auc" or "ap" that needs PU labels only.

    >>> make_scorer("f1", prior=0.3)
    PUScorer(metric='f1', prior=0.3, scar=False, scenario=None)
    """
    return PUScorer(metric, prior, scar, scenario)


SCORERS = {metric: PUScorer(metric) for metric in METRICS}


def _last_step(estimator: Any, X: Any) -> tuple[Any, Any]:
    if isinstance(estimator, sklearn.pipeline.Pipeline):
        return estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X
    return estimator, X


def _scores(model: Any, X: Any) -> Any:
    """Scores that decide at zero."""
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)[:, 1] - 0.5
    return np.asarray(model.predict(X), dtype=np.float64) - 0.5


def _propensity(model: Any, X: Any, labeled: Any) -> Any:
    estimate = getattr(model, "predict_propensity", None)
    found = None if estimate is None else estimate(X)
    return None if found is None else np.asarray(found)[labeled]
