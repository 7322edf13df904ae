"""Do the intervals of `pue.audit` hold the truth, and how much shorter are they than those of a plain random sample?

    python benchmarks/studies/audit_coverage.py --tables dev --out docs/results/audit_coverage.jsonl
    python benchmarks/studies/audit_coverage.py --tables report --out docs/results/audit_coverage.jsonl
    python benchmarks/studies/audit_coverage.py --tables report --out docs/results/audit_coverage.jsonl --show

Real tables of `benchmarks/studies/tables` × five labelings × three models: that of `pue fit` told nothing, the same one
turned round (1 − p: as wrong as can be), and scores drawn at random. Of each, audits of the training rows with 50, 100
and 200 answers are simulated by drawing what decides them, the positives among the rows drawn from each stratum
(hypergeometric): for the default design, one made for precision, one for recall, a random one, and two plain random
samples without a design (`audit_plain.py`). Truth, coverage and mean width of each quantity are one record; a second
call computes what is missing. --scores: where `audit_fit.py` left the models' scores; what is not there is fitted.
"""

from __future__ import annotations

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # before any import

import argparse
import itertools
import json
import sys
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent / "tables"))
from audit_fit import Scored, scored
from audit_plain import of_the_table, of_the_unlabeled
from labelings import LABELINGS
from problems import pose
from records import mend
from tables import DEVELOPMENT, REPORT

from pue.audit import Plan, plan
from pue.audit.answers import asked_of
from pue.audit.score_test import interval
from pue.errors import InvalidInput

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SETS = {
    name: tuple(table for table, about in tables.items() if about.is_real)
    for name, tables in (("dev", DEVELOPMENT), ("report", REPORT))
}
ANSWERS = (50, 100, 200)
ASKED = ("prior", "precision", "recall", "accuracy", "f1")
MODELS: dict[str, Callable[[Floats, np.random.Generator], Floats]] = {
    "pue fit": lambda p, rng: p,
    "turned round": lambda p, rng: 1 - p,
    "random": lambda p, rng: rng.random(len(p)),
}
Z = 1.959964
HELD, WIDTH = 1, 2
"""Places in a record."""
PLANS = {
    "all": {},
    "precision": {"purpose": "precision"},
    "recall": {"purpose": "recall"},
    "random": {"design": "random"},
}
PLAIN = ("table", "unlabeled")
"""Of which rows a plain random sample is drawn."""
FEWEST_ROWS = 3
"""An audit is of a third of the unlabeled rows at most."""


