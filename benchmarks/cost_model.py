"""What a row costs, measured; what many rows on many workers would cost, predicted: the numbers of docs/lab/scaling.md.

    python benchmarks/cost_model.py --out cost_model.json

Measured, one thread: a training step of the default network for tables (20 columns) at several batch sizes, reading and
shuffling Parquet, scoring Parquet, and an all-reduce of the step's sums and gradients between 2 and 4 processes of this
machine. Fitted by least squares: step = a + b · rows. Assumed, not measured: a network between machines of 10 Gbit/s
with 50 µs a message, a ring all-reduce, storage as fast as here for every worker, no stragglers, no failures.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from pyarrow import parquet
from torch import distributed

from pue import PUClassifier
from pue.app.roles import Roles
from pue.app.sources.opening import open_source
from pue.app.stream import stream_rows
from pue.app.survey import survey_rows
from pue.backbones import InputSpec, build
from pue.core.data import PUData
from pue.core.machine import one_thread
from pue.core.risks import nnpu
from pue.core.weights import uniform
from pue.estimators.vectorizer.vectorize import Vectorizer
from pue.training import Batching, Training, train

COLUMNS, PARAMETERS = 20, 19_329
BANDWIDTH, LATENCY = 10e9 / 8, 50e-6
"""Bytes a second and seconds a message between machines: assumed."""
LABELED = 1 / 8
"""Share of the labeled rows in a batch."""


def rows(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, COLUMNS, generator=generator)
    return x, (torch.rand(n, generator=generator) < 0.03).long()


def step_seconds(batch: int, steps: int) -> float:
    """Processor seconds of one step; the fastest of three epochs."""
    x, labels = rows(batch * steps)
    data, settings = PUData(x, labels), Training(epochs=3, batching=Batching(batch))
    network, weights = build("tabular", InputSpec((COLUMNS,)), seed=0), uniform(labels, prior=0.1)
    times = [time.process_time()]
    history = train(network, data, weights, nnpu(), settings, seed=0, progress=False,
                    on_epoch=lambda record, network: times.append(time.process_time()))  # fmt: skip
    assert len(history) == 3
    taken = -(-int((labels == 0).sum()) // (batch - round(batch * LABELED)))
    return min(np.diff(times)) / taken


def parquet_file(folder: Path, n: int) -> Path:
    x, labels = rows(n)
    path = folder / "t.parquet"
    columns = {f"x{k}": x[:, k].numpy() for k in range(COLUMNS)} | {"label": labels.numpy().astype(np.int8)}
    parquet.write_table(pa.table(columns), path, row_group_size=100_000)
    return path


def reading_seconds(path: Path, n: int) -> dict[str, float]:
    """Processor seconds a row: first pass, second pass, and an epoch's stream."""
    source, roles = open_source(path), Roles("label")
    start = time.process_time()
    survey = survey_rows(source, roles, most=1)
    first = time.process_time()
    stream = stream_rows(source, roles, survey, memory=100_000_000)  # type: ignore[arg-type]
    second = time.process_time()
    read = sum(len(block) for block in stream.blocks(0, 0, 1))
    assert read == stream.n_streamed
    return {
        "first pass": (first - start) / n,
        "second pass": (second - first) / n,
        "streaming": (time.process_time() - second) / n,
    }


def scoring_seconds(path: Path, n: int, vectorizer: Vectorizer) -> float:
    x, labels = rows(5_000)
    classifier = PUClassifier(prior=0.1, epochs=1, progress=False).fit(x.numpy(), labels.numpy())
    start = time.process_time()
    for frame in open_source(path).batches(columns=list(vectorizer.columns)):
        classifier.decision_function(vectorizer.transform(frame))
    return (time.process_time() - start) / n


def _reduce(rank: int, size: int, meeting: str, answers: Any) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=size)
    sums, gradients = torch.zeros(2), torch.zeros(PARAMETERS)
    times = []
    for _ in range(300):
        start = time.perf_counter()
        distributed.all_reduce(sums)
        distributed.all_reduce(gradients)
        times.append(time.perf_counter() - start)
    if rank == 0:
        answers.put(float(np.median(times[50:])))
    distributed.barrier()
    distributed.destroy_process_group()


def reduce_seconds(size: int) -> float:
    """Seconds of a step's two messages between processes of one machine."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        given = [(rank, size, f"{folder}/meeting", answers) for rank in range(size)]
        started = [context.Process(target=_reduce, args=arguments) for arguments in given]
        for process in started:
            process.start()
        found = answers.get(timeout=120)
        for process in started:
            process.join(60)
    return found


def between_machines(workers: int) -> float:
    """A ring all-reduce of the gradients, and of the sums, whose size does not matter."""
    if workers == 1:
        return 0.0
    messages = 2 * (workers - 1)
    return 2 * messages * LATENCY + messages / workers * PARAMETERS * 4 / BANDWIDTH


def predicted(found: dict[str, Any], n: float, workers: int, batch: int) -> dict[str, float]:
    """Hours of one epoch and of scoring all rows, if every worker has `batch` rows of each step."""
    steps = n / (workers * batch * (1 - LABELED))
    step = found["step"]["fixed"] + found["step"]["row"] * batch + between_machines(workers)
    reading = found["reading"]
    prepare = n * (reading["first pass"] + reading["second pass"])  # every worker reads the whole table twice
    epoch = steps * step + n / workers * reading["streaming"]
    return {
        "prepare": prepare / 3600,
        "epoch": epoch / 3600,
        "communication": steps * between_machines(workers) / 3600,
        "score": n / workers * found["scoring"] / 3600,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("cost_model.json"))
    arguments = parser.parse_args()
    with one_thread(), tempfile.TemporaryDirectory() as temporary:
        sizes = [256, 1024, 4096, 16384]
        steps = [step_seconds(size, 24) for size in sizes]
        row, fixed = np.polyfit(sizes, steps, 1, w=1 / np.array(steps))
        path, n = parquet_file(Path(temporary), 500_000), 500_000
        vectorizer = survey_rows(open_source(path), Roles("label"), most=1).vectorizer
        assert vectorizer is not None
        found = {
            "step": {"fixed": float(fixed), "row": float(row), "measured": dict(zip(sizes, steps, strict=True))},
            "reading": reading_seconds(path, n),
            "scoring": scoring_seconds(path, n, vectorizer),
            "reduce": {size: reduce_seconds(size) for size in (2, 4)},
        }
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    show(found)


def show(found: dict[str, Any]) -> None:
    for size, seconds in found["step"]["measured"].items():
        fitted = found["step"]["fixed"] + found["step"]["row"] * int(size)
        print(f"step of {int(size):>6} rows: {1e3 * seconds:7.2f} ms, fitted {1e3 * fitted:7.2f} ms")
    for name, seconds in {**found["reading"], "scoring": found["scoring"]}.items():
        print(f"{name:12}: {1e6 * seconds:6.2f} µs a row")
    for size, seconds in found["reduce"].items():
        print(f"two all-reduces, {size} processes here: {1e3 * seconds:.2f} ms")
    print("| rows | workers | batch of each | preparing, h | an epoch, h | of it messages, h | scoring, h |")
    print("|---|---|---|---|---|---|---|")
    for n in (1e8, 1e10):
        for batch in (256, 4096):
            for workers in (1, 8, 64, 512):
                cost = predicted(found, n, workers, batch)
                cells = [f"{cost[name]:.2g}" for name in ("prepare", "epoch", "communication", "score")]
                print(f"| 10^{int(np.log10(n))} | {workers} | {batch} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
