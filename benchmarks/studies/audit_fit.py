"""What are a hundred answers worth to `pue fit`? The prior's error and accuracy, with and without them.

    python benchmarks/studies/audit_fit.py --tables dev --out docs/results/audit_fit.jsonl
    python benchmarks/studies/audit_fit.py --tables report --out docs/results/audit_fit.jsonl
    python benchmarks/studies/audit_fit.py --tables report --out docs/results/audit_fit.jsonl --show

Tables of `benchmarks/studies/tables`, five labelings, prior unknown. A model is fitted (`nothing`); an audit of 100
rows is planned with it on the training rows and answered by the truth; then: `audit` learns from the answers, `prior`
is told the prior they prove and nothing else, `labels` adds 100 unlabeled rows drawn at random as labeled positives and
negatives instead. Accuracy is that of calling test rows with a probability of one half or more. Records are kept, and a
second call computes what is missing; --scores keeps what a plan needs of the first models, for other studies too.
"""

from __future__ import annotations

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # before any import

import argparse
import json
import multiprocessing
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent / "tables"))
from labelings import LABELINGS, Floats
from problems import Problem, pose
from records import mend
from tables import DEVELOPMENT, REPORT

from pue import audit
from pue.app.audit.learning import Taught
from pue.app.fit_source import fit_rows, open_rows
from pue.app.model import PUModel, unlabeled_posterior
from pue.app.recipe import Recipe
from pue.app.roles import Roles
from pue.app.sources.opening import open_source
from pue.core.machine import one_thread
from pue.errors import InvalidInput
from pue.priors import PriorEstimate

Cell = tuple[str, str, int]
"""Table, labeling and seed."""
SETS = {"dev": tuple(DEVELOPMENT), "report": tuple(REPORT)}
LABEL, N = "is labeled", 100
WAYS = ("nothing", "audit", "labels", "prior")
BIASED = tuple(name for name in LABELINGS if name != "scar")


@dataclass(frozen=True, eq=False)
class Scored:
    """The training rows as the first model sees them: all that a plan needs."""

    p: Floats
    expected: Floats
    """P(positive | x, not labeled)."""
    threshold: float

    @classmethod
    def of(cls, model: PUModel, problem: Problem) -> Scored:
        features = model.features(problem.train.frame)
        p = model.probabilities(features)
        return cls(p, unlabeled_posterior(p, model.propensity(features)), model.threshold)


def fitted(problem: Problem, labels: Any, prior: float | str = "estimate", taught: Taught | None = None) -> PUModel:
    """`pue fit` of the training rows with these labels."""
    recipe = Recipe(prior=prior, seed=problem.seed, progress=False)
    with tempfile.TemporaryDirectory() as folder, one_thread():
        path = Path(folder) / "table.parquet"
        problem.train.frame.assign(**{LABEL: labels}).to_parquet(path)
        source, roles = open_source(path), Roles(label=LABEL)
        return fit_rows(source, roles, open_rows(source, roles, recipe), recipe, audit=taught)


def scored(problem: Problem, cell: Cell, folder: Path) -> Scored:
    """Of the first model: from the folder, else by a fit."""
    path = folder / f"{'-'.join(map(str, cell))}.npz"
    if path.exists():
        with np.load(path) as stored:
            return Scored(stored["p"], stored["expected"], float(stored["threshold"]))
    return keep(Scored.of(fitted(problem, problem.train.s.astype(int)), problem), cell, folder)


def keep(found: Scored, cell: Cell, folder: Path) -> Scored:
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / f"{'-'.join(map(str, cell))}.npz", p=found.p, expected=found.expected, threshold=found.threshold)
    return found


def audited(rows: Scored, problem: Problem, n: int = N) -> Taught:
    """An audit planned with the model on the training rows, answered by the truth."""
    train, labels = problem.train, problem.train.s.astype(int)
    drawn = audit.plan(rows.p, labels, n=n, threshold=rows.threshold, expected=rows.expected, seed=problem.seed)
    found = audit.read(drawn, train.y[drawn.rows]).prior
    lesson = audit.Lesson(drawn.rows, train.y[drawn.rows], drawn.probability)
    value = lesson.positives(labels) / len(labels)
    return Taught(lesson, PriorEstimate(value, found.low, found.high, 0.95, "audit", "nothing", 0))


def with_labels(problem: Problem, n: int = N) -> NDArray[np.int64]:
    """The labels, and those of n unlabeled rows drawn at random."""
    labels = problem.train.s.astype(int)
    unlabeled = np.flatnonzero(labels == 0)
    some = np.random.default_rng(problem.seed).choice(unlabeled, min(n, len(unlabeled)), replace=False)
    labels[some] = np.where(problem.train.y[some], 1, -1)
    return labels


