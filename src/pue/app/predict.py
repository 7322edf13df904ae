"""Score a source of any length in bounded memory: batch in, batch out, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pue.app.budget import Chosen, doubt_of, spend
from pue.app.explain import Telling
from pue.app.model import PUModel, special_columns, unlabeled_posterior
from pue.app.roles import propensities
from pue.app.rows import feature_batches, warn_drifted, warn_unknown
from pue.app.sources.labels import meanings
from pue.app.sources.opening import Source
from pue.app.sources.problems import require_column
from pue.app.sources.write import open_writer
from pue.errors import InvalidInput, ScoreIsNoNumber

SCORE, DECISION, POSTERIOR, ROW = "probability", "positive", "probability_if_unlabeled", "row"
Array = NDArray[np.float64]
ScoredBatches = Iterator[tuple[pd.DataFrame, Array, Array | None]]
"""Other columns, P(positive | x) and, if asked for, P(positive | x, not labeled), batch by batch."""


def score_batches(
    model: PUModel, source: Source, others: Sequence[str] = (), *, posterior: bool = False
) -> ScoredBatches:
    """Scores of all rows, in order, one batch in memory at a time."""
    known = known_propensity(model, source) if posterior else []
    start = 0
    for features, frame in feature_batches(source, model.vectorizer, [*others, *known]):
        try:
            p, unlabeled = model.probabilities(features), None
        except ScoreIsNoNumber as error:
            raise ScoreIsNoNumber([start + row for row in error.rows]) from error
        start += len(p)
        if posterior:
            e = _whole(propensities(frame[known[0]]), known[0]) if known else model.propensity(features)
            unlabeled = unlabeled_posterior(p, e)
        yield frame[list(others)], p, unlabeled


def known_propensity(model: PUModel, source: Source) -> list[str]:
    """The column of known propensities, if the model has none of its own."""
    name = model.facts.get("propensity")
    if name is None or model.propensity_model is not None:
        return []
    if name not in source.columns:
        raise InvalidInput(
            f"the model was trained with propensities from column {name!r}, which {source.path.name} does not have. "
            "Add it, or leave out --posterior."
        )
    return [name]


def _whole(e: Array, name: str) -> Array:
    if not bool(((e > 0) & (e <= 1)).all()):
        raise InvalidInput(f"column {name!r} must hold propensities, numbers in (0, 1], in every row for --posterior.")
    return e


def predict_source(
    model: PUModel,
    source: Source,
    output: Path,
    *,
    row_id: str | None = None,
    posterior: bool = False,
    budget: int | None = None,
    progress: Callable[[int], Any] = lambda rows: None,
    score: Callable[..., ScoredBatches] = score_batches,
    seed: int = 0,
    explained: int = 0,
) -> dict[str, Any]:
    """Write id (or row number), probability and decision of every row to `output`; what was done as a dict.

    With `budget` the K best rows without a label are called positive, see `spend`: probabilities are then kept, some
    twenty bytes a row, until all are known. `score` is `score_batches`, or what does the same elsewhere.
    Rows called positive, up to 10,000 of them, are `explained` by so many columns.
    """
    if budget is not None and budget < 1:
        raise InvalidInput(f"a budget is a number of rows, at least 1; got {budget}.")
    if row_id is not None:
        require_column(row_id, source.columns)
    name = row_id if row_id is not None else model.facts.get("id")
    kept = [name] if name is not None and name in source.columns else []
    if name in (SCORE, DECISION, POSTERIOR) and kept:
        raise InvalidInput(f"the id column is called {name!r}, as a column of the results is. Rename it.")
    unknown = warn_unknown(source, model.vectorizer, [*special_columns(model), *kept])
    drifted = warn_drifted(source, model)
    rows, flagged, threshold, best = 0, 0, model.threshold, None
    spent: dict[str, Any] = {}
    with open_writer(output) as writer:
        if budget is not None:
            chosen = _spent(model, source, budget, progress, score, seed)
            best, threshold, spent = chosen.rows, chosen.threshold, chosen.as_dict()
        telling = Telling(model, explained, seed)
        for frame, p, unlabeled in score(model, source, [*kept, *telling.columns], posterior=posterior):
            decision = p >= threshold if best is None else best[rows : rows + len(p)]
            written = _frame(frame, kept, rows, p, decision, unlabeled)
            writer.write(pd.concat([written, telling(frame, decision)], axis=1) if explained else written)
            rows, flagged = rows + len(p), flagged + int(decision.sum())
            progress(rows if best is None else (len(best) + rows) // 2)
    done = {
        "rows": rows,
        "positive": flagged,
        "threshold": threshold,
        "output": str(output),
        "unknown": unknown,
        "drifted": drifted,
    }
    return {**done, **spent, **({"explained": telling.told} if explained else {})}


def _spent(
    model: PUModel,
    source: Source,
    budget: int,
    progress: Callable[[int], Any],
    score: Callable[..., ScoredBatches],
    seed: int,
) -> Chosen:
    """Which rows a budget is spent on; half of the work. Rows of a pool with labels are positive with P(positive | x,
    not labeled): those that are easy to find have been found."""
    label = model.facts.get("label")
    pool = [str(label)] if label is not None and label in source.columns else []
    parts, unlabeled, known, done = [], [], [], 0
    for frame, p, q in score(model, source, pool, posterior=_knows_chances(model, source, pool)):
        parts.append(p)
        unlabeled.append(p if q is None else q)
        known.append(meanings(frame[pool[0]], pool[0]) != 0 if pool else np.zeros(len(p), dtype=bool))
        done += len(p)
        progress(done // 2)
    chances, labeled = np.concatenate(unlabeled), np.concatenate(known)
    doubt = doubt_of(model.summary.get("metrics"))
    return spend(np.concatenate(parts), budget, known=labeled, chances=chances, doubt=doubt, seed=seed)


def _knows_chances(model: PUModel, source: Source, pool: Sequence[str]) -> bool:
    """Whether the rows are a pool with labels, and what chances they had of one is known."""
    name = model.facts.get("propensity")
    return bool(pool) and (model.propensity_model is not None or name is None or name in source.columns)


def _frame(
    frame: pd.DataFrame, kept: list[str], start: int, p: Array, decision: NDArray[np.bool_], unlabeled: Array | None
) -> pd.DataFrame:
    columns: dict[str, Any] = {name: frame[name] for name in kept} or {ROW: np.arange(start, start + len(p))}
    columns |= {SCORE: p, DECISION: decision.astype(np.int8)}
    if unlabeled is not None:
        columns[POSTERIOR] = unlabeled
    return pd.DataFrame(columns)
