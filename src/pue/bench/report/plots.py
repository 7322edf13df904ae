"""Three pictures: accuracy by method beside the paper's, the α_e curve, and gain against label bias.

Colors are Okabe and Ito's, told apart by people who are color blind; shapes repeat what colors say.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from pue.errors import InvalidInput
from pue.report.groups import Group, bias
from pue.report.lines import Line, paper_gain
from pue.report.paper import PAPER, printed_name
from pue.report.spread import Spread

PLAIN, ESTIMATED, TRUE, OTHER, INK = "#8c8c8c", "#0072b2", "#e69f00", "#009e73", "#222222"
REGULARIZED = {True: (ESTIMATED, "o", "-"), False: (TRUE, "s", "--"), None: (OTHER, "^", ":")}
"""Color, marker and line with the α_e term, without, and where there is no such term."""
SUFFIXES = {".png": "png", ".svg": "svg"}


def accuracy_bars(lines: Sequence[Line], title: str) -> Figure:
    """A bar a row: our mean, every seed a dot, the paper's mean ± sd a diamond."""
    longest = max(len(line.name) for line in lines)
    figure = Figure(figsize=(6.4 + 0.08 * longest, 1.3 + 0.3 * len(lines)), layout="constrained")
    axes = figure.add_subplot()
    values = [v for line in lines for v in (*_seeds(line), *_printed(line))]
    start = max(0.0, 5 * math.floor(min(values) / 5 - 0.5))
    for y, line in enumerate(lines):
        seeds = _seeds(line)
        if seeds:
            axes.barh(y, sum(seeds) / len(seeds) - start, 0.72, left=start, color=_color(line.row), alpha=0.75)
            axes.plot(seeds, [y - 0.16] * len(seeds), "o", ms=4, mfc="white", mec=INK, mew=0.7)
        else:
            axes.text(start, y, " no run", va="center", fontsize=8, color=INK)
        if line.paper:
            printed = line.paper.metrics["accuracy"]
            axes.errorbar(printed.mean, y + 0.16, xerr=printed.sd, fmt="D", ms=5, capsize=3, lw=1.2, color=INK)
    axes.set_yticks(range(len(lines)), [line.name for line in lines])
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.set_xlim(start, None)
    axes.set_xlabel(f"test accuracy, % (the axis starts at {start:.0f})")
    _legend_of_bars(axes, lines)
    return _finish(figure, axes, title, grid="x")


