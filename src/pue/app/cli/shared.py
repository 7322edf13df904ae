"""What the commands on a user's own data share: their options, what they say, and how."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, RenderableType

from pue.errors import InvalidInput, ModelError, PueError, PueWarning

if TYPE_CHECKING:
    from pue.app.model import PUModel
    from pue.app.recipe import Recipe
    from pue.app.roles import Roles
    from pue.app.sources.opening import Source

Data = Annotated[
    str,
    typer.Argument(
        help="CSV, TSV, JSON lines, Parquet, Feather, xlsx, ods, .npy, .npz; a folder of Parquet or images; "
        "- for stdin; an address such as s3://bucket/rows.parquet; duckdb:///file.db?query=SELECT …",
        show_default=False,
    ),
]
Label = Annotated[
    str, typer.Option(help="Column that marks known positives: 1/0, true/false, yes/empty; -1 for known negatives.")
]
Id = Annotated[str | None, typer.Option("--id", help="Column that names rows; kept beside scores, never a feature.")]
Ignore = Annotated[list[str] | None, typer.Option(help="Column that is not a feature; once for each.")]
Positive = Annotated[
    str | None, typer.Option(help="The word that marks labeled positives, if the label column holds words: fraud.")
]
Keep = Annotated[
    list[str] | None, typer.Option(help="Column to learn from although it looks like a leak or an id; once for each.")
]
Truth = Annotated[str | None, typer.Option(help="Column of true classes, if there is one; never a feature.")]
NoData = Annotated[
    list[float] | None, typer.Option("--nodata", help="Number that means 'missing', such as -9999; once for each.")
]
Prior = Annotated[
    str, typer.Option(help="Share of positives among all rows, or how to estimate it: estimate, elkan_noto, …")
]
Method = Annotated[str, typer.Option(help="auto, nnpu, distpu, pubn, …, blend, forest, boosting or logistic.")]
LabelingColumns = Annotated[
    str | None,
    typer.Option(help="Columns the labeling depends on, if you know them: region,age.", show_default="any"),
]
IgnoreForLabeling = Annotated[str | None, typer.Option(help="Or columns it cannot depend on.", show_default="none")]
Propensity = Annotated[
    str, typer.Option(help="auto, none (labels are unbiased), a name, or column:COL for known propensities.")
]
ScenarioName = Annotated[
    str, typer.Option("--scenario", help="single_sample, or case_control: labeled rows collected beside the others.")
]
Labels = Annotated[Path | None, typer.Option("--labels", help="CSV with a column 'file', for a folder of images.")]
ImageSize = Annotated[int | None, typer.Option(help="Height and width that images are resized to.", min=1)]
Epochs = Annotated[int | None, typer.Option(help="Of a network's training.", show_default="by size", min=1)]
TimeBudget = Annotated[
    str | None, typer.Option(help="Or epochs that fit into a time: 90s, 10m.", show_default="about 1m for images")
]
Jobs = Annotated[int, typer.Option(help="Processes for held-out scores.", min=1)]
Seed = Annotated[int, typer.Option(help="Same seed, same result.", min=0, max=2**32 - 1)]
Engine = Annotated[str, typer.Option(help="Who does the work: local, or ray, here or on a cluster.")]
Address = Annotated[
    str | None, typer.Option(help="With --engine ray: host:port or auto.", show_default="a Ray of its own")
]
Workers = Annotated[
    int | None, typer.Option(help="With --engine ray: tasks at once.", show_default="the cluster's CPUs", min=1)
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]


MINUTE = 60.0


def plain(console: Console, text: str, style: str | None = None) -> None:
    """Text as it is, names of files and columns in it too: no markup, no colors of numbers, no folded lines."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


class Voice:
    """Where a command speaks: results to stdout, what happens meanwhile to stderr, and neither if it is quiet."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json, self.quiet = as_json, quiet
        self.out, self.err = Console(), Console(stderr=True)
        if not self.out.is_terminal:  # nobody's window: no reason to fold lines
            self.out = Console(width=120)

    @property
    def progress(self) -> bool | float:
        """Whether training shows a bar on a terminal, and elsewhere a line a minute."""
        return False if self.quiet or self.as_json else MINUTE

    def say(self, text: str) -> None:
        """What happens next."""
        if not (self.quiet or self.as_json):
            self.err.print(f"… {text}", style="dim", markup=False, highlight=False)

    def show(self, *things: RenderableType) -> None:
        """A result, for people."""
        if not (self.quiet or self.as_json):
            for thing in things:
                self.out.print(thing, markup=False, highlight=False, soft_wrap=isinstance(thing, str))

    def give(self, values: Any) -> None:
        """A result, for scripts."""
        if self.as_json:
            from pue.app.summary import json_safe

            typer.echo(json.dumps(json_safe(values), indent=2, ensure_ascii=False, default=str))

    @contextmanager
    def notes(self) -> Iterator[None]:
        """Warnings of the library as notes on stderr, each once, also where an error follows."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", PueWarning)
            try:
                yield
            finally:
                texts = dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, PueWarning))
                for text in () if self.quiet else texts:
                    plain(self.err, f"note: {text}", "yellow")


