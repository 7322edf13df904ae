"""Five pictures: the overview, accuracy by method beside the paper's, the α_e curve, gain against label bias, shares of
weight.

Colors are Okabe and Ito's, told apart by people who are color blind; shapes repeat what colors say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pue.bench.record import MeanSd, Record
from pue.bench.report.groups import Group, bias
from pue.bench.report.overview import Line
from pue.bench.report.paper import PAPER, printed_name
from pue.bench.report.rows import ResultRow, paper_gain
from pue.bench.suites import title_of
from pue.files import writing

PLAIN, ESTIMATED, TRUE, OTHER, INK = "#8c8c8c", "#0072b2", "#e69f00", "#009e73", "#222222"
REGULARIZED = {True: (ESTIMATED, "o", "-"), False: (TRUE, "s", "--"), None: (OTHER, "^", ":")}
"""Color, marker and line with the α_e term, without, and where there is no such term."""


_OF_KIND = {"plain": PLAIN, "estimated": ESTIMATED, "true": TRUE}
KINDS = {"plain": PLAIN, "estimated propensity": ESTIMATED, "true propensity": TRUE, "other rows": OTHER}


def overview_dots(lines: Sequence[Line]) -> Figure:
    """A panel for each data set: what weighting adds to a method, the paper's numbers below it, and the ceiling."""
    panels = {
        name: [line for line in lines if line.dataset == name] for name in dict.fromkeys(x.dataset for x in lines)
    }
    most = max(map(len, panels.values()))
    figure = Figure(figsize=(1.0 + 3.3 * len(panels), 1.7 + 0.5 * most), layout="constrained")
    for axes, (dataset, shown) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        for y, line in enumerate(shown):
            _overview_line(axes, y, line)
        ceiling = shown[0].ceiling
        if ceiling is not None:
            axes.axvline(ceiling.mean, ls="--", lw=1.2, color=INK)
        axes.set_yticks(range(len(shown)), [line.method for line in shown])
        axes.set_ylim(most - 0.4, -0.6)
        axes.set_xlabel("test accuracy, %")
        _finish(figure, axes, title_of(dataset), grid="x")
    marks = [Line2D([], [], marker="o", ms=7, ls="", color=color, label=kind) for kind, color in _OF_KIND.items()]
    marks.append(
        Line2D([], [], marker="D", ms=5, ls="", mfc="white", color=INK, label="the paper's, in the same color")
    )
    marks.append(Line2D([], [], ls="--", lw=1.2, color=INK, label="all classes known"))
    figure.legend(handles=marks, loc="outside lower center", ncols=len(marks), frameon=False, fontsize=9)
    return figure


def _overview_line(axes: Axes, y: int, line: Line) -> None:
    for found, place, marker, face in ((line.ours, y - 0.1, "o", None), (line.paper, y + 0.22, "D", "white")):
        ends = [found[kind].mean for kind in _OF_KIND if kind in found]
        axes.plot([min(ends), max(ends)] if ends else [], [place] * (2 if ends else 0), lw=1, color=PLAIN, alpha=0.6)
        for kind, spread in found.items():
            color, size = _OF_KIND[kind], 7 if face is None else 5
            axes.plot([spread.mean], [place], marker, ms=size, mfc=face or color, mec=color, zorder=3)


