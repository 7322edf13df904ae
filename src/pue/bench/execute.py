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
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal

from pue.engines import Cluster
from pue.engines.tasks import Tasks
from pue.errors import EngineError
from pue.experiments.spec import Spec
from pue.experiments.store import Busy, Record, Store

PAUSE = 0.3
"""Seconds until a run that somebody else computes is asked for again."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    spec: Spec
    state: Literal["computed", "found", "failed"]
    record: Record | None = None
    error: str = ""
    """One line."""
    details: str = ""
    """The traceback, where there is one."""


@dataclass(frozen=True)
class Place:
    """Where runs come from and go to."""

    suite: str
    store: Store
    data: Path | None = None


@dataclass
class Watch:
    """Called while runs are executed; the default is silence."""

    started: Callable[[Spec], None] = field(default=lambda spec: None)
    postponed: Callable[[Spec], None] = field(default=lambda spec: None)
    ended: Callable[[Outcome], None] = field(default=lambda outcome: None)
    tick: Callable[[], None] = field(default=lambda: None)


def execute(
    specs: Sequence[Spec],
    place: Place,
    *,
    jobs: int = 1,
    watch: Watch | None = None,
    cluster: Cluster | None = None,
) -> list[Outcome]:
    """Every run that has no record yet, in `jobs` processes (0: in this one) or on a cluster; how each ended, in the
    given order."""
    watch = watch or Watch()
    place.store.sweep(place.suite)
    outcomes: list[Outcome] = []
    todo = []
    for spec in specs:
        found = place.store.run(place.suite, spec).valid()
        if found is None:
            todo.append(spec)
        else:
            outcomes.append(Outcome(spec, "found", found))
            watch.ended(outcomes[-1])
    if cluster is not None:
        ended = _on_cluster(todo, place, cluster, watch)
    else:
        ended = _in_this_process(todo, place, watch) if jobs == 0 else _in_processes(todo, place, jobs, watch)
    for outcome in ended:
        outcomes.append(outcome)
        watch.ended(outcome)
    order = {spec.key: place for place, spec in enumerate(specs)}
    return sorted(outcomes, key=lambda outcome: order[outcome.spec.key])


def attempt(spec: Spec, place: Place) -> Outcome | None:
    """One run, whatever happens to it; None where somebody else is at it."""
    from pue.experiments.run import complete

    try:
        entry = place.store.run(place.suite, spec)
        record, computed = complete(entry, spec, place.data, place.store, wait=False)
    except Busy:
        return None
    except Exception as error:
        line = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return Outcome(spec, "failed", error=line, details=traceback.format_exc())
    return Outcome(spec, "computed" if computed else "found", record)


class _Queue:
    """Runs in order; those that somebody else computes come again a little later."""

    def __init__(self, specs: Sequence[Spec]) -> None:
        self._waiting = deque((0.0, spec) for spec in specs)

    def __len__(self) -> int:
        return len(self._waiting)

    def postpone(self, spec: Spec) -> None:
        self._waiting.append((time.monotonic() + PAUSE, spec))

    def pop(self) -> Spec | None:
        """The first run whose time has come."""
        now = time.monotonic()
        for place, (due, spec) in enumerate(self._waiting):
            if due <= now:
                del self._waiting[place]
                return spec
        return None


def _in_this_process(specs: Sequence[Spec], place: Place, watch: Watch) -> Iterator[Outcome]:
    queue = _Queue(specs)
    while len(queue):
        spec = queue.pop()
        if spec is None:
            time.sleep(PAUSE / 3)
            continue
        watch.started(spec)
        outcome = attempt(spec, place)
        if outcome is None:
            watch.postponed(spec)
            queue.postpone(spec)
        else:
            yield outcome


def _on_cluster(specs: Sequence[Spec], place: Place, cluster: Cluster, watch: Watch) -> Iterator[Outcome]:
    queue, tasks = _Queue(specs), Tasks[Spec](cluster, attempt)
    there = _absolute(place)
    while len(queue) or len(tasks):
        while not tasks.full and (spec := queue.pop()) is not None:
            watch.started(spec)
            tasks.start(spec, spec, there)
        if not len(tasks):
            time.sleep(PAUSE / 3)
        for spec, outcome in tasks.ended(PAUSE):
            if outcome is None:
                watch.postponed(spec)
                queue.postpone(spec)
            elif isinstance(outcome, EngineError):
                yield Outcome(spec, "failed", error=str(outcome))
            else:
                keep(outcome, place)
                yield outcome
        watch.tick()


def _absolute(place: Place) -> Place:
    """The same place from whatever folder and environment a worker was started in."""
    data = place.data or os.environ.get("PUE_DATA")
    store = Store(place.store.root.absolute())
    return replace(place, store=store, data=None if data is None else Path(data).absolute())


def keep(outcome: Outcome, place: Place) -> None:
    """Write the record where it is not: a worker on another machine may have no part in this file system."""
    entry = place.store.run(place.suite, outcome.spec)
    if outcome.record is not None and entry.valid() is None:
        with entry.claim(wait=True):
            if entry.valid() is None:
                entry.write(outcome.record)


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    spec: Spec | None = None


def _in_processes(specs: Sequence[Spec], place: Place, jobs: int, watch: Watch) -> Iterator[Outcome]:
    queue = _Queue(specs)
    with _workers() as (workers, hire):
        while len(queue) or any(worker.spec for worker in workers):
            while len(workers) < min(jobs, len(queue) + sum(worker.spec is not None for worker in workers)):
                hire(place)
            for worker in workers:
                if worker.spec is None and (spec := queue.pop()) is not None:
                    worker.spec = spec
                    watch.started(spec)
                    worker.connection.send(spec)
            ready = wait([worker.connection for worker in workers], timeout=PAUSE)
            for worker in [worker for worker in workers if worker.connection in ready]:
                spec, worker.spec = worker.spec, None
                try:
                    outcome = worker.connection.recv()
                except (EOFError, ConnectionError):
                    workers.remove(worker)
                    outcome = _died(worker, spec)
                    if spec is None:
                        continue
                if outcome is not None:
                    yield outcome
                elif spec is not None:
                    watch.postponed(spec)
                    queue.postpone(spec)
            watch.tick()


def _died(worker: _Worker, spec: Spec | None) -> Outcome | None:
    worker.process.join()
    worker.connection.close()
    code = worker.process.exitcode or 0
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    return None if spec is None else Outcome(spec, "failed", error=f"its process {how}; the run stays undone.")


@contextmanager
def _workers() -> Iterator[tuple[list[_Worker], Callable[[Place], None]]]:
    """A list of workers and how to hire one more; at the end, for whatever reason, all of them are gone."""
    context = _context()
    workers: list[_Worker] = []

    def hire(place: Place) -> None:
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
    context.set_forkserver_preload(["pue.experiments.run", "torch._dynamo"])  # the first optimizer imports the latter
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
