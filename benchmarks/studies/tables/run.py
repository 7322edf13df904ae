"""How good is `pue` on tables with biased labels, beside simple ways, peers and true classes? One record a fit.

    pip install --no-deps -r benchmarks/studies/tables/requirements.txt
    python benchmarks/studies/tables/run.py --tables dev --out dev.jsonl
    python benchmarks/studies/tables/run.py --tables report --out docs/results/tables.jsonl
    python benchmarks/studies/tables/run.py --tables magic,hr --labelings scar,logistic --seeds 0-1 \
        --methods 'forest/*,baseline/*' --out look.jsonl

A record in the output is not computed again; a fit that fails is a record with its error, and `--again` tries it again.
Every process has one thread. `--labelings` knows scar, logistic, kinds, easy, hard (the default), logistic-0.5,
logistic-1, logistic-4 (for accuracy against bias: `bias`) and rare-0.002, -0.01, -0.02, -0.05 (`rare`).
"""

from __future__ import annotations

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # before any import

import argparse
import multiprocessing
import signal
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from answers import measure
from labelings import LABELINGS, STRENGTHS
from methods import METHODS, WITH_RARE, installed, matching
from peers import missing
from problems import ALL_LABELINGS, RARE, Impossible, pose
from records import Key, append, mend, read
from tables import DEVELOPMENT, REPORT, TABLES

from pue.errors import UnknownName, lookup

LIMIT = 900
"""Seconds of processor time after which a fit is given up."""
SHORT = {"dev": list(DEVELOPMENT), "report": list(REPORT)}
GROUPS = {"five": list(LABELINGS), "bias": ["scar", *STRENGTHS.values()], "rare": list(RARE)}

Cell = tuple[str, str, int]


def planned(
    tables: Iterable[str], labelings: Iterable[str], seeds: Iterable[int], methods: list[str], *, named: bool
) -> Iterator[Key]:
    """Seed by seed, so that what is cut off is whole seeds. `named`: the methods were asked for by name."""
    rare = methods if named else [name for name in methods if name in matching(WITH_RARE)]
    for seed in seeds:
        for table in tables:
            for labeling in labelings:
                for method in rare if labeling in RARE else methods:
                    yield Key(table, labeling, seed, method)


def compute(cell: Cell, methods: list[str], out: Path) -> int:
    """All these methods on one problem; a record of each is written as soon as it is there."""
    torch.set_num_threads(1)
    try:
        problem = pose(*cell)
    except Impossible as reason:
        for method in methods:
            append(out, Key(*cell, method), {"impossible": str(reason)})
        return len(methods)
    for method in methods:
        with warnings.catch_warnings(), _limited(LIMIT):
            warnings.simplefilter("ignore")
            try:
                found = measure(METHODS[method], problem)
            except Exception as error:  # whatever it is: a failure is a result
                found = {"error": f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]}
        append(out, Key(*cell, method), found)
    return len(methods)


@contextmanager
def _limited(seconds: int) -> Iterator[None]:
    """A TimeoutError inside after so many seconds of processor time."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"no result after {seconds} s of processor time")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def complete(keys: Iterable[Key], out: Path, *, jobs: int, again: bool = False) -> int:
    """Every record that is not there yet; how many there were to make."""
    out.parent.mkdir(parents=True, exist_ok=True)
    mend(out)
    done = {key for key, record in read(out).items() if not (again and "error" in record)}
    cells: dict[Cell, list[str]] = {}
    for key in keys:
        if key not in done:
            cells.setdefault((key.table, key.labeling, key.seed), []).append(key.method)
    total, finished, started = sum(map(len, cells.values())), 0, time.monotonic()
    print(f"{total:,} fits of {len(cells):,} problems; {len(done):,} records are there", file=sys.stderr)
    for cell, count in _computed(cells, out, jobs):
        finished += count
        left = (time.monotonic() - started) / finished * (total - finished)
        print(f"{finished:,}/{total:,}  {' '.join(map(str, cell))}  {_clock(left)} left", file=sys.stderr)
    return total


def _computed(cells: dict[Cell, list[str]], out: Path, jobs: int) -> Iterator[tuple[Cell, int]]:
    """Problems as they are finished. One job is this process."""
    if jobs == 1:
        for cell, methods in cells.items():
            yield cell, compute(cell, methods, out)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = {pool.submit(compute, cell, methods, out): cell for cell, methods in cells.items()}
        for future in as_completed(waiting):
            yield waiting[future], future.result()


def _clock(seconds: float) -> str:
    """
    >>> _clock(59), _clock(3700)
    ('0:00', '1:01')
    """
    return f"{int(seconds) // 3600}:{int(seconds) % 3600 // 60:02}"


def _names(kind: str, text: str, groups: Mapping[str, list[str]], known: Mapping[str, Any]) -> list[str]:
    """Names with commas between, some of which stand for several; each must be known."""
    names = [name for part in text.split(",") for name in groups.get(part, [part])]
    for name in names:
        lookup(kind, name, known, *groups)
    return list(dict.fromkeys(names))


def _seeds(text: str) -> list[int]:
    """
    >>> _seeds("0-2,7")
    [0, 1, 2, 7]
    """
    ends = [part.partition("-") for part in text.split(",")]
    return [seed for first, _, last in ends for seed in range(int(first), int(last or first) + 1)]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", required=True, help="dev, report, or names with commas between")
    parser.add_argument("--labelings", default="five", help="names, or five, bias, rare")
    parser.add_argument("--seeds", type=_seeds, default=list(range(5)), help="0-4, or 0,3")
    parser.add_argument("--methods", help="names or patterns, 'forest/*,fit/*'; default: all")
    parser.add_argument("--jobs", type=int, default=2, help="processes, each with one thread")
    parser.add_argument("--again", action="store_true", help="try again what failed")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(arguments)
    absent = missing()
    for library, reason in absent.items():
        print(f"without {library}: {reason}", file=sys.stderr)
    try:
        tables = _names("table", args.tables, SHORT, TABLES)
        labelings = _names("labeling", args.labelings, GROUPS, ALL_LABELINGS)
        methods = list(installed(matching(args.methods.split(",")) if args.methods else METHODS, absent))
    except UnknownName as error:
        parser.error(str(error))
    keys = planned(tables, labelings, args.seeds, methods, named=args.methods is not None)
    complete(keys, args.out, jobs=args.jobs, again=args.again)


if __name__ == "__main__":
    main()
