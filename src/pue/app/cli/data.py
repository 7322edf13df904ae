"""`pue data`: which data sets are there, and how to get the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from pue.app.cli.shared import plain

data = typer.Typer(help="List the data sets, or fetch them.", no_args_is_help=True)

Folder = Annotated[Path | None, typer.Option("--data", help="Folder of the data sets.", show_default="PUE_DATA")]
Names = Annotated[list[str], typer.Argument(help="Which data sets.", show_default=False, metavar="NAME...")]


@data.command("list")
def show(folder: Folder = None) -> None:
    """List the data sets: their sizes, what counts as positive, and where they are or how to get them."""
    from pue.bench.datasets import available

    for entry in available(folder):
        state = "there  " if entry.found else "missing"
        line = f"{entry.name:14} {state}  {entry.train:,} + {entry.test:,}  positive: {entry.task}  {entry.place}"
        plain(Console(), line.rstrip())


@data.command("get")
def get(names: Names, folder: Folder = None) -> None:
    """Fetch data sets, checked by their hashes; a download that was cut off continues, what is there stays."""
    from pue.bench.datasets import fetch

    for name in names:
        with _bar() as progress:
            path = fetch(name, folder, progress=progress)
        plain(Console(), f"{name}: {path}")


@contextmanager
def _bar() -> Iterator[Callable[[str, int, int | None], None]]:
    """A bar for each thing that is fetched, on a terminal; silence elsewhere."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        tasks: dict[str, int] = {}

        def progress(what: str, so_far: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=so_far, total=total)  # type: ignore[arg-type]

        yield progress
