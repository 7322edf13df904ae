"""Two pictures: what a correction recovers, and accuracy as the labels get more biased."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from labelings import STRENGTHS
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from methods import TITLES
from ours import BACKBONES
from tallies import Records, recovered

LEARNERS = list(BACKBONES)
LINES = ("ceiling/boosting", "blend/true", "blend/auto", "blend/none", "baseline/ranking", "baseline/elkan-noto",
         "baseline/naive")  # fmt: skip


def draw(records: Records, folder: Path) -> list[Path]:
    """SVG files, the same bytes for the same records."""
    folder.mkdir(parents=True, exist_ok=True)
    with plt.rc_context({"svg.hashsalt": "pue", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        return [_gain(records, folder / "recovered_gain.svg"), _bias(records, folder / "accuracy_and_bias.svg")]


def _gain(records: Records, path: Path) -> Path:
    figure, axes = plt.subplots(figsize=(7, 3))
    groups = {
        "logistic": ["logistic"],
        "kinds": ["kinds"],
        "both": ["logistic", "kinds"],
        "easy": ["easy"],
        "hard": ["hard"],
    }
    for number, learner in enumerate(LEARNERS):
        for place, labelings in enumerate(groups.values()):
            found = recovered(records, learner, labelings)
            if found is not None and found.means_something:
                x, value = place + 0.25 * (number - 1), float(np.clip(found.value, -1, 2))
                axes.bar(x, value, 0.22, color=f"C{number}", label=learner if place == 0 else None)
                axes.plot([x, x], np.clip([found.low, found.high], -1, 2), color="0.2", linewidth=1)
    axes.axhline(1, color="0.6", linewidth=0.8, linestyle=":")
    axes.axhline(0, color="0.2", linewidth=0.8)
    axes.set_xticks(range(len(groups)), list(groups))
    axes.set_xlim(-0.5, len(groups) - 0.5)
    axes.set_ylabel("recovered gain")
    return _saved(figure, axes, path)


def _bias(records: Records, path: Path) -> Path:
    figure, axes = plt.subplots(figsize=(7, 3.5))
    for number, method in enumerate(LINES):
        points = _by_strength(records, method)
        if points:
            axes.plot(
                *zip(*points, strict=True),
                marker="o",
                markersize=3,
                color=f"C{number}",
                label=TITLES[method].replace("`", ""),
            )
    axes.set_xlabel("strength of the bias: standard deviation of the logit of e among positives (0: SCAR)")
    axes.set_ylabel("accuracy, %")
    return _saved(figure, axes, path)


def _by_strength(records: Records, method: str) -> list[tuple[float, float]]:
    """(Strength, mean accuracy in %) over the tables and seeds that have every strength there is."""
    runs: dict[float, dict[tuple[str, int], float]] = {}
    for strength, labeling in {0.0: "scar", **STRENGTHS}.items():
        here = {key: record for key, record in records.items() if (key.labeling, key.method) == (labeling, method)}
        if here:
            runs[strength] = {(key.table, key.seed): record["accuracy"] for key, record in here.items()}
    common = set.intersection(*map(set, runs.values())) if runs else set()
    if not common:
        return []
    return [(strength, 100 * float(np.mean([found[run] for run in common]))) for strength, found in runs.items()]


def _saved(figure: Figure, axes: Axes, path: Path) -> Path:
    if axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    return path
