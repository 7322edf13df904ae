"""CIFAR-10 from its original binary records, vehicles against animals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pue.bench.datasets.files import DIGESTS, damaged, read_known
from pue.bench.datasets.labeled import LabeledSplit, data_folder

_RECORD = 1 + 3 * 32 * 32


def cifar10(folder: str | Path | None = None) -> LabeledSplit:
    """50,000 + 10,000 images as uint8 of shape (n, 3, 32, 32), from `folder`/cifar10 or PUE_DATA/cifar10.

    Positive are airplane, automobile, ship and truck.
    """
    home = data_folder("cifar10", folder)
    *train, test = DIGESTS["cifar10"]
    train_x, train_classes = _read(home, train)
    test_x, test_classes = _read(home, [test])
    return LabeledSplit("cifar10", train_x, train_classes, test_x, test_classes, positive=(0, 1, 8, 9))


def _read(home: Path, names: list[str]) -> tuple[Tensor, Tensor]:
    """Images and classes of files of records: one byte of class, then the planes of red, green and blue."""
    parts = []
    for name in names:
        needs = "CIFAR-10 needs the six files of its binary version there."
        raw = read_known(home / name, DIGESTS["cifar10"][name], needs=needs)
        if len(raw) % _RECORD:
            raise damaged(home / name, f"not a multiple of {_RECORD} bytes")
        parts.append(np.frombuffer(raw, np.uint8).reshape(-1, _RECORD))
    images = np.concatenate([part[:, 1:] for part in parts]).reshape(-1, 3, 32, 32)
    classes = np.concatenate([part[:, 0] for part in parts]).astype(np.int64)
    return torch.from_numpy(images), torch.from_numpy(classes)
