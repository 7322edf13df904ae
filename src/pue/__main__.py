"""`python -m pue` and the command `pue`, which is there without `pue[app]` too: it says what is missing."""

from __future__ import annotations

import sys

from pue.errors import MissingExtra


def main() -> None:
    """Hand over to the command line, or say how to install it and exit with 2."""
    try:
        from pue.app.cli import main as run
    except MissingExtra as error:
        sys.stderr.write(f"pue: {error}\n")
        sys.exit(2)
    run()


if __name__ == "__main__":
    main()
