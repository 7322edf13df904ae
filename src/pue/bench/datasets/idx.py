"""The idx format of MNIST and its successors: a magic number, the shape, then unsigned bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pue.datasets.files import damaged, gunzipped, matches
from pue.datasets.labeled import LabeledSplit
from pue.errors import MissingData


def load(name: str, home: Path, digests: Mapping[str, str], *, positive: tuple[int, ...]) -> LabeledSplit:
    """The four files of a set like MNIST, each with the digest of its .gz or of what is in it."""
    train_x, train_classes, test_x, test_classes = (
        _array(_read(home / stem, digests[stem]))
        for stem in (
            "train-images-idx3-ubyte",
            "train-labels-idx1-ubyte",
            "t10k-images-idx3-ubyte",
            "t10k-labels-idx1-ubyte",
        )
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
