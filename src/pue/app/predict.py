"""Score a source of any length in bounded memory: batch in, batch out, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pue.errors import InvalidInput
from pue.model.columns import propensities
from pue.model.model import PUModel, special_columns, unlabeled_posterior
from pue.model.rows import feature_batches, warn_unknown
from pue.tables.labels import label_column
from pue.tables.sources import Source
from pue.tables.write import open_writer

SCORE, DECISION, POSTERIOR, ROW = "score", "positive", "score_if_unlabeled", "row"
Array = NDArray[np.float64]
Scored = Iterator[tuple[pd.DataFrame, Array, Array | None]]
"""Other columns, P(positive | x) and, if asked for, P(positive | x, not labeled), batch by batch."""


def score_batches(model: PUModel, source: Source, others: Sequence[str] = (), *, posterior: bool = False) -> Scored:
    """Scores of all rows, in order, one batch in memory at a time."""
    known = known_propensity(model, source) if posterior else []
    for features, frame in feature_batches(source, model.vectorizer, [*others, *known]):
        p, unlabeled = model.probabilities(features), None
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
    score: Callable[..., Scored] = score_batches,
) -> dict[str, Any]:
    """Write id (or row number), score and decision of every row to `output`; what was done as a dict.

    With `budget` the K best rows are called positive, of equal ones the first: scores are then kept, eight bytes a row,
    until all are known. `score` is `score_batches`, or what does the same elsewhere.
    """
    if budget is not None and budget < 1:
        raise InvalidInput(f"a budget is a number of rows, at least 1; got {budget}.")
    if row_id is not None:
        label_column(source.columns, row_id)
    name = row_id if row_id is not None else model.facts.get("id")
    kept = [name] if name is not None and name in source.columns else []
    if name in (SCORE, DECISION, POSTERIOR) and kept:
        raise InvalidInput(f"the id column is called {name!r}, as a column of the results is. Rename it.")
    special = [*special_columns(model), *kept]
    unknown = warn_unknown(source, model.vectorizer, special)
    with open_writer(output) as writer:
        if budget is None:
            rows, flagged = _stream(partial(score, model, source), model.threshold, writer, kept, posterior, progress)
            threshold = model.threshold
        else:
            rows, flagged, threshold = _best(partial(score, model, source), writer, kept, posterior, budget, progress)
    return {"rows": rows, "positive": flagged, "threshold": threshold, "output": str(output), "unknown": unknown}


def _stream(
    score: Callable[..., Scored],
    threshold: float,
    writer: Any,
    kept: list[str],
    posterior: bool,
    progress: Callable[[int], Any],
) -> tuple[int, int]:
    rows = flagged = 0
    for frame, p, unlabeled in score(kept, posterior=posterior):
        decision = p >= threshold
        writer.write(_frame(frame, kept, rows, p, decision, unlabeled))
        rows, flagged = rows + len(p), flagged + int(decision.sum())
        progress(rows)
    return rows, flagged


def _best(
    score: Callable[..., Scored],
    writer: Any,
    kept: list[str],
    posterior: bool,
    budget: int,
    progress: Callable[[int], Any],
) -> tuple[int, int, float]:
    parts, done = [], 0
    for _, p, _ in score():
        parts.append(p)
        done += len(p)
        progress(done // 2)
    scores = np.concatenate(parts)
    order = np.argsort(-scores, kind="stable")[:budget]
    decision = np.zeros(len(scores), dtype=bool)
    decision[order] = True
    start = 0
    for frame, p, unlabeled in score(kept, posterior=posterior):
        writer.write(_frame(frame, kept, start, p, decision[start : start + len(p)], unlabeled))
        start += len(p)
        progress((done + start) // 2)
    return start, int(decision.sum()), float(scores[order[-1]])


def _frame(
    frame: pd.DataFrame, kept: list[str], start: int, p: Array, decision: NDArray[np.bool_], unlabeled: Array | None
) -> pd.DataFrame:
    columns: dict[str, Any] = {name: frame[name] for name in kept} or {ROW: np.arange(start, start + len(p))}
    columns |= {SCORE: p, DECISION: decision.astype(np.int8)}
    if unlabeled is not None:
        columns[POSTERIOR] = unlabeled
    return pd.DataFrame(columns)
