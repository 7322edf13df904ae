"""Everything `pue` raises, and how it says what to do about it.

::

    PueError
    ├── InvalidInput (also a ValueError)        an argument or the data cannot be used
    │   └── UnknownName                         no method, backbone, loss … of that name
    ├── MissingData (also a FileNotFoundError)  a data set is not where it was looked for
    ├── ModelError (also a ValueError)          a model cannot be saved, or a folder holds none that can be loaded
    ├── MissingExtra (also an ImportError)      a part of pue whose libraries are not installed
    ├── EngineError (also a RuntimeError)       Ray is not installed, not there, or its workers cannot do the work
    ├── TrainingDiverged (also an ArithmeticError)
    └── CheckpointMismatch (also a RuntimeError)

    PueWarning (a UserWarning)                  the result stands, but look at it twice
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import TypeVar

Value = TypeVar("Value")

EXTRAS = {
    "app": ("jinja2", "lightgbm", "matplotlib", "pandas", "PIL", "pyarrow", "rich", "skops", "skrub", "typer"),
    "bench": ("matplotlib", "PIL", "rich"),
    "boosting": ("lightgbm",),
    "save": ("skops",),
    "search": ("optuna",),
}
"""What `pip install "pue[extra]"` brings, as the modules that the code asks for."""


class PueError(Exception):
    """Base of every error raised on purpose by `pue`."""


class InvalidInput(PueError, ValueError):
    """An argument or the data cannot be used; the message names the remedy."""


class UnknownName(InvalidInput):
    """A name that stands in no registry.

    >>> str(UnknownName("method", "nnpuu", ["upu", "nnpu"]))
    "unknown method 'nnpuu'. Did you mean 'nnpu'? Available: nnpu, upu."
    """

    def __init__(self, kind: str, name: object, available: Iterable[str]) -> None:
        names = sorted(str(choice) for choice in available)
        by_lower = {choice.lower(): choice for choice in names}
        close = difflib.get_close_matches(str(name).lower(), by_lower, n=1, cutoff=0.5)
        hint = f"Did you mean {by_lower[close[0]]!r}? " if close else ""
        super().__init__(f"unknown {kind} {name!r}. {hint}Available: {', '.join(names)}.")


class MissingData(PueError, FileNotFoundError):
    """A data set is not where it was looked for."""


class ModelError(PueError, ValueError):
    """A model that cannot be saved, or a folder that holds none that can be loaded."""


class MissingExtra(PueError, ImportError):
    """Libraries that a part of `pue` needs are not installed; the message has the command that installs them.

    >>> str(MissingExtra("search", ["optuna"]))
    'optuna is not installed. Install it with: pip install "pue[search]"'
    """

    def __init__(self, extra: str, missing: Sequence[str]) -> None:
        are, them = ("is", "it") if len(missing) == 1 else ("are", "them")
        super().__init__(f'{", ".join(missing)} {are} not installed. Install {them} with: pip install "pue[{extra}]"')


class EngineError(PueError, RuntimeError):
    """Ray is not installed, not there, or its workers cannot do the work."""


class TrainingDiverged(PueError, ArithmeticError):
    """The risk or a parameter is no longer finite."""


class CheckpointMismatch(PueError, RuntimeError):
    """A checkpoint that does not belong to this run, or is damaged."""


class PueWarning(UserWarning):
    """The result stands, but deserves a second look."""


def lookup(kind: str, name: str, registry: Mapping[str, Value], *also: str) -> Value:
    """The entry of that name, or an `UnknownName`; `also` are names that are known elsewhere."""
    if name not in registry:
        raise UnknownName(kind, name, [*registry, *also])
    return registry[name]


def require(extra: str, *modules: str) -> None:
    """A `MissingExtra` unless these modules of an extra, by default all of them, can be imported; imports nothing."""
    missing = [module for module in modules or EXTRAS[extra] if find_spec(module) is None]
    if missing:
        raise MissingExtra(extra, missing)
