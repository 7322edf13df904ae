"""Fully labeled data sets whose labels are then hidden: `DATASETS` maps a name to its loader.

`available` lists them with what lies at hand, `fetch` gets those that are missing.
"""

from __future__ import annotations

from collections.abc import Callable

from pue.bench.datasets.alzheimer import alzheimer
from pue.bench.datasets.cifar10 import cifar10
from pue.bench.datasets.digits import digits
from pue.bench.datasets.fetch import available, fetch
from pue.bench.datasets.idx import fashion_mnist, mnist
from pue.bench.datasets.labeled import LabeledSplit

__all__ = ["DATASETS", "LabeledSplit", "alzheimer", "available", "cifar10", "digits", "fashion_mnist", "fetch", "mnist"]
DATASETS: dict[str, Callable[..., LabeledSplit]] = {
    "digits": digits,
    "mnist": mnist,
    "fashion_mnist": fashion_mnist,
    "cifar10": cifar10,
    "alzheimer": alzheimer,
}
