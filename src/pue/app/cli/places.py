"""Where commands read and write: places that are checked before the work, and claimed while it lasts."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pue.errors import InvalidInput
from pue.files.paths import real

PAGES = (".html", ".htm")
STANDARD = Path("-")
"""Standard input or output."""
_CLAIMS: list[ExitStack] = []


@contextmanager
def destination(output: Path) -> Iterator[Path]:
    """Where rows are written: `output`, or for "-" a file that goes to standard output when it is complete."""
    if output != STANDARD:
        yield output
        return
    with tempfile.TemporaryDirectory(prefix="pue-") as folder:
        path = Path(folder) / "scores.csv"
        yield path
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()


def require_new_model(path: Path, force: bool) -> None:
    """A model is not replaced by accident, and another thing never: said before the work, not after."""
    if path.exists() and not force:
        raise InvalidInput(f"{path} is there already. Choose another name, or pass --force to replace a model.")
    require_place(path)
    if force:
        from pue.persistence.folder import require_replaceable

        require_replaceable(path)


def claim(output: Path) -> None:
    """Until the command ends nobody else makes this output; `Busy` where somebody is making it now."""
    from pue.files import making

    if _CLAIMS:
        _CLAIMS[-1].enter_context(making(output))


@contextmanager
def claims() -> Iterator[None]:
    """Around a command: what it claims is free again when it ends."""
    with ExitStack() as stack:
        _CLAIMS.append(stack)
        stack.callback(_CLAIMS.pop)
        yield


def require_place(path: Path) -> None:
    """The nearest folder above that exists may be written to."""
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise InvalidInput(f"{path} cannot be written: {above} is no folder that you may write to. Choose another.")


def require_page(path: Path) -> None:
    if path.suffix not in PAGES or path.is_dir():
        raise InvalidInput(f"cannot write {path.name!r}: it must be the name of a page, such as page.html.")
    require_place(path)


def on_disk(data: str) -> bool:
    """Whether rows are named by a file or folder: neither standard input nor an address."""
    from pue.app.sources.addresses import is_address

    return Path(data) != STANDARD and not is_address(data)


def require_apart(output: Path, model: Path, data: str | None = None) -> None:
    """A result replaces no input and does not become part of one: folders are read as a whole."""
    for given in (model, *([Path(data)] if data is not None and on_disk(data) else [])):
        if real(output).is_relative_to(real(given)):
            raise InvalidInput(f"{output} would replace {given} or become a part of it. Choose another place.")


def require_shared_rows(engine: str, data: str) -> None:
    """Workers of Ray find rows by the name of their file."""
    if engine == "ray" and not on_disk(data):
        raise InvalidInput(
            f"with --engine ray the rows lie where every worker finds them. Copy {data} to such a place first."
        )
