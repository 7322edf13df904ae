"""Do the intervals of `pue.audit` hold the truth, and how much shorter are they than those of a plain random sample?

    python benchmarks/studies/audit_coverage.py --out docs/results/audit_coverage.jsonl
    python benchmarks/studies/audit_coverage.py --out docs/results/audit_coverage.jsonl --show

Development tables of `benchmarks/studies/tables` × five labelings × three models: a PU forest, the same forest turned
round (1 − p: as wrong as can be), and scores drawn at random. Of each, audits of 50, 100 and 200 answers are simulated
by drawing what decides them, the positives among the rows drawn from each stratum (hypergeometric): for the default
design, for one made for precision, one for recall, and for a plain random sample. Truth, coverage and mean width of
each quantity are one record; a second call computes what is missing.
"""

from __future__ import annotations

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # before any import

import argparse
import json
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent / "tables"))
from labelings import LABELINGS
from problems import pose
from records import mend

from pue import PUClassifier
from pue.audit import Plan, plan
from pue.audit.answers import asked_of
from pue.audit.score_test import interval

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

TABLES = ("magic", "satimage", "banana", "breast_cancer", "german", "hr", "fair", "chess")
ANSWERS = (50, 100, 200)
ASKED = ("prior", "precision", "recall", "accuracy", "f1")
MODELS: dict[str, Callable[[Floats, np.random.Generator], Floats]] = {
    "forest": lambda p, rng: p,
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


def counts(drawn: Plan, y: Bools, place: NDArray[np.int64], audits: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Rows drawn and positives among them, stratum by stratum, for many audits of the same plan."""
    size = np.array([s.size for s in drawn.strata])
    positives = np.bincount(place, y, minlength=len(size)).astype(int)
    n = np.array([s.drawn for s in drawn.strata])
    each = np.tile(n, (audits, 1))
    if drawn.design == "random":
        each = rng.multivariate_hypergeometric(size, int(n.sum()), audits)
    return each.astype(float), rng.hypergeometric(positives, size - positives, each).astype(float)


def audited(p: Floats, s: NDArray[np.int64], y: Bools, n: int, design: str, audits: int, seed: int) -> dict[str, Any]:
    """Of each quantity the truth, how often it is held, and the mean width."""
    drawn = plan(p, s, n=n, seed=seed, **PLANS[design])
    bounds = [stratum.high for stratum in drawn.strata[:-1]]
    place = np.searchsorted(bounds, p[s == 0], side="right")
    size = np.array([stratum.size for stratum in drawn.strata], float)
    totals = np.bincount(place, y[s == 0], minlength=len(size))
    each, yes = counts(drawn, y[s == 0], place, audits, np.random.default_rng(seed))
    found: dict[str, Any] = {"strata": len(size)}
    for name, ratio in asked_of(drawn, size).items():
        truth = float(ratio.of(totals))
        _, low, high = interval(ratio, size, each, yes, Z)
        held = (low <= truth + 1e-9) & (high >= truth - 1e-9)
        found[name] = [truth, float(held.mean()), float((high - low).mean())]
    return found


def records(table: str, labeling: str, audits: int, done: set[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    """All models and sizes of one problem."""
    wanted = [(table, labeling, model, n, design) for model in MODELS for n in ANSWERS for design in PLANS]
    if done.issuperset(wanted):
        return
    problem = pose(table, labeling, 0)
    train, test = problem.train, problem.test
    clf = PUClassifier(backbone="forest", prior=problem.prior, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.fit(train.x, train.s.astype(int))
        forest = clf.predict_proba(np.concatenate([train.x, test.x]))[:, 1].astype(np.float64)
    s = np.concatenate([train.s, test.s]).astype(np.int64)
    y = np.concatenate([train.y, test.y])
    for key in wanted:
        if key not in done:
            _, _, model, n, design = key
            seed = zlib.crc32(repr(key).encode())
            p = np.clip(MODELS[model](forest, np.random.default_rng(1)), 0, 1)
            row = dict(zip(("table", "labeling", "model", "n", "design"), key, strict=True))
            yield row | {"audits": audits, "rows": len(s)} | audited(p, s, y, n, design, audits, seed)


def key_of(record: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(record[name] for name in ("table", "labeling", "model", "n", "design"))


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def show(found: list[dict[str, Any]]) -> None:
    """Coverage by quantity, and widths against those of a plain random sample."""
    audits = sum(r["audits"] for r in found if r["design"] != "random")
    cells = {r["table"] for r in found}, {r["labeling"] for r in found}
    print(f"{audits:,} audits of {len(cells[0])} tables × {len(cells[1])} labelings × {len(MODELS)} models")
    print("| quantity | answers | held, % | by model | by labeling | cells, 1st to 99th percentile | width / random |")
    print("|---|---|---|---|---|---|---|")
    for name in ASKED:
        for n in ANSWERS:
            rows = [r for r in found if r["n"] == n and name in r]
            ours = [r for r in rows if r["design"] != "random"]
            held = {key_of(r): 100 * r[name][HELD] for r in ours}
            by = [_span(ours, name, kind) for kind in ("model", "labeling")]
            plain = {key_of(r)[:4]: r[name][WIDTH] for r in rows if r["design"] == "random"}
            shares = []
            for design in ("all", "precision", "recall"):
                mine = [r for r in ours if r["design"] == design and r["model"] == "forest"]
                shares.append(f"{np.mean([r[name][WIDTH] / plain[key_of(r)[:4]] for r in mine]):.2f}")
            values = list(held.values())
            ends = "{:.1f} to {:.1f}".format(*np.percentile(values, [1, 99]))
            print(f"| {name} | {n} | {np.mean(values):.1f} | {by[0]} | {by[1]} | {ends} | {', '.join(shares)} |")
    print("\nwidth / random: mean over the forest's cells, made for all, for precision, for recall")


def _span(rows: list[dict[str, Any]], name: str, kind: str) -> str:
    means = [100 * np.mean([r[name][HELD] for r in rows if r[kind] == value]) for value in {r[kind] for r in rows}]
    return f"{min(means):.1f} to {max(means):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audits", type=int, default=250, help="of each cell")
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--show", action="store_true", help="only print what is there")
    args = parser.parse_args()
    torch.set_num_threads(1)
    mend(args.out)
    found = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    done = {key_of(record) for record in found}
    if not args.show:
        for table in args.tables.split(","):
            for labeling in LABELINGS:
                with args.out.open("a") as file:
                    for record in records(table, labeling, args.audits, done):
                        found.append(rounded(record))
                        file.write(json.dumps(found[-1]) + "\n")
                print(f"{table} {labeling}", file=sys.stderr, flush=True)
    show(found)


if __name__ == "__main__":
    main()
