"""How a number is taken: two sides in turn, the ratio of each pair, the median of the ratios and their quartiles."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Work = Callable[[], object]
Side = Callable[[], Work]
"""Sets up what is not timed (a new network, say) and returns the work that is."""


@dataclass(frozen=True)
class Result:
    """One line of the table: a ratio with its spread, and the two quantities it came from."""

    benchmark: str
    case: str
    ratios: tuple[float, ...]
    """One for each repeat."""
    detail: str
    target: str = ""

    @property
    def median(self) -> float:
        return float(np.median(self.ratios))

    @property
    def quartiles(self) -> tuple[float, float]:
        low, high = np.quantile(self.ratios, [0.25, 0.75])
        return float(low), float(high)


def cpu_seconds(side: Side) -> float:
    """CPU time, not wall time: with one thread and no I/O it is the wall time of an idle machine, and another job on
    the same core does not add to it.
    """
    work = side()
    start = time.process_time()
    work()
    return time.process_time() - start


def in_turn(ours: Side, theirs: Side, repeats: int) -> tuple[list[float], list[float]]:
    """Seconds of both sides, measured as ab, ba, ab, …, after one run of each that does not count."""
    cpu_seconds(ours), cpu_seconds(theirs)
    a: list[float] = []
    b: list[float] = []
    for repeat in range(repeats):
        for side, seconds in ((ours, a), (theirs, b)) if repeat % 2 == 0 else ((theirs, b), (ours, a)):
            seconds.append(cpu_seconds(side))
    return a, b


def pairwise_ratios(a: Sequence[float], b: Sequence[float]) -> tuple[float, ...]:
    return tuple(x / y for x, y in zip(a, b, strict=True))


def command(*arguments: str) -> dict[str, float]:
    """`pue …` in a process of its own."""
    return python("-m", "pue", *arguments)


def python(*arguments: str) -> dict[str, float]:
    """`python …` in a process of its own: its seconds, and the peak of its memory in GB as the system reports it."""
    start = time.perf_counter()
    process = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, *arguments])
    _, status, usage = os.wait4(process, 0)
    if status:
        raise SystemExit(f"python {' '.join(arguments)} failed")
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_gb": usage.ru_maxrss * 1024 / 1e9,
    }
