"""`-` for standard input: its bytes become a file."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import IO

from pue.app.sources.copies import own_folder
from pue.errors import InvalidInput
from pue.files import writing

STANDARD = Path("-")
_MAGIC = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"\x1f\x8b": ".csv.gz", b"PK\x03\x04": ".xlsx"}


def spooled(stream: IO[bytes] | None = None) -> Path:
    """A file that holds what comes in, named after what it is, and gone when the process ends."""
    stream = stream or sys.stdin.buffer
    head = stream.read(1 << 12)
    if not head:
        raise InvalidInput("nothing came in on standard input. Pipe a table into it, or name a file instead of -.")
    path = own_folder() / f"stdin{_suffix(head)}"
    with writing(path) as part, part.open("xb") as file:
        file.write(head)
        shutil.copyfileobj(stream, file)
    return path


def _suffix(head: bytes) -> str:
    """What the first bytes are those of; text is CSV unless it begins with an object.

    >>> _suffix(b'{"a": 1}'), _suffix(b"a;b")
    ('.jsonl', '.csv')
    """
    for magic, suffix in _MAGIC.items():
        if head.startswith(magic):
            return suffix
    return ".jsonl" if head.lstrip().startswith(b"{") else ".csv"
