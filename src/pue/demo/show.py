"""What the demo shows: two tables on the terminal and two plots."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from rich.table import Table

from pue.demo.experiment import METHODS, MIX, VARIANTS, Run, select

COLORS = {"labeled": "#9a9a9a", "plain": "#9a9a9a", "estimated": "#3b7dd8", "true": "#e08a1e", "population": "#222222"}


def spread(values: Sequence[float]) -> str:
    """Mean ± sample standard deviation, in percent."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{100 * statistics.mean(values):.1f} ± {100 * deviation:.1f}"


def accuracy_table(runs: Sequence[Run]) -> Table:
    n = len({r.seed for r in runs})
    table = Table(title=f"Test accuracy in %, mean ± sd over n = {n} seeds (AUC in brackets)", title_justify="left")
    table.add_column("method")
    for name in VARIANTS.values():
        table.add_column(name, justify="right")
    for method, title in METHODS.items():
        cells = [select(runs, method=method, variant=variant) for variant in VARIANTS]
        table.add_row(
            title,
            *(
                f"{spread([r.accuracy for r in cell])}  ({100 * statistics.mean(r.auc for r in cell):.1f})"
                for cell in cells
            ),
        )
    return table


def share_table(runs: Sequence[Run]) -> Table:
    table = Table(title="Weight of each digit among the labeled rows, in %", title_justify="left")
    table.add_column("digit")
    for name in ("labels as they are", "weighted by estimated e", "weighted by true e", "among all positives"):
        table.add_column(name, justify="right")
    for digit in MIX:
        table.add_row(str(digit), *(f"{100 * share:.0f}" for share in mean_shares(runs, digit)))
    return table


def mean_shares(runs: Sequence[Run], digit: int) -> list[float]:
    by_variant = [statistics.mean(r.shares[digit] for r in select(runs, variant=variant)) for variant in VARIANTS]
    return [*by_variant, statistics.mean(r.population[digit] for r in runs)]


def plot_shares(runs: Sequence[Run], path: Path) -> None:
    """Bars: the labeled share of each digit, what the weights make of it, and the true share as a line."""
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    positions = np.arange(len(MIX))
    shares = 100 * np.array([mean_shares(runs, digit) for digit in MIX])
    names = ["labels as they are", "weighted by estimated e", "weighted by true e"]
    colors = [COLORS["labeled"], COLORS["estimated"], COLORS["true"]]
    for column, (name, color) in enumerate(zip(names, colors, strict=True)):
        axes.bar(positions + 0.27 * (column - 1), shares[:, column], 0.25, label=name, color=color)
    axes.hlines(
        shares[:, 3], positions - 0.42, positions + 0.42, color=COLORS["population"], label="among all positives"
    )
    axes.set_xticks(positions, [f"digit {digit}" for digit in MIX])
    axes.set_ylabel("share of the positive weight, %")
    axes.set_title("Two thirds of the labels are zeros; weighting by 1/e gives every digit its due", fontsize=10)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    _save(figure, path)


def plot_accuracy(runs: Sequence[Run], path: Path) -> None:
    """One row a method and variant: every seed a dot, mean ± sd as a bar."""
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    ticks, labels = [], []
    for row, (method, title) in enumerate(METHODS.items()):
        ticks.append(4.0 * row + 1)
        labels.append(title)
        for column, (variant, name) in enumerate(VARIANTS.items()):
            values = 100 * np.array([r.accuracy for r in select(runs, method=method, variant=variant)])
            y = 4.0 * row + column
            axes.plot(values, np.full(len(values), y - 0.33), "o", ms=4, alpha=0.6, mec="none", color=COLORS[variant])
            axes.errorbar(
                values.mean(),
                y,
                xerr=values.std(ddof=1) if len(values) > 1 else None,
                fmt="D",
                ms=6,
                capsize=3,
                color=COLORS[variant],
                label=name if row == 0 else None,
            )
    axes.set_yticks(ticks, labels)
    axes.invert_yaxis()
    axes.set_xlabel(f"test accuracy, % (mean ± sd, n = {len({r.seed for r in runs})} seeds; dots are seeds)")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), title="propensity")
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    _save(figure, path)


def _pyplot() -> Any:
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _save(figure: Any, path: Path) -> None:
    """Written under a temporary name first, so that no half-written picture is left behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}")
    figure.savefig(partial, dpi=150, format="png")
    os.replace(partial, path)
    _pyplot().close(figure)
