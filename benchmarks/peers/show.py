"""Records → Markdown: what each tool reached and cost, and how long pue takes for the same method."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

Record = dict[str, Any]

PAIRS = [
    ("nnPU, 6 layers, same network and batches", "nnPU, 6 layers", "pu-toolbox", "nnPU, 6 layers"),
    ("nnPU, linear", "nnPU, linear", "pulearn", "nnPU, linear"),
    ("nnPU, linear, batches of 4,096", "nnPU, linear, batches of 4,096", "pulearn", "nnPU, linear"),
    ("Elkan-Noto, four regressions", "Elkan-Noto", "pu-toolbox", "Elkan-Noto"),
    ("Elkan-Noto, one pass over the rows", "Elkan-Noto, 2 folds", "pulearn", "Elkan-Noto"),
]
"""The same method: what it is, pue's name for it, and whose it is compared with."""
START, END = "<!-- results -->", "<!-- end -->"
SHORTEST = 0.05
"""Seconds below which a ratio says more about the clock, which ticks every 0.01 s on some machines."""


def markdown(records: Iterable[Record]) -> str:
    grouped: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for record in records:
        grouped[record["problem"], record["tool"], record["method"]].append(record)
    parts = []
    for problem in sorted({key[0] for key in grouped}):
        rows = [_row(key, found) for key, found in sorted(grouped.items()) if key[0] == problem]
        parts.append(
            f"### {problem}\n\n| tool | method | accuracy | AUC | n | fit, s | predict, s | peak, GB |\n"
            "|---|---|---|---|---|---|---|---|\n" + "\n".join(rows)
        )
    ratios = [line for problem in sorted({key[0] for key in grouped}) for line in _ratios(problem, grouped)]
    if ratios:
        head = "| problem | the same method | peer | fit | predict | n |\n|---|---|---|---|---|---|\n"
        parts.append("### Seconds of pue / seconds of the peer\n\n" + head + "\n".join(ratios))
    return "\n\n".join(parts) + "\n"


def insert(page: str, shown: str) -> str:
    """The page with these results in the place of the last ones."""
    before, rest = page.split(START)
    return f"{before}{START}\n{shown}{END}{rest.split(END)[1]}"


def spread(values: list[float], digits: int = 2) -> str:
    """
    >>> spread([90.0, 92.0]), spread([90.0])
    ('91.00 ± 1.41', '90.00')
    """
    mean = f"{statistics.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.{digits}f}"


def _row(key: tuple[str, str, str], found: list[Record]) -> str:
    _, tool, method = key
    good = [record for record in found if "error" not in record]
    errors = list(dict.fromkeys(record["error"] for record in found if "error" in record))
    failed = "; ".join(f"fails: {_cell(error)}" for error in errors)
    if not good:
        return f"| {tool} | {method} | {failed} | | {len(found)} | | | |"
    cells = [
        spread([record["accuracy"] for record in good]) + (f" ({failed})" if failed else ""),
        spread([record["auc"] for record in good]),
        str(len(good)),
        spread([record["fit"]["cpu"] for record in good], 1),
        f"{statistics.mean(record['predict']['cpu'] for record in good):.2f}",
        f"{max(record['peak_gb'] for record in good):.2f}",
    ]
    return f"| {tool} | {method} | " + " | ".join(cells) + " |"


def _cell(text: str) -> str:
    return text.replace("|", "/")[:160]


def _ratios(problem: str, grouped: dict[tuple[str, str, str], list[Record]]) -> list[str]:
    lines = []
    for name, ours, tool, theirs in PAIRS:
        mine, others = (
            {record["seed"]: record for record in grouped.get(key, []) if "error" not in record}
            for key in ((problem, "pue", ours), (problem, tool, theirs))
        )
        seeds = sorted(mine.keys() & others.keys())
        if seeds:
            fit, predict = (_ratio(part, mine, others, seeds) for part in ("fit", "predict"))
            lines.append(f"| {problem} | {name} | {tool} | {fit} | {predict} | {len(seeds)} |")
    return lines


def _ratio(part: str, mine: dict[int, Record], others: dict[int, Record], seeds: list[int]) -> str:
    ours, theirs = ([found[seed][part]["cpu"] for seed in seeds] for found in (mine, others))
    if min(*ours, *theirs) < SHORTEST:
        return "too short"
    return spread([our / their for our, their in zip(ours, theirs, strict=True)])
