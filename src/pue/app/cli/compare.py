"""`pue compare`: which method suits these rows?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pue.app.cli import places, shared
from pue.app.cli.shared import Voice
from pue.errors import InvalidInput

if TYPE_CHECKING:
    from pue.app.compare import Result


def compare(
    data: shared.Data,
    label: shared.Label,
    candidates: Annotated[str, typer.Option(help="METHOD or METHOD+PROPENSITY, with commas.", show_default="six")] = "",
    by: Annotated[str, typer.Option(help="auc, ap, accuracy or f1.")] = "auc",
    out: Annotated[Path, typer.Option(help="Folder of finished candidates.")] = Path("comparison"),
    fit: Annotated[Path | None, typer.Option("--fit", help="Fit the winner on all rows and write it here.")] = None,
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
    folds: Annotated[int, typer.Option(help="Of the cross-validation.", min=2)] = 5,
    epochs: shared.Epochs = None,
    jobs: shared.Jobs = 1,
    engine: shared.Engine = "local",
    address: shared.Address = None,
    workers: shared.Workers = None,
    labels: shared.Labels = None,
    image_size: shared.ImageSize = None,
    seed: shared.Seed = 0,
    force: Annotated[bool, typer.Option("--force", help="With --fit: replace a model that is there.")] = False,
    as_json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """Compare methods and propensity estimators on your rows by cross-validation, without a single negative.

    A candidate is METHOD or METHOD+PROPENSITY: a name, or "known" with --propensity column:COL. All are judged by the
    same prior and the same propensities. Finished candidates are kept in a folder, so that a comparison that was
    stopped goes on where it was.

    [bold]Examples[/bold]

      pue compare claims.parquet --label fraud

      pue compare claims.parquet --label fraud --candidates nnpu+auto,blend+auto,blend --by f1

      pue compare claims.parquet --label fraud --fit model

      pue compare claims.parquet --label fraud --engine ray --workers 4
    """
    voice = Voice(as_json=as_json, quiet=quiet)
    shared.require_no_jobs(engine, jobs != 1)
    places.require_place(out / "results")
    if fit is not None:
        places.require_new_model(fit, force)
        places.claim(fit)
    from dataclasses import asdict

    from pue.app.cli.terminal import comparison_table
    from pue.app.compare import CANDIDATES, CRITERIA, IMAGE_CANDIDATES, alike, chosen, winner
    from pue.app.compare import compare as run
    from pue.app.fit_source import fit_rows
    from pue.app.rows import read_rows
    from pue.engines import open_engine

    roles = shared.roles_of(label, row_id, ignore, truth, propensity, keep, positive, nodata)
    training = {"folds": folds, "epochs": epochs, "jobs": jobs, "progress": voice.progress}
    labeling = shared.labeling_of(labeling_columns, ignore_for_labeling)
    recipe = shared.recipe_of(propensity, prior, scenario, seed, **labeling, **training)
    with voice.notes():
        source = shared.open_data(data, labels, image_size, label=label, positive=positive)
        roles = roles.within(source.columns)
    usual: Sequence[str] = IMAGE_CANDIDATES if source.kind == "images" else CANDIDATES
    usual = [name.replace("+auto", "+known") if roles.propensity else name for name in usual]
    wanted = [text.strip() for text in candidates.split(",") if text.strip()] or usual

    def done(result: Result, found: bool) -> None:
        voice.say(f"{result.candidate}: {'found' if found else f'{result.seconds:.0f} s'}")

    with voice.notes():
        voice.say(f"reading {data}")
        rows = read_rows(source, roles, scenario=scenario, seed=seed)
        with open_engine(engine, address, workers) as cluster:
            results = run(rows, recipe, wanted, by=by, folder=out, say=voice.say, done=done, cluster=cluster)
        best = winner(results)
        voice.show(comparison_table(results, CRITERIA, by))
        if fit is not None and best is not None:
            fit_rows(source, roles, *chosen(best, rows, recipe), say=voice.say).save(fit)
    if best is None:
        voice.show("No candidate tells rows apart.")
    else:
        others = alike(results, by)[1:]
        doubt = f", though the labels do not tell it from {', '.join(others)}" if others else ""
        voice.show(f"Best: {best}{doubt}." + (f" Model: {fit}" if fit is not None else " Fit it with --fit MODEL."))
    found = [asdict(result) for result in results]
    voice.give(
        {"results": found, "best": best and str(best), "alike": alike(results, by), "model": best and fit and str(fit)}
    )
    if best is None and fit is not None:
        raise InvalidInput("no candidate tells rows apart: there is nothing worth fitting. Label more rows.")
