"""A folder of images and the table that names them, one image a row."""

from __future__ import annotations

import math
import os
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from pue.app.sources.labels import POSITIVE, meanings
from pue.app.sources.problems import first_line, near, require_columns
from pue.app.sources.stored_table import BATCH
from pue.core.machine import available_memory, show_bytes
from pue.errors import InvalidInput, MissingData, PueWarning, listed

FILE_COLUMNS = ("file", "path", "filename", "image")
"""What the column that names the images may be called, in this order of preference."""
LOOKED_AT, HARDLY = 100_000, 100
"""Files below a folder after which one in `HARDLY` must have been an image."""
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
_FORMATS = ["PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM"]
_GRAY = ("1", "L", "LA")
_THREADS = min(8, os.cpu_count() or 1)


@dataclass(frozen=True)
class ImageFolder:
    """Images in the order of their table. The first decides size and color; the others are checked when decoded."""

    kind: ClassVar[Literal["images"]] = "images"
    path: Path
    table: pd.DataFrame = field(repr=False)
    files: tuple[Path, ...] = field(repr=False)
    image_shape: tuple[int, int, int]
    """Channels, height, width."""
    resize: bool
    """Whether images of another size are resized, or refused."""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.table.columns)

    @property
    def n_rows(self) -> int:
        return len(self.files)

    def read(self, columns: Sequence[str] | None = None, rows: int | None = None) -> pd.DataFrame:
        """The rows of the table, all or the first ones."""
        return self.table.loc[:, require_columns(columns, self.columns)].iloc[:rows]

    def batches(self, size: int = BATCH, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """The rows of the table in order, `size` at a time."""
        frame = self.read(columns)
        for start in range(0, self.n_rows, size):
            yield frame.iloc[start : start + size].reset_index(drop=True)

    def between(self, start: int, stop: int) -> ImageFolder:
        """The rows from `start` to before `stop`."""
        return replace(self, table=self.table.iloc[start:stop].reset_index(drop=True), files=self.files[start:stop])

    def images(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Some images, channels first, decoded by several threads."""
        files = self.files[start:stop]
        self._require_room(len(files))
        pixels = np.empty((len(files), *self.image_shape), np.uint8)

        def decode(number: int) -> None:
            pixels[number] = self._decoded(files[number])

        with ThreadPoolExecutor(_THREADS) as pool:
            deque(pool.map(decode, range(len(files))), maxlen=0)  # which cancels the others where one fails
        return pixels

    def _require_room(self, n: int) -> None:
        """The system promises more memory than there is, and ends whoever uses it."""
        needed, free = n * math.prod(self.image_shape), available_memory()
        if needed > free:
            raise InvalidInput(
                f"{n} images of {self.image_shape[1]} × {self.image_shape[2]} pixels would take {show_bytes(needed)}, "
                f"and {show_bytes(free)} are free. Make them smaller with --image-size, or use fewer."
            )

    def _decoded(self, file: Path) -> NDArray[np.uint8]:
        channels, height, width = self.image_shape
        with _opened(file) as opened:
            image: Image.Image = opened
            if channels == 1 and image.mode not in _GRAY:
                raise InvalidInput(
                    f"{file} is in color, but {self.files[0].name}, which decides, is gray. Convert all images to one "
                    "of the two, or let the table begin with one in color."
                )
            if image.size != (width, height) and not self.resize:
                raise InvalidInput(
                    f"{file} is {image.height} × {image.width} pixels, but {self.files[0].name} is {height} × {width}. "
                    f"Resize all to one size with image_size=({height}, {width}), or another."
                )
            if image.mode == "P":  # Pillow warns where a palette's transparent colors would be lost
                image = image.convert("RGBA")
            plain = image.convert("L" if channels == 1 else "RGB")
            if plain.size != (width, height):
                plain = plain.resize((width, height), Image.Resampling.BILINEAR)
            values = np.asarray(plain)
        return values[None] if channels == 1 else values.transpose(2, 0, 1)


@contextmanager
def _opened(file: Path) -> Iterator[Image.Image]:
    """An image whose every problem is said with its name."""
    try:
        with Image.open(file, formats=_FORMATS) as image:
            if image.mode.startswith(("I", "F")):
                raise InvalidInput(f"{file} has more than 8 bits a pixel ({image.mode}). Convert it to 8 bits.")
            yield image
    except InvalidInput:
        raise
    except PermissionError as error:
        raise InvalidInput(f"{file} may not be read. Allow it, for example with: chmod u+r {file}") from error
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise InvalidInput(
            f"{file} is damaged or no image ({first_line(error)}). Replace it, or take its row out of the table."
        ) from error


def images_below(folder: Path) -> list[str]:
    """All images in a folder and the folders in it, by name.

    Where hardly a file among the first `LOOKED_AT` is an image, this is no folder of images, but a disk, say.
    """
    found = []
    for number, file in enumerate(folder.rglob("*"), 1):
        if file.suffix.lower() in SUFFIXES:
            found.append(file.relative_to(folder).as_posix())
        if number >= LOOKED_AT and len(found) * HARDLY < number:
            raise MissingData(
                f"{folder} holds {len(found)} images among the first {number:,} files below it. Pass the folder that "
                "holds the images alone."
            )
    return sorted(found)


def with_rest(source: Any, label: str) -> Any:
    """A folder whose table lists positives alone gets its other images as unlabeled rows; other sources stay as they
    are. The label column may be missing where all that is listed is positive."""
    if not isinstance(source, ImageFolder):
        return source
    table = source.table
    if label in table.columns and not (meanings(table[label], label) == POSITIVE).all():
        return source
    listed_files = set(source.files)
    others = [name for name in images_below(source.path) if source.path / name not in listed_files]
    if not others:
        return source
    named = table if label in table.columns else table.assign(**{label: 1})
    column = next(name for name in FILE_COLUMNS if name in table.columns)
    rest = pd.DataFrame({column: pd.Series(others, dtype="str"), label: 0})
    found = pd.concat([named.assign(**{label: 1}), rest], ignore_index=True)
    text = f"{len(table):,} positives are listed; the other {len(others):,} images of {source.path.name} are unlabeled."
    warnings.warn(text, PueWarning, stacklevel=2)
    files = (*source.files, *(source.path / name for name in others))
    return replace(source, table=found[[*named.columns]], files=files)


def open_images(folder: Path, table: pd.DataFrame, image_size: int | tuple[int, int] | None) -> ImageFolder:
    """The images that a table names, all of one size."""
    files = _files(folder, table)
    with _opened(files[0]) as first:
        channels, size = 1 if first.mode in _GRAY else 3, (first.height, first.width)
    height, width = size if image_size is None else height_and_width(image_size)
    return ImageFolder(folder, table, files, (channels, height, width), image_size is not None)


def height_and_width(image_size: int | tuple[int, int]) -> tuple[int, int]:
    size = (image_size, image_size) if isinstance(image_size, int) else image_size
    if len(size) != 2 or min(size) < 1:
        raise InvalidInput(f"image_size is a height and a width in pixels, or one number for both; got {size}.")
    return size


def _files(folder: Path, table: pd.DataFrame) -> tuple[Path, ...]:
    column = next((name for name in FILE_COLUMNS if name in table.columns), None)
    if column is None:
        raise InvalidInput(
            f"the table of the images in {folder} has no column that names them, only "
            f"{listed(list(table.columns))}. Call that column file."
        )
    if table[column].isna().any():
        row = int(table[column].isna().argmax()) + 1
        raise InvalidInput(f"row {row} of the table of the images in {folder} names no {column}. Fill or remove it.")
    files = tuple(folder / str(name) for name in table[column])
    if absent := [file for file in files if not file.is_file()]:
        raise MissingData(
            f"{len(absent)} of {len(files)} images are not in {folder}, the first is {absent[0].name!r}. "
            f"{near(absent[0])} Names in column {column!r} are relative to the folder."
        )
    return files
