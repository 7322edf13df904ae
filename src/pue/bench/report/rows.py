"""Groups beside the paper's rows, and e-rows beside their plain rows: the rows of a suite's tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pue.bench.conform import plain
from pue.bench.record import MeanSd, Record
from pue.bench.report.groups import Group, flatten, group, mix_text
from pue.bench.report.paper import PAPER, PaperRow, plain_name, printed_name


@dataclass(frozen=True)
class Gain:
    """An e-row minus its plain row, in points of accuracy, over the seeds that both have."""

    plain: Group
    gain: MeanSd
    """Of the differences, seed by seed."""
    spreads: float | None
    """sd of the plain row + sd of the e-row over those seeds; None for a single seed."""
    also_differs: tuple[str, ...] = ()
    """Settings other than the propensity in which the two rows differ."""

    @property
    def exceeds(self) -> bool | None:
        """Whether gain > sd_plain + sd_e."""
        return None if self.spreads is None else self.gain.mean > self.spreads


@dataclass(frozen=True)
class ResultRow:
    """One row of a suite's tables: our runs, the paper's row, or both."""

    row_name: str
    setting: str
    ours: Group | None
    paper: PaperRow | None
    gain: Gain | None = None
    paper_gain: tuple[float, float] | None = None
    """The paper's gain over its plain row, and the sum of the two printed spreads."""

    @property
    def name(self) -> str:
        return ", ".join(filter(None, (self.row_name, self.setting)))

    @property
    def difference(self) -> float | None:
        return None if self.ours is None else difference(self.ours, self.paper, "accuracy", "accuracy")

    @property
    def reaches(self) -> bool | None:
        """Whether our mean accuracy, to the paper's two decimals, is at least the paper's."""
        return None if self.difference is None else self.difference >= 0


def result_rows(suite: str, records: Sequence[Record]) -> list[ResultRow]:
    """All rows of one suite: the paper's rows in its order, with our runs or without, then rows of our own."""
    groups, printed = group(suite, records), [row for row in PAPER if row.suite == suite]
    result = []
    for row in printed:
        alone = ResultRow(row.name, _paper_setting(row), None, row, paper_gain=paper_gain(row))
        result += [_beside(each, row, groups) for each in groups if matches(each, row)] or [alone]
    return result + [_beside(each, None, groups) for each in groups if not any(matches(each, row) for row in printed)]


def matches(ours: Group, row: PaperRow) -> bool:
    """Whether a printed row of this suite belongs beside our group: same name, data (all rows), labels, regularizer."""
    ours_is = ours.dataset, printed_name(ours.row), ours.labels
    if ours_is != (row.dataset, row.name, plain(row.labels)) or ours.settings["settings"].get("rows"):
        return False
    return row.regularized is None or (ours.alpha is not None and row.regularized is (ours.alpha > 0))


def difference(ours: Group, row: PaperRow | None, metric: str, printed: str) -> float | None:
    """Ours minus the paper's, to the paper's two decimals."""
    return None if row is None else round(round(ours.metric(metric).mean, 2) - row.metrics[printed].mean, 2) + 0.0


def gain_over_plain(each: Group, groups: Sequence[Group]) -> Gain | None:
    """The gain over the plain row on the same data, labels and preset; None unless exactly one such row fits best."""
    same = plain_name(each.row), each.dataset, each.labels, each.preset
    plainer = [other for other in groups if (other.row, other.dataset, other.labels, other.preset) == same]
    apart = [_differing(each, other) for other in plainer]
    fewest = [other for other, names in zip(plainer, apart, strict=True) if len(names) == min(map(len, apart))]
    if len(fewest) != 1:
        return None
    seeds = sorted(set(each.seeds) & set(fewest[0].seeds))
    ours, theirs = ([_accuracy(side)[seed] for seed in seeds] for side in (each, fewest[0]))
    paired = MeanSd.of([e - p for e, p in zip(ours, theirs, strict=True)])
    if paired is None:
        return None
    sds = [found.sd for values in (ours, theirs) if (found := MeanSd.of(values)) is not None]
    spreads = sum(sd for sd in sds if sd is not None) if paired.n > 1 else None
    return Gain(fewest[0], paired, spreads, _differing(each, fewest[0]))


def paper_gain(row: PaperRow) -> tuple[float, float] | None:
    """The paper's own gain over its plain row and the sum of the two printed standard deviations."""
    table = (row.suite, row.dataset, row.labels)
    for other in PAPER:
        if (other.suite, other.dataset, other.labels) == table and other.name == plain_name(row.name):
            e, p = row.metrics["accuracy"], other.metrics["accuracy"]
            return round(e.mean - p.mean, 2), round((e.sd or 0.0) + (p.sd or 0.0), 2)
    return None


def _paper_setting(row: PaperRow) -> str:
    if row.suite != "mix-ablation" or row.mix is None:
        return ""
    term = {True: ", alpha>0", False: ", alpha=0", None: ""}[row.regularized]
    return f"mix={mix_text(row.mix)}{term}"


def _beside(ours: Group, row: PaperRow | None, groups: Sequence[Group]) -> ResultRow:
    printed_gain = None if row is None else paper_gain(row)
    return ResultRow(ours.row, ours.setting, ours, row, gain_over_plain(ours, groups), printed_gain)


def _differing(one: Group, other: Group) -> tuple[str, ...]:
    """Settings in which two groups differ, apart from those that make an e-row."""
    a, b = flatten(one.settings), flatten(other.settings)
    names = [name for name in dict.fromkeys([*a, *b]) if a.get(name) != b.get(name)]
    return tuple(name for name in names if not name.startswith("propensity"))


def _accuracy(each: Group) -> dict[int, float]:
    return {record.seed: record.percent("accuracy") for record in each.records}
