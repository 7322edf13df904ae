"""`pue diagnose`: are the labels biased?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pue.app.cli import places, shared
from pue.app.cli.shared import Voice


def diagnose(
    data: shared.Data,
    label: shared.Label,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also as a page: diagnosis.html.")] = None,
    prior: shared.Prior = "estimate",
    propensity: shared.Propensity = "auto",
    labeling_columns: shared.LabelingColumns = None,
    ignore_for_labeling: shared.IgnoreForLabeling = None,
    row_id: shared.Id = None,
    ignore: shared.Ignore = None,
    keep: shared.Keep = None,
    positive: shared.Positive = None,
    truth: shared.Truth = None,
    nodata: shared.NoData = None,
    scenario: shared.ScenarioName = "single_sample",
    labels: shared.Labels = None,
    image_size: shared.ImageSize = None,
    seed: shared.Seed = 0,
    as_json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """Look before learning: are the labels biased, in which columns, how many positives are there, can weights help?

    [bold]Examples[/bold]

      pue diagnose claims.parquet --label fraud

      pue diagnose claims.parquet --label fraud --prior 0.02 -o diagnosis.html
    """
    voice = Voice(as_json=as_json, quiet=quiet)
    if output is not None:
        places.require_page(output)
        places.claim(output)
    from pue.app.cli.terminal import left_out_lines
    from pue.app.origin import facts_of
    from pue.app.preparation import prepare
    from pue.app.rows import read_rows
    from pue.app.summary import diagnosis_summary, json_safe

    roles = shared.roles_of(label, row_id, ignore, truth, propensity, keep, positive, nodata)
    labeling = shared.labeling_of(labeling_columns, ignore_for_labeling)
    recipe = shared.recipe_of(propensity, prior, scenario, seed, **labeling)
    with voice.notes():
        source = shared.open_data(data, labels, image_size, label=label, positive=positive)
        roles = roles.within(source.columns)
    with voice.notes():
        voice.say(f"reading {data}")
        rows = read_rows(source, roles, scenario=scenario, seed=seed)
        found = prepare(rows, recipe, voice.say)
    summary = json_safe(diagnosis_summary(rows, found.diagnosis, facts_of(source, roles), found.report))
    if output is not None:
        from pue.app.page import write_page

        write_page(summary, output)
    voice.show(*left_out_lines(summary["data"]), str(found.diagnosis))
    if output is not None:
        voice.show(f"Page: {output}")
    voice.give(summary)
