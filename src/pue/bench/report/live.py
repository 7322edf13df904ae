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

from pue.bench.execute import RunOutcome, Watch
from pue.bench.record import MeanSd, Record
from pue.bench.report.groups import mix_text
from pue.bench.spec import Spec
from pue.bench.suites import row_name
from pue.judging.truth import BRIEF


def live_rows(specs: Sequence[Spec]) -> list[tuple[str, list[str]]]:
    """The rows of a table: a title and the keys of runs that differ in nothing but the seed. Labels show where there
    are several kinds."""
    several = len({spec.labels for spec in specs}) > 1
    found: dict[Spec, tuple[str, list[str]]] = {}
    for spec in specs:
        title = row_name(spec) + (f"  {_labels(spec)}" if several else "")
        found.setdefault(replace(spec, seed=0), (title, []))[1].append(spec.key)
    return list(found.values())


def _labels(spec: Spec) -> str:
    return spec.labels.kind + ("" if spec.labels.mix is None else f" {mix_text(spec.labels.mix)}")


def cell(records: Sequence[Record], metric: str) -> str:
    """Mean ± sample standard deviation over seeds, in percent."""
    found = MeanSd.of([record.percent(metric) for record in records])
    return "" if found is None else found.text()


def summary(outcomes: Sequence[RunOutcome]) -> Table:
    """Mean ± sample standard deviation over seeds, in percent; mean seconds of training + of the propensities."""
    table = Table(box=None, pad_edge=False)
    table.add_column("method")
    metrics = ("accuracy", "f1", "auc", "ap")
    titles = [f"{BRIEF[name]} %" if name == "accuracy" else BRIEF[name] for name in metrics]
    for name in ("n", *titles, "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    ended = {outcome.spec.key: outcome.record for outcome in outcomes}
    for title, runs in live_rows([outcome.spec for outcome in outcomes]):
        records = [record for key in runs if (record := ended[key]) is not None]
        table.add_row(title, str(len(records)), *(cell(records, name) for name in metrics), _seconds(records))
    return table


def _seconds(records: Sequence[Record]) -> str:
    if not records:
        return ""
    training = statistics.fmean(record.cost.wall_seconds for record in records)
    extra = [record.propensity.seconds for record in records if record.propensity]
    return f"{training:.1f}" + (f" + {statistics.fmean(extra):.1f}" if any(extra) else "")


class Board:
    """The state of a bench."""

    def __init__(self, specs: Sequence[Spec], jobs: int) -> None:
        self.rows, self.jobs, self.total = live_rows(specs), max(1, jobs), len(specs)
        self.running: dict[str, float] = {}
        """Key → when it began."""
        self.ended: dict[str, RunOutcome] = {}
        self.seconds: dict[str, float] = {}
        """Key → how long it took, of those computed here."""

    def start(self, spec: Spec) -> None:
        self.running[spec.key] = time.monotonic()

    def postpone(self, spec: Spec) -> None:
        self.running.pop(spec.key, None)

    def end(self, outcome: RunOutcome) -> None:
        began = self.running.pop(outcome.spec.key, None)
        self.ended[outcome.spec.key] = outcome
        if began is not None and outcome.state == "computed":
            self.seconds[outcome.spec.key] = time.monotonic() - began

    def remaining(self) -> float | None:
        """Seconds until the end as far as one can tell: runs of the same row take as long, others the mean."""
        if not self.seconds:
            return None
        usual, now, left = statistics.fmean(self.seconds.values()), time.monotonic(), 0.0
        for _, runs in self.rows:
            known = [self.seconds[key] for key in runs if key in self.seconds]
            each = statistics.fmean(known) if known else usual
            undone = [key for key in runs if key not in self.ended]
            left += sum(max(0.0, each - (now - self.running.get(key, now))) for key in undone)
        return left / self.jobs

    def table(self) -> Table:
        left = self.remaining()
        title = f"{len(self.ended)} of {self.total} runs" + ("" if left is None else f", about {clock(left)} left")
        table = Table(box=None, pad_edge=False, title=title, title_justify="left")
        for name in ("method", "done", "running", "waiting", "failed", "accuracy %"):
            table.add_column(name, justify="left" if name == "method" else "right", no_wrap=name != "method")
        for row, runs in self.rows:
            ended = [self.ended[key] for key in runs if key in self.ended]
            records = [outcome.record for outcome in ended if outcome.record is not None]
            running = sum(key in self.running for key in runs)
            counts = (len(records), running, len(runs) - len(ended) - running, len(ended) - len(records))
            table.add_row(row, *(str(count) if count else "" for count in counts), cell(records, "accuracy"))
        return table


def clock(seconds: float) -> str:
    """
    >>> clock(42.2), clock(3700)
    ('0:42', '1:01:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def plain_line(outcome: RunOutcome, done: int, total: int) -> str:
    """One run, one line."""
    head = f"[{done}/{total}] {row_name(outcome.spec)} seed {outcome.spec.seed}"
    if outcome.record is None:
        return f"{head}: failed: {outcome.error}"
    seconds = outcome.record.cost.wall_seconds
    accuracy = outcome.record.percent("accuracy")
    return f"{head}: accuracy {accuracy:.2f} %, {outcome.state} ({seconds:.1f} s)"


@contextmanager
def watching(specs: Sequence[Spec], jobs: int, console: Console) -> Iterator[Watch]:
    """What `execute` should call."""
    board = Board(specs, jobs)
    if console.is_terminal:
        with Live(console=console, get_renderable=board.table, refresh_per_second=1, transient=True):
            yield Watch(started=board.start, postponed=board.postpone, ended=board.end)
        return

    def ended(outcome: RunOutcome) -> None:
        board.end(outcome)
        line = plain_line(outcome, len(board.ended), len(specs))
        console.print(line, highlight=False, markup=False, soft_wrap=True)

    yield Watch(started=board.start, postponed=board.postpone, ended=ended)
