"""Many runs in local processes or as tasks on a cluster, one thread each.

A worker takes one run at a time and holds its lock while it computes. A run that fails, or whose worker is killed, is
reported and stays undone; the others go on. A run that another bench is computing is asked for again later. Workers
end with their parent, however it ends. On a cluster Ray begins a run again whose worker was killed.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal

from pue.bench.plugins import load_plugins
from pue.bench.record import Record
from pue.bench.spec import Spec
from pue.bench.store import Store
from pue.engines import Cluster
from pue.engines.tasks import Tasks
from pue.errors import Busy, EngineError

PAUSE = 0.3
"""Seconds until a run that somebody else computes is asked for again."""


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended."""

    spec: Spec
    state: Literal["computed", "found", "failed"]
    record: Record | None = None
    error: str = ""
    """One line."""


@dataclass(frozen=True)
class Place:
    """Where runs come from and go to."""

    suite: str
    store: Store
    data: Path | None = None
    plugins: tuple[Path, ...] = ()
    """Files that every process runs first."""


@dataclass
class Watch:
    """Called while runs are executed; the default is silence."""

    started: Callable[[Spec], None] = field(default=lambda spec: None)
    postponed: Callable[[Spec], None] = field(default=lambda spec: None)
    ended: Callable[[RunOutcome], None] = field(default=lambda outcome: None)


def execute(
    specs: Sequence[Spec], place: Place, *, jobs: int = 1, watch: Watch | None = None, cluster: Cluster | None = None
) -> list[RunOutcome]:
    """Every run that has no record yet, in `jobs` processes (0: in this one) or on a cluster; how each ended, in the
    given order."""
    watch = watch or Watch()
    place.store.sweep(place.suite)
    outcomes: list[RunOutcome] = []
    todo = []
    for spec in specs:
        found = place.store.run(place.suite, spec).valid()
        if found is None:
            todo.append(spec)
        else:
            outcomes.append(RunOutcome(spec, "found", found))
            watch.ended(outcomes[-1])
    queue = _Queue(todo, watch)
    if cluster is not None:
        ended = _on_cluster(queue, place, cluster)
    else:
        ended = _in_this_process(queue, place) if jobs == 0 else _in_processes(queue, place, jobs)
    for outcome in ended:
        outcomes.append(outcome)
        watch.ended(outcome)
    order = {spec.key: place for place, spec in enumerate(specs)}
    return sorted(outcomes, key=lambda outcome: order[outcome.spec.key])


def attempt(spec: Spec, place: Place) -> RunOutcome | None:
    """One run, whatever happens to it; None where somebody else is at it."""
    from pue.bench.run import run

    try:
        load_plugins(place.plugins)
        entry = place.store.run(place.suite, spec)
        record, computed = entry.complete(lambda: run(spec, place.data, place.store, wait=False), wait=False)
    except Busy:
        return None
    except Exception as error:
        line = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return RunOutcome(spec, "failed", error=line)
    return RunOutcome(spec, "computed" if computed else "found", record)


class _Queue:
    """Runs in order; those that somebody else computes come again a little later."""

    def __init__(self, specs: Sequence[Spec], watch: Watch) -> None:
        self._waiting, self._watch = [(0.0, spec) for spec in specs], watch

    def __len__(self) -> int:
        return len(self._waiting)

    def postpone(self, spec: Spec) -> None:
        self._watch.postponed(spec)
        self._waiting.append((time.monotonic() + PAUSE, spec))

    def pop(self) -> Spec | None:
        """The first run whose time has come: it starts."""
        entry = next((entry for entry in self._waiting if entry[0] <= time.monotonic()), None)
        if entry is None:
            return None
        self._waiting.remove(entry)
        self._watch.started(entry[1])
        return entry[1]


def _in_this_process(queue: _Queue, place: Place) -> Iterator[RunOutcome]:
    while len(queue):
        if (spec := queue.pop()) is None:
            time.sleep(PAUSE / 3)
        elif (outcome := attempt(spec, place)) is None:
            queue.postpone(spec)
        else:
            yield outcome


def _on_cluster(queue: _Queue, place: Place, cluster: Cluster) -> Iterator[RunOutcome]:
    tasks, there = Tasks[Spec](cluster, attempt), _absolute(place)
    while len(queue) or len(tasks):
        while not tasks.full and (spec := queue.pop()) is not None:
            tasks.start(spec, spec, there)
        if not len(tasks):
            time.sleep(PAUSE / 3)
        for spec, outcome in tasks.ended(PAUSE):
            if outcome is None:
                queue.postpone(spec)
            elif isinstance(outcome, EngineError):
                yield RunOutcome(spec, "failed", error=str(outcome))
            else:
                keep(outcome, place)
                yield outcome


def _absolute(place: Place) -> Place:
    """The same place from whatever folder and environment a worker was started in."""
    data = place.data or os.environ.get("PUE_DATA")
    store = Store(place.store.root.absolute())
    return replace(place, store=store, data=None if data is None else Path(data).absolute())


def keep(outcome: RunOutcome, place: Place) -> None:
    """Write the record where it is not: a worker on another machine may have no part in this file system."""
    record = outcome.record
    if record is not None:
        place.store.run(place.suite, outcome.spec).complete(lambda: record, wait=True)


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    spec: Spec | None = None


def _in_processes(queue: _Queue, place: Place, jobs: int) -> Iterator[RunOutcome]:
    with _workers(place) as (workers, hire):
        while len(queue) or any(worker.spec for worker in workers):
            while len(workers) < min(jobs, len(queue) + sum(worker.spec is not None for worker in workers)):
                hire()
            for worker in workers:
                if worker.spec is None and (spec := queue.pop()) is not None:
                    worker.spec = spec
                    worker.connection.send(spec)
            ready = wait([worker.connection for worker in workers], timeout=PAUSE)
            for worker in [worker for worker in workers if worker.connection in ready]:
                spec, worker.spec = worker.spec, None
                try:
                    outcome = worker.connection.recv()
                except (EOFError, ConnectionError):
                    workers.remove(worker)
                    outcome = _died(worker, spec)
                if outcome is not None:
                    yield outcome
                elif spec is not None:
                    queue.postpone(spec)


def _died(worker: _Worker, spec: Spec | None) -> RunOutcome | None:
    worker.process.join()
    worker.connection.close()
    code = worker.process.exitcode or 0
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    return None if spec is None else RunOutcome(spec, "failed", error=f"its process {how}; the run stays undone.")


@contextmanager
def _workers(place: Place) -> Iterator[tuple[list[_Worker], Callable[[], None]]]:
    """A list of workers and how to hire one more; at the end, for whatever reason, all of them are gone."""
    context = _context()
    workers: list[_Worker] = []

    def hire() -> None:
        ours, theirs = context.Pipe()
        process: Any = context.Process(target=_work, args=(theirs, place), daemon=True)  # type: ignore[attr-defined]
        process.start()
        theirs.close()
        workers.append(_Worker(process, ours))

    try:
        yield workers, hire
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.process.join()
            worker.connection.close()


def _context() -> BaseContext:
    """Children of a server that has imported everything once; it starts clean, so nothing of ours leaks into them."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pue.bench.run", "torch._dynamo"])  # the first optimizer imports the latter
    return context


def _work(connection: Connection, place: Place) -> None:
    """A worker's life: runs come in, outcomes go out, until the parent hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            spec = connection.recv()
        except (EOFError, ConnectionError):
            return
        connection.send(attempt(spec, place))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
