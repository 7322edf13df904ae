"""`PUModel`: preprocessing, classifier, probabilities and a threshold, in one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from pue.app.drift import ROWS, ColumnProfile, Drift, drifted
from pue.app.fitted_classifier import FittedClassifier
from pue.app.reference import Reference
from pue.app.threshold import HeldOut, check_rule, choose_threshold
from pue.core.finite import require_finite_scores
from pue.errors import InvalidInput, ModelError, PueError, ScoreIsNoNumber
from pue.estimators.vectorizer.vectorize import Vectorizer
from pue.judging.calibration import Calibrator
from pue.persistence import kept
from pue.propensity import FLOOR, PropensityModel

Array = NDArray[np.float64]

CREATED = "created"
"""Of a summary: when the model was made."""
BLOCK, IMAGE_BLOCK = 4096, 64
"""Rows that are scored at once."""


@kept
@dataclass(frozen=True, eq=False)
class PUModel(FittedClassifier):
    """Rows as they come → P(positive | x) and a decision; a fitted classifier of scikit-learn's kind."""

    classifier: Any
    calibrator: Calibrator
    threshold: float
    """In probabilities."""
    rule: str
    """Where the threshold came from, in words."""
    held_out: HeldOut
    vectorizer: Vectorizer | None = None
    """None: images, or features as they are."""
    propensity_model: PropensityModel | None = None
    image_shape: tuple[int, ...] | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    """Which columns meant what, where the rows came from."""
    summary: dict[str, Any] = field(default_factory=dict)
    """What the page shows."""
    reference: Reference | None = None
    """What explanations start from."""
    profiles: tuple[ColumnProfile, ...] = ()
    """How the columns of the training rows were filled, to see drift by."""

    def __post_init__(self) -> None:
        if not hasattr(self.classifier, "decision_function"):
            raise InvalidInput(f"a {type(self.classifier).__name__} is no classifier: it gives no scores.")
        check_rule(self.threshold)
        known = getattr(self.classifier, "n_features_in_", None)
        if self.vectorizer is not None and known not in (None, len(self.vectorizer.feature_names)):
            raise InvalidInput(
                f"the columns become {len(self.vectorizer.feature_names)} features, and the classifier was trained on "
                f"{known}. Fit the model again."
            )

    def features(self, rows: pd.DataFrame | NDArray[Any]) -> NDArray[Any]:
        """A frame's features, or images as they are."""
        if self.vectorizer is None:
            return np.asarray(rows)
        if not isinstance(rows, pd.DataFrame):
            raise InvalidInput("this model was trained on a table: pass a pandas frame with its columns.")
        return self.vectorizer.transform(rows)

    def probabilities(self, features: NDArray[Any]) -> Array:
        """P(positive | x) of vectorised rows, or of images if their shape is right."""
        if self.image_shape is not None and features.shape[1:] != self.image_shape:
            raise InvalidInput(
                f"this model was trained on images of shape {self.image_shape}; these have {features.shape[1:]}. "
                "Resize or convert them."
            )
        scores = self.classifier.decision_function
        return self._by_block(lambda rows: self.calibrator(torch.from_numpy(np.array(scores(rows)))), features)

    def probability(self, rows: pd.DataFrame | NDArray[Any]) -> Array:
        """P(positive | x) of each row."""
        return self.probabilities(self.features(rows))

    def predict_proba(self, rows: pd.DataFrame | NDArray[Any]) -> Array:
        """Columns P(negative), P(positive), as scikit-learn's classifiers give them."""
        positive = self.probability(rows)
        return np.column_stack([1 - positive, positive])

    def predict(self, rows: pd.DataFrame | NDArray[Any]) -> NDArray[np.int64]:
        """1 where the probability reaches the threshold, else 0."""
        return (self.probability(rows) >= self.threshold).astype(np.int64)

    def explain(self, rows: pd.DataFrame, *, seed: int = 0) -> Any:
        """What each column adds to the score of each row: an `Explanation` with `values`, `top` and `importance`."""
        from pue.app.explain import explain

        return explain(self, rows, seed=seed)

    def drift(self, rows: pd.DataFrame) -> list[Drift]:
        """Columns whose values differ from those at training; of many rows the first 10,000 are looked at."""
        if self.vectorizer is None or not self.profiles:
            return []
        return drifted(self.profiles, self.vectorizer, self.vectorizer.transform(rows.iloc[:ROWS]))

    def propensity(self, features: NDArray[Any]) -> Array:
        """ê(x) of vectorised rows, clipped; one constant where labels were taken as unbiased."""
        if self.propensity_model is None:
            return np.full(len(features), float(self.facts.get("label_frequency", 1.0)))
        model = self.propensity_model
        return self._by_block(lambda rows: model(torch.from_numpy(rows)).clamp(FLOOR, 1.0), features)

    def readings(self, features: NDArray[Any]) -> Array:
        """(n, readings): ê(x) under every reading of the labels, the first of them that of `propensity`."""
        if self.propensity_model is None:
            return self.propensity(features)[:, None]
        model = self.propensity_model
        return self._by_block(lambda rows: model.readings(torch.from_numpy(rows)).clamp(FLOOR, 1.0), features)

    def _by_block(self, function: Callable[[NDArray[Any]], torch.Tensor], features: NDArray[Any]) -> Array:
        """Blocks of one size, the last filled up with copies of its last row: products of matrices of another size may
        differ in their last bit, and what a row is worth must not depend on its company."""
        size = BLOCK if self.image_shape is None else IMAGE_BLOCK
        found = []
        for start in range(0, len(features), size):
            rows = np.minimum(np.arange(start, start + size), len(features) - 1)
            try:
                values = function(features[rows])[: len(features) - start].double()
                require_finite_scores(values)
            except ScoreIsNoNumber as error:
                raise ScoreIsNoNumber([start + row for row in error.rows if start + row < len(features)]) from error
            except (PueError, MemoryError):
                raise
            except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as error:
                raise ModelError(
                    f"the parts of the model do not fit each other ({type(error).__name__}: {error}): it was altered, "
                    "or another version wrote it. Fit it again."
                ) from error
            found.append(values.numpy())
        return np.concatenate(found) if found else np.empty(0)

    def with_threshold(self, threshold: float | str, *, precision: float | None = None) -> PUModel:
        """The same model with another decision; see `choose_threshold`."""
        value, rule = choose_threshold(self.held_out, threshold, precision=precision)
        return replace(self, threshold=value, rule=rule)

    def save(self, path: str | Path) -> None:
        """Write to a folder, without pickle; `pue.load` reads it again.

        Not when it was made and how long that took: the same rows, recipe and versions give the same bytes. The folder
        has its own date.
        """
        from pue.persistence.model import save

        save(replace(self, summary=without_times(self.summary)), path)


