"""MNIST and Fashion-MNIST from their original idx files: a magic number, the shape, then unsigned bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pue.bench.datasets.files import DIGESTS, damaged, gunzipped, matches
from pue.bench.datasets.labeled import LabeledSplit, data_folder
from pue.errors import MissingData


def mnist(folder: str | Path | None = None) -> LabeledSplit:
    """60,000 + 10,000 images as uint8 of shape (n, 1, 28, 28), from `folder`/mnist or PUE_DATA/mnist: even or odd."""
    return _load("mnist", folder, positive=(0, 2, 4, 6, 8))


def fashion_mnist(folder: str | Path | None = None) -> LabeledSplit:
    """60,000 + 10,000 images as uint8 of shape (n, 1, 28, 28), from `folder`/fashion_mnist or PUE_DATA/fashion_mnist.

    Positive are T-shirt, pullover, coat and shirt (0, 2, 4, 6), the task of the Dist-PU paper.
    """
    return _load("fashion_mnist", folder, positive=(0, 2, 4, 6))


def _load(name: str, folder: str | Path | None, positive: tuple[int, ...]) -> LabeledSplit:
    """The four files, each with the digest of its .gz or of what is in it."""
    home = data_folder(name, folder)
    train_x, train_classes, test_x, test_classes = (
        _array(_read(home / stem, digest)) for stem, digest in DIGESTS[name].items()
    )
    return LabeledSplit(name, train_x[:, None], train_classes.long(), test_x[:, None], test_classes.long(), positive)


def _read(plain: Path, digest: str) -> bytes:
    """The content of `plain`.gz or, in its absence, of `plain`."""
    packed = plain.with_name(f"{plain.name}.gz")
    if not (packed.is_file() or plain.is_file()):
        needs = f"{plain.parent.name} needs its four original idx.gz files there."
        raise MissingData(f"{packed.name} is missing in {plain.parent}. {needs}")
    path = packed if packed.is_file() else plain
    stored = path.read_bytes()
    content = gunzipped(stored) if path == packed else stored
    if content is None or not (matches(content, digest) or matches(stored, digest)):
        raise damaged(path)
    return content


def _array(raw: bytes) -> Tensor:
    dimensions = raw[3]
    shape = np.frombuffer(raw, ">u4", count=dimensions, offset=4).astype(int)
    return torch.from_numpy(np.frombuffer(raw, np.uint8, offset=4 + 4 * dimensions).reshape(shape).copy())
