"""What a bench shows: a live table on a terminal, a line a run elsewhere, and the table at the end."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from rich.console import Console
from rich.live import Live
from rich.table import Table

from pue.experiments import Outcome, Spec, Watch, row_name


def line_of(spec: Spec, *, several_labels: bool) -> str:
    """The table's row that a run belongs to; the mix of its labels shows only where there are several."""
    mix = "" if spec.labels.mix is None else " " + "/".join(f"{share:g}" for share in spec.labels.mix)
    return f"{row_name(spec)}  {spec.labels.kind}{mix}" if several_labels else row_name(spec)


def groups(specs: Sequence[Spec]) -> dict[str, str]:
    """Key of a run without its seed → title of its row in a table."""
    several = len({spec.labels for spec in specs}) > 1
    return {replace(spec, seed=0).key: line_of(spec, several_labels=several) for spec in specs}


def cell(values: Sequence[float], form: str = ".2f") -> str:
    """
    >>> cell([91.0, 92.0]), cell([91.0]), cell([])
    ('91.50 ± 0.71', '91.00', '')
    """
    if not values:
        return ""
    spread = f" ± {statistics.stdev(values):{form}}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):{form}}{spread}"


def summary(outcomes: Sequence[Outcome]) -> Table:
    """Mean ± sample standard deviation over seeds, in percent; seconds are those of training, then of propensities."""
    table = Table(box=None, pad_edge=False)
    table.add_column("method")
    for name in ("n", "accuracy", "precision", "recall", "F1", "AUC", "AP", "seconds", "+ e"):
        table.add_column(name, justify="right")
    for key, title in groups([outcome.spec for outcome in outcomes]).items():
        records = [o.record for o in outcomes if o.record is not None and replace(o.spec, seed=0).key == key]
        metrics = ("accuracy", "precision", "recall", "f1", "auc", "ap")
        cells = [cell([100 * record["metrics"][name] for record in records]) for name in metrics]
        seconds = cell([record["cost"]["wall_seconds"] for record in records], ".1f")
        extra = cell([record["propensity"]["seconds"] for record in records if record["propensity"]], ".1f")
        table.add_row(title, str(len(records)), *cells, seconds, extra)
    return table


class Board:
    """The state of a bench."""

    def __init__(self, specs: Sequence[Spec], jobs: int) -> None:
        self.specs, self.jobs = specs, max(1, jobs)
        self.running: dict[str, float] = {}
        self.outcomes: dict[str, Outcome] = {}
        self.seconds: dict[str, list[float]] = {}

    def start(self, spec: Spec) -> None:
        self.running[spec.key] = time.monotonic()

    def postpone(self, spec: Spec) -> None:
        self.running.pop(spec.key, None)

    def end(self, outcome: Outcome) -> None:
        began = self.running.pop(outcome.spec.key, None)
        self.outcomes[outcome.spec.key] = outcome
        if began is not None and outcome.state == "computed":
            self.seconds.setdefault(replace(outcome.spec, seed=0).key, []).append(time.monotonic() - began)

    def remaining(self) -> float | None:
        """Seconds until the end as far as one can tell: runs of the same row take as long, others the mean."""
        every = [value for values in self.seconds.values() for value in values]
        if not every:
            return None
        usual = sum(every) / len(every)
        left = 0.0
        for spec in self.specs:
            if spec.key not in self.outcomes:
                known = self.seconds.get(replace(spec, seed=0).key)
                cost = sum(known) / len(known) if known else usual
                left += max(0.0, cost - (time.monotonic() - self.running.get(spec.key, time.monotonic())))
        return left / self.jobs

    def table(self) -> Table:
        left = self.remaining()
        title = f"{len(self.outcomes)} of {len(self.specs)} runs" + (
            "" if left is None else f", about {clock(left)} left"
        )
        table = Table(box=None, pad_edge=False, title=title, title_justify="left")
        for name in ("method", "done", "running", "waiting", "failed", "accuracy %"):
            table.add_column(name, justify="left" if name == "method" else "right")
        for key, name in groups(self.specs).items():
            mine = [spec.key for spec in self.specs if replace(spec, seed=0).key == key]
            ended = [self.outcomes[run] for run in mine if run in self.outcomes]
            records = [outcome.record for outcome in ended if outcome.record is not None]
            running = sum(run in self.running for run in mine)
            counts = (len(records), running, len(mine) - len(ended) - running, len(ended) - len(records))
            accuracy = cell([100 * record["metrics"]["accuracy"] for record in records])
            table.add_row(name, *(str(count) if count else "" for count in counts), accuracy)
        return table


def clock(seconds: float) -> str:
    """
    >>> clock(42.2), clock(3700)
    ('0:42', '1:01:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def plain_line(outcome: Outcome, done: int, total: int) -> str:
    """One run, one line."""
    head = f"[{done}/{total}] {row_name(outcome.spec)} seed {outcome.spec.seed}"
    if outcome.record is None:
        return f"{head}: failed: {outcome.error}"
    seconds = outcome.record["cost"]["wall_seconds"]
    accuracy = 100 * outcome.record["metrics"]["accuracy"]
    return f"{head}: accuracy {accuracy:.2f} %, {outcome.state} ({seconds:.1f} s)"


@contextmanager
def watching(specs: Sequence[Spec], jobs: int, console: Console) -> Iterator[Watch]:
    """What `execute` should call."""
    board = Board(specs, jobs)
    if console.is_terminal:
        with Live(console=console, get_renderable=board.table, refresh_per_second=2, transient=True):
            yield Watch(started=board.start, postponed=board.postpone, ended=board.end)
        return

    def ended(outcome: Outcome) -> None:
        board.end(outcome)
        line = plain_line(outcome, len(board.outcomes), len(specs))
        console.print(line, highlight=False, markup=False, soft_wrap=True)

    yield Watch(started=board.start, postponed=board.postpone, ended=ended)
