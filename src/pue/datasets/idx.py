"""The idx format of MNIST and its successors: a magic number, the shape, then unsigned bytes."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pue.datasets.files import damaged, matches
from pue.datasets.labeled import LabeledSplit
from pue.errors import MissingData


def load(name: str, home: Path, digests: Mapping[str, str], *, packed: bool, positive: tuple[int, ...]) -> LabeledSplit:
    """The four files of an MNIST-like set; `digests` are those of the .gz files (`packed`) or of what is in them."""
    train_x, train_classes, test_x, test_classes = (
        _array(home / stem, digests[stem], packed=packed)
        for stem in (
            "train-images-idx3-ubyte",
            "train-labels-idx1-ubyte",
            "t10k-images-idx3-ubyte",
            "t10k-labels-idx1-ubyte",
        )
    )
    return LabeledSplit(
        name, train_x[:, None], train_classes.long(), test_x[:, None], test_classes.long(), positive=positive
    )


def read(path: Path, digest: str, *, packed: bool) -> bytes:
    """The unpacked content of `path`.gz or, where its own digest is known, of `path` itself."""
    found = path.with_name(f"{path.name}.gz")
    if not found.is_file():
        if packed or not path.is_file():
            needs = f"{path.parent.name} needs its four original idx.gz files there."
            raise MissingData(f"{found.name} is missing in {path.parent}. {needs}")
        found = path
    stored = found.read_bytes()
    try:
        content = gzip.decompress(stored) if found != path else stored
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(found) from error
    if not matches(stored if packed else content, digest):
        raise damaged(found)
    return content


def _array(path: Path, digest: str, *, packed: bool) -> Tensor:
    raw = read(path, digest, packed=packed)
    dimensions = raw[3]
    shape = np.frombuffer(raw, ">u4", count=dimensions, offset=4).astype(int)
    return torch.from_numpy(np.frombuffer(raw, np.uint8, offset=4 + 4 * dimensions).reshape(shape).copy())
