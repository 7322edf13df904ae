"""A data set and its labels, as a spec describes them → what a learner sees, and what it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pue.bench import labeling
from pue.bench.datasets import DATASETS, LabeledSplit
from pue.bench.spec import Labels
from pue.core.data import PUData, Scenario
from pue.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class Hidden:
    """Case-control data, copies of the labeled positives in front, and what was hidden."""

    split: LabeledSplit
    data: PUData
    propensity: Tensor
    """True e of the labeled rows."""
    classes: Tensor
    """Classes of the labeled rows."""
    negative_propensity: Tensor | None = None
    """True e of the rows labeled negative, where there are any."""


@lru_cache(maxsize=2)
def load(
    dataset: str, folder: Path | None, image_size: int | None, rows: int | None, disjoint: bool | None = None
) -> LabeledSplit:
    """A data set, once a process; at most `rows` of either part, evenly spread (some files are sorted by class)."""
    arguments: dict[str, Any] = {} if dataset == "digits" else {"folder": folder}
    if image_size is not None:
        if dataset != "alzheimer":
            raise InvalidInput(f"{dataset} cannot be resized: leave image_size out.")
        arguments["size"] = image_size
    if disjoint:
        if dataset != "alzheimer":
            raise InvalidInput(f"{dataset} does not show people: leave disjoint out.")
        arguments["disjoint"] = True
    split = DATASETS[dataset](**arguments)
    if rows is None:
        return split
    train, test = (_evenly(len(classes), rows) for classes in (split.train_classes, split.test_classes))
    few = split.train_x[train], split.train_classes[train], split.test_x[test], split.test_classes[test]
    return LabeledSplit(split.name, *few, split.positive)


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
    marks, negative_e = chosen.labels, None
    if labels.n_negative is not None:
        negatives, negative_e = _negatives(split, labels, rng)
        rows, marks = torch.cat([rows, negatives]), torch.cat([marks, marks.new_full((len(negatives),), -1)])
    data = PUData(split.train_x[rows], marks, chosen.scenario)
    classes = split.train_classes[rows[data.labeled]]
    return Hidden(split, data, truth.labeled_propensity(chosen), classes, negative_e)


def _negatives(split: LabeledSplit, labels: Labels, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Copies of some negatives, by class: their row numbers and true propensities."""
    classes = sorted(set(split.train_classes.tolist()) - set(split.positive))
    mix = _by_class("negative_mix", labels.negative_mix or (), classes, f"negative classes of {split.name}")
    number = torch.arange(len(split.train_classes))[:, None]
    chosen, truth = labeling.class_mix(
        number, split.train_classes, mix=mix, n_labeled=labels.n_negative or 0, scenario=Scenario.CASE_CONTROL, rng=rng
    )
    return chosen.x[chosen.labeled, 0], truth.labeled_propensity(chosen)


def _shares(split: LabeledSplit, labels: Labels) -> dict[int, float]:
    """Class → share of the labels."""
    mix = _by_class("mix", labels.mix or (), split.positive, f"positive classes of {split.name}")
    numbers = np.array(list(mix.values()))
    if labels.kind == "severity":
        numbers = numbers * [int((split.train_classes == name).sum()) for name in split.positive]
    return dict(zip(split.positive, (numbers / numbers.sum()).tolist(), strict=True))


def _by_class(what: str, numbers: Sequence[float], classes: Sequence[int], these: str) -> dict[int, float]:
    if len(numbers) != len(classes):
        raise InvalidInput(f"{what} must hold a number for each of the {len(classes)} {these}; got {len(numbers)}.")
    return dict(zip(classes, numbers, strict=True))


def _evenly(n: int, wanted: int) -> Tensor:
    return torch.linspace(0, n - 1, min(n, wanted), dtype=torch.float64).round().long()
