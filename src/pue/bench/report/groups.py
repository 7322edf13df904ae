"""Records → groups of runs that differ in the seed alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from pue.propensity import Network
from pue.report.paper import PAPER, printed_name
from pue.report.records import Record
from pue.report.spread import Spread

SUITES = (
    "mnist",
    "supplement",
    "cifar10",
    "mix-ablation",
    "alpha-ablation",
    "alzheimer",
    "alzheimer-severity",
    "negatives",
    "digits",
)
ORDER = tuple(dict.fromkeys(row.name for row in PAPER))


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

    def metric(self, name: str) -> Spread:
        spread = Spread.of([record.metrics[name] for record in self.records])
        assert spread is not None
        return spread

    def cost(self, name: str) -> Spread | None:
        return Spread.of([value for record in self.records if (value := record.cost(name)) is not None])

    def propensity(self, name: str) -> Spread | None:
        return Spread.of([value for record in self.records if (value := record.propensity(name)) is not None])


def by_suite(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Records by suite: the known suites in their order, then others by name."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.suite, []).append(record)
    rank = {suite: number for number, suite in enumerate(SUITES)}
    return {suite: found[suite] for suite in sorted(found, key=lambda suite: (rank.get(suite, len(rank)), suite))}


def group(records: Iterable[Record]) -> list[Group]:
    """Groups of one suite: equal row name, equal settings; only the seed differs."""

    def identity(record: Record) -> tuple[str, str]:
        return record.row, record.identity

    ordered = sorted(records, key=lambda record: (*identity(record), record.seed))
    groups = [Group(tuple(members)) for _, members in groupby(ordered, key=identity)]
    labeled = []
    for each in groups:
        others = [flatten(other.settings) for other in groups if other.row == each.row]
        labeled.append(Group(each.records, _setting(flatten(each.settings), others)))
    return sorted(labeled, key=_rank)


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
    """The settings in which groups of one name differ, with this group's values."""
    names = [name for name in dict.fromkeys(n for other in others for n in other) if _distinct(name, others) > 1]
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


def _rank(each: Group) -> tuple[str, float, int, str, float, str, str]:
    name = printed_name(each.row)
    place = ORDER.index(name) if name in ORDER else len(ORDER)
    skew = 0.0 if each.mix is None else round(bias(each.mix), 9)
    return str(each.settings.get("dataset")), skew, place, name, each.alpha or 0.0, each.row, each.first.identity
