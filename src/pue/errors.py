"""Everything `pue` raises, and how it says what to do about it.

::

    PueError
    ├── InvalidInput (also a ValueError)        an argument or the data cannot be used
    │   ├── UnknownName                         no method, backbone, loss … of that name
    │   └── ScoreIsNoNumber                     a row's score is NaN or infinite: no decision can rest on it
    ├── MissingData (also a FileNotFoundError)  a data set is not where it was looked for
    ├── Busy                                    another process is making the same thing
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

SHOWN = 5
"""So many names stand in a message at most."""
EXTRAS = {
    "app": ("jinja2", "lightgbm", "matplotlib", "pandas", "PIL", "pyarrow", "rich", "skrub", "typer"),
    "bench": ("matplotlib", "PIL", "rich"),
    "boosting": ("lightgbm",),
    "communities": ("sknetwork",),
    "excel": ("python_calamine",),
    "remote": ("fsspec",),
    "onnx": ("onnxruntime",),
    "search": ("optuna",),
    "sql": ("duckdb",),
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


class ScoreIsNoNumber(InvalidInput):
    """Rows whose score is NaN or infinite; `rows` says which.

    >>> str(ScoreIsNoNumber([3])).split(":")[0]
    'the score of row(s) 3 is no number'
    """

    def __init__(self, rows: Sequence[int]) -> None:
        self.rows = list(rows)
        super().__init__(
            f"the score of row(s) {shown(self.rows)} is no number: the rows hold numbers too large for this model, or "
            "its weights are damaged. Empty or rescale such cells, or fit the model again."
        )


class MissingData(PueError, FileNotFoundError):
    """A data set is not where it was looked for."""


class Busy(PueError):
    """Another process is making the same thing."""


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


def shown(items: Sequence[object], most: int = 5) -> str:
    """The first few, and how many more there are.

    >>> shown([1, 2, 3], most=2)
    '1, 2 and 1 more'
    """
    return ", ".join(map(str, items[:most])) + (f" and {len(items) - most} more" if len(items) > most else "")


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


def listed(names: Sequence[object]) -> str:
    """Some names for a message, and how many more there are.

    >>> listed(["a", "b"])
    "'a', 'b'"
    """
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(repr(name) for name in names[:SHOWN]) + more
