"""Progress of a run: a bar on a terminal, one line an epoch elsewhere if asked for, silence otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pue.training.settings import EpochRecord

Report = Callable[[EpochRecord], None]


@contextmanager
def epoch_progress(
    total: int, *, done: int = 0, show: bool | None = None, title: str = "training", console: Console | None = None
) -> Iterator[Report]:
    """A function to call after every epoch. `show=None`: only on a terminal; False: never; True: always."""
    console = console or Console(stderr=True)
    if show is False or (show is None and not console.is_terminal):
        yield lambda record: None
    elif console.is_terminal:
        with _bar(console) as bar:
            task = bar.add_task(title, total=total, completed=done, status="")
            yield lambda record: bar.update(task, completed=record.epoch + 1, status=describe(record))
    else:
        yield lambda record: console.print(
            f"{title} epoch {record.epoch + 1}/{total}  {describe(record)}", highlight=False, soft_wrap=True
        )


def describe(record: EpochRecord) -> str:
    """The numbers that matter after an epoch."""
    parts = [f"risk {record.risk:.4f}", f"ascent {record.corrected:.0%}"]
    if record.validation is not None:
        parts.append(f"held-out {record.validation:.4f}")
    return "  ".join(parts)


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("epochs  {task.fields[status]}"),
        TextColumn("ETA"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
