"""The tables of a suite as values: columns are functions of a row, a table is a list of columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pue.bench.record import MeanSd, PropensitySummary, Record
from pue.bench.report.paper import Flavor, printed_name
from pue.bench.report.rows import ResultRow, difference
from pue.judging.truth import METRICS

Cell = str | int | float | bool | MeanSd | None
MIB = 2**20


@dataclass(frozen=True)
class Column:
    """A name for machines, a title for people, and what it shows of a row."""

    key: str
    title: str
    value: Callable[[ResultRow], Cell]
    form: str = ".2f"
    """How a number is written."""
    missing: str = "–"
    """What stands where there is nothing to show."""
    is_text: bool = False

    def text(self, cell: Cell) -> str:
        """A cell for people."""
        if cell is None:
            return self.missing
        if isinstance(cell, bool):
            return "yes" if cell else "no"
        if isinstance(cell, MeanSd):
            return cell.text(self.form)
        return f"{cell:{self.form}}" if isinstance(cell, float) else str(cell)


@dataclass(frozen=True)
class ReportTable:
    """What every renderer takes."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def texts(self) -> list[list[str]]:
        """The cells for people, row by row."""
        return [[column.text(cell) for column, cell in zip(self.columns, row, strict=True)] for row in self.rows]


def tabulate(title: str, columns: Sequence[Column], rows: Sequence[ResultRow], *notes: str) -> ReportTable:
    """A table of some rows; a column with nothing to show throughout is left out."""
    shown = [c for c in columns if any(c.value(row) not in ("", None) for row in rows)]
    return ReportTable(title, tuple(shown), tuple(tuple(c.value(row) for c in shown) for row in rows), notes)


def suite_tables(rows: Sequence[ResultRow]) -> list[ReportTable]:
    """All tables of one suite, ours beside the paper's."""
    gains = [row for row in rows if row.gain or row.paper_gain]
    costs = [row for row in rows if row.ours]
    tables = [
        tabulate("Accuracy, %", ACCURACY, rows, *_paper_notes(rows), *_setting_notes(rows)),
        tabulate("AUC, %, in the flavour the paper printed", AUC, rows),
        tabulate("AP, %, in the flavour the paper printed", AP, rows),
        tabulate("Precision, recall and F1, %", DECISIONS, rows),
    ]
    if gains:
        title = "e-row minus plain row, points of accuracy, paired by seed; exceeds: gain > sd plain + sd e"
        tables.append(tabulate(title, GAINS, gains, *_gain_notes(rows)))
    tables.append(tabulate("Cost of a run, and the weights of the labeled rows", COSTS, costs))
    return tables


def wide_table(suites: dict[str, list[ResultRow]]) -> ReportTable:
    """Every column of every suite in one table: for machines."""
    every = (*WHERE, *ACCURACY, *AUC, *AP, *DECISIONS, *GAINS, *COSTS)
    columns = tuple({column.key: column for column in every}.values())
    cells = [(suite, *(column.value(row) for column in columns)) for suite, rows in suites.items() for row in rows]
    return ReportTable("", (Column("suite", "suite", lambda row: None, is_text=True), *columns), tuple(cells))


def own_flavor(row: ResultRow) -> Flavor:
    """The flavour of AUC and AP to compare in: the one the paper printed, else from scores."""
    return row.paper.flavor if row.paper else "score"


def other_flavor(row: ResultRow) -> Flavor:
    return "hard" if own_flavor(row) == "score" else "score"


def flavored(metric: str, flavor: Flavor) -> str:
    """
    >>> flavored("auc", "hard"), flavored("auc", "score")
    ('auc_hard', 'auc')
    """
    return f"{metric}_hard" if flavor == "hard" else metric


def _ours(metric: str, flavor: Callable[[ResultRow], Flavor] = lambda row: "score") -> Callable[[ResultRow], Cell]:
    return lambda row: row.ours.metric(flavored(metric, flavor(row))) if row.ours else None


def _paper(metric: str) -> Callable[[ResultRow], Cell]:
    return lambda row: row.paper.metrics[metric] if row.paper else None


def _difference(metric: str) -> Callable[[ResultRow], Cell]:
    return lambda row: difference(row.ours, row.paper, flavored(metric, own_flavor(row)), metric) if row.ours else None


def _over_seeds(value: Callable[[Record], float | None]) -> Callable[[ResultRow], MeanSd | None]:
    return lambda row: row.ours.over_seeds(value) if row.ours else None


def _mean(value: Callable[[Record], float]) -> Callable[[ResultRow], Cell]:
    return lambda row: found.mean if (found := _over_seeds(value)(row)) else None


def _propensity(value: Callable[[PropensitySummary], float]) -> Callable[[ResultRow], Cell]:
    return _over_seeds(lambda record: None if record.propensity is None else value(record.propensity))


def _text(key: str, title: str, value: Callable[[ResultRow], Cell]) -> Column:
    return Column(key, title, value, missing="", is_text=True)