def model_of(way: str, problem: Problem, cell: Cell, folder: Path) -> PUModel:
    labels = problem.train.s.astype(int)
    if way == "nothing":
        model = fitted(problem, labels)
        keep(Scored.of(model, problem), cell, folder)
        return model
    if way == "labels":
        return fitted(problem, with_labels(problem))
    taught = audited(scored(problem, cell, folder), problem)
    return fitted(problem, labels, taught=taught) if way == "audit" else fitted(problem, labels, taught.prior.value)


def records(cell: Cell, ways: list[str], folder: Path) -> list[dict[str, Any]]:
    """What is missing of one problem; a refusal is a record too."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    problem = pose(*cell)
    return [_record(cell, way, problem, folder) for way in ways]


def computed(missing: dict[Cell, list[str]], folder: Path, jobs: int) -> Iterator[list[dict[str, Any]]]:
    """The records of each problem, as soon as they are there."""
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = [pool.submit(records, cell, ways, folder) for cell, ways in missing.items()]
        for future in as_completed(waiting):
            yield future.result()


def _record(cell: Cell, way: str, problem: Problem, folder: Path) -> dict[str, Any]:
    named = dict(zip(("table", "labeling", "seed"), cell, strict=True)) | {"way": way}
    try:
        model = model_of(way, problem, cell, folder)
    except InvalidInput as refusal:
        return named | {"refused": str(refusal)}
    p = np.asarray(model.probability(problem.test.frame))
    prior = model.summary["prior"]["value"]
    found = {"accuracy": float(np.mean((p >= 0.5) == problem.test.y)), "prior": prior, "true_prior": problem.prior}
    return named | {name: float(f"{value:.4g}") for name, value in found.items()}


def show(found: list[dict[str, Any]], ways: list[str]) -> None:
    """Accuracy in percent by labeling, and the prior's mean absolute error."""
    keys = {key_of(r) for r in found if "refused" not in r}
    whole = {key[:3] for key in keys if all((*key[:3], way) in keys for way in ways)}
    rows = [r for r in found if key_of(r)[:3] in whole]
    tables, seeds = {r["table"] for r in rows}, sorted({r["seed"] for r in rows})
    refused = len({key_of(r)[:3] for r in found if "refused" in r})
    print(f"{len(whole)} problems of {len(tables)} tables, seeds {seeds}; {refused} refused\n")
    others = [way for way in ways if way != "audit"]
    titles = [*ways, *(f"audit − {way}" for way in others)]
    print(f"| labeling | {' | '.join(titles)} |\n|---|{'---|' * len(titles)}")
    for title, labelings in (*((name, (name,)) for name in LABELINGS), ("biased", BIASED), ("all", tuple(LABELINGS))):
        mine = {way: [r for r in rows if r["way"] == way and r["labeling"] in labelings] for way in ways}
        cells = [f"{100 * _mean(mine[way], _accuracy):.1f} ({_mean(mine[way], _error):.3f})" for way in ways]
        cells += [_gain(mine[way], mine["audit"]) for way in others]
        print(f"| {title} | {' | '.join(cells)} |")
    print("\naccuracy in %, in brackets the mean absolute error of the prior; ± is the error of a mean over tables")


def _accuracy(record: dict[str, Any]) -> float:
    return float(record["accuracy"])


def _error(record: dict[str, Any]) -> float:
    return float(abs(record["prior"] - record["true_prior"]))


def _mean(rows: list[dict[str, Any]], value: Callable[[dict[str, Any]], float]) -> float:
    return float(np.mean([value(r) for r in rows])) if rows else float("nan")


def _gain(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> str:
    tables = sorted({r["table"] for r in before})
    gains = [
        100 * (_mean([r for r in after if r["table"] == t], _accuracy) -
               _mean([r for r in before if r["table"] == t], _accuracy))
        for t in tables
    ]  # fmt: skip
    return f"{np.mean(gains):+.1f} ± {np.std(gains) / np.sqrt(max(len(gains), 1)):.1f}"


def key_of(record: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(record[name] for name in ("table", "labeling", "seed", "way"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default="dev", help="dev, report, or names with commas between")
    parser.add_argument("--labelings", default=",".join(LABELINGS))
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="processes, each with one thread")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--scores", type=Path, default=Path(tempfile.gettempdir()) / "audit_scores")
    parser.add_argument("--show", action="store_true", help="only print what is there")
    args = parser.parse_args()
    mend(args.out)
    found = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    done, ways = set(map(key_of, found)), args.ways.split(",")
    tables = SETS.get(args.tables) or tuple(args.tables.split(","))
    cells = [(t, w, s) for s in range(args.seeds) for t in tables for w in args.labelings.split(",")]
    missing = {cell: [way for way in ways if (*cell, way) not in done] for cell in cells}
    missing = {cell: absent for cell, absent in missing.items() if absent and not args.show}
    for made in computed(missing, args.scores, args.jobs):
        found += made
        with args.out.open("a") as file:
            file.write("".join(json.dumps(record) + "\n" for record in made))
        print(*map(json.dumps, made), sep="\n", file=sys.stderr, flush=True)
    show([r for r in found if r["table"] in tables], ways)


if __name__ == "__main__":
    main()
