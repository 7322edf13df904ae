"""`PUWrapper`: any scikit-learn classifier as a PU classifier.

A PU risk needs negative weights, which trees and most solvers refuse. The reformulation used instead has none: labeled
rows with weight π ω stand *against the whole population* with weight 1/n. In the limit the odds of that contest are

    π p(x | positive) / p(x) = P(positive | x),

so any probability estimator ranks by it. (The density-ratio view of PU learning; with ω ∝ 1/e it holds for biased
labels.) What a finite model makes of its own training rows is another matter: its scores are therefore calibrated out
of fold by the PU likelihood, which sets scale and threshold (`pue.judging.calibration`).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import has_fit_parameter
from torch import Tensor

from pue.basis import KNOWN
from pue.core.data import Features, PUData, as_matrix, select
from pue.core.folds import content_folds, held_out_values, most_folds
from pue.core.weights import RowWeights
from pue.errors import InvalidInput
from pue.estimators.base import FITTED, PUEstimator
from pue.judging.calibration import Calibrator, Sigmoid, calibrate
from pue.persistence import kept_estimator
from pue.propensity import FLOOR, PropensityEstimator

FEWEST = 10
"""Labeled rows below which scores are not calibrated: rows held out would say nothing."""


@kept_estimator(
    fitted={**FITTED, "estimator_": BaseEstimator, "calibrator_": Calibrator},
    optional=("feature_names_in_", "vectorizer_"),
    dropped=("_metadata_request",),
)
@dataclass(eq=False, repr=False)
class PUWrapper(PUEstimator):
    """A scikit-learn classifier trained on labeled positives and unlabeled rows, corrected for biased labeling.

    Parameters
    ----------
    base_estimator : classifier with `predict_proba`, or a pipeline that ends with one
        Logistic regression, histogram boosting, forests, LightGBM, XGBoost, …
    repeat : "auto" or bool
        Rows repeated instead of weighted: each labeled row as often as its weight, rounded so that sums agree. "auto":
        for classifiers without `sample_weight`, and for histogram boosting, which bins weighted columns very slowly.
    propensity, prior, scenario, propensity_floor, propensity_trim, random_state, positive
        As in `PUClassifier`.
    calibration : "platt" or "isotonic"
    folds : int
        Each row is scored by a copy that has not seen it before scores are calibrated.

    Attributes
    ----------
    estimator_ : the fitted base estimator, labeled rows (1) against the population (0).
    calibrator_ : its log-odds → P(positive | x).
    prior_, prior_estimate_, propensity_, propensity_report_, classes_ : as in `PUClassifier`.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(1000) < 0.4
    >>> X = rng.normal(size=(1000, 2)) + 2 * y[:, None]
    >>> s = (y & (rng.random(1000) < 0.5)).astype(int)
    >>> bool(np.mean(PUWrapper(LogisticRegression(), prior=0.4).fit(X, s).predict(X) == y) > 0.85)
    True
    """

    base_estimator: Any
    _: KW_ONLY
    propensity: str | PropensityEstimator | None = None
    prior: float | Literal["estimate"] = "estimate"
    scenario: str = "single_sample"
    repeat: bool | Literal["auto"] = "auto"
    calibration: str = "platt"
    folds: int = 3
    propensity_floor: float = FLOOR
    propensity_trim: bool = False
    random_state: int | np.random.RandomState | None = None
    positive: str | None = None

    def fit(self, X: Any, y: Any, *, propensity: Any = None, sample_weight: Any = None) -> Self:
        """Learn from features `X` and PU labels `y`: 1 labeled positive, 0 unlabeled, −1 labeled negative.

        Rows labeled −1 belong to the population of a single sample; nothing more is learnt from them.
        """
        weight_name = _weight_name(self.base_estimator, self.repeat)
        data, known = self._read(X, y, propensity, sample_weight, reset=True)
        seed = self._seed()
        weights = self._settle(data, None if known is None else known[data.labeled], seed).weights(data)
        self.estimator_ = self._contest(data, weights, weight_name)
        self.calibrator_ = self._calibrate(data, weights, weight_name, seed)
        self.classes_ = np.array([0, 1])
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_missing()
        return tags

    def _takes_missing(self) -> bool:
        """Where the base estimator does, and nothing else looks at the rows."""
        estimated = isinstance(self.prior, str) or self.propensity not in (None, KNOWN)
        return not estimated and bool(get_tags(self.base_estimator).input_tags.allow_nan)

    def _scores(self, x: Features) -> Tensor:
        return torch.logit(self.calibrator_(_log_odds(self.estimator_, x)).clamp(1e-12, 1 - 1e-12))

    def _contest(self, data: PUData, weights: RowWeights, weight_name: str | None) -> Any:
        """Labeled rows against the population, every weight at least zero; the population weighs its number of rows."""
        population = torch.nonzero(weights.background > 0)[:, 0]
        labeled = torch.nonzero(data.labeled)[:, 0]
        rows = torch.cat([labeled, population])
        target = (torch.arange(len(rows)) < len(labeled)).long()
        mass = torch.cat([weights.positive[labeled], weights.background[population]])
        mass *= data.mass[population].sum() / weights.background.sum()
        given = {}
        if weight_name is None:
            times = repetitions(mass)
            rows, target = rows.repeat_interleave(times), target.repeat_interleave(times)
        else:
            given[weight_name] = mass.numpy()
        estimator = clone(self.base_estimator)
        estimator.fit(as_matrix(select(data.x, rows)), target.numpy(), **given)
        return estimator

    def _calibrate(self, data: PUData, weights: RowWeights, weight_name: str | None, seed: int) -> Calibrator:
        folds = min(self.folds, most_folds(data.x, data.labels))
        if folds < 2 or data.mass[data.labeled].sum() < FEWEST:
            return Sigmoid(1.0, float(-torch.logit(torch.tensor(1 / 3))))  # odds of ½ are P(positive | x) = ½
        fold = torch.from_numpy(content_folds(data.x, data.labels, folds, seed=seed))

        def scores(k: int) -> Tensor:
            seen = fold != k
            part = RowWeights(weights.positive[seen], weights.negative[seen])
            return _log_odds(self._contest(data.take(seen), part, weight_name), select(data.x, ~seen))

        return calibrate(held_out_values(fold, scores, folds), weights, self.calibration)


def _log_odds(estimator: Any, x: Features) -> Tensor:
    p = torch.from_numpy(np.asarray(estimator.predict_proba(as_matrix(x))[:, 1], dtype=np.float64))
    return torch.logit(p.clamp(1e-9, 1 - 1e-9))


def repetitions(mass: Tensor) -> Tensor:
    """Whole numbers near the masses: sums over any run of rows are off by less than one.

    >>> repetitions(torch.tensor([0.4, 0.4, 0.4, 2.0, 1.0]))
    tensor([0, 1, 0, 2, 1])
    """
    reached = torch.cat([torch.zeros(1, dtype=torch.float64), mass.double().cumsum(0)])
    return (reached + 0.5).floor().diff().long()


def _weight_name(estimator: Any, repeat: bool | str) -> str | None:
    """How `fit` is told sample weights, or None where rows are repeated; an error for what is no classifier."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if not hasattr(last, "fit") or not is_classifier(last) or not hasattr(last, "predict_proba"):
        raise InvalidInput(
            f"base_estimator must be a scikit-learn classifier with predict_proba; got {last!r}. For an SVM, wrap it "
            "in sklearn.calibration.CalibratedClassifierCV."
        )
    takes = has_fit_parameter(last, "sample_weight")
    if repeat is False and not takes:
        raise InvalidInput(
            f"{type(last).__name__} does not take sample_weight, which carries the correction. Pass repeat=True to "
            "repeat rows instead."
        )
    if repeat is True or (repeat == "auto" and (not takes or isinstance(last, HistGradientBoostingClassifier))):
        return None
    return f"{estimator.steps[-1][0]}__sample_weight" if isinstance(estimator, Pipeline) else "sample_weight"
