"""Features of a source's images: train an encoder on them, or have one look at them, piece by piece."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from pue.app.sources.arrays import Arrays
from pue.app.sources.folders import ImageFolder
from pue.app.sources.opening import Source, open_source
from pue.app.sources.write import open_writer
from pue.bench.datasets import DATASETS
from pue.bench.hidden import load
from pue.errors import InvalidInput
from pue.features import Recipe, StoredEncoder, fit_encoder
from pue.features.foreign import Encode
from pue.persistence.model import save

PIECE = 2_000
"""Images in memory at once."""


def images_of(path: Path, image_size: int | None = None, data: Path | None = None) -> Tensor:
    """All images of a folder or an array, or the training images of a data set of the bench."""
    if str(path) in DATASETS and not path.exists():
        return load(str(path), data, None, None).train_x
    source = _images(open_source(path, image_size=image_size))
    return torch.from_numpy(source.images(0, source.n_rows))


def fit_features(
    images: Tensor, recipe: Recipe, output: Path, *, progress: bool | float | None = None
) -> StoredEncoder:
    """Train an encoder and write it to the folder `output`.

    Until it is done, `output`-run holds checkpoints; the same command continues from the last.
    """
    checkpoints = output.with_name(f"{output.name}-run")
    found = fit_encoder(images, recipe, checkpoints=checkpoints, progress=progress)
    save(found, output)
    shutil.rmtree(checkpoints, ignore_errors=True)
    return found


def apply_features(
    source: Source, encode: Encode, output: Path, *, progress: Callable[[int], None] = lambda rows: None
) -> tuple[int, int]:
    """Write a table: what stands beside the images, then feature_0, feature_1, …; how many rows and features it has."""
    images, width = _images(source), 0
    with open_writer(output) as writer:
        for start in range(0, images.n_rows, PIECE):
            stop = min(images.n_rows, start + PIECE)
            features = encode(torch.from_numpy(images.images(start, stop)))
            width = features.shape[1]
            beside = images.between(start, stop).read(list(images.columns)) if images.columns else pd.DataFrame()
            writer.write(pd.concat([beside.reset_index(drop=True), _frame(features)], axis=1))
            progress(stop)
    return images.n_rows, width


def _images(source: Source) -> ImageFolder | Arrays:
    if isinstance(source, ImageFolder | Arrays) and source.kind == "images":
        return source
    raise InvalidInput(f"{source.path} holds a table, no images: its columns are features already.")


def _frame(features: Tensor) -> pd.DataFrame:
    values: Any = features.numpy().astype(np.float32)
    return pd.DataFrame(values, columns=[f"feature_{number}" for number in range(values.shape[1])])
