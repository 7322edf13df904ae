"""Under which conditions a suite's records were made: commands, data, versions, cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from pue.errors import InvalidInput
from pue.experiments.spec import Spec
from pue.experiments.suites import resolve, row_name
from pue.report.groups import group
from pue.report.records import Record
from pue.report.render import markdown_text
from pue.report.tables import MIB


def commands(records: Sequence[Record]) -> str:
    """What to type to get these records again: one line for each data set, preset and set of seeds."""
    suite = records[0].suite
    rows: dict[tuple[str, str, tuple[int, ...]], list[str]] = {}
    for each in group(records):
        rows.setdefault((dataset_of(each.first), _preset(each.first), each.seeds), []).append(each.row)
    typed = []
    for (dataset, preset, seeds), names in rows.items():
        every = {row_name(spec) for spec in _resolved(suite, dataset, preset, seeds)}
        some = "" if every == set(names) else f' --methods "{",".join(dict.fromkeys(names))}"'
        where = "" if suite == dataset else f" --dataset {dataset}"
        typed.append(f"    pue bench {suite}{where} --preset {preset} --seeds {_seeds(seeds)}{some}\n")
    return "".join(typed)


def _seeds(seeds: Sequence[int]) -> str:
    """As `pue bench` takes them: how many from 0 on, or which.

    >>> _seeds([0, 1, 2]), _seeds([3, 5]), _seeds([4])
    ('3', '3,5', '4,')
    """
    if list(seeds) == list(range(len(seeds))):
        return str(len(seeds))
    return ",".join(map(str, seeds)) + ("," if len(seeds) == 1 else "")


def conditions(records: Sequence[Record]) -> str:
    groups = group(records)
    counts = sorted({len(each.records) for each in groups})
    items = {
        "data": "; ".join(unique(map(_data, records))),
        "preset": ", ".join(unique(map(_preset, records))),
        "seeds": ", ".join(map(str, sorted({record.seed for record in records}))),
        "runs": f"{len(records)} in {len(groups)} rows, n = {' to '.join(_ends(counts))} each{_changed(records)}",
        "versions": _versions(records),
        "cost in all": _cost(records),
    }
    return "\n".join(f"- {name}: {markdown_text(value)}" for name, value in items.items())


def _data(record: Record) -> str:
    data, body = record.body.get("data") or {}, record.body
    checksum = str(data.get("checksum") or "")
    seal = f", checksum {checksum[:12]}" if checksum else ""
    return f"{data.get('name')}, {body.get('n_labeled')} labeled, {body.get('n_unlabeled')} unlabeled{seal}"


def _versions(records: Sequence[Record]) -> str:
    found: dict[str, set[str]] = {}
    for record in records:
        for name, version in (record.body.get("versions") or {}).items():
            found.setdefault(name, set()).add(str(version))
    return ", ".join(f"{name} {' and '.join(sorted(found[name]))}" for name in sorted(found))


def _cost(records: Sequence[Record]) -> str:
    """Totals. Runs share estimated propensities, so each estimate counts once."""

    def known(name: str) -> list[float]:
        return [value for record in records if (value := record.cost(name)) is not None]

    estimates = {value for record in records if (value := record.propensity("cpu")) is not None}
    cpu, wall = math.fsum(known("cpu_seconds")) / 3600, math.fsum(known("wall_seconds")) / 3600
    parts = [
        f"{cpu:.2f} CPU hours ({wall:.2f} on the clock)",
        f"{math.fsum(estimates) / 3600:.2f} more for propensities",
        f"{math.fsum(known('flops')):.2e} FLOPs",
        f"at most {max(known('peak_memory_bytes'), default=0.0) / MIB:.0f} MiB",
    ]
    return ", ".join(parts)


def _ends(counts: Sequence[int]) -> list[str]:
    return [str(count) for count in sorted({counts[0], counts[-1]})]


def _changed(records: Sequence[Record]) -> str:
    """How many runs are not what their command would run in this version."""
    seeds = sorted({record.seed for record in records})
    places = {(dataset_of(record), _preset(record)) for record in records}
    known = {spec.key for dataset, preset in places for spec in _resolved(records[0].suite, dataset, preset, seeds)}
    changed = sum(record.key not in known for record in records)
    return f"; {changed} with other settings than this version's preset" if changed else ""


def _resolved(suite: str, dataset: str, preset: str, seeds: Sequence[int]) -> list[Spec]:
    """What `pue bench` would run; nothing where it knows no such suite."""
    try:
        return resolve(suite, preset=preset, dataset=dataset, seeds=seeds)
    except InvalidInput:
        return []


def dataset_of(record: Record) -> str:
    return str(record.settings.get("dataset"))


def _preset(record: Record) -> str:
    return str(record.settings.get("preset"))


def unique(names: Iterable[str]) -> list[str]:
    return sorted(set(names))
