"""Why does a row score as it does? What each column adds to its score: exactly for trees, sampled for other models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from pue.app.model import PUModel
from pue.app.reference import trees_of
from pue.app.sources.labels import meanings
from pue.app.sources.opening import Source
from pue.core.criteria import auc
from pue.core.data import Scenario
from pue.errors import InvalidInput
from pue.estimators.vectorizer.columns import cell_text
from pue.estimators.vectorizer.vectorize import Vectorizer
from pue.judging.sampled_shapley import sampled_shapley
from pue.judging.worlds import pu_row_weights
from pue.trees import Trees
from pue.trees.blended import base_of, effects_of

Floats = NDArray[np.float64]
MOST = 10_000
"""Rows of a file that are told why: more would take long, and nobody reads them."""
ROUNDS = 3
"""Times that a column is shuffled."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """What each column adds to the score of each row; `values.sum(1) + base` is the score."""

    columns: tuple[str, ...]
    values: Floats
    """(rows, columns)."""
    base: float
    """The score of a row of which nothing is known."""
    scale: str
    """What the score is, in words."""
    exact: bool

    @property
    def importance(self) -> dict[str, float]:
        """Mean size of what a column adds, largest first."""
        found = dict(zip(self.columns, np.abs(self.values).mean(axis=0).tolist(), strict=True))
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def top(self, row: int, k: int) -> list[tuple[str, float]]:
        """The k columns that move a row's score most, largest first, with their sign."""
        order = np.argsort(-np.abs(self.values[row]), kind="stable")[:k]
        return [(self.columns[place], float(self.values[row, place])) for place in order]


def explain_features(model: PUModel, features: NDArray[np.float32], *, seed: int = 0) -> Explanation:
    """Of vectorised rows. Trees: exact Shapley values on the scale on which trees add up. Others: sampled ones of the
    score, each against rows that the model keeps."""
    vectorizer, reference = _require_table(model), model.reference
    if reference is None:
        raise InvalidInput("this model keeps nothing to explain it by: an older version wrote it. Fit it again.")
    players, columns = owners(vectorizer), tuple(vectorizer.columns)
    trees = trees_of(model.classifier)
    if trees is not None and reference.covers is not None:
        values = effects_of(trees, features, reference.covers, players)
        scale = "share of the trees' votes" if isinstance(trees, Trees) else "log-odds"
        return Explanation(columns, values, base_of(trees, reference.covers), scale, True)
    assert reference.background is not None
    score = lambda rows: np.asarray(model.classifier.decision_function(rows), np.float64)  # noqa: E731
    values, base = sampled_shapley(score, np.asarray(features), reference.background, players, seed=seed)
    return Explanation(columns, values, base, "the model's score", False)


def explain(model: PUModel, frame: pd.DataFrame, *, seed: int = 0) -> Explanation:
    """Of rows as they come; `PUModel.explain` is the same."""
    return explain_features(model, model.features(frame), seed=seed)


def reasons(explanation: Explanation, frame: pd.DataFrame, k: int) -> pd.DataFrame:
    """For each row its k weightiest columns with their values, `reason_1`, and what they add, `effect_1`, and so on."""
    found: dict[str, list[Any]] = {}
    for place in range(min(k, len(explanation.columns))):
        for kind in ("reason", "effect"):
            found[f"{kind}_{place + 1}"] = []
    for row in range(len(frame)):
        for place, (name, effect) in enumerate(explanation.top(row, k), start=1):
            found[f"reason_{place}"].append(f"{name} = {shown(frame[name].iloc[row])}")
            found[f"effect_{place}"].append(effect)
    return pd.DataFrame(found)


def shown(value: Any) -> str:
    """A cell in a few letters.

    >>> shown(1585.114), shown(None), shown("x" * 50)
    ('1585.11', 'missing', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…')
    """
    if value is None or (not isinstance(value, str) and pd.isna(value)):
        return "missing"
    text = f"{value:.6g}" if isinstance(value, float | np.floating) else cell_text(value)
    return text if len(text) <= 40 else text[:39] + "…"


