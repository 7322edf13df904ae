"""Progress of a run: a bar on a terminal; elsewhere a line a step, or now and then, if asked for; silence otherwise and
without rich."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pue.training.settings import EpochRecord

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


class _Clock:
    """When the last line was printed: many short runs take as long as one long one."""

    def __init__(self) -> None:
        self.last = time.monotonic()

    def is_time(self, pause: float) -> bool:
        now = time.monotonic()
        if now - self.last < pause:
            return False
        self.last = now
        return True


_CLOCK = _Clock()


@contextmanager
def step_progress(
    total: int,
    unit: str,
    *,
    title: str,
    done: int = 0,
    show: bool | float | None = None,
    console: Console | None = None,
) -> Iterator[Callable[..., None]]:
    """A function to call: `move(done, status=…)` after every step, and `move(done)` between two of them.

    `show=None`: a bar on a terminal, else nothing; False: nothing; True: something; a number: elsewhere a line after so
    many seconds without one, in whichever run of this process.
    """
    console = console or _standard_error()
    if console is None or show is False or (show is None and not console.is_terminal):
        yield lambda *_, **__: None
    elif console.is_terminal:
        with _bar(console, unit) as bar:
            task = bar.add_task(title, total=total, completed=done, status="")
            yield lambda done, **status: bar.update(task, completed=done, **status)
    else:
        pause = 0.0 if show is True else float(show or 0)

        def line(done: float, status: str = "") -> None:
            if status and _CLOCK.is_time(pause):
                console.print(f"{title} {unit} {done}/{total}  {status}", highlight=False, soft_wrap=True)

        yield line


def _standard_error() -> Console | None:
    try:
        from rich.console import Console
    except ModuleNotFoundError:
        return None
    return Console(stderr=True)


def describe(record: EpochRecord) -> str:
    """The numbers that matter after an epoch."""
    parts = [f"risk {record.risk:.4f}", f"ascent {record.corrected:.0%}"]
    if record.validation is not None:
        parts.append(f"held-out {record.validation:.4f}")
    return "  ".join(parts)


def _bar(console: Console, unit: str) -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

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
