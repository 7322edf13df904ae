"""`pue evaluate`: how good is a model on other rows?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pue.app.cli import shared
from pue.app.cli.shared import Voice


def evaluate(
    model: Annotated[Path, typer.Argument(help="Folder of the model.", show_default=False)],
    data: shared.Data,
    label: Annotated[str | None, typer.Option(help="Column of PU labels; default: the model's.")] = None,
    truth: shared.Truth = None,
    nodata: shared.NoData = None,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    labels: shared.Labels = None,
    image_size: shared.ImageSize = None,
    seed: shared.Seed = 0,
    as_json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """Measure a model on rows it was not trained on: exactly with --truth, else estimated from PU labels.

    Estimates weight the labeled rows by inverse propensity, and come with bootstrap intervals. They are estimates:
    right as far as the propensities and the share of positives are.

    [bold]Examples[/bold]

      pue evaluate model later.parquet

      pue evaluate model audited.csv --truth really_fraud
    """
    voice = Voice(as_json=as_json, quiet=quiet)
    from pue.app.cli.terminal import evaluation_table
    from pue.app.evaluate import evaluate_source
    from pue.app.model import load_model
    from pue.app.origin import same_rows

    with voice.notes():
        fitted = shared.without_nodata(load_model(model), nodata)
        source = shared.open_data(data, labels, image_size, fitted)
        found = evaluate_source(fitted, source, label=label, truth=truth, level=level, seed=seed)
    trained_on = same_rows(fitted, source)
    voice.show(evaluation_table(found))
    if found.labeling_changed and found.labels is not None:
        seen, expected, _ = found.labels
        voice.show(
            f"The labeling has changed: {seen:,} of these rows are labeled, the model expects {expected:,.0f}. What is "
            "estimated from labels rests on chances of a label that no longer hold: fit again."
        )
    if trained_on:
        voice.show("These are the rows the model was trained on: what it says of them is too good. See pue inspect.")
    voice.give({**found.as_dict(), "labeling_changed": found.labeling_changed, "trained_on": trained_on})
