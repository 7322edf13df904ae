"""`open_source`: whatever a practitioner has, behind one small interface.

A format is a function of a path in `FORMATS`, found by the file's suffix; folders are Parquet parts or images.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

import pandas as pd

from pue.app.sources.addresses import fetched, is_address
from pue.app.sources.arrays import Arrays, open_npy, open_npz
from pue.app.sources.columnar import open_arrow, open_parquet
from pue.app.sources.delimited import COMPRESSIONS, open_delimited
from pue.app.sources.folders import height_and_width, images_below, open_images
from pue.app.sources.held import open_json_lines, open_sheet
from pue.app.sources.partitioned import open_partitioned, partitions
from pue.app.sources.problems import near, require_bytes, suffix_of
from pue.app.sources.standard_input import STANDARD, spooled
from pue.app.sources.stored_table import BATCH, StoredTable
from pue.app.sources.vectors import with_vectors_spread
from pue.errors import InvalidInput, MissingData, listed

__all__ = ["BATCH", "FORMATS", "Source", "open_source"]


class Source(Protocol):
    """Rows on the disk, in order; those of the kind "images" also have `image_shape` and `images(start, stop)`."""

    @property
    def path(self) -> Path: ...
    @property
    def kind(self) -> Literal["table", "images"]: ...
    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all that is no pixel."""
        ...

    @property
    def n_rows(self) -> int | None:
        """None where only reading tells, as for CSV."""
        ...

    def read(self, columns: Sequence[str] | None = None, rows: int | None = None) -> pd.DataFrame: ...
    def batches(self, size: int = BATCH, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]: ...
    def between(self, start: int, stop: int) -> Source:
        """The rows from `start` to before `stop` as a source; an error where `n_rows` is None."""
        ...


FORMATS: dict[str, Callable[[Path], Source]] = {
    **{f".csv{packed}": partial(open_delimited, delimiter=",") for packed in ("", *COMPRESSIONS)},
    **{f".tsv{packed}": partial(open_delimited, delimiter="\t") for packed in ("", *COMPRESSIONS)},
    **{f".{name}{packed}": open_json_lines for name in ("jsonl", "ndjson") for packed in ("", *COMPRESSIONS)},
    ".xlsx": open_sheet,
    ".xls": open_sheet,
    ".ods": open_sheet,
    ".parquet": open_parquet,
    ".arrow": open_arrow,
    ".feather": open_arrow,
    ".ipc": open_arrow,
    ".npy": open_npy,
    ".npz": open_npz,
}


def open_source(
    path: str | Path, *, labels: str | Path | None = None, image_size: int | tuple[int, int] | None = None
) -> Source:
    """The table or the images at `path`.

    "-" is standard input; an address (`s3://…`, `duckdb:///…?query=…`) is copied here first, see `addresses`. A folder
    holds Parquet files, the parts of one table, perhaps in folders key=value, or images. `labels` is the table that
    names the images in a column `file`, relative to the folder; without it the one CSV in the folder, and without any
    all images, by name. `image_size` (height, width) resizes them; without it all must have the size of the first, and
    images in an array must have it already. Columns of vectors are spread over columns of numbers (`vectors`).
    """
    source = _opened(here(path), labels, image_size)
    return with_vectors_spread(source) if isinstance(source, StoredTable) else source


def _opened(path: Path, labels: str | Path | None, image_size: int | tuple[int, int] | None) -> Source:
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"the name of {path} is not UTF-8 text, so Arrow cannot open it. Rename it.") from error
    if path.is_dir():
        return _open_folder(path, None if labels is None else Path(labels), image_size)
    if labels is not None:
        raise InvalidInput(f"labels= goes with a folder of images, and {path} is none. Leave it out.")
    if not path.exists():
        raise MissingData(f"there is no {path}. {near(path)}")
    suffix = suffix_of(path, FORMATS)
    require_bytes(path)
    source = FORMATS[suffix](path)
    if image_size is not None:
        _require_size(source, *height_and_width(image_size))
    return source


def here(path: str | Path) -> Path:
    """Where rows are on this disk, after they were copied if they come from elsewhere."""
    if isinstance(path, str) and is_address(path):
        return fetched(path)
    return spooled() if Path(path) == STANDARD else Path(path)


def _require_size(source: Source, height: int, width: int) -> None:
    """Images in an array have their size: only those in a folder are resized."""
    if not isinstance(source, Arrays) or source.kind != "images":
        raise InvalidInput(f"image_size= goes with images, and {source.path} is a table. Leave it out.")
    _, *size = source.image_shape
    if size != [height, width]:
        raise InvalidInput(
            f"the images in {source.path} are {size[0]} × {size[1]} pixels, not {height} × {width}. Resize them before "
            "they are saved as an array."
        )


def _open_folder(folder: Path, labels: Path | None, image_size: int | tuple[int, int] | None) -> Source:
    parts = sorted(part for part in folder.glob("*.parquet") if not part.name.startswith("."))
    if parts and labels is None:
        return open_parquet(folder, parts)
    if labels is None and (below := partitions(folder)):
        return open_partitioned(folder, below)
    tables = [labels] if labels is not None else sorted(folder.glob("*.csv"))
    if len(tables) > 1:
        raise InvalidInput(
            f"{folder} holds several CSV files: {listed([table.name for table in tables])}. Say with labels= which of "
            "them names the images."
        )
    if tables:
        return open_images(folder, open_source(tables[0]).read(), image_size)
    if names := images_below(folder):
        return open_images(folder, pd.DataFrame({"file": pd.Series(names, dtype="str")}), image_size)
    raise MissingData(f"{folder} holds no data: no Parquet files and no images. Pass the folder or file that does.")
