"""`pue bench`: run the experiments of the paper."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from pue.app.cli import shared
from pue.app.cli.shared import plain
from pue.errors import InvalidInput
from pue.files.paths import real

if TYPE_CHECKING:
    from pue.bench.execute import Place
    from pue.bench.spec import Spec
    from pue.bench.store import Entry


def bench(
    suite: Annotated[str | None, typer.Argument(help="Which suite.", show_default=False)] = None,
    methods: Annotated[
        str, typer.Option(help="Only these rows, by method (nnpu) or name (nnPUe), with commas.", show_default="all")
    ] = "",
    seeds: Annotated[
        str | None, typer.Option(help="How many seeds (6), or which (0, 0,1,2 or 3-5).", show_default="6")
    ] = None,
    preset: Annotated[
        str, typer.Option(help="paper, fast, best (features learnt once; cifar10, alzheimer) or smoke.")
    ] = "fast",
    dataset: Annotated[str | None, typer.Option(help="Another data set, where the suite has several.")] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Processes, one thread each; 0: none but this.", show_default="cores")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume/--fresh", help="Keep records there are, or compute anew.")] = True,
    out: Annotated[Path, typer.Option(help="Folder of the records.")] = Path("runs"),
    data: Annotated[Path | None, typer.Option(help="Folder of the data sets.", show_default="PUE_DATA")] = None,
    spec: Annotated[list[Path] | None, typer.Option(help="Runs from TOML files instead of a suite.")] = None,
    changes: Annotated[list[str] | None, typer.Option("--set", help="Change a setting: epochs=5.")] = None,
    plugin: Annotated[
        list[Path] | None, typer.Option(help="A Python file that adds methods of yours to METHODS; it is run.")
    ] = None,
    engine: shared.Engine = "local",
    address: shared.Address = None,
    workers: shared.Workers = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the runs and their keys.")] = False,
) -> None:
    """Run a suite of experiments, or those runs of it that have no record yet.

    Suites: mnist, cifar10, alzheimer, alzheimer-subjects, alzheimer-severity, negatives, mix-ablation, alpha-ablation,
    structure, supplement, digits.

    Every run leaves one JSON record in OUT/SUITE. A bench that was stopped or killed continues where it was; two
    benches on one folder share the work.

    [bold]Examples[/bold]

      pue bench digits --preset smoke

      pue bench mnist --seeds 6 --data DATA

      pue bench cifar10 --methods nnpu,distpu --seeds 0,1,2 --jobs 2

      pue bench --plugin mymethod.py --spec mymethod.toml --seeds 0

      pue bench mix-ablation --dataset mnist --dry-run

      pue bench mnist --seeds 6 --engine ray --address head:6379 --out /shared/runs

      pue bench mnist --methods nnPUe --set epochs=20 --set propensity.folds=5 --out trials
    """
    from pue.bench.execute import Place, execute
    from pue.bench.plugins import load_plugins
    from pue.bench.store import Store
    from pue.bench.suites import row_name

    console, errors = Console(), Console(stderr=True)
    if not console.is_terminal:  # nobody's window: no reason to fold the table
        console = Console(width=160)
    plugins = tuple(real(path) for path in plugin or ())
    load_plugins(plugins)
    settings = parse_changes(changes or [])
    folder, specs = _specs(suite, methods, seeds, spec or [], settings, preset=preset, dataset=dataset)
    place = Place(folder, Store(out), data, plugins)
    if dry_run:
        _list(specs, place, console)
        return
    shared.require_no_jobs(engine, jobs is not None)
    jobs = (os.cpu_count() or 1) if jobs is None else jobs
    if jobs < 0:
        raise InvalidInput(f"jobs must not be negative; got {jobs}.")
    from pue.bench.report.live import summary, watching
    from pue.engines import open_engine

    with open_engine(engine, address, workers) as cluster:
        if not resume:
            _forget(specs, place)
        _report_damage(specs, place, errors)
        with watching(specs, jobs if cluster is None else cluster.workers, errors) as watch:
            outcomes = execute(specs, place, jobs=jobs, watch=watch, cluster=cluster)
    console.print(summary(outcomes))
    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    for outcome in failed:
        run = outcome.spec
        plain(errors, f"failed: {row_name(run)} seed {run.seed} ({run.name}): {outcome.error}", "red")
    raise typer.Exit(1 if failed else 0)


def _specs(
    suite: str | None, methods: str, seeds: str | None, files: list[Path], changes: dict[str, Any], **choice: Any
) -> tuple[str, list[Spec]]:
    """The name of the folder and the runs."""
    from pue.bench.spec import read_spec
    from pue.bench.suites import changed, resolve, with_seeds

    if files:
        found = changed([read_spec(file) for file in files], changes)
        return suite or "custom", found if seeds is None else with_seeds(found, parse_seeds(seeds))
    if suite is None:
        raise InvalidInput("which suite? Try `pue bench digits`, or `pue bench --help` for all of them.")
    names = [name.strip() for name in methods.split(",") if name.strip()]
    return suite, resolve(suite, methods=names, seeds=parse_seeds(seeds or "6"), changes=changes, **choice)


MOST_SEEDS = 10_000


def parse_seeds(text: str) -> list[int]:
    """
    >>> parse_seeds("3"), parse_seeds("0"), parse_seeds("0,4"), parse_seeds("3-5"), parse_seeds("7,")
    ([0, 1, 2], [0], [0, 4], [3, 4, 5], [7])
    """
    try:
        if text.strip() == "0":  # no seeds at all is what nobody asks for
            return [0]
        if "," in text:
            return [int(part) for part in text.split(",") if part.strip()]
        first, last = map(int, text.split("-")) if "-" in text else (0, int(text) - 1)
    except ValueError:
        first, last = 0, -1
    if last < first:
        raise InvalidInput(f"seeds must be a number (6), a list (0,1,2) or a range (3-5); got {text!r}.")
    if last - first >= MOST_SEEDS:
        raise InvalidInput(f"{text!r} are more than {MOST_SEEDS:,} seeds. Run a part of them at a time.")
    return list(range(first, last + 1))


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


def _list(specs: list[Spec], place: Place, console: Console) -> None:
    from pue.bench.suites import row_name

    for spec in specs:
        state = "done" if place.store.run(place.suite, spec).valid() else "to do"
        plain(console, f"{spec.key[:12]}  {state:5}  seed {spec.seed}  {row_name(spec)}  ({spec.name})")
    plain(console, f"{len(specs)} runs")


def _forget(specs: list[Spec], place: Place) -> None:
    """Delete the records of these runs and the propensities they share."""
    from pue.bench.propensities import propensity_identity
    from pue.bench.spec import digest

    entries: list[Entry[Any]] = [place.store.run(place.suite, spec) for spec in specs]
    entries += [place.store.propensity(digest(propensity_identity(spec))) for spec in specs if spec.estimates]
    for entry in entries:
        with entry.claim(wait=True):
            entry.path.unlink(missing_ok=True)


def _report_damage(specs: list[Spec], place: Place, errors: Console) -> None:
    from pue.bench.store import Damaged

    for spec in specs:
        try:
            place.store.run(place.suite, spec).read()
        except Damaged as error:
            plain(errors, f"{error} It will be computed anew.", "yellow")
