"""Benchmarks of pue. Every number is a ratio, measured in this one run; README.md says what each means.

examples:
  python benchmarks/run.py                       everything, in about thirteen minutes
  python benchmarks/run.py --quick               everything on small problems, for a look
  python benchmarks/run.py --only step,loader    some of it
  python benchmarks/run.py --markdown            the table of README.md
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
from collections.abc import Callable, Iterator, Sequence

import faster
import imports
import loader
import memory
import sarem
import scaling
import step
import torch
from measure import Result

BENCHMARKS: dict[str, Callable[[bool], Iterator[Result]]] = {
    "step": step.results,
    "loader": loader.results,
    "memory": memory.results,
    "scaling": scaling.results,
    "sarem": sarem.results,
    "imports": imports.results,
    "faster": faster.results,
}
COLUMNS = ("benchmark", "case", "ratio", "quartiles", "n", "target", "from")
WIDTHS = (9, 53, 7, 15, 3, 8, 0)


def main() -> None:
    arguments = _arguments()
    torch.set_num_threads(1)
    show = _markdown if arguments.markdown else _plain
    print(_machine() + "\n")
    show(COLUMNS)
    if arguments.markdown:
        show(["---"] * len(COLUMNS))
    for name in arguments.only:
        for result in BENCHMARKS[name](arguments.quick):
            show(_cells(result))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=_names, default=list(BENCHMARKS), metavar="NAMES", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="small problems and few repeats")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no benchmark {', '.join(unknown)}. Choose from {', '.join(BENCHMARKS)}.")
    return names


def _machine() -> str:
    return (
        f"{datetime.date.today()}: {os.cpu_count()} CPU cores, torch {torch.__version__} on {torch.get_num_threads()} "
        f"thread, Python {platform.python_version()}"
    )


def _cells(result: Result) -> list[str]:
    low, high = result.quartiles
    spread = f"{low:.3f} – {high:.3f}"
    return [
        result.benchmark,
        result.case,
        f"{result.median:.3f}",
        spread,
        str(len(result.ratios)),
        result.target,
        result.detail,
    ]


def _plain(cells: Sequence[str]) -> None:
    line = "  ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True))
    print(line.rstrip(), flush=True)


def _markdown(cells: Sequence[str]) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
