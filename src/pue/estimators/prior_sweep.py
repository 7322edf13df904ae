"""How far do results move with the prior? Refits at several values, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from pue.basis import KNOWN
from pue.errors import InvalidInput
from pue.estimators.classifier import PUClassifier


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


def prior_sweep(classifier: PUClassifier, X: Any, y: Any, *, priors: Sequence[float] | None = None) -> Sweep:
    """Refit a fitted classifier with other priors: by default with its own and the ends of its interval, or, where the
    prior was given, with that and ±0.1.

    X and y are those of its fit, and known propensities stay those of its fit. Nothing is resumed from checkpoints,
    and the classifier itself stays as it is.
    """
    check_is_fitted(classifier)
    if priors is None:
        own, estimate = classifier.prior_, classifier.prior_estimate_
        below, above = (0.1, 0.1) if estimate is None else (own - estimate.low, estimate.high - own)
        priors = sorted({max(own - below, 0.01), own, min(own + above, 0.99)})
    if len(priors) == 0:
        raise InvalidInput("priors is empty. Pass the values to try, for example [0.2, 0.3, 0.4].")
    report, mine = classifier.propensity_report_, classifier.predict(X)
    known = classifier.propensity_ if report is not None and report.source == KNOWN else None
    rows = []
    for prior in sorted(float(value) for value in priors):
        other = clone(classifier).set_params(prior=prior, checkpoint_dir=None).fit(X, y, propensity=known)
        called, accuracy = other.predict(X), other.score(X, y, propensity=known)
        rows.append(SweepRow(prior, float(np.mean(called)), float(np.mean(called == mine)), accuracy))
    return Sweep(tuple(rows))