def open_data(
    data: str,
    labels: Path | None,
    image_size: int | None,
    model: PUModel | None = None,
    label: str | None = None,
    positive: str | None = None,
) -> Source:
    """Rows; a folder's images get the size that a model was trained on. Where a `label` column is named and a table
    lists positives alone, the other images of the folder are unlabeled."""
    from pue.app.sources.opening import here, open_source
    from pue.app.sources.relabeled import as_labeled

    path = here(data)
    if image_size is None and model is not None and model.image_shape is not None and path.is_dir():
        _, height, width = model.image_shape
        return open_source(path, labels=labels, image_size=(height, width))
    source = open_source(path, labels=labels, image_size=image_size)
    if model is not None and model.facts.get("positive") and model.facts["label"] in source.columns:
        label, positive = model.facts["label"], model.facts["positive"]
    found: Source = source if label is None else as_labeled(source, label, positive)
    return found


def roles_of(
    label: str,
    row_id: str | None,
    ignore: list[str] | None,
    truth: str | None,
    propensity: str,
    keep: list[str] | None = None,
    positive: str | None = None,
    nodata: list[float] | None = None,
) -> Roles:
    """Which column means what, and which numbers mean nothing."""
    from pue.app.roles import Roles

    kind, _, column = propensity.partition(":")
    if kind == "column" and not column:
        raise InvalidInput("--propensity column:COL needs the name of the column.")
    known = column if kind == "column" else None
    return Roles(
        label, row_id, tuple(ignore or ()), known, truth, tuple(keep or ()), positive, nodata=tuple(nodata or ())
    )


def without_nodata(model: PUModel, nodata: list[float] | None) -> PUModel:
    """The model, told of more numbers that mean a missing value than its training knew."""
    if not nodata:
        return model
    from dataclasses import replace

    if model.vectorizer is None:
        raise InvalidInput("--nodata is for tables: images have no missing values.")
    return replace(model, vectorizer=model.vectorizer.with_nodata(nodata))


def labeling_of(columns: str | None, ignore: str | None) -> dict[str, Any]:
    """Names with commas between them, as a recipe takes them."""
    given = {"labeling_columns": columns, "ignore_for_labeling": ignore}
    parts = {option: (text or "").split(",") for option, text in given.items()}
    return {option: tuple(name.strip() for name in names if name.strip()) for option, names in parts.items()}


def recipe_of(propensity: str, prior: str, scenario: str, seed: int, **others: Any) -> Recipe:
    """The settings of a fit; known propensities are a column's business, none take the labels as unbiased."""
    from pue.app.recipe import Recipe

    estimator = None if propensity == "none" or propensity.partition(":")[0] == "column" else propensity
    return Recipe(propensity=estimator, prior=number_or_name(prior), scenario=scenario, seed=seed, **others)


def require_no_jobs(engine: str, given: bool) -> None:
    """Two ways to say how much is done at once would contradict each other."""
    if engine == "ray" and given:
        raise InvalidInput("--jobs is of the engine local. With --engine ray say --workers.")


def number_or_name(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def rank() -> int:
    """The number of this process among those that torchrun started; 0 if it did not."""
    for name in ("RANK", "WORLD_SIZE"):
        given = os.environ.get(name, "0")
        if not given.isascii() or not given.isdigit():
            raise InvalidInput(
                f"the environment variable {name} is {given!r}, no number. Only torchrun sets it: unset it."
            )
    return int(os.environ.get("RANK", "0"))


@contextmanager
def showing(model: Path) -> Iterator[None]:
    """A summary holds plain values of no fixed type; one that cannot be shown was not written by this version."""
    try:
        yield
    except (PueError, OSError):
        raise
    except Exception as error:
        raise ModelError(
            f"the summary of {model} cannot be shown ({type(error).__name__}: {error}): it was altered, or another "
            "version of pue wrote it. Fit the model again."
        ) from error
