"""`pue predict`: score rows with a model."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pue.app.cli import places, shared
from pue.app.cli.shared import Voice
from pue.errors import InvalidInput


def predict(
    model: Annotated[Path, typer.Argument(help="Folder of the model.", show_default=False)],
    data: shared.Data,
    output: Annotated[Path, typer.Option("--output", "-o", help=".csv, .csv.gz, .parquet, .feather, or - for stdout.")],
    row_id: shared.Id = None,
    nodata: shared.NoData = None,
    threshold: Annotated[
        str | None, typer.Option(help="f1, half, prior, or a probability; default: the model's.")
    ] = None,
    target_precision: Annotated[
        float | None, typer.Option(help="The lowest threshold with this estimated precision.")
    ] = None,
    budget: Annotated[int | None, typer.Option(help="Call the K best rows without a label positive.", min=1)] = None,
    posterior: Annotated[
        bool, typer.Option("--posterior", help="Also P(positive | not labeled), for rows of the training pool.")
    ] = False,
    explain: Annotated[
        int | None, typer.Option(help="Also the K columns that moved each positive row's score most.", min=1)
    ] = None,
    seed: shared.Seed = 0,
    engine: shared.Engine = "local",
    address: shared.Address = None,
    workers: shared.Workers = None,
    labels: shared.Labels = None,
    image_size: shared.ImageSize = None,
    as_json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """Score rows: P(positive) and a decision for each, in their order, in memory that does not grow with the rows.

    [bold]Examples[/bold]

      pue predict model new.parquet -o scores.parquet

      pue predict model new.csv -o scores.csv --id claim --target-precision 0.95

      pue predict model pool.parquet -o next.csv --budget 500 --posterior

      pue predict model claims.csv -o why.csv --budget 50 --explain 5

      zcat new.csv.gz | pue predict model - -o - | head

      pue predict model "duckdb:///claims.db?query=SELECT * FROM claims" -o scores.parquet

      pue predict model /shared/rows -o scores.parquet --engine ray --address head:6379
    """
    voice = Voice(as_json=as_json, quiet=quiet)
    if output == places.STANDARD:
        voice.out = voice.err  # the rows have standard output to themselves
        if as_json:
            raise InvalidInput("rows and --json cannot both go to standard output. Write the rows to a file.")
    if sum(choice is not None for choice in (threshold, target_precision, budget)) > 1:
        raise InvalidInput("--threshold, --target-precision and --budget are three ways to decide: pass one of them.")
    places.require_shared_rows(engine, data)
    places.require_apart(output, model, data)
    if output != places.STANDARD and output.absolute().parent.is_dir():  # else it is an error soon: no folder is made
        places.require_place(output)
        places.claim(output)
    from pue.app.cli.decisions import budget_lines, precision_line
    from pue.app.model import load_model
    from pue.app.predict import predict_source, score_batches
    from pue.app.ray_predict import score_on
    from pue.engines import open_engine

    with voice.notes():
        fitted = shared.without_nodata(load_model(model), nodata)
    if target_precision is not None or threshold is not None:
        fitted = fitted.with_threshold(shared.number_or_name(threshold or "f1"), precision=target_precision)
    with voice.notes():
        source = shared.open_data(data, labels, image_size, fitted)
    columns = (TextColumn("scoring"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    silent = voice.progress is False or not voice.err.is_terminal
    with (
        voice.notes(),
        open_engine(engine, address, workers) as cluster,
        Progress(*columns, console=voice.err, transient=True, disable=silent) as bar,
        places.destination(output) as target,
    ):
        task = bar.add_task("", total=source.n_rows)
        done = predict_source(
            fitted,
            source,
            target,
            row_id=row_id,
            posterior=posterior,
            budget=budget,
            progress=lambda rows: bar.update(task, completed=rows),
            score=score_batches if cluster is None else partial(score_on, cluster),
            seed=seed,
            explained=explain or 0,
        )
    n, called, at = done["rows"], done["positive"], done["threshold"]
    share = called / n if n else 0.0
    voice.show(f"{n:,} rows scored, {called:,} ({share:.1%}) called positive at {at:.3f}: {output}")
    voice.show(*budget_lines(done), *([] if target_precision is None else [precision_line(fitted)]))
    voice.give(done)
