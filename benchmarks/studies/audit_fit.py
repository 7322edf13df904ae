"""What are a hundred answers worth to `pue fit`? The prior's error and accuracy, with and without them.

    python benchmarks/studies/audit_fit.py --out docs/results/audit_fit.jsonl
    python benchmarks/studies/audit_fit.py --out docs/results/audit_fit.jsonl --show

Development tables of `benchmarks/studies/tables`, five labelings, prior unknown. A model is fitted; an audit of 100
rows is planned with it on the training rows and answered by the truth; then: `audit` learns from the answers, `prior`
is told the prior they prove and nothing else, `labels` adds 100 unlabeled rows drawn at random as labeled positives and
negatives instead. Accuracy is that of calling test rows with a probability of one half or more. Records are kept, and a
second call computes what is missing.
"""

from __future__ import annotations

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # before any import

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent / "tables"))
from labelings import LABELINGS
from problems import Problem, pose
from records import mend

from pue import audit
from pue.app.audit.learning import Taught
from pue.app.fit_source import fit_rows, open_rows
from pue.app.model import PUModel, unlabeled_posterior
from pue.app.recipe import Recipe
from pue.app.roles import Roles
from pue.app.sources.opening import open_source
from pue.core.machine import one_thread
from pue.priors import PriorEstimate

TABLES = ("german", "banana", "breast_cancer", "chess", "satimage", "hr")
LABEL, N = "is labeled", 100
WAYS = ("nothing", "audit", "prior", "labels")


def fitted(problem: Problem, labels: Any, prior: float | str = "estimate", taught: Taught | None = None) -> PUModel:
    """`pue fit` of the training rows with these labels."""
    recipe = Recipe(prior=prior, seed=problem.seed, progress=False)
    with tempfile.TemporaryDirectory() as folder, one_thread():
        path = Path(folder) / "table.parquet"
        problem.train.frame.assign(**{LABEL: labels}).to_parquet(path)
        source, roles = open_source(path), Roles(label=LABEL)
        return fit_rows(source, roles, open_rows(source, roles, recipe), recipe, audit=taught)


def audited(model: PUModel, problem: Problem, n: int = N) -> Taught:
    """An audit planned with the model on the training rows, answered by the truth."""
    train, labels = problem.train, problem.train.s.astype(int)
    features = model.features(train.frame)
    p = model.probabilities(features)
    expected = unlabeled_posterior(p, model.propensity(features))
    drawn = audit.plan(p, labels, n=n, threshold=model.threshold, expected=expected, seed=problem.seed)
    found = audit.read(drawn, train.y[drawn.rows]).prior
    lesson = audit.Lesson(drawn.rows, train.y[drawn.rows], drawn.probability)
    value = lesson.positives(labels) / len(labels)
    return Taught(lesson, PriorEstimate(value, found.low, found.high, 0.95, "audit", "nothing", 0))


def records(table: str, labeling: str, seed: int, done: set[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    if {(table, labeling, seed, way) for way in WAYS} <= done:
        return
    problem = pose(table, labeling, seed)
    labels = problem.train.s.astype(int)
    model = fitted(problem, labels)
    yield _record(table, labeling, seed, "nothing", model, problem)
    taught = audited(model, problem)
    yield _record(table, labeling, seed, "audit", fitted(problem, labels, taught=taught), problem)
    yield _record(table, labeling, seed, "prior", fitted(problem, labels, taught.prior.value), problem)
    some = np.random.default_rng(seed).choice(
        np.flatnonzero(labels == 0), min(N, int((labels == 0).sum())), replace=False
    )
    more = labels.copy()
    more[some] = np.where(problem.train.y[some], 1, -1)
    yield _record(table, labeling, seed, "labels", fitted(problem, more), problem)


def _record(table: str, labeling: str, seed: int, way: str, model: PUModel, problem: Problem) -> dict[str, Any]:
    p = model.predict_proba(problem.test.frame)
    prior = model.summary["prior"]["value"]
    found = {"accuracy": float(np.mean((p >= 0.5) == problem.test.y)), "prior": prior, "true_prior": problem.prior}
    return {"table": table, "labeling": labeling, "seed": seed, "way": way} | {
        name: float(f"{value:.4g}") for name, value in found.items()
    }


def show(found: list[dict[str, Any]]) -> None:
    """Accuracy in percent by labeling, and the prior's mean absolute error."""
    whole = {key[:3] for key in map(key_of, found)}
    whole = {cell for cell in whole if {(*cell, way) for way in WAYS} <= set(map(key_of, found))}
    rows = [r for r in found if key_of(r)[:3] in whole]
    print(
        f"{len(whole)} problems of {len({r['table'] for r in rows})} tables, seeds {sorted({r['seed'] for r in rows})}"
    )
    print(f"| labeling | {' | '.join(WAYS)} |\n|---|{'---|' * len(WAYS)}")
    for labeling in (*LABELINGS, "all"):
        cells = []
        for way in WAYS:
            mine = [r for r in rows if r["way"] == way and labeling in (r["labeling"], "all")]
            error = np.mean([abs(r["prior"] - r["true_prior"]) for r in mine])
            cells.append(f"{100 * np.mean([r['accuracy'] for r in mine]):.1f} ({error:.3f})")
        print(f"| {labeling} | {' | '.join(cells)} |")
    print("\naccuracy in %, in brackets the mean absolute error of the prior")


def key_of(record: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(record[name] for name in ("table", "labeling", "seed", "way"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--labelings", default=",".join(LABELINGS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--show", action="store_true", help="only print what is there")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    mend(args.out)
    found = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    done = {key_of(record) for record in found}
    cells = [(t, w, s) for s in range(args.seeds) for t in args.tables.split(",") for w in args.labelings.split(",")]
    for cell in [] if args.show else cells:
        for record in records(*cell, done):
            if key_of(record) not in done:
                found.append(record)
                with args.out.open("a") as file:
                    file.write(json.dumps(record) + "\n")
            print(record, file=sys.stderr, flush=True)
    show(found)


if __name__ == "__main__":
    main()
