"""Progress of a run: a bar on a terminal, one line a step elsewhere if asked for, silence otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pue.training.settings import EpochRecord


@dataclass(frozen=True)
class Report:
    """To be called with the record of every epoch; `within` moves the bar between two epochs."""

    epoch: Callable[[EpochRecord], None]
    within: Callable[[float], None]

    def __call__(self, record: EpochRecord) -> None:
        self.epoch(record)


@contextmanager
def epoch_progress(
    total: int, *, done: int = 0, show: bool | None = None, title: str = "training", console: Console | None = None
) -> Iterator[Report]:
    """What to call while training. `show=None`: a bar on a terminal, else nothing; False: nothing; True: something."""
    with step_progress(total, "epoch", done=done, show=show, title=title, console=console) as (step, within):
        yield Report(lambda record: step(record.epoch + 1, describe(record)), within)


@contextmanager
def step_progress(
    total: int, unit: str, *, done: int = 0, show: bool | None = None, title: str, console: Console | None = None
) -> Iterator[tuple[Callable[[int, str], None], Callable[[float], None]]]:
    """Two functions: `step(done, status)` after every step, and `within(done)` between two of them."""
    console = console or Console(stderr=True)
    if show is False or (show is None and not console.is_terminal):
        yield _nothing, _nothing
    elif console.is_terminal:
        with _bar(console, unit) as bar:
            task = bar.add_task(title, total=total, completed=done, status="")
            yield (
                lambda done, status: bar.update(task, completed=done, status=status),
                lambda done: bar.update(task, completed=done),
            )
    else:
        yield (
            lambda done, status: console.print(
                f"{title} {unit} {done}/{total}  {status}", highlight=False, soft_wrap=True
            ),
            _nothing,
        )


def _nothing(*_: object) -> None:
    """Silence."""


def describe(record: EpochRecord) -> str:
    """The numbers that matter after an epoch."""
    parts = [f"risk {record.risk:.4f}", f"ascent {record.corrected:.0%}"]
    if record.validation is not None:
        parts.append(f"held-out {record.validation:.4f}")
    return "  ".join(parts)


def _bar(console: Console, unit: str) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn(unit + "s  {task.fields[status]}"),
        TextColumn("ETA"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
