"""`pue diagnose`: are the labels biased?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pue.cli import shared
from pue.cli.shared import Voice

HELP = """Look before learning: are the labels biased, in which columns, how many positives are there, can weights help?

[bold]Examples[/bold]

  pue diagnose claims.parquet --label fraud

  pue diagnose claims.parquet --label fraud --prior 0.02 -o diagnosis.html
"""


def diagnose(
    data: shared.Data,
    label: shared.Label,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also as a page: diagnosis.html.")] = None,
    prior: shared.Prior = "estimate",
    propensity: shared.Propensity = "auto",
    row_id: shared.Id = None,
    ignore: shared.Ignore = None,
    truth: shared.Truth = None,
    scenario: shared.ScenarioName = "single_sample",
    labels: shared.Labels = None,
    image_size: shared.ImageSize = None,
    seed: shared.Seed = 0,
    as_json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    voice = Voice(as_json=as_json, quiet=quiet)
    if output is not None:
        shared.require_page(output)
    from pue.model.basis import prepare
    from pue.model.files import facts_of
    from pue.model.recipe import Recipe
    from pue.model.rows import read_rows
    from pue.model.summary import diagnosis_summary, finite

    columns, estimator = shared.columns_of(label, row_id, ignore, truth, propensity)
    recipe = Recipe(propensity=estimator, prior=shared.number_or_name(prior), scenario=scenario, seed=seed)
    source = shared.open_data(data, labels, image_size)
    with voice.notes():
        voice.say(f"reading {data}")
        rows = read_rows(source, columns, scenario=scenario, seed=seed)
        found = prepare(rows, recipe, voice.say)
    summary = finite(diagnosis_summary(rows, found.diagnosis, facts_of(source, columns), found.report))
    if output is not None:
        from pue.report.page import write_page

        write_page(summary, output)
    voice.show(str(found.diagnosis))
    if output is not None:
        voice.show(f"Page: {output}")
    voice.give(summary)


diagnose.__doc__ = HELP
