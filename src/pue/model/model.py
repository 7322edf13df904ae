"""`PUModel`: preprocessing, classifier, probabilities and a threshold, in one value."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from pue.decisions import best_f1, prior_quantile, target_precision
from pue.errors import InvalidInput, UnknownName
from pue.probabilities import Calibrator
from pue.propensity import PropensityModel
from pue.tables.vectorize import Vectorizer
from pue.weights import RowWeights

Array = NDArray[np.float64]

RULES = {
    "f1": "the highest estimated F1",
    "half": "probability one half: the highest accuracy",
    "prior": "as many rows called positive as there should be positives",
}
SMALLEST = 1e-4


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Probabilities of rows by models that had not seen them, and their weights: what thresholds are chosen from."""

    probabilities: Array
    positive: Array
    background: Array

    @property
    def weights(self) -> RowWeights:
        positive, background = torch.from_numpy(self.positive), torch.from_numpy(self.background)
        return RowWeights(positive, background - positive)

    @property
    def scores(self) -> torch.Tensor:
        return torch.from_numpy(self.probabilities)


@dataclass(frozen=True, eq=False)
class PUModel:
    """Rows as they come → P(positive | x) and a decision.

    >>> model.predict_proba(frame)  # doctest: +SKIP
    """

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

    def features(self, rows: pd.DataFrame | NDArray[Any]) -> NDArray[Any]:
        """A frame's features, or images as they are if their shape is right."""
        if self.vectorizer is not None:
            if not isinstance(rows, pd.DataFrame):
                raise InvalidInput("this model was trained on a table: pass a pandas frame with its columns.")
            return self.vectorizer.transform(rows)
        if self.image_shape is not None and tuple(np.shape(rows)[1:]) != tuple(self.image_shape):
            raise InvalidInput(
                f"this model was trained on images of shape {tuple(self.image_shape)}; these have "
                f"{tuple(np.shape(rows)[1:])}. Resize them."
            )
        return np.asarray(rows)

    def probabilities(self, features: NDArray[Any]) -> Array:
        """P(positive | x) of vectorised rows."""
        scores = torch.from_numpy(np.asarray(self.classifier.decision_function(features), dtype=np.float64))
        return self.calibrator(scores).numpy()

    def predict_proba(self, rows: pd.DataFrame | NDArray[Any]) -> Array:
        return self.probabilities(self.features(rows))

    def predict(self, rows: pd.DataFrame | NDArray[Any]) -> NDArray[np.int64]:
        """1 where the probability reaches the threshold, else 0."""
        return (self.predict_proba(rows) >= self.threshold).astype(np.int64)

    def propensity(self, features: NDArray[Any]) -> Array:
        """ê(x) of vectorised rows, clipped; one constant where labels were taken as unbiased."""
        if self.propensity_model is None:
            return np.full(len(features), float(self.facts.get("label_frequency", 1.0)))
        return self.propensity_model(torch.from_numpy(features)).clamp(SMALLEST, 1.0).numpy()

    def unlabeled_posterior(self, features: NDArray[Any], probabilities: Array) -> Array:
        """P(positive | x, not labeled) = f (1 − e) / (1 − f e): for rows of the pool the labels came from."""
        e = self.propensity(features)
        return np.asarray(probabilities * (1 - e) / np.maximum(1 - probabilities * e, 1e-12), dtype=np.float64)

    def with_threshold(self, threshold: float | str, *, precision: float | None = None) -> PUModel:
        """The same model with another decision; see `choose_threshold`."""
        value, rule = choose_threshold(self.held_out, threshold, precision=precision)
        return replace(self, threshold=value, rule=rule)

    def save(self, path: str | Path) -> None:
        """Write to a folder, without pickle; `pue.load` reads it again."""
        from pue.persistence import save

        save(self, path)


def choose_threshold(
    held_out: HeldOut, threshold: float | str = "f1", *, precision: float | None = None
) -> tuple[float, str]:
    """A threshold in probabilities and, in words, where it came from: a number, a rule in `RULES`, or the lowest one
    with an estimated `precision`."""
    scores, weights = held_out.scores, held_out.weights
    if precision is not None:
        return target_precision(scores, weights, precision), f"the lowest with an estimated precision of {precision:g}"
    if not isinstance(threshold, str):
        if not 0 <= threshold <= 1:
            raise InvalidInput(f"a threshold is a probability between 0 and 1; got {threshold}.")
        return float(threshold), "given"
    if threshold not in RULES:
        raise UnknownName("threshold rule", threshold, RULES)
    if threshold == "f1":
        value = best_f1(scores, weights)
    elif threshold == "half":
        value = 0.5
    else:
        population = weights.background > 0
        value = prior_quantile(scores[population], min(max(float(weights.positive.sum()), 1e-9), 1 - 1e-9))
    return value, RULES[threshold]


def special_columns(model: PUModel) -> list[str]:
    """Columns the model knows and does not look at: label, id, truth and those that were to be ignored."""
    named = [model.facts.get(name) for name in ("label", "id", "truth")]
    return [*(name for name in named if name), *model.facts.get("ignore", ())]
