"""Records → groups of runs that differ in the seed alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

from pue.bench.record import MeanSd, Record
from pue.bench.spec import Spec
from pue.bench.suites import resolve, row_name
from pue.errors import InvalidInput
from pue.propensity import Network


@dataclass(frozen=True)
class Group:
    """Runs of one row whose specs are equal in all but the seed. Nothing else is ever averaged."""

    records: tuple[Record, ...]
    setting: str = ""
    """What sets it apart from other groups of the same row name; empty for the only one."""

    @property
    def first(self) -> Record:
        return self.records[0]

    @property
    def row(self) -> str:
        return self.first.row

    @property
    def name(self) -> str:
        return ", ".join(filter(None, (self.row, self.setting)))

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.first.settings

    @property
    def dataset(self) -> str:
        return str(self.settings["dataset"])

    @property
    def preset(self) -> str:
        return str(self.settings["preset"])

    @property
    def labels(self) -> Mapping[str, Any]:
        """Which positives were labeled."""
        return self.settings.get("labels") or {}

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(record.seed for record in self.records)

    @property
    def mix(self) -> tuple[float, ...] | None:
        """Share of each positive class among the labels, in the order of the classes; None without a class mix."""
        return tuple(map(float, self.labels["mix"])) if self.labels.get("kind") == "mix" else None

    @property
    def alpha(self) -> float | None:
        """The weight α_e of the propensity network's regularizer; None where there is no such network."""
        if self.settings.get("propensity") != "network":
            return None
        return float((self.settings.get("propensity_options") or {}).get("alpha", Network().alpha))

    def metric(self, name: str) -> MeanSd:
        found = self.over_seeds(lambda record: record.percent(name))
        assert found is not None
        return found

    def over_seeds(self, value: Callable[[Record], float | None]) -> MeanSd | None:
        """Of a number that some records have."""
        return MeanSd.of([found for record in self.records if (found := value(record)) is not None])


def group(suite: str, records: Iterable[Record]) -> list[Group]:
    """Groups of one suite in the order of its rows: equal row name, equal settings; only the seed differs."""

    def identity(record: Record) -> tuple[str, str]:
        return record.row, record.identity

    ordered = sorted(records, key=lambda record: (*identity(record), record.seed))
    groups = [Group(tuple(members)) for _, members in groupby(ordered, key=identity)]
    labeled = []
    for each in groups:
        others = [flatten(other.settings) for other in groups if other.row == each.row]
        labeled.append(Group(each.records, _setting(flatten(each.settings), others)))
    return sorted(labeled, key=lambda each: _rank(suite, each))


def bias(mix: Sequence[float]) -> float:
    """Total variation distance of a label mix from the uniform one, ½ Σ |p_c − 1/k|.

    >>> bias([0.25] * 4), round(bias([0.72, 0.15, 0.10, 0.03]), 4)
    (0.0, 0.47)
    """
    return sum(abs(share - 1 / len(mix)) for share in mix) / 2


def mix_text(mix: Sequence[float]) -> str:
    """
    >>> mix_text([0.72, 0.15, 0.1, 0.03])
    '.72/.15/.10/.03'
    """
    return "/".join(f"{share:.2f}".removeprefix("0") for share in mix)


def flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings under dotted names.

    >>> flatten({"preset": "fast", "labels": {"kind": "mix", "mix": [0.5, 0.5]}})
    {'preset': 'fast', 'labels.kind': 'mix', 'labels.mix': [0.5, 0.5]}
    """
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def _setting(own: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> str:
    """The settings in which groups of one name differ, with this group's values; what a preset implies goes by its
    name."""
    names = [name for name in dict.fromkeys(n for other in others for n in other) if _distinct(name, others) > 1]
    if "preset" in names:
        of_one = [[other for other in others if other["preset"] == name] for name in {o["preset"] for o in others}]
        names = [name for name in names if name == "preset" or any(_distinct(name, each) > 1 for each in of_one)]
    short = [name.split(".")[-1] for name in names]
    titles = [last if short.count(last) == 1 else name for name, last in zip(names, short, strict=True)]
    return ", ".join(f"{title}={_value(name, own.get(name))}" for name, title in zip(names, titles, strict=True))


def _distinct(name: str, settings: Sequence[Mapping[str, Any]]) -> int:
    return len({json.dumps(other.get(name), sort_keys=True) for other in settings})


def _value(name: str, value: Any) -> str:
    if value is None:
        return "none"
    if name == "labels.mix":
        return mix_text(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _rank(suite: str, each: Group) -> tuple[str, int, str, float, str]:
    """By the place of the row in its suite; a row that is none of the suite's comes last."""
    specs = specs_of(suite, each.dataset, each.preset)
    rows = [(row_name(spec), spec.labels.mix) for spec in specs]
    fitting = [place for place, row in enumerate(rows) if row == (each.row, each.mix)]
    named = [place for place, (name, _) in enumerate(rows) if name == each.row]
    return each.dataset, (fitting or named or [len(rows)])[0], each.row, each.alpha or 0.0, each.first.identity


@lru_cache
def specs_of(suite: str, dataset: str, preset: str) -> list[Spec]:
    """What `pue bench` would run with one seed; nothing where it knows no such suite."""
    try:
        return resolve(suite, preset=preset, dataset=dataset)
    except InvalidInput:
        return []
