"""MNIST from its original idx files, even against odd."""

from __future__ import annotations

from pathlib import Path

from pue.datasets import idx
from pue.datasets.labeled import LabeledSplit, data_folder

# Of the unpacked files, so that those that somebody packed again are also known.
SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}


def mnist(folder: str | Path | None = None) -> LabeledSplit:
    """60,000 + 10,000 images as uint8 of shape (n, 1, 28, 28), from `folder`/mnist or PUE_DATA/mnist."""
    return idx.load("mnist", data_folder("mnist", folder), SHA256, positive=(0, 2, 4, 6, 8))
