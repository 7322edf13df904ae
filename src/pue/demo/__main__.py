"""The demo: biased labels on scikit-learn's digits, offline, in about a minute.

    python -m pue.demo --seeds 6 --out demo_output

Even digits are the positives, but two thirds of the labels are zeros. Plain PU learning therefore learns "zero";
weights by inverse propensity repair it. Every training is one process with one thread.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from pue.demo.experiment import MIX, N_LABELED, run_all
from pue.demo.show import accuracy_table, plot_accuracy, plot_shares, share_table


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m pue.demo",
        description="Biased labels on digits: uPU, nnPU and Dist-PU, plain and weighted by inverse propensity.",
        epilog="example: python -m pue.demo --seeds 3 --out my_plots",
    )
    parser.add_argument("--seeds", type=int, default=6, help="repetitions (default 6)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: all cores)")
    parser.add_argument("--out", type=Path, default=Path("demo_output"), help="folder for the plots")
    args = parser.parse_args(arguments)
    if args.seeds < 1 or args.jobs < 1:
        parser.error("--seeds and --jobs must be at least 1")
    console = Console()
    console.print(
        f"Even against odd digits. {N_LABELED} even digits are labeled, in the mix "
        + ", ".join(f"{digit}: {share:.0%}" for digit, share in MIX.items())
        + "; all other rows are unlabeled.\n",
        highlight=False,
    )
    start = time.perf_counter()
    try:
        runs = run_all(args.seeds, args.jobs, console)
    except KeyboardInterrupt:
        console.print("stopped; nothing was written")
        return 130
    console.print(share_table(runs))
    console.print(accuracy_table(runs))
    plot_shares(runs, args.out / "weights.png")
    plot_accuracy(runs, args.out / "accuracy.png")
    console.print(
        f"{len(runs)} trainings in {time.perf_counter() - start:.0f} s. Plots: {args.out / 'weights.png'}, "
        f"{args.out / 'accuracy.png'}",
        highlight=False,
        soft_wrap=True,
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
