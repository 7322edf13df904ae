"""What can be wrong with a file, said in one voice: its name, what is wrong, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from pue.errors import SHOWN, InvalidInput, MissingData, UnknownName, listed


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Errors of whoever reads `path` become ours; `what` says what the file should have been."""
    try:
        yield
    except PermissionError as error:
        raise InvalidInput(f"{path} may not be read. Allow it, for example with: chmod u+r {path}") from error
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:  # Arrow quotes what is no text
        if isinstance(error, MissingData):
            raise
        raise InvalidInput(
            f"{path} is damaged or not {what} ({first_line(error)}). Write or copy it again, or give it the suffix of "
            "what it is."
        ) from error


def first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0].rstrip(".")


def require_bytes(path: Path) -> None:
    """Refuse what is absent, may not be read, or holds nothing."""
    if not path.exists():
        raise MissingData(f"there is no {path}. {near(path)}")
    if not path.is_file():
        raise InvalidInput(f"{path} is no regular file. Save what it gives to a file, and pass that.")
    with reading(path, "a file"), path.open("rb") as file:
        if not file.read(1):
            raise empty(path, "zero bytes")


def near(path: Path) -> str:
    """The remedy for a name that does not exist: what it may have been meant for."""
    if path.is_symlink():
        return "It is a link that leads nowhere: make it anew, or name the file itself."
    siblings = sorted(sibling.name for sibling in path.parent.iterdir()) if path.parent.is_dir() else []
    close = difflib.get_close_matches(path.name, siblings, n=1, cutoff=0.6)
    return f"Did you mean {close[0]!r}?" if close else "Check the name and the folder."


def suffix_of(path: Path, known: Iterable[str]) -> str:
    """The known suffix that the name ends with; of several, the longest.

    >>> suffix_of(Path("Rows.CSV.gz"), [".gz", ".csv.gz"])
    '.csv.gz'
    """
    fitting = [suffix for suffix in known if path.name.lower().endswith(suffix)]
    if not fitting:
        raise InvalidInput(
            f"{path}: unknown suffix {path.suffix!r}. Known are {', '.join(known)}; convert the file, or give it the "
            "suffix of what it is."
        )
    return max(fitting, key=len)


def empty(path: Path, why: str) -> InvalidInput:
    return InvalidInput(f"{path} is empty ({why}). Pass a table with named columns and at least one row.")


def require_names(path: Path, names: Sequence[str]) -> None:
    """Columns are told apart by their names, so each has one of its own."""
    if not names:
        raise empty(path, "no columns")
    if "" in names:
        raise InvalidInput(
            f"column {names.index('') + 1} of {path} has no name. Name it; if it only numbers the rows, write the "
            "table without it (pandas: index=False; R: row.names=FALSE)."
        )
    if twice := sorted({name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else ()):
        raise InvalidInput(f"{path} has more than one column called {listed(twice)}. Rename or remove them.")


def require_columns(wanted: Sequence[str] | None, names: Sequence[str]) -> list[str]:
    """The columns to read, in the order asked for: all of them unless said otherwise."""
    for name in wanted or ():
        require_column(name, names)
    return list(names if wanted is None else wanted)


def require_column(name: str, names: Sequence[str]) -> None:
    """Refuse a column that is not there; of many names the error lists the nearest.

    >>> require_column("labels", ["age", "Labels"])
    Traceback (most recent call last):
    pue.errors.UnknownName: unknown column 'labels'. Did you mean 'Labels'? Available: Labels, age.
    """
    if name not in names:
        raise UnknownName("column", name, difflib.get_close_matches(name, names, n=4 * SHOWN, cutoff=0))
