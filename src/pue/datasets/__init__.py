"""Fully labeled data sets whose labels are then hidden: `DATASETS` maps a name to its loader."""

from __future__ import annotations

from collections.abc import Callable

from pue.datasets.digits import digits
from pue.datasets.labeled import LabeledSplit
from pue.datasets.mnist import mnist

DATASETS: dict[str, Callable[..., LabeledSplit]] = {"digits": digits, "mnist": mnist}

__all__ = ["DATASETS", "LabeledSplit", "digits", "mnist"]
