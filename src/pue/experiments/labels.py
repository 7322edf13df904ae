"""A data set and its labels, as a spec describes them → what a learner sees, and what it does not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pue import labeling
from pue.data import PUData, Scenario
from pue.datasets import DATASETS, LabeledSplit
from pue.errors import InvalidInput
from pue.experiments.spec import Labels


@dataclass(frozen=True, eq=False)
class Hidden:
    """Case-control data, copies of the labeled positives in front, and what was hidden."""

    split: LabeledSplit
    data: PUData
    propensity: Tensor
    """True e of the labeled rows."""
    classes: Tensor
    """Classes of the labeled rows."""


@lru_cache(maxsize=2)
def load(dataset: str, folder: Path | None, image_size: int | None, rows: int | None) -> LabeledSplit:
    """A data set, once a process; at most `rows` of either part, evenly spread (some files are sorted by class)."""
    arguments: dict[str, Any] = {} if dataset == "digits" else {"folder": folder}
    if image_size is not None:
        if dataset != "alzheimer":
            raise InvalidInput(f"{dataset} cannot be resized: leave image_size out.")
        arguments["size"] = image_size
    split = DATASETS[dataset](**arguments)
    if rows is None:
        return split
    train, test = (_spread(len(classes), rows) for classes in (split.train_classes, split.test_classes))
    return replace(
        split,
        train_x=split.train_x[train],
        train_classes=split.train_classes[train],
        test_x=split.test_x[test],
        test_classes=split.test_classes[test],
    )


def hide(split: LabeledSplit, labels: Labels, seed: int) -> Hidden:
    """Label some positives of the training set as `labels` says."""
    rng = np.random.default_rng(seed)
    number = torch.arange(len(split.train_classes))[:, None]  # labels go to row numbers; images are copied once
    common: dict[str, Any] = {"n_labeled": labels.n_labeled, "scenario": Scenario.CASE_CONTROL, "rng": rng}
    if labels.mix is None:
        chosen, truth = labeling.scar(number, split.train_y, **common)
    else:
        counts: Any = "exact" if labels.kind == "severity" else "multinomial"
        chosen, truth = labeling.class_mix(
            number, split.train_classes, mix=_shares(split, labels), counts=counts, **common
        )
    rows: Tensor = chosen.x[:, 0]
    data = PUData(split.train_x[rows], chosen.labels, chosen.scenario)
    return Hidden(split, data, truth.labeled_propensity(chosen), split.train_classes[rows[data.labeled]])


def _shares(split: LabeledSplit, labels: Labels) -> dict[int, float]:
    """Class → share of the labels."""
    numbers = np.array(labels.mix)
    if len(numbers) != len(split.positive):
        raise InvalidInput(
            f"mix must hold a number for each of the {len(split.positive)} positive classes of {split.name}; "
            f"got {len(numbers)}."
        )
    if labels.kind == "severity":
        numbers = numbers * [int((split.train_classes == name).sum()) for name in split.positive]
    return dict(zip(split.positive, (numbers / numbers.sum()).tolist(), strict=True))


def _spread(n: int, wanted: int) -> Tensor:
    return torch.linspace(0, n - 1, min(n, wanted), dtype=torch.float64).round().long()