def counts(drawn: Plan, y: Bools, place: NDArray[np.int64], audits: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Rows drawn and positives among them, stratum by stratum, for many audits of the same plan."""
    size = np.array([s.size for s in drawn.strata])
    positives = np.bincount(place, y, minlength=len(size)).astype(int)
    n = np.array([s.drawn for s in drawn.strata])
    each = np.tile(n, (audits, 1))
    if drawn.design == "random":
        each = rng.multivariate_hypergeometric(size, int(n.sum()), audits)
    return each.astype(float), rng.hypergeometric(positives, size - positives, each).astype(float)


def audited(
    rows: Scored, s: NDArray[np.int64], y: Bools, n: int, design: str, audits: int, seed: int
) -> dict[str, Any]:
    """Of each quantity the truth, how often it is held, and the mean width."""
    asked = PLANS.get(design, PLANS["random"])
    drawn = plan(rows.p, s, n=n, threshold=rows.threshold, expected=rows.expected, seed=seed, **asked)
    open_rows = s == 0
    place = np.searchsorted([stratum.high for stratum in drawn.strata[:-1]], rows.p[open_rows], side="right")
    size = np.array([stratum.size for stratum in drawn.strata], float)
    totals = np.bincount(place, y[open_rows], minlength=len(size))
    quantities = asked_of(drawn, size)
    rng, called = np.random.default_rng(seed), rows.p >= rows.threshold
    if design == "table":
        ends = of_the_table(called, y, n, audits, Z, rng)
    elif design == "unlabeled":
        ends = of_the_unlabeled(called[open_rows], y[open_rows], drawn.known, n, audits, Z, rng)
    else:
        each, yes = counts(drawn, y[open_rows], place, audits, rng)
        ends = {name: interval(ratio, size, each, yes, Z)[1:] for name, ratio in quantities.items()}
    found: dict[str, Any] = {"strata": len(size)}
    for name, (low, high) in ends.items():
        if name in quantities:
            truth = float(quantities[name].of(totals))
            held = (low <= truth + 1e-9) & (high >= truth - 1e-9)
            found[name] = [truth, float(held.mean()), float((high - low).mean())]
    return found


def records(
    table: str, labeling: str, kinds: list[tuple[str, int, str]], audits: int, done: set[tuple[Any, ...]], folder: Path
) -> Iterator[dict[str, Any]]:
    """What is missing of one problem, for models, numbers of answers and designs."""
    wanted = [(table, labeling, *kind) for kind in kinds]
    if done.issuperset(wanted):
        return
    problem = pose(table, labeling, 0)
    try:
        first = scored(problem, (table, labeling, 0), folder)
    except InvalidInput as refusal:  # no model, no audit
        print(f"{table} {labeling}: {refusal}", file=sys.stderr)
        return
    s, y = problem.train.s.astype(np.int64), problem.train.y
    for key in wanted:
        _, _, model, n, design = key
        if key not in done and n * FEWEST_ROWS <= (s == 0).sum():
            p, expected = (np.clip(MODELS[model](v, np.random.default_rng(1)), 0, 1) for v in (first.p, first.expected))
            seed = zlib.crc32(repr(key).encode())
            row = dict(zip(("table", "labeling", "model", "n", "design"), key, strict=True))
            measured = audited(Scored(p, expected, first.threshold), s, y, n, design, audits, seed)
            yield row | {"audits": audits, "rows": len(s)} | measured


def key_of(record: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(record[name] for name in ("table", "labeling", "model", "n", "design"))


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def show(found: list[dict[str, Any]]) -> None:
    """Coverage by quantity, and widths against those of plain random samples and of the random design."""
    ours = [r for r in found if r["design"] in PLANS and r["design"] != "random"]
    cells = {r["table"] for r in found}, {r["labeling"] for r in found}
    audits = sum(r["audits"] for r in ours)
    print(f"{audits:,} audits of {len(cells[0])} tables × {len(cells[1])} labelings × {len(MODELS)} models\n")
    print("| quantity | answers | held, % | by model | by labeling | cells, 1st to 99th percentile |")
    print("|---|---|---|---|---|---|")
    for name in ASKED:
        for n in ANSWERS:
            rows = [r for r in ours if r["n"] == n and name in r]
            if not rows:
                continue
            values = [100 * r[name][HELD] for r in rows]
            ends = "{:.1f} to {:.1f}".format(*np.percentile(values, [1, 99]))
            by = [_span(rows, name, kind) for kind in ("model", "labeling")]
            print(f"| {name} | {n} | {np.mean(values):.1f} | {by[0]} | {by[1]} | {ends} |")
    print(f"\n| quantity | answers | plan for | {' | '.join((*PLAIN, 'random'))} |\n|---|---|---|---|---|---|")
    for name in ASKED[:4]:
        for n in ANSWERS:
            for design in ("all", "precision", "recall"):
                shares = [_against(found, name, n, design, other) for other in (*PLAIN, "random")]
                print(f"| {name} | {n} | {design} | {' | '.join(shares)} |")
    print("\nmean of width / width of a random sample, over the cells of `pue fit`, ± its error over tables")


def _against(found: list[dict[str, Any]], name: str, n: int, design: str, other: str) -> str:
    """Mean ratio of widths over problems, and its standard error over tables."""
    rows = [r for r in found if r["n"] == n and name in r and r["model"] == "pue fit"]
    theirs = {key_of(r)[:4]: r[name][WIDTH] for r in rows if r["design"] == other}
    by_table: dict[str, list[float]] = {}
    for r in rows:
        if r["design"] == design and theirs.get(key_of(r)[:4], 0) > 0:
            by_table.setdefault(r["table"], []).append(r[name][WIDTH] / theirs[key_of(r)[:4]])
    if not by_table:
        return "–"
    means = [float(np.mean(shares)) for shares in by_table.values()]
    whole = [share for shares in by_table.values() for share in shares]
    return f"{np.mean(whole):.2f} ± {np.std(means) / np.sqrt(len(means)):.2f}"


def _span(rows: list[dict[str, Any]], name: str, kind: str) -> str:
    means = [100 * np.mean([r[name][HELD] for r in rows if r[kind] == value]) for value in {r[kind] for r in rows}]
    return f"{min(means):.1f} to {max(means):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audits", type=int, default=250, help="of each cell")
    parser.add_argument("--tables", default="dev", help="dev, report, or names with commas between")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--answers", default=",".join(map(str, ANSWERS)))
    parser.add_argument("--designs", default=",".join((*PLANS, *PLAIN)))
    parser.add_argument("--scores", type=Path, default=Path(tempfile.gettempdir()) / "audit_scores")
    parser.add_argument("--show", action="store_true", help="only print what is there")
    args = parser.parse_args()
    torch.set_num_threads(1)
    mend(args.out)
    found = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    done = {key_of(record) for record in found}
    asked = (args.models.split(","), map(int, args.answers.split(",")), args.designs.split(","))
    kinds = list(itertools.product(*asked))
    tables = SETS.get(args.tables) or tuple(args.tables.split(","))
    if not args.show:
        warnings.simplefilter("ignore")
        for table in tables:
            for labeling in LABELINGS:
                with args.out.open("a") as file:
                    for record in records(table, labeling, kinds, args.audits, done, args.scores):
                        found.append(rounded(record))
                        file.write(json.dumps(found[-1]) + "\n")
                print(f"{table} {labeling}", file=sys.stderr, flush=True)
    show([r for r in found if r["table"] in tables])


if __name__ == "__main__":
    main()
