"""`PUModel`: preprocessing, classifier, probabilities and a threshold, in one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from pue.decisions import best_f1, target_precision
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
BLOCK, IMAGE_BLOCK = 4096, 64
"""Rows that are scored at once."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Probabilities of rows by models that had not seen them, and their weights: what thresholds are chosen from."""

    probabilities: Array
    positive: Array
    background: Array

    def __post_init__(self) -> None:
        shapes = {self.probabilities.shape, self.positive.shape, self.background.shape}
        if len(shapes) > 1 or self.probabilities.ndim != 1:
            raise InvalidInput("every held-out row has one probability and two weights: three vectors of one length.")

    @property
    def weights(self) -> RowWeights:
        positive, background = torch.from_numpy(self.positive), torch.from_numpy(self.background)
        return RowWeights(positive, background - positive)

    @property
    def scores(self) -> torch.Tensor:
        return torch.from_numpy(self.probabilities)


@dataclass(frozen=True, eq=False)
class PUModel:
    """Rows as they come → P(positive | x) and a decision."""

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

    def __post_init__(self) -> None:
        if not hasattr(self.classifier, "decision_function"):
            raise InvalidInput(f"a {type(self.classifier).__name__} is no classifier: it gives no scores.")
        check_rule(self.threshold)

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

    def predict_proba(self, rows: pd.DataFrame | NDArray[Any]) -> Array:
        return self.probabilities(self.features(rows))

    def predict(self, rows: pd.DataFrame | NDArray[Any]) -> NDArray[np.int64]:
        """1 where the probability reaches the threshold, else 0."""
        return (self.predict_proba(rows) >= self.threshold).astype(np.int64)

    def propensity(self, features: NDArray[Any]) -> Array:
        """ê(x) of vectorised rows, clipped; one constant where labels were taken as unbiased."""
        if self.propensity_model is None:
            return np.full(len(features), float(self.facts.get("label_frequency", 1.0)))
        model = self.propensity_model
        return self._by_block(lambda rows: model(torch.from_numpy(rows)).clamp(SMALLEST, 1.0), features)

    def _by_block(self, function: Callable[[NDArray[Any]], torch.Tensor], features: NDArray[Any]) -> Array:
        """Blocks of one size, the last filled up with copies of its last row: products of matrices of another size may
        differ in their last bit, and what a row is worth must not depend on its company."""
        size = BLOCK if self.image_shape is None else IMAGE_BLOCK
        found = [np.empty(0)]
        for start in range(0, len(features), size):
            rows = np.minimum(np.arange(start, start + size), len(features) - 1)
            found.append(function(features[rows])[: len(features) - start].double().numpy())
        return np.concatenate(found)

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
    check_rule(threshold, precision)
    scores, weights = held_out.scores, held_out.weights
    if precision is not None:
        return target_precision(scores, weights, precision), f"the lowest with an estimated precision of {precision:g}"
    if not isinstance(threshold, str):
        return float(threshold), "given"
    if threshold == "f1":
        value = best_f1(scores, weights)
    elif threshold == "half":
        value = 0.5
    else:
        value = _as_many_as_positives(held_out)
    return value, RULES[threshold]


def _as_many_as_positives(held_out: HeldOut) -> float:
    """The threshold that the mass of the positives lies above; rows count by their mass, for some stand for many."""
    population = held_out.background > 0
    p, mass = held_out.probabilities[population], held_out.background[population]
    order = np.argsort(-p, kind="stable")
    reached = mass[order].cumsum() >= min(held_out.positive.sum(), 1 - 1e-9) - mass[order] / 2
    return float(p[order][reached.argmax()])


def check_rule(threshold: float | str, precision: float | None = None) -> None:
    """Whether a threshold can be chosen so; known long before there are probabilities to choose it from."""
    if precision is not None and not 0 < precision <= 1:
        raise InvalidInput(f"the target precision must lie in (0, 1]; got {precision:g}.")
    if isinstance(threshold, str):
        if threshold not in RULES:
            raise UnknownName("threshold rule", threshold, RULES)
    elif not 0 <= threshold <= 1:
        raise InvalidInput(f"a threshold is a probability between 0 and 1; got {threshold:g}.")


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
