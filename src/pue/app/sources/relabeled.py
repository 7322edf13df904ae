"""A label column of words, read as 1 where it holds the positive word and as 0 elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyarrow import compute

from pue.app.sources.folders import with_rest
from pue.app.sources.problems import require_column
from pue.app.sources.stored_table import Piece, StoredTable
from pue.errors import InvalidInput


def as_labeled(source: Any, label: str, positive: str | None) -> Any:
    """What a label column means: 1 for the positive word; and images that are not listed are unlabeled."""
    return with_rest(source, label) if positive is None else relabeled(source, label, positive)


def relabeled(source: Any, label: str, positive: str) -> Any:
    """The same table with labels 1 and 0; only tables have words for labels."""
    if not isinstance(source, StoredTable):
        raise InvalidInput(
            f"--positive goes with a table, and {source.path.name} is none. Write its labels as 1 and 0."
        )
    require_column(label, source.columns)
    place = source.schema.get_field_index(label)
    marked = partial(_marked, label=label, positive=positive)
    part = source.part
    return replace(
        source,
        schema=source.schema.set(place, pa.field(label, pa.int8())),
        scan=partial(_mapped, source.scan, marked),
        part=None if part is None else partial(_mapped, part, marked),
        pieces=tuple(Piece(each.n_rows, each.n_bytes, partial(_mapped, each.scan, marked)) for each in source.pieces),
    )


def _mapped(scan: Callable[..., Iterator[pa.RecordBatch]], marked: Any, *given: Any) -> Iterator[pa.RecordBatch]:
    return map(marked, scan(*given))


def _marked(batch: pa.RecordBatch, *, label: str, positive: str) -> pa.RecordBatch:
    if label not in batch.schema.names:
        return batch
    words = compute.utf8_trim_whitespace(batch.column(label).cast(pa.string()))
    is_positive = compute.fill_null(compute.equal(words, positive), False).cast(pa.int8())
    place = batch.schema.get_field_index(label)
    return batch.set_column(place, pa.field(label, pa.int8()), is_positive)
