"""`python -m pue` and the command `pue`, which is there without `pue[app]` too: it says what is missing."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress
from typing import NoReturn

from pue.errors import MissingExtra


def main() -> None:
    """Hand over to the command line, or say how to install it and exit with 2."""
    try:
        from pue.app.cli import main as run
    except MissingExtra as error:
        sys.stderr.write(f"pue: {error}\n")
        sys.exit(2)
    try:
        run()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            _leave(end.code or 0)
        raise


def _leave(code: int) -> NoReturn:
    """End the process without tearing the interpreter down.

    Native threads of Arrow and Gloo that wake up during the teardown abort the process now and then ("terminate called
    without an active exception", apache/arrow#34314, pytorch/pytorch#190489): a command whose work is done and written
    would end with a signal, and torchrun would call the whole group failed.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # closed, or nobody reads it any more
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
