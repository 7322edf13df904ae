"""`pue bench`: run the experiments of the paper."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from pue.cli import shared
from pue.errors import InvalidInput

if TYPE_CHECKING:
    from pue.experiments import Outcome, Spec

HELP = """Run a suite of experiments, or those runs of it that have no record yet.

Suites: mnist, cifar10, alzheimer, alzheimer-severity, negatives, mix-ablation, alpha-ablation, supplement, digits.

Every run leaves one JSON record in OUT/SUITE. A bench that was stopped or killed continues where it was; two benches
on one folder share the work.

[bold]Examples[/bold]

  pue bench digits --preset smoke

  pue bench mnist --seeds 6 --data DATA

  pue bench cifar10 --methods nnpu,distpu --seeds 0,1,2 --jobs 2

  pue bench mix-ablation --dataset mnist --dry-run

  pue bench mnist --seeds 6 --engine ray --address head:6379 --out /shared/runs

  pue bench mnist --methods nnPUe --set epochs=20 --set propensity.folds=5 --out trials
"""


def bench(
    suite: Annotated[str | None, typer.Argument(help="Which suite.", show_default=False)] = None,
    methods: Annotated[
        str, typer.Option(help="Only these rows, by method (nnpu) or name (nnPUe), with commas.", show_default="all")
    ] = "",
    seeds: Annotated[
        str | None, typer.Option(help="How many seeds (6), or which (0,1,2 or 3-5).", show_default="6")
    ] = None,
    preset: Annotated[str, typer.Option(help="paper, fast or smoke.")] = "fast",
    dataset: Annotated[str | None, typer.Option(help="Another data set, where the suite has several.")] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Processes, one thread each; 0: none but this.", show_default="cores")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume/--fresh", help="Keep records there are, or compute anew.")] = True,
    out: Annotated[Path, typer.Option(help="Folder of the records.")] = Path("runs"),
    data: Annotated[Path | None, typer.Option(help="Folder of the data sets.", show_default="PUE_DATA")] = None,
    spec: Annotated[list[Path] | None, typer.Option(help="Runs from TOML files instead of a suite.")] = None,
    changes: Annotated[list[str] | None, typer.Option("--set", help="Change a setting: epochs=5.")] = None,
    engine: shared.Engine = "local",
    address: shared.Address = None,
    workers: shared.Workers = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the runs and their keys.")] = False,
) -> None:
    from pue.experiments import Place, Store, execute

    console, errors = Console(), Console(stderr=True)
    if not console.is_terminal:  # nobody's window: no reason to fold the table
        console = Console(width=160)
    folder, specs = _specs(suite, methods, seeds, preset, dataset, spec or [], parse_changes(changes or []))
    place = Place(folder, Store(out), data)
    if dry_run:
        _list(specs, place, console)
        return
    shared.require_no_jobs(engine, jobs is not None)
    jobs = (os.cpu_count() or 1) if jobs is None else jobs
    if jobs < 0:
        raise InvalidInput(f"jobs must not be negative; got {jobs}.")
    from pue.cli.live import summary, watching
    from pue.engines import open_engine

    with open_engine(engine, address, workers) as cluster:
        if not resume:
            _forget(specs, place)
        _report_damage(specs, place, errors)
        with watching(specs, jobs if cluster is None else cluster.workers, errors) as watch:
            outcomes = execute(specs, place, jobs=jobs, watch=watch, cluster=cluster)
    console.print(summary(outcomes))
    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    _report_failures(failed, errors)
    raise typer.Exit(1 if failed else 0)


bench.__doc__ = HELP


def _specs(
    suite: str | None,
    methods: str,
    seeds: str | None,
    preset: str,
    dataset: str | None,
    files: list[Path],
    changes: dict[str, Any],
) -> tuple[str, list[Spec]]:
    """The name of the folder and the runs."""
    from pue.experiments import read_spec, resolve
    from pue.experiments.suites import changed, with_seeds

    if files:
        found = changed([read_spec(file) for file in files], changes)
        return suite or "custom", found if seeds is None else with_seeds(found, parse_seeds(seeds))
    if suite is None:
        raise InvalidInput("which suite? Try `pue bench digits`, or `pue bench --help` for all of them.")
    names = [name.strip() for name in methods.split(",") if name.strip()]
    numbers = parse_seeds(seeds or "6")
    return suite, resolve(suite, preset=preset, dataset=dataset, methods=names, seeds=numbers, changes=changes)


def parse_seeds(text: str) -> list[int]:
    """
    >>> parse_seeds("3"), parse_seeds("0,4"), parse_seeds("3-5"), parse_seeds("7,")
    ([0, 1, 2], [0, 4], [3, 4, 5], [7])
    """
    try:
        if "," in text:
            return [int(part) for part in text.split(",") if part.strip()]
        if "-" in text:
            first, last = (int(part) for part in text.split("-"))
            return _some(list(range(first, last + 1)), text)
        return _some(list(range(int(text))), text)
    except ValueError:
        raise InvalidInput(f"seeds must be a number (6), a list (0,1,2) or a range (3-5); got {text!r}.") from None


def _some(seeds: list[int], text: str) -> list[int]:
    if not seeds:
        raise ValueError(text)
    return seeds


def parse_changes(pairs: list[str]) -> dict[str, Any]:
    """
    >>> parse_changes(["epochs=5", "backbone=mlp", "rows=none", "labels.mix=[0.5, 0.5]"])
    {'epochs': 5, 'backbone': 'mlp', 'rows': None, 'labels.mix': [0.5, 0.5]}
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip():
            raise InvalidInput(f"--set takes name=value, for example --set epochs=5; got {pair!r}.")
        found[name.strip()] = _value(text.strip())
    return found


def _value(text: str) -> Any:
    if text.lower() == "none":
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _list(specs: list[Spec], place: Any, console: Console) -> None:
    from pue.experiments import row_name

    for spec in specs:
        state = "done" if place.store.run(place.suite, spec).valid() else "to do"
        line = f"{spec.key[:12]}  {state:5}  seed {spec.seed}  {row_name(spec)}  ({spec.name})"
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    console.print(f"{len(specs)} runs", highlight=False)


def _forget(specs: list[Spec], place: Any) -> None:
    """Delete the records of these runs and the propensities they share."""
    from pue.experiments.propensities import propensity_identity

    entries = [place.store.run(place.suite, spec) for spec in specs]
    entries += [place.store.propensity(propensity_identity(spec)) for spec in specs if spec.estimates]
    for entry in entries:
        with entry.claim(wait=True):
            entry.path.unlink(missing_ok=True)


def _report_damage(specs: list[Spec], place: Any, errors: Console) -> None:
    from pue.experiments import Damaged

    for spec in specs:
        try:
            place.store.run(place.suite, spec).read()
        except Damaged as error:
            errors.print(f"{error} It will be computed anew.", style="yellow", markup=False, soft_wrap=True)


def _report_failures(failed: list[Outcome], errors: Console) -> None:
    from pue.experiments import row_name

    for outcome in failed:
        errors.print(
            f"failed: {row_name(outcome.spec)} seed {outcome.spec.seed} ({outcome.spec.name}): {outcome.error}",
            style="red",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
