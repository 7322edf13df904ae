"""The tables of a suite as values: columns are functions of a line, a table is a list of columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pue.report.lines import Line, difference
from pue.report.paper import Flavor, printed_name
from pue.report.spread import Spread

Cell = str | int | float | bool | Spread | None
MIB = 2**20


@dataclass(frozen=True)
class Column:
    """A name for machines, a title for people, and what it shows of a line."""

    key: str
    title: str
    value: Callable[[Line], Cell]
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
        if isinstance(cell, Spread):
            return cell.text(self.form)
        return f"{cell:{self.form}}" if isinstance(cell, float) else str(cell)


@dataclass(frozen=True)
class Table:
    """What every renderer takes."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def texts(self) -> list[list[str]]:
        """The cells for people, row by row."""
        return [[column.text(cell) for column, cell in zip(self.columns, row, strict=True)] for row in self.rows]


def tabulate(title: str, columns: Sequence[Column], lines: Sequence[Line], notes: Sequence[str] = ()) -> Table:
    """A table of some lines; a column with nothing to show throughout is left out."""
    shown = [c for c in columns if any(c.value(line) not in ("", None) for line in lines)]
    return Table(title, tuple(shown), tuple(tuple(c.value(line) for c in shown) for line in lines), tuple(notes))


def suite_tables(lines: Sequence[Line]) -> list[Table]:
    """All tables of one suite, ours beside the paper's."""
    gains = [line for line in lines if line.gain or line.paper_gain]
    costs = [line for line in lines if line.ours]
    tables = [
        tabulate("Accuracy, %", ACCURACY, lines, [*_paper_notes(lines), *_setting_notes(lines)]),
        tabulate("AUC, %, in the flavour the paper printed", AUC, lines),
        tabulate("AP, %, in the flavour the paper printed", AP, lines),
        tabulate("Precision, recall and F1, %", DECISIONS, lines),
    ]
    if gains:
        title = "e-row minus plain row, points of accuracy, paired by seed; exceeds: gain > sd plain + sd e"
        tables.append(tabulate(title, GAINS, gains, _gain_notes(lines)))
    tables.append(tabulate("Cost of a run, and the weights of the labeled rows", COSTS, costs))
    return tables


def wide_table(suites: dict[str, list[Line]]) -> Table:
    """Every column of every suite in one table, one line a row: for machines."""
    columns = tuple(
        {column.key: column for column in (*WHERE, *ACCURACY, *AUC, *AP, *DECISIONS, *GAINS, *COSTS)}.values()
    )
    rows = [(suite, *(column.value(line) for column in columns)) for suite, lines in suites.items() for line in lines]
    return Table("", (Column("suite", "suite", lambda line: None, is_text=True), *columns), tuple(rows))


def own_flavor(line: Line) -> Flavor:
    """The flavour of AUC and AP to compare in: the one the paper printed, else from scores."""
    return line.paper.flavor if line.paper else "score"


def flavored(metric: str, flavor: Flavor) -> str:
    """
    >>> flavored("auc", "hard"), flavored("auc", "score")
    ('auc_hard', 'auc')
    """
    return f"{metric}_hard" if flavor == "hard" else metric


def _ours(metric: str) -> Callable[[Line], Cell]:
    return lambda line: line.ours.metric(metric) if line.ours else None


def _paper(metric: str) -> Callable[[Line], Cell]:
    return lambda line: line.paper.metrics[metric] if line.paper else None


def _like(metric: str) -> Callable[[Line], Cell]:
    return lambda line: line.ours.metric(flavored(metric, own_flavor(line))) if line.ours else None


def _other(metric: str) -> Callable[[Line], Cell]:
    def value(line: Line) -> Cell:
        other: Flavor = "hard" if own_flavor(line) == "score" else "score"
        return line.ours.metric(flavored(metric, other)) if line.ours else None

    return value


def _difference(metric: str) -> Callable[[Line], Cell]:
    def value(line: Line) -> Cell:
        return difference(line.ours, line.paper, flavored(metric, own_flavor(line)), metric) if line.ours else None

    return value


def _cost(name: str) -> Callable[[Line], Cell]:
    return lambda line: line.ours.cost(name) if line.ours else None


def _peak(line: Line) -> Cell:
    spread = line.ours.cost("peak_memory_bytes") if line.ours else None
    return None if spread is None else spread.mean / MIB


def _flops(line: Line) -> Cell:
    spread = line.ours.cost("flops") if line.ours else None
    return None if spread is None else spread.mean


def _propensity(name: str) -> Callable[[Line], Cell]:
    return lambda line: line.ours.propensity(name) if line.ours else None


def _text(key: str, title: str, value: Callable[[Line], Cell]) -> Column:
    return Column(key, title, value, missing="", is_text=True)


