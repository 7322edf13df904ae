"""Memory of KM2 beyond the data: how far a process grows above what it held when the estimate began.

    python benchmarks/km2_memory.py

One kernel matrix of (2 · 2,000)² floats, 64 MB, and blocks of a few MB beside it: growth must stay below 150 MB however
many rows there are. Implementations that keep the kernel of all rows need gigabytes at 8,000 rows. Each number comes
from a process of its own, as in `memory.py`.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import torch

from pue.core.data import Scenario
from pue.priors import Evidence, km2

BOUND = 150e6
SIZES = (1_000, 8_000, 60_000)
COLUMNS = 10


def sample(n: int, seed: int = 0) -> Evidence:
    """Two Gaussians; a fifth of the rows are labeled, half of the rest are positive."""
    rng = np.random.default_rng(seed)
    labels = (np.arange(n) < n // 5).astype(np.int8)
    positive = (labels == 1) | (rng.random(n) < 0.5)
    z = rng.normal(size=(n, COLUMNS)) + 2.0 * positive[:, None]
    return Evidence(labels, Scenario.CASE_CONTROL, np.ones(n), np.full(n, 0.2), z, np.zeros(n, dtype=np.int64))


def peak(n: int) -> tuple[int, float]:
    """Bytes by which this process grew, at most, and the seconds it took."""
    torch.set_num_threads(1)
    km2(sample(200))  # libraries load lazily
    ctypes.CDLL(None).malloc_trim(0)
    rows = sample(n)
    before, start = _status("VmRSS"), time.process_time()
    km2(rows)
    return _status("VmHWM") - before, time.process_time() - start


def _status(field: str) -> int:
    """A field of /proc/self/status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def main() -> int:
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(1, context, max_tasks_per_child=1) as pool:
        grown = []
        for n in SIZES:
            extra, seconds = pool.submit(peak, n).result()
            grown.append(extra)
            print(f"{n:>7,} rows  {extra / 1e6:6.1f} MB  {seconds:5.1f} s", flush=True)
    print(f"largest growth {max(grown) / 1e6:.1f} MB, bound {BOUND / 1e6:.0f} MB")
    return int(max(grown) > BOUND)


if __name__ == "__main__":
    raise SystemExit(main())
