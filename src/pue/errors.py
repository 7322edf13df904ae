"""Everything `pue` raises, and how it says what to do about it.

::

    PueError
    ├── InvalidInput (also a ValueError)        an argument or the data cannot be used
    │   └── UnknownName                         no method, backbone, loss … of that name
    ├── MissingData (also a FileNotFoundError)  a data set is not where it was looked for
    ├── ModelError (also a ValueError)          a model cannot be saved, or a folder holds none that can be loaded
    ├── EngineError (also a RuntimeError)       Ray is not installed, not there, or its workers cannot do the work
    ├── TrainingDiverged (also an ArithmeticError)
    └── CheckpointMismatch (also a RuntimeError)

    PueWarning (a UserWarning)                  the result stands, but look at it twice
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


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


class EngineError(PueError, RuntimeError):
    """Ray is not installed, not there, or its workers cannot do the work."""


class TrainingDiverged(PueError, ArithmeticError):
    """The risk or a parameter is no longer finite."""


class CheckpointMismatch(PueError, RuntimeError):
    """A checkpoint that does not belong to this run, or is damaged."""


class PueWarning(UserWarning):
    """The result stands, but deserves a second look."""