ROW = (_text("row", "row", lambda line: line.row), _text("setting", "setting", lambda line: line.setting))
N = Column("n", "n", lambda line: len(line.ours.records) if line.ours else 0)
WHERE = (
    _text("dataset", "data", lambda line: str(line.ours.settings.get("dataset")) if line.ours else None),
    _text("preset", "preset", lambda line: str(line.ours.settings.get("preset")) if line.ours else None),
    _text("seeds", "seeds", lambda line: " ".join(map(str, line.ours.seeds)) if line.ours else None),
    _text("paper_note", "note", lambda line: line.paper.note if line.paper else None),
)
ACCURACY = (
    *ROW,
    N,
    Column("accuracy", "ours", _ours("accuracy"), missing="no run"),
    Column("accuracy_paper", "paper", _paper("accuracy")),
    Column("accuracy_difference", "difference", lambda line: line.difference, form="+.2f"),
    Column("reaches", "reaches the paper's", lambda line: line.reaches),
)


def _ranking(metric: str) -> tuple[Column, ...]:
    """AUC or AP; a table each, for a terminal is 80 columns wide."""
    return (
        *ROW,
        N,
        _text("flavor", "from", lambda line: {"hard": "hard", "score": "scores"}[own_flavor(line)]),
        Column(f"{metric}_like", "ours", _like(metric), missing="no run"),
        Column(f"{metric}_paper", "paper", _paper(metric)),
        Column(f"{metric}_difference", "diff.", _difference(metric), form="+.2f"),
        Column(f"{metric}_other", "other", _other(metric)),
    )


AUC, AP = _ranking("auc"), _ranking("ap")
DECISIONS = (
    *ROW,
    N,
    *(
        column
        for metric, title in {"precision": "precision", "recall": "recall", "f1": "F1"}.items()
        for column in (
            Column(metric, title, _ours(metric), missing="no run"),
            Column(f"{metric}_paper", "paper", _paper(metric)),
        )
    ),
)
GAINS = (
    *ROW,
    Column("pairs", "n", lambda line: line.gain.gain.n if line.gain else 0),
    Column("gain", "gain", lambda line: line.gain.gain if line.gain else None, form="+.2f"),
    Column("spreads", "sd plain + sd e", lambda line: line.gain.spreads if line.gain else None),
    Column("exceeds", "exceeds", lambda line: line.gain.exceeds if line.gain else None),
    Column("gain_paper", "paper's gain", lambda line: line.paper_gain[0] if line.paper_gain else None, form="+.2f"),
    Column("spreads_paper", "its sd + sd", lambda line: line.paper_gain[1] if line.paper_gain else None),
    Column(
        "exceeds_paper", "exceeds", lambda line: line.paper_gain[0] > line.paper_gain[1] if line.paper_gain else None
    ),
)
COSTS = (
    *ROW,
    N,
    Column("cpu_seconds", "CPU s", _cost("cpu_seconds"), form=".1f"),
    Column("propensity_cpu", "propensity CPU s", _propensity("cpu"), form=".1f"),
    Column("wall_seconds", "wall s", _cost("wall_seconds"), form=".1f"),
    Column("flops", "FLOPs", _flops, form=".2e"),
    Column("peak_memory_mib", "peak MiB", _peak, form=".0f"),
    Column("share_distance", "share distance", _propensity("share_distance"), form=".3f"),
    Column("effective_sample_size", "n_eff", _propensity("effective_sample_size"), form=".0f"),
)


def _paper_notes(lines: Sequence[Line]) -> list[str]:
    notes = {line.name: line.paper.note for line in lines if line.paper and line.paper.note}
    return [f"The paper's {row}: {note}." for row, note in notes.items()]


def _setting_notes(lines: Sequence[Line]) -> list[str]:
    names = [line.row for line in lines if line.ours]
    several = list(dict.fromkeys(name for name in names if names.count(name) > 1))
    notes = []
    if several:
        notes.append(f"{', '.join(several)}: several settings, never averaged together; see the column of that name.")
    printed = {line.paper.name for line in lines if line.paper}
    apart = [line.name for line in lines if line.ours and not line.paper and printed_name(line.row) in printed]
    if apart:
        notes.append(f"{', '.join(apart)}: other data, labels or regularizer than the paper's row; not compared.")
    return notes


def _gain_notes(lines: Sequence[Line]) -> list[str]:
    notes = []
    for line in lines:
        if line.gain and line.gain.also_differs:
            notes.append(f"{line.name} and its plain row also differ in {', '.join(line.gain.also_differs)}.")
        if line.gain and line.ours and line.gain.gain.n < max(len(line.ours.records), len(line.gain.plain.records)):
            notes.append(f"{line.name}: over the {line.gain.gain.n} seeds that it shares with {line.gain.plain.name}.")
    return notes