def alpha_curve(groups: Sequence[Group], title: str) -> Figure:
    """Accuracy, and how far the weighted class shares are from the true ones, against α_e."""
    figure = Figure(figsize=(6.4, 5.0), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    swept = sorted((each for each in groups if each.alpha is not None), key=lambda each: each.alpha or 0.0)
    plain = [each for each in groups if each.alpha is None]
    for each in plain:
        top.axhline(each.metric("accuracy").mean, ls="--", lw=1.2, color=PLAIN, label=each.row)
    for row in dict.fromkeys(printed_name(each.row) for each in swept):
        mine = [each for each in swept if printed_name(each.row) == row]
        _curve(top, [(_alpha(each), each.metric("accuracy")) for each in mine], row)
        top.plot(*_dots(mine), "o", ms=3.5, mfc="white", mec=INK, mew=0.6, zorder=3)
        distances = [(_alpha(each), distance) for each in mine if (distance := each.propensity("share_distance"))]
        _curve(bottom, distances, row)
    top.set_ylabel("test accuracy, %")
    bottom.set_ylabel("share distance")
    bottom.set_xlabel("weight $α_e$ of the propensity network's regularizer (mean ± sd; dots are seeds)")
    bottom.set_xticks(sorted({_alpha(each) for each in swept}))
    bottom.set_ylim(bottom=0)
    top.legend(frameon=False, fontsize=8)
    _finish(figure, bottom, "", grid="y")
    return _finish(figure, top, title, grid="y")


def gain_against_bias(lines: Sequence[Line], title: str) -> Figure:
    """Gain of the e-rows over the plain row against the distance of the label mix from uniform."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    axes.axhline(0, lw=0.8, color=INK)
    series: dict[tuple[str, bool | None], list[tuple[float, Spread]]] = {}
    for line in lines:
        if line.gain and line.ours and line.ours.mix is not None:
            regularized = None if line.ours.alpha is None else line.ours.alpha > 0
            series.setdefault((line.row, regularized), []).append((bias(line.ours.mix), line.gain.gain))
    for number, ((row, regularized), points) in enumerate(sorted(series.items(), key=str)):
        apart = [(x + 0.006 * (number - (len(series) - 1) / 2), y) for x, y in points]
        _curve(axes, sorted(apart, key=lambda point: point[0]), row, regularized)
    for term in (True, False):
        _paper_gains(axes, term)
    axes.set_xlabel("label bias: total variation distance of the label mix from uniform")
    axes.set_ylabel("gain over the plain row, points (mean ± sd, paired)")
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], frameon=False, fontsize=8)
    return _finish(figure, axes, title, grid="y")


def save(figure: Figure, path: Path) -> Path:
    """Write a picture, PNG or SVG by suffix; the same picture gives the same bytes."""
    if path.suffix not in SUFFIXES:
        raise InvalidInput(f"pictures are written as {' or '.join(SUFFIXES)}; got {path.name!r}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}")
    metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
    with matplotlib.rc_context({"svg.hashsalt": "pue"}):
        figure.savefig(partial, dpi=150, format=SUFFIXES[path.suffix], metadata=metadata)
    os.replace(partial, path)
    return path


def _seeds(line: Line) -> list[float]:
    return [record.metrics["accuracy"] for record in line.ours.records] if line.ours else []


def _printed(line: Line) -> list[float]:
    if line.paper is None:
        return []
    printed = line.paper.metrics["accuracy"]
    return [printed.mean - (printed.sd or 0.0)]


def _kind(row: str) -> str:
    """Which of the three kinds of rows a name belongs to, or none."""
    row = printed_name(row)
    if row not in {printed.name for printed in PAPER if printed.suite != "supplement"}:
        return "other rows"
    return "true propensity" if row.endswith("'") else "estimated propensity" if row.endswith("e") else "plain"


KINDS = {"plain": PLAIN, "estimated propensity": ESTIMATED, "true propensity": TRUE, "other rows": OTHER}


def _color(row: str) -> str:
    return KINDS[_kind(row)]


def _legend_of_bars(axes: Axes, lines: Sequence[Line]) -> None:
    kinds = {_kind(line.row) for line in lines if line.ours}
    handles: list[Artist] = [Patch(color=c, alpha=0.75, label=kind) for kind, c in KINDS.items() if kind in kinds]
    handles.append(Line2D([], [], marker="o", ms=4, mfc="white", mec=INK, mew=0.7, ls="", label="a seed"))
    if any(line.paper for line in lines):
        handles.append(Line2D([], [], marker="D", ms=5, color=INK, label="paper, mean ± sd"))
    axes.legend(handles=handles, frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _curve(axes: Axes, points: Sequence[tuple[float, Spread]], label: str, regularized: bool | None = True) -> None:
    color, marker, dashes = REGULARIZED[regularized]
    x, y = [x for x, _ in points], [spread.mean for _, spread in points]
    error = [spread.sd or 0.0 for _, spread in points]
    axes.errorbar(x, y, yerr=error, marker=marker, ms=5, capsize=3, lw=1.4, label=label, color=color, ls=dashes)


def _dots(groups: Sequence[Group]) -> tuple[list[float], list[float]]:
    pairs = [(_alpha(each), record.metrics["accuracy"]) for each in groups for record in each.records]
    return [x for x, _ in pairs], [y for _, y in pairs]


def _alpha(each: Group) -> float:
    assert each.alpha is not None
    return each.alpha


def _term(regularized: bool) -> str:
    return "$α_e > 0$" if regularized else "$α_e = 0$"


def _paper_gains(axes: Axes, regularized: bool) -> None:
    rows = [row for row in PAPER if row.suite == "mix-ablation" and row.regularized is regularized]
    points = sorted((bias(row.mix), gain[0]) for row in rows if row.mix and (gain := paper_gain(row)))
    color, marker, _ = REGULARIZED[regularized]
    label = f"paper (CIFAR-10), {_term(regularized)}"
    axes.plot([x for x, _ in points], [y for _, y in points], marker, ms=7, mfc="none", color=color, label=label)


def _finish(figure: Figure, axes: Axes, title: str, grid: str) -> Figure:
    axes.set_title(title, fontsize=10, loc="left")
    axes.grid(axis=grid, alpha=0.3)  # type: ignore[arg-type]
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