def without_times(summary: dict[str, Any]) -> dict[str, Any]:
    """A summary without what differs from one fit to the next of the same rows.

    >>> without_times({"created": "today", "method": {"name": "nnpu", "seconds": 3.0}})
    {'method': {'name': 'nnpu'}}
    """
    rest = {name: value for name, value in summary.items() if name != CREATED}
    if isinstance(rest.get("method"), dict):
        rest["method"] = {name: value for name, value in rest["method"].items() if name != "seconds"}
    return rest


def load_model(path: Path) -> PUModel:
    """A model written by `pue fit`; other things that `pue.load` can read are refused."""
    from pue.estimators import classifier, wrapper  # noqa: F401  they and what they import register their types
    from pue.persistence.model import load

    found = load(path)
    if not isinstance(found, PUModel):
        raise InvalidInput(
            f"{path} holds a {type(found).__name__}, not a model of pue fit. Use it from Python: pue.load."
        )
    written = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
    return replace(found, summary={CREATED: written, **found.summary} if found.summary else found.summary)


def unlabeled_posterior(probabilities: Array, propensity: Array) -> Array:
    """P(positive | x, not labeled) = f (1 − e) / (1 − f e): for rows of the pool the labels came from.

    >>> unlabeled_posterior(np.array([0.5, 1.0]), np.array([0.5, 0.5])).round(3)
    array([0.333, 1.   ])
    """
    missed = probabilities * (1 - propensity)
    return np.asarray(missed / np.maximum(1 - probabilities * propensity, 1e-12), dtype=np.float64)


def special_columns(model: PUModel) -> list[str]:
    """Columns the model knows and does not look at: label, id, truth, propensity and those that were to be ignored."""
    named = [model.facts.get(name) for name in ("label", "id", "truth", "propensity")]
    return [*(name for name in named if name), *model.facts.get("ignore", ())]
