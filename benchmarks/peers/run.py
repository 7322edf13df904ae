"""pue beside its peers, on the same data in one run: accuracy, AUC, seconds, memory, with the true classes as judge.

    PUE_DATA=DATA python benchmarks/peers/run.py                     # what has no line in peers.jsonl yet
    python benchmarks/peers/run.py --table                           # only show what is there
    python benchmarks/peers/run.py --out look.jsonl --rows 2000      # everything on few rows, for a look

The first call makes a virtual environment with the peers and this pue in it (benchmarks/peers/.venv). Every (problem,
tool, method, seed) is a process of its own with one thread, one after the other; a line in the output is not measured
again. What fails (an error, too long, too much memory) is a line as well.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import venv
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from show import insert, markdown

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
LIMIT = 900
"""Seconds of processor time after which a run is stopped."""

BOTH = {
    "pue": ["nnPU, 6 layers", "nnPU, linear", "nnPU, linear, batches of 4,096", "Elkan-Noto", "Elkan-Noto, 2 folds"],
    "pulearn": ["nnPU, linear", "nnPU, linear, lr=1", "Elkan-Noto", "Elkan-Noto, weighted", "bagging",
                "bagging, balanced"],
    "pu-toolbox": ["nnPU, 6 layers", "uPU, linear", "Dist-PU", "Self-PU", "Elkan-Noto", "Elkan-Noto, retrained", "PUSB",
                   "PUSB, kernels", "LBE"],
    "cleanlab": ["CleanLearning", "CleanLearning, pulearning=1"],
    "scikit-learn": ["unlabeled as negative"],
}  # fmt: skip
OWN = {
    "mnist": {
        "pue": ["nnPU, preset fast", "nnPUe, preset fast", "Dist-PUe, preset fast", "P-vs-U, preset fast"],
        "pu-toolbox": ["nnPU, 6 layers, 30 epochs"],
    },
    "table": {
        "pue": ["blend, auto", "forest, auto", "boosting, auto", "nnPU", "nnPUe", "nnPUe, SAR-EM",
                "nnPUe, SAR-EM, 6 layers", "nnPUe, double logistic", "nnPUe, double logistic, 6 layers", "Dist-PUe",
                "P-vs-U", "PUWrapper, logistic, auto", "PUWrapper, boosting, auto", "pue fit"],
        "pulearn": ["Elkan-Noto, boosting"],
        "cleanlab": ["CleanLearning, pulearning=1, boosting"],
        "scikit-learn": ["unlabeled as negative, boosting"],
    },
}  # fmt: skip
ONCE = {
    ("mnist", "pu-toolbox", "nnPU, 6 layers, 30 epochs"),
    ("mnist", "pu-toolbox", "LBE"),
    ("table", "pu-toolbox", "PUSB, kernels"),
    ("mnist", "pu-toolbox", "PUSB, kernels"),
}
"""Too slow to be run with every seed."""


@dataclass(frozen=True)
class Job:
    problem: str
    tool: str
    method: str
    seed: int
    rows: int | None = None
    """Fewer rows than the problem has, for a look."""


def jobs(problems: Iterable[str], seeds: int, rows: int | None = None) -> list[Job]:
    """Seed by seed, so that what is cut off is whole seeds; what is slow and run once comes last."""
    all_jobs = [
        Job(problem, tool, method, seed, rows)
        for seed in range(seeds)
        for problem in problems
        for tool, methods in BOTH.items()
        for method in [*methods, *OWN[problem].get(tool, [])]
    ]
    slow = [job for job in all_jobs if (job.problem, job.tool, job.method) in ONCE]
    return [job for job in all_jobs if job not in slow] + [job for job in slow if job.seed == 0]


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def complete(wanted: Iterable[Job], out: Path, measure: Callable[[Job], dict[str, Any]]) -> list[dict[str, Any]]:
    """Every job that has no line yet, one after the other; all lines."""
    records = read(out)
    done = {tuple(record[name] for name in asdict(Job("", "", "", 0))) for record in records}
    for job in wanted:
        if tuple(asdict(job).values()) in done:
            continue
        record = {**asdict(job), **measure(job)}
        records.append(record)
        with out.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(job.problem, job.tool, job.method, job.seed, record.get("error") or f"{record['accuracy']:.2f}",
              file=sys.stderr, flush=True)  # fmt: skip
    return records


def in_a_process(python: Path, limit: int) -> Callable[[Job], dict[str, Any]]:
    """How a job is measured: by one.py. A failure is what its last line says, or what ended it."""

    def measure(job: Job) -> dict[str, Any]:
        command = [str(python), str(HERE / "one.py"), json.dumps({**asdict(job), "limit": limit})]
        ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **ONE_THREAD}, check=False)
        if ended.returncode == 0:
            return dict(json.loads(ended.stdout.splitlines()[-1]))
        return {"error": failure(ended.returncode, ended.stderr, limit)}

    return measure


def failure(code: int, stderr: str, limit: int) -> str:
    """
    >>> failure(-9, "", 900), failure(-24, "", 900), failure(1, "Traceback …\\nValueError: no rows", 900)
    ('killed (SIGKILL)', 'no result after 900 s', 'ValueError: no rows')
    """
    if code == -signal.SIGXCPU:
        return f"no result after {limit} s"
    if code < 0:
        return f"killed ({signal.Signals(-code).name})"
    lines = stderr.strip().splitlines()
    return lines[-1] if lines else f"exit code {code}"


def environment(folder: Path) -> Path:
    """The Python of a virtual environment with torch, the peers and this repository's pue."""
    python = folder / "bin" / "python"
    ready = folder / ".ready"
    wanted = (HERE / "requirements.txt").read_text()
    if ready.exists() and ready.read_text() == wanted:
        return python
    venv.create(folder, with_pip=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--constraint", str(REPOSITORY / "constraints.txt")]
    for packages in (
        ["torch==2.13.0"],
        ["--requirement", str(HERE / "requirements.txt"), "--editable", f"{REPOSITORY}[app]"],
    ):
        subprocess.run([*install, *packages], check=True)
    ready.write_text(wanted)
    return python


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", choices=sorted(OWN), default=sorted(OWN, reverse=True))
    parser.add_argument("--tools", nargs="+", choices=sorted(BOTH), default=sorted(BOTH))
    parser.add_argument("--methods", nargs="+", help="only those; default: all")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, help="fewer rows, for a look")
    parser.add_argument("--limit", type=int, default=LIMIT, help="seconds of processor time a run")
    parser.add_argument("--venv", type=Path, default=HERE / ".venv")
    parser.add_argument("--out", type=Path, default=HERE / "peers.jsonl")
    parser.add_argument("--table", action="store_true", help="measure nothing, show what is there")
    parser.add_argument("--readme", action="store_true", help="measure nothing, put what is there into README.md")
    args = parser.parse_args()
    records = read(args.out)
    if not (args.table or args.readme):
        python = environment(args.venv)
        planned = jobs(args.problems, args.seeds, args.rows)
        wanted = [job for job in planned if job.tool in args.tools and job.method in (args.methods or [job.method])]
        records = complete(wanted, args.out, in_a_process(python, args.limit))
    shown = markdown(records)
    if args.readme:
        page = HERE / "README.md"
        page.write_text(insert(page.read_text(), shown))
    else:
        print(shown)


if __name__ == "__main__":
    main()
