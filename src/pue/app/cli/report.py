"""`pue report`: a model as a page; or runs beside the paper's, on the terminal or as a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from pue.app.cli import places, shared
from pue.app.cli.shared import Voice, plain
from pue.errors import InvalidInput
from pue.files import write_text

if TYPE_CHECKING:
    from pue.app.model import PUModel
    from pue.bench.record import Record

FORMATS = (".md", ".tex", ".csv", ".json")
IMAGES = "docs/images/results"


def report(
    runs: Annotated[
        Path, typer.Argument(help="Folder of a model, or of records: RUNS/SUITE/*.json, or one suite's.")
    ] = Path("runs"),
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A model: .html. Runs: .md (with plots), .tex, .csv or .json.")
    ] = None,
    audit: Annotated[
        list[Path] | None,
        typer.Option(help="A model: answers to a pue audit plan, shown beside its promises.", show_default="none"),
    ] = None,
    images: Annotated[
        Path | None, typer.Option(help="Folder for the plots.", show_default=f"with .md: {IMAGES} beside it")
    ] = None,
) -> None:
    """A model as one self-contained page; or runs of pue bench beside the paper's, row by row.

    [bold]Examples[/bold]

      pue report model -o page.html

      pue report model --audit to_check.csv -o page.html

      pue report runs

      pue report runs/mnist -o mnist.tex

      pue report results -o RESULTS.md
    """
    if (runs / "manifest.json").is_file() or (output is not None and output.suffix in places.PAGES):
        _page(runs, output, audit or [])
        return
    if audit:
        raise InvalidInput("--audit goes with the page of a model: pue report model --audit to_check.csv -o page.html.")
    from pue.bench.report.results import save_pictures
    from pue.bench.store import read_records

    if output is not None and output.suffix not in FORMATS:
        raise InvalidInput(f"cannot write {output.name!r}: the formats are {', '.join(FORMATS)}.")
    records = read_records(runs)
    if output is not None and output.suffix == ".md" and images is None:
        images = output.parent / IMAGES
    text = None if output is None else _text(records, runs, output, images)
    if images is not None:
        save_pictures(records, images)
    if output is None or text is None:
        _show(records)
    else:
        write_text(output, text)


def _page(model: Path, output: Path | None, sheets: list[Path]) -> None:
    output = output or Path("page.html")
    places.require_page(output)
    places.require_apart(output, model)
    places.claim(output)
    from pue.app.model import load_model
    from pue.app.page import write_page

    with Voice().notes():
        fitted = load_model(model)
        found = _audited(fitted, model, sheets)
    with shared.showing(model):
        write_page({**fitted.summary, **found}, output)
    plain(Console(), f"Page: {output}")


def _audited(fitted: PUModel, model: Path, sheets: list[Path]) -> dict[str, Any]:
    """What the answers of an audit prove, as a part of the summary."""
    if not sheets:
        return {}
    from pue.app.audit.reading import promised, read_sheets, report, require_model

    answered = read_sheets(sheets)
    require_model(answered, model)
    return {"audit": report(answered, answered.findings(), promised(fitted))}


def _show(records: dict[str, list[Record]]) -> None:
    from pue.bench.report import render
    from pue.bench.report.rows import result_rows
    from pue.bench.report.tables import suite_tables

    console = Console()
    for suite, found in records.items():
        console.rule(suite)
        for table in suite_tables(result_rows(suite, found)):
            console.print(render.terminal(table))


def _text(records: dict[str, list[Record]], runs: Path, output: Path, images: Path | None) -> str:
    from pue.bench.report import render
    from pue.bench.report.results import results_page
    from pue.bench.report.rows import result_rows
    from pue.bench.report.tables import suite_tables, wide_table

    if output.suffix == ".md" and images is not None:
        beside = Path(os.path.relpath(images, output.parent)).as_posix()
        return results_page(records, source=runs.absolute().name, images=beside)
    suites = {suite: result_rows(suite, found) for suite, found in records.items()}
    if output.suffix == ".tex":
        return "\n".join(render.latex(table, suite) for suite in suites for table in suite_tables(suites[suite]))
    wide = wide_table(suites)
    return render.comma_separated(wide) if output.suffix == ".csv" else render.as_json(wide)
