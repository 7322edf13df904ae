"""What RESULTS.md opens with: the paper's three data sets, its methods, and how far each is from the ceiling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pue.bench.presets import LABELS
from pue.bench.record import MeanSd, Record
from pue.bench.report.groups import Group, group
from pue.bench.report.paper import PAPER, SEEDS
from pue.bench.report.tables import Cell, Column, ReportTable
from pue.bench.spec import SUPERVISED
from pue.bench.suites import BASES, DISPLAY, title_of

DATASETS = ("mnist", "cifar10", "alzheimer")
PRESETS = ("best", "fast", "paper")
"""Which preset is shown where a row was run with several: the first of these, whatever came out."""
KINDS = {"plain": "", "estimated": "e", "true": "e'"}
"""Where the weights come from → how the names of such rows end."""
STRUCTURE = "communities"


@dataclass(frozen=True)
class Line:
    """A method on a data set: our accuracy and the paper's by kind of weights, and that of all true classes."""

    dataset: str
    method: str
    ours: Mapping[str, MeanSd]
    paper: Mapping[str, MeanSd]
    ceiling: MeanSd | None

    @property
    def short(self) -> list[str]:
        """Names of the rows below the paper's accuracy, to its two decimals."""
        both = [kind for kind in KINDS if kind in self.ours and kind in self.paper]
        return [self.method + KINDS[kind] for kind in both if self._apart(kind) < 0]

    @property
    def compared(self) -> int:
        return len(self.ours.keys() & self.paper.keys())

    def _apart(self, kind: str) -> float:
        return round(round(self.ours[kind].mean, 2) - self.paper[kind].mean, 2)


def overview(suites: Mapping[str, Sequence[Record]]) -> list[Line]:
    """The methods of the paper's tables on its data, and communities; those that have a run."""
    return [line for dataset in DATASETS for line in _lines(dataset, suites) if line.ours]


def overview_table(lines: Sequence[Line]) -> ReportTable:
    """Accuracy in %, ours and the paper's; the name of a data set stands in its first row."""
    texts = [Column("dataset", "data", _nothing, is_text=True), Column("method", "method", _nothing, is_text=True)]
    ours = [Column(kind, kind, _nothing, form=".1f") for kind in KINDS]
    paper = [Column(f"{kind}_paper", f"paper: {kind}", _nothing, form=".1f") for kind in KINDS]
    columns = (*texts, *ours, *paper, Column("ceiling", "all classes known", _nothing, form=".1f"))
    rows, before = [], ""
    for line in lines:
        name = title_of(line.dataset) if line.dataset != before else ""
        before = line.dataset
        cells: list[Cell] = [name, line.method, *(line.ours.get(kind) for kind in KINDS)]
        rows.append((*cells, *(line.paper.get(kind) for kind in KINDS), line.ceiling))
    return ReportTable("", columns, tuple(rows))


def in_words(lines: Sequence[Line]) -> list[str]:
    """How many rows reach the paper's, which do not, and which have fewer seeds."""
    compared, short = sum(line.compared for line in lines), [(line, name) for line in lines for name in line.short]
    said = []
    if compared:
        missing = ", ".join(f"{name} on {title_of(line.dataset)}" for line, name in short)
        reached = f"{compared - len(short)} of these {compared} rows are at or above the paper's accuracy"
        said.append(f"{reached}{f'; below it: {missing} (why: in its section)' if missing else ''}.")
    few = [
        f"{line.method}{KINDS[kind]} on {title_of(line.dataset)} {found.n}"
        for line in lines
        for kind, found in line.ours.items()
        if found.n < SEEDS
    ]
    fewer = f"; fewer: {', '.join(few)}" if few else ""
    return [*said, f"{SEEDS} seeds a number{fewer}."]


def _nothing(row: object) -> None:
    """These columns are filled by hand: a line is no row of a suite."""


def _lines(dataset: str, suites: Mapping[str, Sequence[Record]]) -> Iterator[Line]:
    groups = _shown(group(dataset, suites.get(dataset, ())))
    ceiling = groups[SUPERVISED].metric("accuracy") if SUPERVISED in groups else None
    printed = {row.name: row.metrics["accuracy"] for row in PAPER if (row.suite, row.dataset) == (dataset, dataset)}
    for method in (*BASES, "teacher"):
        name = DISPLAY[method]
        names = {kind: name + ending for kind, ending in KINDS.items()}
        ours = {kind: groups[row].metric("accuracy") for kind, row in names.items() if row in groups}
        paper = {kind: printed[row] for kind, row in names.items() if row in printed}
        if ours or paper:
            yield Line(dataset, name, ours, paper, ceiling)
    named = _shown(each for suite in suites for each in group(suite, suites[suite]) if _is_structure(each, dataset))
    ours = {"plain": named[STRUCTURE].metric("accuracy")} if named else {}
    yield Line(dataset, STRUCTURE, ours, {}, ceiling)


def _is_structure(each: Group, dataset: str) -> bool:
    """Communities on the official parts, with the labels of the main table."""
    usual = LABELS[dataset]
    labels = each.labels.get("kind"), each.labels.get("n_labeled"), each.mix
    alike = labels == (usual.kind, usual.n_labeled, usual.mix)
    official = not each.settings["settings"].get("disjoint")
    return each.row == STRUCTURE and each.dataset == dataset and alike and official


def _shown(groups: Iterator[Group] | Sequence[Group]) -> dict[str, Group]:
    """Row name → its group with the preset that comes first, the one with most seeds of several."""
    found: dict[str, Group] = {}
    for each in groups:
        found[each.row] = min(found.get(each.row, each), each, key=_preference)
    return found


def _preference(each: Group) -> tuple[int, int]:
    place = PRESETS.index(each.preset) if each.preset in PRESETS else len(PRESETS)
    return place, -len(each.records)
