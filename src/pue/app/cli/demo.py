"""`pue demo`: biased digits, offline."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def demo(
    seeds: Annotated[int, typer.Option(help="Repetitions.", min=1)] = 6,
    jobs: Annotated[int | None, typer.Option(help="Processes.", show_default="cores", min=1)] = None,
    out: Annotated[Path, typer.Option(help="Folder for the plots.")] = Path("demo_output"),
) -> None:
    """Biased labels on scikit-learn's digits: what plain PU learning makes of them, and weights by propensity.

    [bold]Examples[/bold]

      pue demo

      pue demo --seeds 3 --out plots
    """
    from pue.bench.report.demo import run_demo

    run_demo(seeds, jobs or os.cpu_count() or 1, out, Console(), Console(stderr=True))
