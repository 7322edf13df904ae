"""(c) Memory beyond the data: how far a process grows above what it held when training began / the size of the data.

Each number comes from a process of its own, which fits a small problem first (libraries load lazily), then makes the
data, notes its resident memory, works, and reads the highest resident memory it ever had (`VmHWM`: Linux with glibc).
The network is `linear`: what networks and activations take does not depend on the number of rows.
"""

from __future__ import annotations

import ctypes
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure import Result
from problems import PRIOR, case_control, pixels, pu_labels, table
from torch import Tensor

from pue import PUClassifier
from pue.backbones import InputSpec, build
from pue.core.risks import nnpu
from pue.training import Training, train

KINDS = {"uint8": lambda n: pixels(n, 784), "float32": lambda n: table(n, 196)}
"""784 bytes a row, both."""
MEGA = 1e6


def results(quick: bool) -> Iterator[Result]:
    sizes, repeats = ((5_000, 20_000), 1) if quick else ((20_000, 60_000, 200_000), 2)
    context = multiprocessing.get_context("forkserver")
    # Each process is fresh, yet need not import again; torch's optimizers import torch._dynamo at their first step.
    context.set_forkserver_preload(["pue", "torch._dynamo"])
    with ProcessPoolExecutor(1, context, max_tasks_per_child=1) as pool:
        pool.submit(peak, "train", "uint8", 1_000).result()  # the first process does not count
        for what, kind in product(WORK, KINDS):
            measured = sizes[:1] if what in SLOW else sizes
            extra = [[pool.submit(peak, what, kind, n).result() for _ in range(repeats)] for n in measured]
            yield from _summary(f"{what}, {kind}", measured, np.array(extra), KINDS[kind](1).nbytes)


def peak(what: str, kind: str, n: int) -> int:
    """Bytes by which this process grew, at most, while it worked on `n` rows."""
    torch.set_num_threads(1)
    WORK[what](KINDS[kind](1_000))
    ctypes.CDLL(None).malloc_trim(0)  # else the work could hide in memory the small problem left behind
    x = KINDS[kind](n)
    before = _status("VmRSS")
    WORK[what](x)
    return _status("VmHWM") - before


def _train(x: Tensor) -> None:
    """`pue.training.train`, its row weights included."""
    problem = case_control(x, len(x) // 10)
    network = build("linear", InputSpec(problem.shape), seed=0)
    train(network, problem.data, problem.weights, nnpu(), Training(epochs=1), seed=0, progress=False)


def _fit(x: Tensor, **options: Any) -> None:
    """`PUClassifier.fit`: checks of the input and standardisation too."""
    classifier = PUClassifier(prior=PRIOR, backbone="linear", epochs=1, random_state=0, **options)
    classifier.fit(x.numpy(), pu_labels(len(x), len(x) // 10).numpy())


WORK: dict[str, Callable[[Tensor], None]] = {
    "train": _train,
    "fit": _fit,
    "fit, validation=0.1": partial(_fit, validation=0.1),
    'fit, propensity="logistic"': partial(_fit, propensity="logistic"),
}
SLOW = {'fit, propensity="logistic"'}


def _status(field: str) -> int:
    """A field of /proc/self/status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def _summary(case: str, sizes: tuple[int, ...], extra: np.ndarray, row: int) -> Iterator[Result]:
    for n, grown in zip(sizes, extra, strict=True):
        detail = f"{np.median(grown) / MEGA:.1f} MB beside {n * row / MEGA:.1f} MB of data"
        yield Result("memory", f"{case}, {n:,} rows", tuple(grown / (n * row)), detail)
    if len(sizes) == 1:
        return
    growth = (extra[-1] - extra[0]) / (sizes[-1] - sizes[0])
    detail = f"{np.median(growth):.0f} bytes for each row of {row}"
    yield Result("memory", f"{case}, each further row", tuple(growth / row), detail)
