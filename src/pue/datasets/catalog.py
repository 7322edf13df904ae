"""What data sets there are, and which of them lie at hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from pue.datasets.fetch import RECIPES
from pue.datasets.labeled import data_home
from pue.errors import MissingData


@dataclass(frozen=True)
class Entry:
    """A data set at a glance."""

    name: str
    train: int
    test: int
    shape: tuple[int, ...]
    positive: tuple[int, ...]
    task: str
    place: str = ""
    """Where its files are (their content is not read here), or how to get them."""
    found: bool = False


ENTRIES = (
    Entry("digits", 1257, 540, (64,), (0, 2, 4, 6, 8), "even digits"),
    Entry("mnist", 60_000, 10_000, (1, 28, 28), (0, 2, 4, 6, 8), "even digits"),
    Entry("fashion_mnist", 60_000, 10_000, (1, 28, 28), (0, 2, 4, 6), "T-shirt, pullover, coat, shirt"),
    Entry("cifar10", 50_000, 10_000, (3, 32, 32), (0, 1, 8, 9), "airplane, automobile, ship, truck"),
    Entry("alzheimer", 5121, 1279, (1, 224, 224), (1, 2, 3), "dementia of any degree"),
)


def available(folder: str | Path | None = None) -> list[Entry]:
    """All data sets, with what is in `folder` or PUE_DATA.

    >>> [entry.name for entry in available("/nowhere") if entry.found]
    ['digits']
    """
    return [_looked_up(entry, folder) for entry in ENTRIES]


def _looked_up(entry: Entry, folder: str | Path | None) -> Entry:
    recipe = RECIPES.get(entry.name)
    if recipe is None:
        return replace(entry, place="part of scikit-learn", found=True)
    try:
        home = data_home(entry.name, folder)
    except MissingData as error:
        return replace(entry, place=str(error))
    if len(recipe.found(home)) == len(recipe.files):
        return replace(entry, place=str(home), found=True)
    get = f"pue data get {entry.name}"
    return replace(entry, place=get if recipe.sources else f"by hand: {get} says how")
