"""The demo: the suite `digits` with a linear model, and other words around it.

Even digits are the positives, but two thirds of the labels are zeros. Plain PU learning therefore learns "zero";
weights by inverse propensity repair it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from rich.console import Console
from rich.table import Table

from pue.bench.execute import Place, execute
from pue.bench.presets import LABELS
from pue.bench.propensities import class_shares
from pue.bench.record import Record
from pue.bench.report.live import cell, watching
from pue.bench.report.plots import accuracy_dots, save, share_bars
from pue.bench.report.rows import result_rows
from pue.bench.run import prepare
from pue.bench.spec import Spec
from pue.bench.store import Store
from pue.bench.suites import resolve
from pue.errors import PueError

METHODS = ("uPU", "nnPU", "Dist-PU")
WEIGHTS = {"": "labels as they are", "e": "weighted by estimated e", "e'": "weighted by true e"}
"""How the name of a row ends → what its labels are weighted by."""
POPULATION = "among all positives"
DIGITS = (0, 2, 4, 6, 8)


def demo_specs(seeds: int, methods: Sequence[str] = METHODS) -> list[Spec]:
    """The runs of the demo: three times the methods, with a model so simple that the bias shows.

    >>> len(demo_specs(6))
    54
    """
    names = [method + ending for ending in WEIGHTS for method in methods]
    return resolve("digits", methods=names, seeds=range(seeds), changes={"backbone": "linear"})


def weight_shares(seeds: int, store: Store | None = None) -> dict[str, list[float]]:
    """The share of the labels' weight that each of `DIGITS` has, mean over seeds: as the labels are, weighted by
    estimated and by true e, and the share it has among all positives. What is in the store is not estimated again."""
    found: dict[str, list[torch.Tensor]] = {name: [] for name in (*WEIGHTS.values(), POPULATION)}
    for spec in demo_specs(seeds, METHODS[:1]):
        hidden, _, estimate = prepare(spec, None, store)
        e = torch.ones(hidden.data.n_labeled) if estimate is None else torch.tensor(estimate.values)
        weights = {"none": "", "true": "e'"}.get(spec.propensity, "e")
        found[WEIGHTS[weights]].append(class_shares(1 / e.double(), hidden.classes, hidden.split))
        split = hidden.split
        found[POPULATION].append(class_shares(split.train_y.double(), split.train_classes, split))
    return {name: torch.stack(shares).mean(0).tolist() for name, shares in found.items()}


def run_demo(seeds: int, jobs: int, out: Path, console: Console, errors: Console) -> None:
    """Train, print two tables, write two pictures."""
    labels, start, specs = LABELS["digits"], time.perf_counter(), demo_specs(seeds)
    mix = ", ".join(f"{digit}: {share:.0%}" for digit, share in zip(DIGITS, labels.mix or (), strict=True))
    _say(console, f"Even against odd digits. {labels.n_labeled} even digits are labeled, in the mix {mix}; all other "
                  "rows are unlabeled.\n")  # fmt: skip
    with TemporaryDirectory(prefix="pue-demo-") as folder:
        store = Store(Path(folder))
        with watching(specs, jobs, errors) as watch:
            outcomes = execute(specs, Place("digits", store), jobs=jobs, watch=watch)
        failed = [outcome for outcome in outcomes if outcome.record is None]
        if failed:
            raise PueError(f"{len(failed)} of {len(specs)} trainings failed: {failed[0].error}")
        shares = weight_shares(seeds, store)
    records = [outcome.record for outcome in outcomes if outcome.record is not None]
    console.print(share_table(shares))
    console.print(accuracy_table(records))
    title = "Two thirds of the labels are zeros; weights by inverse propensity undo most of it"
    saved = [
        save(share_bars([f"digit {digit}" for digit in DIGITS], shares, POPULATION, title), out / "weights.png"),
        save(accuracy_dots(result_rows("digits", records), "Digits, a linear model"), out / "accuracy.png"),
    ]
    plots = ", ".join(map(str, saved))
    _say(console, f"{len(specs)} trainings in {time.perf_counter() - start:.0f} s. Plots: {plots}")


def share_table(shares: Mapping[str, list[float]]) -> Table:
    table = _table("Weight of each digit among the labeled rows, in %", "digit", shares)
    for digit, *cells in zip(DIGITS, *shares.values(), strict=True):
        table.add_row(str(digit), *(f"{100 * share:.0f}" for share in cells))
    return table


def accuracy_table(records: Sequence[Record]) -> Table:
    n = len({record.seed for record in records})
    table = _table(f"Test accuracy in %, mean ± sd over n = {n} seeds", "method", WEIGHTS.values())
    for method in METHODS:
        found = ([record for record in records if record.row == method + ending] for ending in WEIGHTS)
        table.add_row(method, *(cell(records, "accuracy") for records in found))
    return table


def _table(title: str, first: str, others: Iterable[str]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
