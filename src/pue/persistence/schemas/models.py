"""Schemas of what gives scores and is no tree: linear models, isotonic regression, and what holds other estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator

from pue.errors import ModelError
from pue.persistence.schemas.parts import TINY, Classes, Count, Numbers, Sizes, Words, require
from pue.persistence.schemas.schema import FEATURES, NAMED, Schema, Values

NUMBER = Numbers(())
ITERATIONS = Numbers(("i",), 0, types=("int32", "int64"), scalar=True)


def _linear(model: Any, found: Values) -> Values:
    k = len(found["classes_"])
    require(len(found["coef_"]) == (1 if k == 2 else k), type(model).__name__, "should have a row for each class")
    return found


def _isotonic(model: Any, found: Values) -> Values:
    x, y = found["X_thresholds_"], found["y_thresholds_"]
    steps = np.diff(y) if found["increasing_"] else -np.diff(y)
    require(len(x) > 0 and (np.diff(x) > 0).all() and (steps >= 0).all(), "IsotonicRegression", "should be monotone")
    model._build_f(x, y)
    return found


def _steps(pipeline: Any) -> None:
    """`Pipeline._validate_params` looks at the steps, but does not say that they are estimators of ours."""
    for step in pipeline.steps:
        pair = isinstance(step, tuple | list) and len(step) == 2 and isinstance(step[0], str)
        if not pair or not (isinstance(step[1], BaseEstimator) or step[1] in (None, "passthrough")):
            raise ModelError("a Pipeline's steps are estimators with a name each: the model is damaged.")
    pipeline.steps = [tuple(step) for step in pipeline.steps]
    try:
        pipeline._validate_steps()
    except (TypeError, ValueError) as error:
        raise ModelError(f"a Pipeline's steps do not follow one another: {error} The model is damaged.") from error


class _Copies:
    """Of a calibrated classifier: a list of pairs, an estimator and the curves of its classes."""

    def checked(self, value: Any, sizes: Sizes, at: str) -> Any:
        require(type(value) is list and len(value) > 0, at, "should hold estimators and their curves")
        for pair in value:
            sound = type(pair) is tuple and len(pair) == 2 and isinstance(pair[0], BaseEstimator)
            require(sound and type(pair[1]) is list and len(pair[1]) > 0, at, "should hold estimators and their curves")
            for curve in pair[1]:
                if not isinstance(curve, sklearn.isotonic.IsotonicRegression):
                    Numbers((2,)).checked(curve, {}, at)
        return value


def _copies(model: Any) -> Values:
    def curve(found: Any) -> Any:
        isotonic = isinstance(found, sklearn.isotonic.IsotonicRegression)
        return found if isotonic else np.array([found.a_, found.b_], dtype=np.float64)

    return {"copies": [(copy.estimator, list(map(curve, copy.calibrators))) for copy in model.calibrated_classifiers_]}


def _calibrated(model: Any, found: Values) -> Values:
    from sklearn.calibration import _CalibratedClassifier, _SigmoidCalibration

    require(
        model.method in ("sigmoid", "isotonic"), "CalibratedClassifierCV", "should be of method sigmoid or isotonic"
    )

    def curve(stored: Any) -> Any:
        if not isinstance(stored, np.ndarray):
            return stored
        sigmoid = _SigmoidCalibration()
        sigmoid.a_, sigmoid.b_ = stored
        return sigmoid

    k = len(found["classes_"])
    copies = []
    for estimator, curves in found.pop("copies"):
        require(len(curves) == (1 if k == 2 else k), "CalibratedClassifierCV", "should have a curve for each class")
        made = list(map(curve, curves))
        copies.append(_CalibratedClassifier(estimator, made, classes=found["classes_"], method=model.method))
    return {**found, "calibrated_classifiers_": copies}


def _small_folds(model: Any) -> None:
    sound = model.cv is None or isinstance(model.cv, int) or model.cv == "prefit"
    require(sound, "CalibratedClassifierCV", "should have a number of folds as cv")


LINEAR = {**FEATURES, "classes_": Classes(), "coef_": Numbers(("r", "p")), "intercept_": Numbers(("r",))}

MODELS = [
    Schema("sklearn.linear_model:LogisticRegression", {**LINEAR, "n_iter_": ITERATIONS}, build=_linear),
    Schema("sklearn.svm:LinearSVC", {**LINEAR, "n_iter_": Count()}, build=_linear),
    Schema("sklearn.naive_bayes:GaussianNB",
           {**FEATURES, "classes_": Classes(), "theta_": Numbers(("k", "p")), "var_": Numbers(("k", "p"), TINY),
            "class_prior_": Numbers(("k",), TINY, 1.0), "class_count_": Numbers(("k",), 0), "epsilon_": NUMBER}),
    Schema("sklearn.isotonic:IsotonicRegression",
           {"X_min_": NUMBER, "X_max_": NUMBER, "X_thresholds_": Numbers(("t",)), "y_thresholds_": Numbers(("t",)),
            "increasing_": Words((True, False))},
           {}, rebuilt=("f_",), build=_isotonic),
    Schema("sklearn.calibration:CalibratedClassifierCV", {"classes_": Classes(), "copies": _Copies()},
           {**FEATURES, **NAMED},
           rebuilt=("calibrated_classifiers_",), take=_copies, build=_calibrated, check=_small_folds),
    Schema("sklearn.pipeline:Pipeline", {}, {}, check=_steps),
]  # fmt: skip