def permutation_importance(
    model: PUModel, features: NDArray[np.float32], labels: NDArray[np.int8], *, seed: int = 0
) -> dict[str, float]:
    """By how much the AUC that PU labels imply falls if a column is shuffled among the rows; largest first."""
    vectorizer = _require_table(model)
    players, rng = owners(vectorizer), np.random.default_rng(seed)
    s = torch.from_numpy(labels)
    if not ((labels == 1).any() and (labels == 0).any()):
        raise InvalidInput("importance without negatives needs labeled and unlabeled rows; these lack one of them.")
    biased = model.propensity_model is not None
    e = torch.from_numpy(model.propensity(features[labels == 1])) if biased else None
    scenario = Scenario.parse(model.summary["data"]["scenario"])
    weights = pu_row_weights(s, float(model.summary["prior"]["value"]), e, scenario)

    def criterion(rows: NDArray[np.float32]) -> float:
        return auc(torch.from_numpy(np.asarray(model.classifier.decision_function(rows), np.float64)), weights)

    whole, found = criterion(features), {}
    for player, name in enumerate(vectorizer.columns):
        own, falls = players == player, []
        for _ in range(ROUNDS):
            shuffled = features.copy()
            shuffled[:, own] = features[rng.permutation(len(features))][:, own]
            falls.append(whole - criterion(shuffled))
        found[name] = float(np.mean(falls))
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def owners(vectorizer: Vectorizer) -> NDArray[np.int64]:
    """Which column each feature comes from."""
    widths = [len(encoder.names) for encoder in vectorizer.encoders]
    return np.repeat(np.arange(len(widths)), widths)


def in_words(found: Sequence[tuple[str, float]]) -> str:
    """Columns and what they add, for a cell of a table.

    >>> in_words([("amount", 0.213), ("age", -0.04)])
    'amount +0.21, age −0.04'
    """
    return ", ".join(f"{name} {effect:+.2f}".replace("-", "−") for name, effect in found)


def importance_by_labels(
    model: PUModel, frame: pd.DataFrame, label: str | None, *, seed: int = 0
) -> dict[str, float] | None:
    """`permutation_importance` of rows that have labels of both kinds, else None."""
    if label is None or label not in frame.columns:
        return None
    labels = meanings(frame[label], label)
    if not ((labels == 1).any() and (labels == 0).any()):
        return None
    return permutation_importance(model, model.features(frame), labels, seed=seed)


def find_row(source: Source, wanted: str, columns: Sequence[str], name: str | None = None) -> pd.DataFrame:
    """The row whose cell in column `name` is `wanted`; where there is no such column, the row of that number."""
    by_id = name is not None and name in source.columns
    if not by_id and not wanted.isdigit():
        raise InvalidInput(f"row {wanted!r} is no number, and no column of ids is known. Name it with --id.")
    start = 0
    for frame in source.batches(columns=list(dict.fromkeys([*columns, *([name] if by_id and name else [])]))):
        here = (frame[name].astype(str) if by_id else pd.Series(range(start, start + len(frame))).astype(str)) == wanted
        if here.any():
            return frame.iloc[[int(here.to_numpy().argmax())]].reset_index(drop=True)
        start += len(frame)
    where = f"in column {name!r}" if by_id else f"among {start:,} rows, counted from 0,"
    raise InvalidInput(f"there is no row {wanted!r} {where} of {source.path.name}. Check it, or name ids with --id.")


def columns_of(model: PUModel) -> list[str]:
    return list(_require_table(model).columns)


def _require_table(model: PUModel) -> Vectorizer:
    if model.vectorizer is None:
        raise InvalidInput("explanations are of columns, and this model was trained on images. Look at the top rows.")
    return model.vectorizer


class Telling:
    """Reasons for rows that pass by, batch after batch, until enough were told."""

    def __init__(self, model: PUModel, k: int, seed: int = 0) -> None:
        self.model, self.k, self.seed, self.told = model, k, seed, 0
        self.columns = list(_require_table(model).columns) if k else []
        if k and model.reference is None:
            explain_features(model, np.zeros((0, 0), np.float32))  # its error

    def __call__(self, frame: pd.DataFrame, wanted: NDArray[np.bool_]) -> pd.DataFrame:
        """Columns of reasons and effects, empty for rows that are not wanted."""
        rows = np.flatnonzero(wanted)[: max(0, MOST - self.told)]
        self.told += len(rows)
        part = frame[self.columns].iloc[rows]
        found = reasons(explain(self.model, part, seed=self.seed), part, self.k) if len(rows) else _empty(self)
        found.index = rows
        return found.reindex(range(len(frame)))


def _empty(telling: Telling) -> pd.DataFrame:
    places = range(1, min(telling.k, len(telling.columns)) + 1)
    kinds = {"reason": "str", "effect": "float64"}
    return pd.DataFrame({f"{kind}_{place}": pd.Series(dtype=kinds[kind]) for place in places for kind in kinds})
