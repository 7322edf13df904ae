"""MNIST from its original idx files, even against odd."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pue.datasets.labeled import LabeledSplit, data_folder
from pue.errors import MissingData

_MD5 = {
    "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
}


def mnist(folder: str | Path | None = None) -> LabeledSplit:
    """60,000 + 10,000 images as uint8 of shape (n, 1, 28, 28), from `folder`/mnist or PUE_DATA/mnist."""
    home = data_folder("mnist", folder)
    images = {part: _read(home / f"{part}-images-idx3-ubyte.gz") for part in ("train", "t10k")}
    classes = {part: _read(home / f"{part}-labels-idx1-ubyte.gz").long() for part in ("train", "t10k")}
    return LabeledSplit(
        "mnist",
        images["train"][:, None],
        classes["train"],
        images["t10k"][:, None],
        classes["t10k"],
        positive=(0, 2, 4, 6, 8),
    )


def _read(path: Path) -> Tensor:
    """One gzipped idx file of unsigned bytes, hash-checked."""
    if not path.is_file():
        raise MissingData(f"{path.name} is missing in {path.parent}. MNIST needs its four original idx.gz files there.")
    packed = path.read_bytes()
    if hashlib.md5(packed, usedforsecurity=False).hexdigest() != _MD5[path.name]:
        raise MissingData(f"{path} is damaged or not the original file (wrong checksum). Fetch it again.")
    raw = gzip.decompress(packed)
    dimensions = raw[3]
    shape = np.frombuffer(raw, ">u4", count=dimensions, offset=4).astype(int)
    return torch.from_numpy(np.frombuffer(raw, np.uint8, offset=4 + 4 * dimensions).reshape(shape).copy())
