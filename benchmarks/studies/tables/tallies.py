"""From records to numbers: means with their spread, shares recovered, errors and coverage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from records import Key, Record

Records = dict[Key, Record]
DRAWS = 2000
LITTLE = 0.005
"""Half a point of accuracy: of less there is nothing to recover."""


@dataclass(frozen=True)
class Mean:
    """A mean and its standard error over n records."""

    value: float
    error: float
    n: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Mean | None:
        v = np.array(list(values), dtype=np.float64)
        if not len(v):
            return None
        return cls(float(v.mean()), float(v.std(ddof=1) / np.sqrt(len(v))) if len(v) > 1 else float("nan"), len(v))


@dataclass(frozen=True)
class Ratio:
    """A ratio of two means and its 95 % interval over tables drawn again."""

    value: float
    low: float
    high: float
    reachable: float
    """The mean it is divided by: where it is small the ratio says nothing."""
    tables: int

    @property
    def means_something(self) -> bool:
        return self.reachable >= LITTLE


def good(records: Records) -> Records:
    """Those that hold a result."""
    return {key: record for key, record in records.items() if not {"error", "impossible"} & set(record)}


def failed(records: Records) -> dict[Key, str]:
    return {key: record["error"] for key, record in records.items() if "error" in record}


def chosen(records: Records, method: str, labelings: Sequence[str]) -> list[Record]:
    return [record for key, record in records.items() if key.method == method and key.labeling in labelings]


def mean_of(records: Records, value: str, method: str, labelings: Sequence[str]) -> Mean | None:
    found = (record.get(value) for record in chosen(records, method, labelings))
    return Mean.of(number for number in found if number is not None)


def differences(
    records: Records, value: str, methods: Sequence[str], labelings: Sequence[str]
) -> dict[str, NDArray[np.float64]]:
    """Table → what each method has there, mean over the problems that all of them have."""
    by_table: dict[str, list[list[float]]] = defaultdict(list)
    for key in records:
        if key.method == methods[0] and key.labeling in labelings:
            row = [records.get(Key(key.table, key.labeling, key.seed, m), {}).get(value) for m in methods]
            if None not in row:
                by_table[key.table].append([float(number) for number in row])  # type: ignore[arg-type]
    return {table: np.mean(rows, axis=0) for table, rows in by_table.items()}


def recovered(records: Records, learner: str, labelings: Sequence[str], value: str = "accuracy") -> Ratio | None:
    """(auto − none) / (true e − none), a ratio of means over tables."""
    methods = [f"{learner}/{correction}" for correction in ("none", "auto", "true")]
    tables = differences(records, value, methods, labelings)
    if not tables:
        return None
    none, auto, true = np.array(list(tables.values())).T
    return _ratio(auto - none, true - none)


def _ratio(gain: NDArray[np.float64], reachable: NDArray[np.float64]) -> Ratio:
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(gain), size=(DRAWS, len(gain)))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = gain[drawn].mean(1) / reachable[drawn].mean(1)
        value = float(gain.mean() / reachable.mean())
    low, high = np.nanquantile(ratios, [0.025, 0.975])
    return Ratio(value, float(low), float(high), float(reachable.mean()), len(gain))


def lost(records: Records, learner: str, labelings: Sequence[str]) -> tuple[float, float, str] | None:
    """Accuracy of `auto` minus that without correction: mean over tables, on the worst table, and which that is."""
    tables = differences(records, "accuracy", [f"{learner}/none", f"{learner}/auto"], labelings)
    if not tables:
        return None
    change = {table: float(auto - none) for table, (none, auto) in tables.items()}
    worst = min(change, key=lambda table: change[table])
    return float(np.mean(list(change.values()))), change[worst], worst


def cells(
    records: Records, method: str, rivals: Sequence[str], labelings: Sequence[str]
) -> dict[tuple[str, str], NDArray[np.float64]]:
    """(Table, labeling) → accuracy of the method and of each rival, mean over seeds."""
    return {
        (table, labeling): row
        for labeling in labelings
        for table, row in differences(records, "accuracy", [method, *rivals], [labeling]).items()
    }


def covered(
    records: Iterable[Record], interval: Callable[[Record], tuple[float, float, float, float] | None]
) -> dict[str, Mean | None]:
    """Of (estimate, low, high, truth): how often the truth lies inside, errors with and without sign, and the width."""
    found = [row for row in map(interval, records) if row is not None]
    return {
        "coverage": Mean.of(float(low <= truth <= high) for _, low, high, truth in found),
        "signed": Mean.of(value - truth for value, _, _, truth in found),
        "absolute": Mean.of(abs(value - truth) for value, _, _, truth in found),
        "width": Mean.of(high - low for _, low, high, _ in found),
    }


def speaks(record: Record) -> bool:
    """Does the test speak against SCAR, at the prior that was given or estimated?"""
    return bool(record.get("scar_rejected") or record.get("scar_or_fewer"))


def of_prior(record: Record) -> tuple[float, float, float, float] | None:
    if record.get("prior_low") is None:
        return None
    return record["prior"], record["prior_low"], record["prior_high"], record["true_prior"]


def of_metric(kind: str, name: str) -> Callable[[Record], tuple[float, float, float, float] | None]:
    """`kind`: "estimated" by `pue fit`, "evaluated" by `pue evaluate`."""

    def interval(record: Record) -> tuple[float, float, float, float] | None:
        said, truth = record.get(kind, {}).get(name), record.get("truth", {}).get(name)
        return None if said is None or truth is None or None in said else (*said, truth)

    return interval
