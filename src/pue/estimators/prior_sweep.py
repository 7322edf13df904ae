"""How far do results move with the prior? Refits at several values, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from pue.errors import InvalidInput
from pue.estimators import PUClassifier


@dataclass(frozen=True)
class SweepRow:
    """The classifier refitted with one prior."""

    prior: float
    positive_share: float
    """Share of the rows of X that it calls positive."""
    agreement: float
    """Share of the rows on which it agrees with the classifier it is compared with."""
    accuracy: float
    """Accuracy as `PUClassifier.score` estimates it, under its own prior."""


@dataclass(frozen=True)
class Sweep:
    """Rows by rising prior; `str` gives a table."""

    rows: tuple[SweepRow, ...]

    def __str__(self) -> str:
        lines = ["prior   called positive   agreement   estimated accuracy"]
        lines += [
            f"{row.prior:5.3f}   {row.positive_share:15.1%}   {row.agreement:9.1%}   {row.accuracy:18.1%}"
            for row in self.rows
        ]
        return "\n".join(lines)


def prior_sweep(
    classifier: PUClassifier,
    X: Any,
    y: Any,
    *,
    priors: Sequence[float] | None = None,
    propensity: Any = None,
    sample_weight: Any = None,
) -> Sweep:
    """Refit a fitted classifier with other priors. By default the ends of its interval for an estimated prior and its
    own prior, or where the prior was given, that and ±0.1.

    Known propensities and weights are those of `fit`. Nothing is resumed from checkpoints, and the classifier itself
    is left as it is.
    """
    check_is_fitted(classifier)
    if priors is None:
        estimate = classifier.prior_estimate_
        spread = (0.1, 0.1) if estimate is None else (estimate.value - estimate.low, estimate.high - estimate.value)
        own = classifier.prior_
        priors = sorted({max(own - spread[0], 0.01), own, min(own + spread[1], 0.99)})
    if len(priors) == 0:
        raise InvalidInput("priors is empty. Pass the values to try, for example [0.2, 0.3, 0.4].")
    mine = classifier.predict(X)
    rows = []
    for prior in sorted(float(value) for value in priors):
        other = clone(classifier).set_params(prior=prior, checkpoint_dir=None)
        other.fit(X, y, propensity=propensity, sample_weight=sample_weight)
        called = other.predict(X)
        accuracy = other.score(X, y, propensity=propensity, sample_weight=sample_weight)
        rows.append(SweepRow(prior, float(np.mean(called)), float(np.mean(called == mine)), accuracy))
    return Sweep(tuple(rows))
