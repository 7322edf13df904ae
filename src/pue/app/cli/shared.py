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
    Path,
    typer.Argument(
        help="CSV, TSV, Parquet, Feather, .npy or .npz; a folder of Parquet files; or a folder of images with a CSV.",
        show_default=False,
    ),
]
Label = Annotated[
    str, typer.Option(help="Column that marks known positives: 1/0, true/false, yes/empty; -1 for known negatives.")
]
Id = Annotated[str | None, typer.Option("--id", help="Column that names rows; kept beside scores, never a feature.")]
Ignore = Annotated[list[str] | None, typer.Option(help="Column that is not a feature; once for each.")]
Truth = Annotated[str | None, typer.Option(help="Column of true classes, if there is one; never a feature.")]
Prior = Annotated[
    str, typer.Option(help="Share of positives among all rows, or how to estimate it: estimate, elkan_noto, …")
]
Method = Annotated[str, typer.Option(help="auto, nnpu, distpu, pubn, …, forest, boosting or logistic.")]
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
PAGES = (".html", ".htm")


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
    def progress(self) -> bool | None:
        """Whether training shows a bar; None: on a terminal."""
        return False if self.quiet or self.as_json else None

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


def open_data(path: Path, labels: Path | None, image_size: int | None, model: PUModel | None = None) -> Source:
    """Rows; a folder's images get the size that a model was trained on."""
    from pue.app.sources.opening import open_source

    if image_size is None and model is not None and model.image_shape is not None and path.is_dir():
        _, height, width = model.image_shape
        return open_source(path, labels=labels, image_size=(height, width))
    return open_source(path, labels=labels, image_size=image_size)


def roles_of(label: str, row_id: str | None, ignore: list[str] | None, truth: str | None, propensity: str) -> Roles:
    """Which column means what."""
    from pue.app.roles import Roles

    kind, _, column = propensity.partition(":")
    if kind == "column" and not column:
        raise InvalidInput("--propensity column:COL needs the name of the column.")
    return Roles(label, row_id, tuple(ignore or ()), column if kind == "column" else None, truth)


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


def require_new_model(path: Path, force: bool) -> None:
    """A model is not replaced by accident, and another thing never: said before the work, not after."""
    if path.exists() and not force:
        raise InvalidInput(f"{path} is there already. Choose another name, or pass --force to replace a model.")
    require_place(path)
    if force:
        from pue.persistence.folder import require_replaceable

        require_replaceable(path)


def require_place(path: Path) -> None:
    """The nearest folder above that exists may be written to."""
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise InvalidInput(f"{path} cannot be written: {above} is no folder that you may write to. Choose another.")


def require_page(path: Path) -> None:
    if path.suffix not in PAGES or path.is_dir():
        raise InvalidInput(f"cannot write {path.name!r}: it must be the name of a page, such as page.html.")
    require_place(path)


def require_apart(output: Path, *inputs: Path) -> None:
    """A result replaces no input and does not become part of one: folders are read as a whole."""
    for given in inputs:
        if output.resolve().is_relative_to(given.resolve()):
            raise InvalidInput(f"{output} would replace {given} or become a part of it. Choose another place.")


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
