"""Fully labeled data sets whose labels are then hidden: `DATASETS` maps a name to its loader.

`available` lists them with what lies at hand, `fetch` gets those that are missing.
"""

from __future__ import annotations

from collections.abc import Callable

from pue.datasets.alzheimer import alzheimer
from pue.datasets.catalog import Entry, available
from pue.datasets.cifar10 import cifar10
from pue.datasets.digits import digits
from pue.datasets.fashion_mnist import fashion_mnist
from pue.datasets.fetch import fetch
from pue.datasets.labeled import LabeledSplit
from pue.datasets.mnist import mnist
from pue.datasets.sources import PackageClient, Url

DATASETS: dict[str, Callable[..., LabeledSplit]] = {
    "digits": digits,
    "mnist": mnist,
    "fashion_mnist": fashion_mnist,
    "cifar10": cifar10,
    "alzheimer": alzheimer,
}

__all__ = [
    "DATASETS",
    "Entry",
    "LabeledSplit",
    "PackageClient",
    "Url",
    "alzheimer",
    "available",
    "cifar10",
    "digits",
    "fashion_mnist",
    "fetch",
    "mnist",
]
