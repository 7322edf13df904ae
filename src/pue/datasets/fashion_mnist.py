"""Fashion-MNIST from its original idx files, upper-body garments against the rest."""

from __future__ import annotations

from pathlib import Path

from pue.datasets import idx
from pue.datasets.labeled import LabeledSplit, data_folder

# Of the .gz files as published.
MD5 = {
    "train-images-idx3-ubyte": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "train-labels-idx1-ubyte": "25c81989df183df01b3e8a0aad5dffbe",
    "t10k-images-idx3-ubyte": "bef4ecab320f06d8554ea6380940ec79",
    "t10k-labels-idx1-ubyte": "bb300cfdad3c16e7a12a480ee83cd310",
}


def fashion_mnist(folder: str | Path | None = None) -> LabeledSplit:
    """60,000 + 10,000 images as uint8 of shape (n, 1, 28, 28), from `folder`/fashion_mnist or PUE_DATA/fashion_mnist.

    Positive are T-shirt, pullover, coat and shirt (0, 2, 4, 6), the task of the Dist-PU paper.
    """
    home = data_folder("fashion_mnist", folder)
    return idx.load("fashion_mnist", home, MD5, positive=(0, 2, 4, 6))
