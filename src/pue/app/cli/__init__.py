"""The command `pue`: parse, call one function, print. A command is a file here and a line in `COMMANDS`.

Commands import what they need when they run, so that `--help` and completion need not wait for torch.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer
from rich.console import Console

from pue.app.cli.audit import audit
from pue.app.cli.bench import bench
from pue.app.cli.compare import compare
from pue.app.cli.data import data
from pue.app.cli.demo import demo
from pue.app.cli.diagnose import diagnose
from pue.app.cli.evaluate import evaluate
from pue.app.cli.explain import explain
from pue.app.cli.features import features
from pue.app.cli.fit import fit
from pue.app.cli.inspect import inspect
from pue.app.cli.places import claims
from pue.app.cli.predict import predict
from pue.app.cli.report import report
from pue.app.cli.shared import plain
from pue.errors import PueError

COMMANDS: dict[str, Callable[..., Any] | typer.Typer] = {
    "diagnose": diagnose,
    "fit": fit,
    "compare": compare,
    "predict": predict,
    "evaluate": evaluate,
    "audit": audit,
    "explain": explain,
    "report": report,
    "inspect": inspect,
    "features": features,
    "data": data,
    "bench": bench,
    "demo": demo,
}
"""In the order of the help."""

app = typer.Typer(
    help="Positive-unlabeled learning when the labels are biased.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for name, command in COMMANDS.items():
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name)
    else:
        app.command(name)(command)


MEMORY = "Use fewer rows, smaller images (--image-size), or --memory to stream a table."


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit: 0 done, 1 done but something failed, 2 wrong use, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a strange name of a file or column is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    try:
        with claims():
            app(None if arguments is None else list(arguments), prog_name="pue")
    except (PueError, OSError) as error:
        number = os.environ.get("RANK", "0")
        if number.isdigit() and number != "0":  # under torchrun all processes end in it, and one says so
            sys.exit(2)
        plain(Console(stderr=True), f"pue: {error}", "red")
        sys.exit(2)
    except MemoryError as error:
        plain(Console(stderr=True), f"pue: not enough memory{f' ({error})' if str(error) else ''}. {MEMORY}", "red")
        sys.exit(2)
    except RuntimeError as error:
        if "not enough memory" not in str(error) and "can't allocate memory" not in str(error):
            raise
        plain(Console(stderr=True), f"pue: not enough memory (torch). {MEMORY}", "red")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
