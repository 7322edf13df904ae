"""Fully labeled data sets whose labels are then hidden: `DATASETS` maps a name to its loader."""

from __future__ import annotations

from collections.abc import Callable

from pue.datasets.alzheimer import alzheimer
from pue.datasets.cifar10 import cifar10
from pue.datasets.digits import digits
from pue.datasets.fashion_mnist import fashion_mnist
from pue.datasets.labeled import LabeledSplit
from pue.datasets.mnist import mnist

DATASETS: dict[str, Callable[..., LabeledSplit]] = {
    "digits": digits,
    "mnist": mnist,
    "fashion_mnist": fashion_mnist,
    "cifar10": cifar10,
    "alzheimer": alzheimer,
}

__all__ = ["DATASETS", "LabeledSplit", "alzheimer", "cifar10", "digits", "fashion_mnist", "mnist"]
