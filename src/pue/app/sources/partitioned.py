"""A Parquet data set with partitions: files in folders such as year=2024/region=north, whose names are columns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import dataset

from pue.app.sources.frames import sound, stored_columns
from pue.app.sources.problems import reading
from pue.app.sources.stored_table import Piece, StoredTable


def partitions(folder: Path) -> list[Path]:
    """Parquet files below folders that are all named key=value. Where none is, nothing further down is looked at."""
    if not any(child.is_dir() for child in folder.glob("*=*")):
        return []
    found = sorted(folder.rglob("*.parquet"))
    between = [file.relative_to(folder).parts[:-1] for file in found]
    return found if found and all(parts and all("=" in part for part in parts) for parts in between) else []


def open_partitioned(folder: Path, files: list[Path]) -> StoredTable:
    """Rows in the order of the files' names; every file can be read by itself."""
    with reading(folder, "a Parquet data set"):
        names = [str(file) for file in files]
        whole = dataset.dataset(names, format="parquet", partitioning="hive", partition_base_dir=str(folder))
        parts = [
            dataset.FileSystemDataset([fragment], whole.schema, whole.format) for fragment in whole.get_fragments()
        ]
        rows = [part.count_rows() for part in parts]
    pieces = tuple(
        Piece(count, file.stat().st_size, partial(_scan, folder, [part]))
        for count, file, part in zip(rows, files, parts, strict=True)
    )
    return StoredTable(
        folder, stored_columns(folder, whole.schema), sum(rows), partial(_scan, folder, parts), None, pieces
    )


def _scan(folder: Path, parts: list[Any], names: list[str], size: int) -> Iterator[pa.RecordBatch]:
    with reading(folder, "a Parquet data set"):
        for part in parts:
            batches = part.to_batches(columns=names, batch_size=size, batch_readahead=1, fragment_readahead=1)
            yield from map(sound, batches)
