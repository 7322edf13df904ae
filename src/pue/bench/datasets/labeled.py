"""A fully labeled set with its split, and where local data lie."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from pue.errors import MissingData


@dataclass(frozen=True)
class FeaturesId:
    """Features that inputs were replaced by: the hash of images and recipe, and what learning them took, once."""

    key: str
    wall_seconds: float
    cpu_seconds: float


@dataclass(frozen=True, eq=False)
class LabeledSplit:
    """Inputs and classes of a training and a test set; `positive` lists the classes that count as positive."""

    name: str
    train_x: Tensor
    train_classes: Tensor
    test_x: Tensor
    test_classes: Tensor
    positive: tuple[int, ...]
    origin: str = ""
    """Where inputs are features: the checksum of what they are features of."""
    features: FeaturesId | None = None

    @property
    def train_y(self) -> Tensor:
        return self._is_positive(self.train_classes)

    @property
    def test_y(self) -> Tensor:
        return self._is_positive(self.test_classes)

    @cached_property
    def checksum(self) -> str:
        """16 hexadecimal digits of the sha256 of all four arrays: two results with the same one used the same data.

        Features have that of their images.
        """
        if self.origin:
            return self.origin
        digest = hashlib.sha256()
        for tensor in (self.train_x, self.train_classes, self.test_x, self.test_classes):
            digest.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.cpu().contiguous().numpy().data)
        return digest.hexdigest()[:16]

    def _is_positive(self, classes: Tensor) -> Tensor:
        return torch.isin(classes, torch.tensor(self.positive)).long()


def data_home(name: str, folder: str | Path | None = None) -> Path:
    """Where `name` belongs: inside `folder` or, without it, inside the environment's PUE_DATA."""
    base = folder if folder is not None else os.environ.get("PUE_DATA")
    if base is None:
        raise MissingData(f"where is {name}? Pass the data folder or set PUE_DATA to the folder that holds {name}/.")
    return Path(base) / name


def data_folder(name: str, folder: str | Path | None = None) -> Path:
    """The folder of `name`, which is there."""
    path = data_home(name, folder)
    if not path.is_dir():
        remedy = f"`pue data get {name}` fetches the files or says how; or point PUE_DATA elsewhere."
        raise MissingData(f"there is no folder {path}. {remedy}")
    return path
