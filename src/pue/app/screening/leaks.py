"""Columns that know the label, not the class.

Unlabeled rows hold positives too, so that no honest column tells labeled rows from the others almost perfectly, unless
nearly all positives are labeled and one column knows the class. What was written down *because* a row was labeled
does: it is filled in for labeled rows alone, or has other values there. A small tree of the column's own features is
asked about rows that it has not seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from pue.app.screening.findings import Finding
from pue.estimators.vectorizer.columns import as_words, held
from pue.estimators.vectorizer.vectorize import Vectorizer

FOLDS = 3
FEWEST = 20
"""Of fewer labeled rows nothing can be said."""
MOST = 10_000
"""Labeled rows, and others, that are looked at."""
APART = 0.9
"""Labeled rows found, minus others found with them: shares. Above this a column separates them almost perfectly."""
FILLED = 0.8
"""The same of being filled in or not, which no measurement explains."""
PURE, SOME, NEVER_ALONE = 0.95, 0.2, 10
"""Or: where the column speaks, nearly all rows are labeled, a fifth of all labeled ones and not by chance."""
BEYOND = 20.0
"""The odds of a label are so many times higher there than anywhere."""


@dataclass(frozen=True)
class Separation:
    """How a column tells labeled rows from others, out of fold; all are shares of rows."""

    found: float
    """Labeled rows that it calls so."""
    wrong: float
    """Other rows that it calls so too."""
    pure: float
    """Rows that are labeled, where it is sure."""
    some: float
    """Labeled rows about which it is sure."""
    rows: int
    """How many these are."""

    @property
    def apart(self) -> float:
        return self.found - self.wrong

    def is_sure(self, base: float) -> bool:
        odds = self.pure / max(1 - self.pure, 1e-9) / (base / (1 - base))
        return self.pure >= PURE and self.some >= SOME and self.rows >= NEVER_ALONE and odds >= BEYOND


def find_leaks(
    frame: pd.DataFrame, labels: NDArray[np.int8], vectorizer: Vectorizer, *, seed: int = 0
) -> Iterator[Finding]:
    """Columns of the vectorizer that give the label away, each with its evidence."""
    rng = np.random.default_rng(seed)
    labeled, others = np.flatnonzero(labels == 1), np.flatnonzero(labels == 0)
    if len(labeled) < FEWEST or len(others) < FEWEST:
        return
    base = len(labeled) / (len(labeled) + len(others))
    rows = np.concatenate([_some(labeled, rng), _some(others, rng)])
    target, fold = labels[rows] == 1, rng.permutation(len(rows)) % FOLDS
    part = frame.iloc[rows]
    for encoder in vectorizer.encoders:
        features = np.zeros((len(part), len(encoder.names)), np.float32)
        encoder.encode(part[encoder.name], features)
        told = separation(features, target, fold, base, seed)
        if told.apart >= APART or told.is_sure(base):
            yield Finding(encoder.name, "leak", _filled(part[encoder.name], target) or _told(told), True)
        elif words := _filled(part[encoder.name], target):
            yield Finding(encoder.name, "leak", words, True)


def separation(
    features: NDArray[np.float32], target: NDArray[np.bool_], fold: NDArray[np.int64], base: float, seed: int = 0
) -> Separation:
    """By trees that have not seen the rows; `base` is the share of labeled rows before some were drawn."""
    p = np.zeros(len(target))
    for k in range(FOLDS):
        tree = DecisionTreeClassifier(max_depth=4, min_samples_leaf=5, class_weight="balanced", random_state=seed)
        tree.fit(features[fold != k], target[fold != k])
        p[fold == k] = tree.predict_proba(features[fold == k])[:, 1]
    called = p >= 0.5
    odds = p / np.maximum(1 - p, 1e-12) * base / (1 - base)
    sure = odds >= 4  # in the table a row there is labeled with 4 to 1
    each = base / target.mean(), (1 - base) / (1 - target.mean())
    hits, misses = each[0] * (sure & target).sum(), each[1] * (sure & ~target).sum()
    return Separation(
        found=float(called[target].mean()),
        wrong=float(called[~target].mean()),
        pure=float(hits / (hits + misses)) if hits else 0.0,
        some=float(sure[target].mean()),
        rows=int((sure & target).sum()),
    )


def _filled(column: pd.Series, target: NDArray[np.bool_]) -> str | None:
    """In words, if labeled rows differ from others in that the column is filled in, or in that it is not."""
    name = str(column.name)
    missing = as_words(column, name)[0] < 0 if held(column, name) == "text" else column.isna().to_numpy()
    labeled, others = 1 - missing[target].mean(), 1 - missing[~target].mean()
    if abs(labeled - others) < FILLED and not (others < 0.005 and labeled > SOME):
        return None
    return f"it is filled in {_percent(labeled)} of the labeled rows and in {_percent(others)} of the others"


def _told(told: Separation) -> str:
    if told.apart >= APART:
        return (
            f"alone, on rows not seen before, it finds {_percent(told.found)} of the labeled rows and takes "
            f"{_percent(told.wrong)} of the others for such"
        )
    return (
        f"where it speaks of {_percent(told.some)} of the labeled rows, {_percent(told.pure)} of all rows are labeled"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _some(rows: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    return rows if len(rows) <= MOST else np.sort(rng.choice(rows, MOST, replace=False))
