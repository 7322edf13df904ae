"""`pue data`: which data sets are there, and how to get the others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

data = typer.Typer(help="Fetch data sets, or list them.", no_args_is_help=True)

Folder = Annotated[Path | None, typer.Option("--data", help="Folder of the data sets.", show_default="PUE_DATA")]


@data.command("list")
def list_sets(folder: Folder = None) -> None:
    """List the data sets and whether they are in the folder."""
    from pue.datasets import available

    console = Console()
    for name, there in available(folder).items():
        console.print(f"{name:14} {'there' if there else f'missing: pue data get {name}'}", highlight=False)


@data.command("get")
def get(
    names: Annotated[list[str], typer.Argument(help="Which data sets.", show_default=False)], folder: Folder = None
) -> None:
    """Fetch data sets, checked by their hashes; what is there already is not fetched again."""
    from pue.datasets.fetch import fetch

    console = Console()
    for name in names:
        path = fetch(name, folder, progress=None)
        console.print(f"{name}: {path}", highlight=False, soft_wrap=True)
