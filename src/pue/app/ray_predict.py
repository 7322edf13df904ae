"""The scores of `score_batches`, bit for bit and in order, computed by many: ranges of rows through Ray Data.

A range is some batches of the local code, so that both score the same rows together. Workers read their ranges
themselves: the rows must lie where every worker finds them.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pandas as pd
import pyarrow as pa

from pue.app.model import PUModel
from pue.app.predict import POSTERIOR, SCORE, ScoredBatches, known_propensity, score_batches
from pue.app.rows import IMAGE_BATCH
from pue.app.sources.frames import to_frame
from pue.app.sources.opening import BATCH, Source
from pue.core.machine import one_thread
from pue.engines import Cluster
from pue.errors import EngineError, InvalidInput, PueError

SAID = "said"
"""Under which an error keeps its words: Ray Data adds advice of its own to them."""
MOST_BATCHES, FEWEST_RANGES = 16, 4
"""Batches of a range; ranges of a worker, if there are so many batches."""
HELD = 1 << 28
"""Bytes of results that wait to be written."""


def score_on(
    cluster: Cluster, model: PUModel, source: Source, others: Sequence[str] = (), *, posterior: bool = False
) -> ScoredBatches:
    """What `score_batches` yields."""
    if source.n_rows is None:
        raise InvalidInput(
            f"how many rows {source.path} has is known only after reading it, so it cannot be shared out with --engine "
            "ray. Write it as Parquet, or leave the engine out."
        )
    if posterior:
        known_propensity(model, source)  # an error of all ranges is better raised before the first
    size = BATCH if model.vectorizer is not None else IMAGE_BATCH
    ranges = [{"start": a, "stop": b} for a, b in ranges_of(source.n_rows, size, cluster.workers)]
    job = cluster.ray.put((model, source, tuple(others), posterior))
    with_scores = _dataset(cluster, ranges).map_batches(
        _score_range,
        fn_args=(_Job(job),),
        batch_size=1,
        batch_format="pyarrow",
        zero_copy_batch=True,
        num_cpus=1,
        compute=_data().TaskPoolStrategy(min(cluster.workers, len(ranges))),
    )
    try:
        for table in with_scores.iter_batches(batch_size=size, batch_format="pyarrow", prefetch_batches=1):
            yield _split(table, others, posterior)
    except cluster.ray.exceptions.RayError as error:
        if (found := _cause(error)) is not None:
            raise found from error
        raise EngineError(f"the workers of Ray could not score {source.path}: {error}") from error


def ranges_of(n_rows: int, size: int, workers: int) -> list[tuple[int, int]]:
    """Whole batches, several to a range: where a range begins inside a row group, what is before it is read in vain.
    But a few ranges for every worker, so that all end at about the same time.

    >>> ranges_of(10, size=2, workers=1), len(ranges_of(10**8, size=65_536, workers=2))
    ([(0, 4), (4, 8), (8, 10)], 96)
    """
    batches = -(-n_rows // size)
    step = size * min(MOST_BATCHES, max(1, -(-batches // (FEWEST_RANGES * workers))))
    return [(at, min(at + step, n_rows)) for at in range(0, n_rows, step)]


@dataclass(frozen=True)
class _Job:
    """A reference that Ray does not resolve by itself: every process fetches what it stands for once."""

    reference: Any


@lru_cache(maxsize=1)
def _fetched(reference: Any) -> tuple[PUModel, Source, tuple[str, ...], bool]:
    found: tuple[PUModel, Source, tuple[str, ...], bool] = importlib.import_module("ray").get(reference)
    return found


def _score_range(ranges: pa.Table, job: _Job) -> Iterator[pa.Table]:
    try:
        for start, stop in zip(ranges["start"].to_pylist(), ranges["stop"].to_pylist(), strict=True):
            yield from _scored(*_fetched(job.reference), start, stop)
    except PueError as error:
        vars(error)[SAID] = error.args
        raise


def _scored(
    model: PUModel, source: Source, others: Sequence[str], posterior: bool, start: int, stop: int
) -> Iterator[pa.Table]:
    with one_thread():
        for frame, p, unlabeled in score_batches(model, source.between(start, stop), others, posterior=posterior):
            columns = {**dict(frame.items()), SCORE: p, **({} if unlabeled is None else {POSTERIOR: unlabeled})}
            yield pa.Table.from_pandas(pd.DataFrame(columns), preserve_index=False).replace_schema_metadata()


def _split(table: pa.Table, others: Sequence[str], posterior: bool) -> tuple[pd.DataFrame, Any, Any]:
    """Frame and vectors again; the types of a frame are those of its Arrow columns, here as in every source."""
    kept = table.select(list(others))
    frame = to_frame(kept.to_batches(), kept.schema) if others else pd.DataFrame(index=pd.RangeIndex(len(table)))
    return frame, table[SCORE].to_numpy(), table[POSTERIOR].to_numpy() if posterior else None


def _data() -> Any:
    return importlib.import_module("ray.data")


def _dataset(cluster: Cluster, ranges: list[dict[str, int]]) -> Any:
    """One block a range, results in order, few of them at once, and not a word on the terminal."""
    data = _data()
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # after the import, which sets a level of its own
    context = data.DataContext.get_current().copy()
    context.enable_progress_bars = context.print_on_execution_start = False
    context.raise_original_map_exception = True
    context.execution_options.preserve_order = True
    context.execution_options.resource_limits = data.ExecutionResources(object_store_memory=HELD)
    with data.DataContext.current(context):
        return data.from_items(ranges, override_num_blocks=len(ranges))


def _cause(error: BaseException | None) -> PueError | None:
    """What a worker raised on purpose, out of what Ray wraps it in."""
    while error is not None:
        cause = getattr(error, "cause", error)
        if isinstance(cause, PueError):
            cause.args = vars(cause).get(SAID, cause.args)
            return cause
        error = error.__cause__
    return None
