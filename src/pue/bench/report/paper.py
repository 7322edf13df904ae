"""The published rows of the PUe paper, as printed: mean and standard deviation over 6 seeds, in percent.

The numbers lie in paper.csv; a mix there is over airplane, automobile, ship and truck. The AUC and average precision
come in two flavours: `hard` from 0/1 predictions (AUC is then the balanced accuracy), `score` from scores. Which one a
row printed follows from its precision and recall: AUC_hard = (TPR + TNR) / 2 and AP_hard = P·R + (1 − R)·π hold for
every `hard` row and for no `score` row.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pue.bench.presets import LABELS
from pue.bench.record import MeanSd
from pue.bench.spec import Labels
from pue.judging.truth import METRICS

SEEDS = 6
Flavor = Literal["hard", "score"]


@dataclass(frozen=True)
class PaperRow:
    """One printed row."""

    suite: str
    """The suite that repeats its table."""
    dataset: str
    name: str
    labels: Labels
    regularized: bool | None
    """Whether the α_e term was on; None where the table does not say."""
    metrics: dict[str, MeanSd]
    flavor: Flavor
    """How `auc` and `ap` were computed."""
    note: str = ""

    @property
    def mix(self) -> tuple[float, ...] | None:
        return self.labels.mix


def _read() -> Iterator[PaperRow]:
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        for cells in csv.DictReader(file):
            labels = LABELS[cells["dataset"]]
            if cells["mix"]:
                labels = replace(labels, mix=tuple(map(float, cells["mix"].split("/"))))
            regularized = {"on": True, "off": False}.get(cells["alpha_term"])
            metrics = {name: MeanSd(float(cells[name]), float(cells[f"{name}_sd"]), SEEDS) for name in METRICS}
            flavor: Flavor = "hard" if cells["flavor"] == "hard" else "score"
            where = cells["suite"], cells["dataset"], cells["row"]
            yield PaperRow(*where, labels, regularized, metrics, flavor, cells["note"])


PAPER = tuple(_read())
"""All 49 rows, table by table, in the paper's order."""

PRINTED = {"nnPU w/o normalisation": "nnPU without normalize", "nnPUe (anchor)": "anchor"}
"""Rows that go by another name in the paper; its anchor can be read as a classifier or as propensities in nnPUe."""


def printed_name(row: str) -> str:
    """The paper's name of a row of ours: the source of an e-row's propensities is not part of it.

    >>> printed_name("Dist-PUe (α=15)"), printed_name("nnPU w/o normalisation"), printed_name("Dist-PU (warm-up)")
    ('Dist-PUe', 'nnPU without normalize', 'Dist-PU (warm-up)')
    """
    stem, bracket, _ = row.partition(" (")
    return PRINTED.get(row, stem if bracket and stem.endswith("e") else row)


def plain_name(row: str) -> str | None:
    """
    >>> plain_name("Dist-PUe'"), plain_name("Dist-PUe (α=15)"), plain_name("uPU")
    ('Dist-PU', 'Dist-PU', None)
    """
    stem = printed_name(row).removesuffix("'")
    return stem[:-1] if stem.endswith("e") else None
