"""`pue report`: a model as a page; or runs beside the paper's, on the terminal or as a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from pue.cli import shared
from pue.cli.shared import Voice
from pue.errors import InvalidInput

if TYPE_CHECKING:
    from pue.report import Record

FORMATS = (".md", ".tex", ".csv", ".json")
IMAGES = "docs/images/results"
HELP = """A model as one self-contained page; or runs of pue bench beside the paper's, row by row.

[bold]Examples[/bold]

  pue report model -o page.html

  pue report runs

  pue report runs/mnist -o mnist.tex

  pue report results -o RESULTS.md
"""


def report(
    runs: Annotated[
        Path, typer.Argument(help="Folder of a model, or of records: RUNS/SUITE/*.json, or one suite's.")
    ] = Path("runs"),
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A model: .html. Runs: .md (with plots), .tex, .csv or .json."),
    ] = None,
    images: Annotated[
        Path | None, typer.Option(help="Folder for the plots.", show_default=f"with .md: {IMAGES} beside it")
    ] = None,
) -> None:
    if (runs / "manifest.json").is_file() or (output is not None and output.suffix in shared.PAGES):
        _page(runs, output)
        return
    from pue.report import read_records, save_pictures

    if output is not None and output.suffix not in FORMATS:
        raise InvalidInput(f"cannot write {output.name!r}: the formats are {', '.join(FORMATS)}.")
    records = read_records(runs)
    if output is not None and output.suffix == ".md" and images is None:
        images = output.parent / IMAGES
    if images is not None:
        save_pictures(records, images)
    if output is None:
        _show(records)
    else:
        _write(output, _text(records, runs, output, images))


report.__doc__ = HELP


def _page(model: Path, output: Path | None) -> None:
    output = output or Path("page.html")
    shared.require_page(output)
    shared.require_apart(output, model)
    from pue.model.files import load_model
    from pue.report.page import write_page

    with Voice().notes():
        fitted = load_model(model)
    with shared.showing(model):
        write_page(fitted.summary, output)
    Console().print(f"Page: {output}", markup=False, highlight=False, soft_wrap=True)


def _show(records: list[Record]) -> None:
    from pue.report import by_suite, lines, render, suite_tables

    console = Console()
    for suite, found in by_suite(records).items():
        console.rule(suite)
        for table in suite_tables(lines(found)):
            console.print(render.terminal(table))


def _text(records: list[Record], runs: Path, output: Path, images: Path | None) -> str:
    from pue.report import by_suite, lines, render, results, suite_tables, wide_table

    if output.suffix == ".md" and images is not None:
        beside = Path(os.path.relpath(images, output.parent)).as_posix()
        return results(records, source=runs.absolute().name, images=beside)
    suites = {suite: lines(found) for suite, found in by_suite(records).items()}
    if output.suffix == ".tex":
        return "\n".join(render.latex(table, suite) for suite in suites for table in suite_tables(suites[suite]))
    wide = wide_table(suites)
    return render.comma_separated(wide) if output.suffix == ".csv" else render.as_json(wide)


def _write(output: Path, text: str) -> None:
    """Under a temporary name first: a report is there as a whole or not at all."""
    output.parent.mkdir(parents=True, exist_ok=True)
    partial = output.with_name(f".{output.name}")
    try:
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, output)
    finally:
        partial.unlink(missing_ok=True)