ROW = (_text("row", "row", lambda row: row.row_name), _text("setting", "setting", lambda row: row.setting))
N = Column("n", "n", lambda row: len(row.ours.records) if row.ours else 0)
WHERE = (
    _text("dataset", "data", lambda row: row.ours.dataset if row.ours else None),
    _text("preset", "preset", lambda row: row.ours.preset if row.ours else None),
    _text("seeds", "seeds", lambda row: " ".join(map(str, row.ours.seeds)) if row.ours else None),
    _text("paper_note", "note", lambda row: row.paper.note if row.paper else None),
)
ACCURACY = (
    *ROW,
    N,
    Column("accuracy", "ours", _ours("accuracy"), missing="no run"),
    Column("accuracy_paper", "paper", _paper("accuracy")),
    Column("accuracy_difference", "difference", lambda row: row.difference, form="+.2f"),
    Column("reaches", "reaches the paper's", lambda row: row.reaches),
)


def _ranking(metric: str) -> tuple[Column, ...]:
    """AUC or AP; a table each, for a terminal is 80 columns wide."""
    return (
        *ROW,
        N,
        _text("flavor", "from", lambda row: {"hard": "hard", "score": "scores"}[own_flavor(row)]),
        Column(f"{metric}_like", "ours", _ours(metric, own_flavor), missing="no run"),
        Column(f"{metric}_paper", "paper", _paper(metric)),
        Column(f"{metric}_difference", "diff.", _difference(metric), form="+.2f"),
        Column(f"{metric}_other", "other", _ours(metric, other_flavor)),
    )


def _decision(metric: str) -> tuple[Column, Column]:
    ours = Column(metric, METRICS[metric], _ours(metric), missing="no run")
    return ours, Column(f"{metric}_paper", "paper", _paper(metric))


AUC, AP = _ranking("auc"), _ranking("ap")
DECISIONS = (*ROW, N, *_decision("precision"), *_decision("recall"), *_decision("f1"))
GAINS = (
    *ROW,
    Column("pairs", "n", lambda row: row.gain.gain.n if row.gain else 0),
    Column("gain", "gain", lambda row: row.gain.gain if row.gain else None, form="+.2f"),
    Column("spreads", "sd plain + sd e", lambda row: row.gain.spreads if row.gain else None),
    Column("exceeds", "exceeds", lambda row: row.gain.exceeds if row.gain else None),
    Column("gain_paper", "paper's gain", lambda row: row.paper_gain[0] if row.paper_gain else None, form="+.2f"),
    Column("spreads_paper", "its sd + sd", lambda row: row.paper_gain[1] if row.paper_gain else None),
    Column("exceeds_paper", "exceeds", lambda row: row.paper_gain[0] > row.paper_gain[1] if row.paper_gain else None),
)
COSTS = (
    *ROW,
    N,
    Column("cpu_seconds", "CPU s", _over_seeds(lambda record: record.cost.cpu_seconds), form=".1f"),
    Column("propensity_cpu", "propensity CPU s", _propensity(lambda e: e.cpu), form=".1f"),
    Column("wall_seconds", "wall s", _over_seeds(lambda record: record.cost.wall_seconds), form=".1f"),
    Column("flops", "FLOPs", _mean(lambda record: record.cost.flops), form=".2e"),
    Column("peak_memory_mib", "peak MiB", _mean(lambda record: record.cost.peak_memory_bytes / MIB), form=".0f"),
    Column("share_distance", "share distance", _propensity(lambda e: e.share_distance), form=".3f"),
    Column("effective_sample_size", "n_eff", _propensity(lambda e: e.effective_sample_size), form=".0f"),
)


def _paper_notes(rows: Sequence[ResultRow]) -> list[str]:
    notes = {row.name: row.paper.note for row in rows if row.paper and row.paper.note}
    return [f"The paper's {row}: {note}." for row, note in notes.items()]


def _setting_notes(rows: Sequence[ResultRow]) -> list[str]:
    names = [row.row_name for row in rows if row.ours]
    several = list(dict.fromkeys(name for name in names if names.count(name) > 1))
    notes = []
    if several:
        notes.append(f"{', '.join(several)}: several settings, never averaged together; see the column of that name.")
    printed = {row.paper.name for row in rows if row.paper}
    apart = [row.name for row in rows if row.ours and not row.paper and printed_name(row.row_name) in printed]
    if apart:
        notes.append(f"{', '.join(apart)}: other data, labels or regularizer than the paper's row; not compared.")
    return notes


def _gain_notes(rows: Sequence[ResultRow]) -> list[str]:
    notes = []
    for row in rows:
        if row.gain and row.gain.also_differs:
            notes.append(f"{row.name} and its plain row also differ in {', '.join(row.gain.also_differs)}.")
        if row.gain and row.ours and row.gain.gain.n < max(len(row.ours.records), len(row.gain.plain.records)):
            notes.append(f"{row.name}: over the {row.gain.gain.n} seeds that it shares with {row.gain.plain.name}.")
    return notes
