"""Score a source of any length in bounded memory: batch in, batch out, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pue.app.model import PUModel, special_columns, unlabeled_posterior
from pue.app.roles import propensities
from pue.app.rows import feature_batches, warn_unknown
from pue.app.sources.opening import Source
from pue.app.sources.problems import require_column
from pue.app.sources.write import open_writer
from pue.errors import InvalidInput

SCORE, DECISION, POSTERIOR, ROW = "score", "positive", "score_if_unlabeled", "row"
Array = NDArray[np.float64]
ScoredBatches = Iterator[tuple[pd.DataFrame, Array, Array | None]]
"""Other columns, P(positive | x) and, if asked for, P(positive | x, not labeled), batch by batch."""


def score_batches(
    model: PUModel, source: Source, others: Sequence[str] = (), *, posterior: bool = False
) -> ScoredBatches:
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
    score: Callable[..., ScoredBatches] = score_batches,
) -> dict[str, Any]:
    """Write id (or row number), score and decision of every row to `output`; what was done as a dict.

    With `budget` the K best rows are called positive, of equal ones the first: scores are then kept, eight bytes a row,
    until all are known. `score` is `score_batches`, or what does the same elsewhere.
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
    rows, flagged, threshold, best = 0, 0, model.threshold, None
    with open_writer(output) as writer:
        if budget is not None:
            best, threshold = _best(score(model, source), budget, progress)
        for frame, p, unlabeled in score(model, source, kept, posterior=posterior):
            decision = p >= threshold if best is None else best[rows : rows + len(p)]
            writer.write(_frame(frame, kept, rows, p, decision, unlabeled))
            rows, flagged = rows + len(p), flagged + int(decision.sum())
            progress(rows if best is None else (len(best) + rows) // 2)
    return {"rows": rows, "positive": flagged, "threshold": threshold, "output": str(output), "unknown": unknown}


def _best(scored: ScoredBatches, budget: int, progress: Callable[[int], Any]) -> tuple[NDArray[np.bool_], float]:
    """Which rows are among the K best, and the lowest score of these; half of the work."""
    parts, done = [], 0
    for _, p, _ in scored:
        parts.append(p)
        done += len(p)
        progress(done // 2)
    scores = np.concatenate(parts)
    order = np.argsort(-scores, kind="stable")[:budget]
    called = np.zeros(len(scores), dtype=bool)
    called[order] = True
    return called, float(scores[order[-1]])


def _frame(
    frame: pd.DataFrame, kept: list[str], start: int, p: Array, decision: NDArray[np.bool_], unlabeled: Array | None
) -> pd.DataFrame:
    columns: dict[str, Any] = {name: frame[name] for name in kept} or {ROW: np.arange(start, start + len(p))}
    columns |= {SCORE: p, DECISION: decision.astype(np.int8)}
    if unlabeled is not None:
        columns[POSTERIOR] = unlabeled
    return pd.DataFrame(columns)
