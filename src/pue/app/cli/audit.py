"""`pue audit`: which rows to look at, and what the answers prove."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pue.app.cli import places, shared
from pue.app.cli.shared import Voice

if TYPE_CHECKING:
    from rich.table import Table

audit = typer.Typer(help="Look at a hundred rows, and know: plan, answer, read.", no_args_is_help=True)

Model = Annotated[Path, typer.Argument(help="Folder of the model.", show_default=False)]
Sheets = Annotated[
    list[Path], typer.Argument(help="Sheets of one audit, filled in as far as they are.", show_default=False)
]


@audit.command("plan")
def plan(
    model: Model,
    data: shared.Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The sheet to fill in: to_check.csv.")],
    n: Annotated[int, typer.Option("-n", "--answers", help="Rows to look at.", min=4)] = 100,
    purpose: Annotated[
        str, typer.Option("--for", help="all, prior, precision, recall, accuracy, or model: rows that teach it most.")
    ] = "all",
    design: Annotated[str, typer.Option(help="stratified by score, or random: a plain random sample.")] = "stratified",
    after: Annotated[
        list[Path] | None, typer.Option(help="A sheet that this one tops up; once for each.", show_default="none")
    ] = None,
    show: Annotated[
        str | None, typer.Option(help="Columns to show, with commas between.", show_default="all but label and truth")
    ] = None,
    row_id: shared.Id = None,
    labels: shared.Labels = None,
    image_size: shared.ImageSize = None,
    seed: shared.Seed = 0,
    as_json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """Draw unlabeled rows for a person to look at, each with a known chance, and write them as a sheet to fill in.

    The rows are chosen so that a hundred answers settle as much as they can, and none is left without a chance: what
    follows from the answers holds however wrong the model is. The plan is stored beside the sheet; keep the two
    together.

    [bold]Examples[/bold]

      pue audit plan model claims.parquet -n 100 -o to_check.csv

      pue audit plan model claims.parquet -n 50 --for precision -o to_check.csv

      pue audit plan model claims.parquet -n 50 --after to_check.csv -o more.csv
    """
    voice = Voice(as_json=as_json, quiet=quiet)
    places.require_place(output)
    places.require_apart(output, model, data)
    from pue.app.audit.planning import plan_source, require_sheet
    from pue.app.audit.record import plan_path
    from pue.app.model import load_model

    require_sheet(output)
    places.claim(output)
    places.claim(plan_path(output))
    with voice.notes():
        fitted = load_model(model)
        source = shared.open_data(data, labels, image_size, fitted)
        voice.say("scoring all rows")
        record, bought = plan_source(
            fitted, model, source, output, n=n, purpose=purpose, design=design, after=after or [],
            show=None if show is None else [name.strip() for name in show.split(",") if name.strip()],
            row_id=row_id, seed=seed,
        )  # fmt: skip
    known, drawn = record.plan.known, len(record.ids)
    voice.show(
        f"{drawn} of {sum(s.size for s in record.plan.strata):,} unlabeled rows, from {len(record.plan.strata)} groups "
        f"of similar scores; {known.positives:,} labeled positives are known and need no answer."
    )
    if bought:
        voice.show(_power_table(bought))
    voice.show(
        f"Sheet: {output}. Write yes, no or ? into its column answer, or: pue audit page {output} -o audit.html. "
        f"Then: pue audit read {model} {output}"
    )
    voice.give(
        {
            "sheet": str(output),
            "rows": drawn,
            "strata": record.plan.as_dict()["strata"],
            "expected_half_widths": {str(count): halves for count, halves in bought.items()},
        }
    )


@audit.command("read")
def read(
    model: Model,
    sheets: Sheets,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    until: Annotated[
        str | None, typer.Option(help='Is it enough? Such as "precision ±0.05".', show_default="not asked")
    ] = None,
    as_json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """What the answers prove, with intervals that need no assumption about the labels, beside what the model promised.

    Sheets may be half filled, reordered, or saved by a spreadsheet. With --until every round counts as one look, and
    the intervals allow for stopping at any of them.

    [bold]Examples[/bold]

      pue audit read model to_check.csv

      pue audit read model to_check.csv more.csv --until "precision ±0.05"
    """
    voice = Voice(as_json=as_json, quiet=quiet)
    from pue.app.audit.reading import Target, promised, read_sheets, report, require_model, warn_of_rounds
    from pue.app.model import load_model

    target = None if until is None else Target.parse(until)
    with voice.notes():
        fitted = load_model(model)
        answered = read_sheets(sheets)
        require_model(answered, model)
        warn_of_rounds(answered, target)
    found = answered.findings(level, len(sheets) if target is not None else None)
    said = promised(fitted)
    voice.show(*answered.notes, _findings_table(found, said), _groups_table(found))
    for line in _remarks(found, said, trained_on=answered.records[0].trained_on):
        voice.show(line)
    values = report(answered, found, said)
    if target is not None:
        done, more = target.reached(found), target.missing(found)
        after = " ".join(f"--after {sheet}" for sheet in sheets)
        remedy = f"not yet; about {more} more answers. pue audit plan {model} DATA -n {more} {after} -o more.csv"
        voice.show(f"{target.name} ±{target.half:g}: {'reached.' if done else remedy}")
        values["until"] = {"quantity": target.name, "half_width": target.half, "reached": done, "missing": more}
    voice.give(values)


@audit.command("page")
def page(
    sheet: Annotated[Path, typer.Argument(help="The sheet that pue audit plan wrote.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="audit.html")],
    images: Annotated[
        Path | None, typer.Option(help="Folder of the images that the sheet names.", show_default="none")
    ] = None,
    quiet: shared.Quiet = False,
) -> None:
    """A page to answer on, in one file: y, n, ? and back on the keyboard; answers stay in the browser and are saved as
    the sheet. Nothing is fetched or sent.

    [bold]Examples[/bold]

      pue audit page to_check.csv -o audit.html

      pue audit page to_check.csv --images scans -o audit.html
    """
    voice = Voice(quiet=quiet)
    places.require_page(output)
    places.claim(output)
    from pue.app.audit.page import write_answer_page

    with voice.notes():
        n = write_answer_page(sheet, output, images)
    voice.show(
        f"Page: {output}, {n} rows. Open it in a browser; y, n, ? and Backspace answer, Save writes {sheet.name}."
    )


def _power_table(bought: dict[int, dict[str, float]]) -> Table:
    from pue.app.cli.terminal import table_of
    from pue.audit import QUANTITIES

    names = [name for name in QUANTITIES if name in next(iter(bought.values()))]
    table = table_of(
        "What n answers buy, if the model is right: ± percentage points", "answers", *(QUANTITIES[n] for n in names)
    )
    for count, halves in bought.items():
        table.add_row(f"{count}", *(f"{100 * halves[name]:.1f}" for name in names))
    return table


def _findings_table(found: Any, said: Any) -> Table:
    from pue.app.audit.reading import agree
    from pue.app.cli.terminal import interval, table_of
    from pue.audit import QUANTITIES

    title = f"{found.n_answered} answers, {found.n_yes} yes; {found.level:.0%} intervals, whatever the labels' bias"
    table = table_of(title, "", "found", "promised by the model", "agree")
    for name, estimate in found.quantities().items():
        promise = said.get(name)
        cells = ("–", "") if promise is None else (interval(vars(promise)), "yes" if agree(estimate, promise) else "NO")
        table.add_row(QUANTITIES[name], interval(vars(estimate)), *cells)
    return table


def _groups_table(found: Any) -> Table:
    from pue.app.cli.terminal import interval, percent, table_of

    table = table_of(
        "Calibration: positives among unlabeled rows by score", "score", "rows", "yes", "expected", "found"
    )
    for group in found.groups:
        low, high = max(group.low, 0.0), min(group.high, 1.0)
        share = "–" if group.found is None else interval(vars(group.found))
        table.add_row(
            f"{low:.3f} to {high:.3f}{' called' if group.called else ''}", f"{group.size:,}",
            f"{group.yes} of {group.answered}", percent(group.expected), share,
        )  # fmt: skip
    return table


def _remarks(found: Any, said: Any, *, trained_on: bool) -> list[str]:
    from pue.app.audit.reading import agree

    lines = []
    c = found.calibration
    if c.low > 0 or c.high < 0:
        lines.append(
            f"Calibration: the model expects {'fewer' if c.low > 0 else 'more'} positives among unlabeled rows than "
            f"there are, by {100 * abs(c.value):.1f} points [{100 * c.low:.1f}, {100 * c.high:.1f}]."
        )
    wrong = [name for name, estimate in found.quantities().items() if name in said and not agree(estimate, said[name])]
    if wrong:
        lines.append(
            f"Found and promised disagree in {', '.join(wrong)}: believe what was found. pue fit --audit learns it."
        )
    if found.n_unknown:
        ends = "; ".join(f"{name} {100 * low:.1f} to {100 * high:.1f} %" for name, (low, high) in found.bounds.items())
        lines.append(
            f"{found.n_unknown} rows have no answer and are taken to be like the others of their group. If they are "
            f"not, at worst: {ends}."
        )
    if trained_on:
        lines.append(
            "These are rows the model was trained on: found is what it does on them; it was promised for new rows."
        )
    return lines
