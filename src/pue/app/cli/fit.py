"""`pue fit`: from a table or images to a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pue.app.cli import places, shared
from pue.app.cli.shared import Voice
from pue.errors import InvalidInput


def fit(
    data: shared.Data,
    label: shared.Label,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the model.")],
    prior: shared.Prior = "estimate",
    method: shared.Method = "auto",
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
    threshold: Annotated[str, typer.Option(help="f1, half, prior, or a probability.")] = "f1",
    target_precision: Annotated[
        float | None, typer.Option(help="Instead: the lowest threshold with this estimated precision.")
    ] = None,
    audit: Annotated[
        list[Path] | None,
        typer.Option(help="Answers about these rows, a sheet of pue audit plan; once for each.", show_default="none"),
    ] = None,
    calibration: Annotated[str, typer.Option(help="auto, platt or isotonic.")] = "auto",
    epochs: shared.Epochs = None,
    time_budget: shared.TimeBudget = None,
    jobs: shared.Jobs = 1,
    memory: Annotated[
        str | None,
        typer.Option(help="What the rows may take, such as 4GB; more rows are streamed.", show_default="half of it"),
    ] = None,
    engine: shared.Engine = "local",
    address: shared.Address = None,
    workers: shared.Workers = None,
    labels: shared.Labels = None,
    image_size: shared.ImageSize = None,
    seed: shared.Seed = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace a model that is there.")] = False,
    as_json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """Train a model from known positives and everything else, and say how good it is, without a single negative.

    Only the label column must be named: the share of positives and the bias of the labels are estimated, columns of
    any kind become features, probabilities are calibrated, and a threshold is chosen. The model is a folder; nothing is
    written before it is complete.

    [bold]Examples[/bold]

      pue fit claims.parquet --label fraud -o model

      pue fit patients.csv --label diagnosed --id patient --ignore ward --prior 0.12 -o model

      pue fit claims.parquet --label fraud --method boosting --target-precision 0.9 -o model

      pue fit claims.parquet --label fraud --labeling-columns region,amount -o model

      pue fit claims.parquet --label fraud --id claim --audit to_check.csv -o better

      pue fit s3://bucket/claims.parquet --label fraud -o model

      pue fit "duckdb:///claims.db?query=SELECT * FROM claims WHERE year = 2025" --label fraud -o model

      pue fit events/ --label fraud --memory 1GB -o model

      torchrun --nproc-per-node 4 -m pue fit events/ --label fraud -o model

      pue fit events/ --label fraud -o model --engine ray --address head:6379 --workers 8

      pue fit scans/ --labels scans.csv --label positive --image-size 64 --time-budget 10m -o model
    """
    first = shared.rank() == 0  # of the processes that torchrun starts, one speaks and writes
    voice = Voice(as_json=as_json and first, quiet=quiet or not first)
    places.require_new_model(output, force)
    shared.require_no_jobs(engine, jobs != 1)
    places.require_shared_rows(engine, data)
    if first:
        places.claim(output)
    if audit and (engine != "local" or prior != "estimate"):
        raise InvalidInput(
            "--audit finds the prior and learns on this machine: leave out --prior and --engine. Elsewhere give the "
            "prior that pue audit read finds, without --audit."
        )
    from pue.app.cli.decisions import precision_line
    from pue.app.cli.terminal import metrics_table, model_lines
    from pue.app.fit_source import fit_source
    from pue.app.ray_fit import Job, fit_on
    from pue.core.machine import parse_bytes, parse_seconds
    from pue.engines import open_engine
    from pue.training.processes import process_group

    allowed = None if memory is None else parse_bytes(memory)
    roles = shared.roles_of(label, row_id, ignore, truth, propensity, keep, positive, nodata)
    time = {"epochs": epochs, "time_budget": None if time_budget is None else parse_seconds(time_budget)}
    training = {"method": method, **time, "jobs": jobs, "progress": voice.progress}
    labeling = shared.labeling_of(labeling_columns, ignore_for_labeling)
    decision = {"threshold": shared.number_or_name(threshold), "precision": target_precision}
    others = {"calibration": calibration, **training, **labeling, **decision}
    recipe = shared.recipe_of(propensity, prior, scenario, seed, **others)
    with voice.notes():
        source = shared.open_data(data, labels, image_size, label=label, positive=positive)
        roles = roles.within(source.columns)
    with voice.notes(), open_engine(engine, address, workers) as cluster, process_group():
        if cluster is None:
            model = fit_source(source, roles, recipe, memory=allowed, audit=audit or (), say=voice.say)
        else:
            voice.say(f"training by {cluster.workers} workers of Ray")
            output.absolute().parent.mkdir(parents=True, exist_ok=True)
            job = Job(Path(data), roles, recipe, allowed, labels, image_size)
            model = fit_on(cluster, job, output.absolute().parent)
        if not first:
            return
        voice.say(f"writing {output}")
        model.save(output)
    voice.show(*model_lines(model), metrics_table(model.summary["metrics"], model.summary.get("scar_metrics")))
    if target_precision is not None:
        voice.show(precision_line(model))
    voice.show(f"Model: {output}. Next: pue report {output} -o page.html, pue predict {output} DATA -o scores.parquet")
    voice.give({"model": str(output), **model.summary})