def accuracy_dots(rows: Sequence[ResultRow], title: str) -> Figure:
    """Our mean ± sd, every seed a small dot above it, the paper's mean ± sd a diamond below."""
    longest = max(len(row.name) for row in rows)
    figure = Figure(figsize=(6.4 + 0.08 * longest, 1.3 + 0.36 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    for y, row in enumerate(rows):
        if row.ours is None:
            axes.text(0.01, y, "no run", va="center", fontsize=8, color=INK, transform=axes.get_yaxis_transform())
        else:
            seeds = [record.percent("accuracy") for record in row.ours.records]
            ours, color = row.ours.metric("accuracy"), KINDS[_kind(row.row_name)]
            axes.plot(seeds, [y - 0.26] * len(seeds), "o", ms=3.5, mew=0, color=color, alpha=0.45)
            axes.errorbar(ours.mean, y, xerr=ours.sd, fmt="o", ms=3.5, capsize=4.5, capthick=1.4, lw=1.4, color=color)
        if row.paper:
            printed = row.paper.metrics["accuracy"]
            axes.errorbar(printed.mean, y + 0.26, xerr=printed.sd, fmt="D", ms=4, capsize=3, lw=1.2, color=INK)
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlabel("test accuracy, %")
    _legend_of_dots(axes, rows)
    return _finish(figure, axes, f"Test accuracy: {title}", grid="both")


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
        for each in mine:
            seeds = [record.percent("accuracy") for record in each.records]
            top.plot([_alpha(each)] * len(seeds), seeds, "o", ms=3.5, mfc="white", mec=INK, mew=0.6, zorder=3)
        distances = [(_alpha(each), distance) for each in mine if (distance := each.over_seeds(_share_distance))]
        _curve(bottom, distances, row)
    top.set_ylabel("test accuracy, %")
    bottom.set_ylabel("distance of the class shares\nfrom the true ones")
    spread = _spread([each.metric("accuracy") for each in swept])
    bottom.set_xlabel(f"weight $α_e$ of the propensity network's regularizer ({spread})")
    bottom.set_xticks(sorted({_alpha(each) for each in swept}))
    bottom.set_ylim(bottom=0)
    top.legend(frameon=False, fontsize=8)
    _finish(figure, bottom, "", grid="y")
    return _finish(figure, top, title, grid="y")


def gain_against_bias(rows: Sequence[ResultRow], title: str) -> Figure:
    """Gain of the e-rows over the plain row against the distance of the label mix from uniform."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    axes.axhline(0, lw=0.8, color=INK)
    series: dict[tuple[str, bool | None], list[tuple[float, MeanSd]]] = {}
    for row in rows:
        if row.gain and row.ours and row.ours.mix is not None:
            regularized = None if row.ours.alpha is None else row.ours.alpha > 0
            series.setdefault((row.row_name, regularized), []).append((bias(row.ours.mix), row.gain.gain))
    for number, ((name, regularized), points) in enumerate(sorted(series.items(), key=str)):
        apart = [(x + 0.006 * (number - (len(series) - 1) / 2), y) for x, y in points]
        _curve(axes, sorted(apart, key=lambda point: point[0]), name, regularized)
    for term in (True, False):
        _paper_gains(axes, term)
    axes.set_xlabel("label bias: total variation distance of the label mix from uniform")
    spread = _spread([gain for points in series.values() for _, gain in points])
    axes.set_ylabel(f"gain over the plain row, points ({spread})")
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], frameon=False, fontsize=8)
    return _finish(figure, axes, f"What weighting gains as labels grow more biased: {title}", grid="y")


def share_bars(classes: Sequence[str], shares: Mapping[str, Sequence[float]], line: str, title: str) -> Figure:
    """Shares of the positive weight by class: bars in a color for each weighting, and lines where they should end."""
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.add_subplot()
    bars = [name for name in shares if name != line]
    for number, (name, color) in enumerate(zip(bars, (PLAIN, ESTIMATED, TRUE), strict=False)):
        left = [place + 0.27 * (number - (len(bars) - 1) / 2) for place in range(len(classes))]
        axes.bar(left, [100 * share for share in shares[name]], 0.25, label=name, color=color)
    ends = [(place - 0.42, place + 0.42) for place in range(len(classes))]
    axes.hlines([100 * share for share in shares[line]], *zip(*ends, strict=True), color=INK, label=line)
    axes.set_xticks(range(len(classes)), list(classes))
    axes.set_ylabel("share of the positive weight, %")
    axes.legend(frameon=False)
    return _finish(figure, axes, title, grid="y")


_WRITTEN: dict[str, dict[str, Any]] = {
    ".png": {"dpi": 150, "metadata": {"Software": None}},
    ".svg": {"metadata": {"Date": None, "Creator": None}},
}


def save(figure: Figure, path: Path) -> Path:
    """Write a picture as its name says, .png or .svg; the same picture gives the same bytes."""
    return save_all({path: figure})[0]


def save_all(figures: Mapping[Path, Figure]) -> list[Path]:
    """Write pictures, all or none: each gets its name when the last is drawn."""
    with ExitStack() as stack:
        for path, figure in figures.items():
            partial = stack.enter_context(writing(path))
            with rc_context({"svg.hashsalt": path.name, "svg.fonttype": "none"}):
                figure.savefig(partial, format=path.suffix[1:], **_WRITTEN[path.suffix])
    return list(figures)


def _kind(row: str) -> str:
    """Which of the three kinds of rows a name belongs to, or none."""
    row = printed_name(row)
    if row not in {printed.name for printed in PAPER if printed.suite != "supplement"}:
        return "other rows"
    return "true propensity" if row.endswith("'") else "estimated propensity" if row.endswith("e") else "plain"


def _legend_of_dots(axes: Axes, rows: Sequence[ResultRow]) -> None:
    kinds = {_kind(row.row_name) for row in rows if row.ours}
    spread = _spread([row.ours.metric("accuracy") for row in rows if row.ours])
    shown = {f"{kind}, {spread}": color for kind, color in KINDS.items() if kind in kinds}
    marks = [Line2D([], [], marker="o", ms=4.5, color=color, label=label) for label, color in shown.items()]
    marks.append(Line2D([], [], marker="o", ms=3.5, mew=0, color=INK, alpha=0.45, ls="", label="a seed"))
    if any(row.paper for row in rows):
        marks.append(Line2D([], [], marker="D", ms=4, color=INK, label="paper, mean ± sd"))
    axes.legend(handles=marks, frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _curve(axes: Axes, points: Sequence[tuple[float, MeanSd]], label: str, regularized: bool | None = True) -> None:
    color, marker, dashes = REGULARIZED[regularized]
    x, y = [x for x, _ in points], [found.mean for _, found in points]
    error = [found.sd or 0.0 for _, found in points]
    axes.errorbar(
        x, y, yerr=error if any(error) else None, marker=marker, ms=4, capsize=4.5, capthick=1.4, lw=1.4, label=label,
        color=color, ls=dashes,
    )  # fmt: skip


def _spread(found: Sequence[MeanSd]) -> str:
    """What a mark with its bar is: where no row has two seeds there is no bar to explain."""
    return "mean ± sd" if any(each.sd is not None for each in found) else "one seed"


def _alpha(each: Group) -> float:
    assert each.alpha is not None
    return each.alpha


def _share_distance(record: Record) -> float | None:
    return None if record.propensity is None else record.propensity.share_distance


def _paper_gains(axes: Axes, regularized: bool) -> None:
    rows = [row for row in PAPER if row.suite == "mix-ablation" and row.regularized is regularized]
    points = sorted((bias(row.mix), gain[0]) for row in rows if row.mix and (gain := paper_gain(row)))
    color, marker, _ = REGULARIZED[regularized]
    label = f"paper (CIFAR-10), {'$α_e > 0$' if regularized else '$α_e = 0$'}"
    axes.plot([x for x, _ in points], [y for _, y in points], marker, ms=7, mfc="none", color=color, label=label)


def _finish(figure: Figure, axes: Axes, title: str, grid: str) -> Figure:
    axes.set_title(title, fontsize=12, loc="left")
    axes.grid(axis=grid, alpha=0.3)  # type: ignore[arg-type]
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
