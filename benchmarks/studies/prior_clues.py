"""What are the clues of `pue.priors.clues` worth? A line from them to the true prior, and what it misses.

    python benchmarks/studies/prior_clues.py --seeds 0-7 --jobs 2 --out prior_clues.jsonl

On the development tables of `benchmarks/studies/tables`, never on its report tables: each problem draws a number of
rows, a prior (π from .01 to .75, or the table's own), one of five labelings and the share of the positives that is
labeled (from 5 to 70 %, evenly in logarithms). The line is a ridge regression; its spread is that of the errors on
tables that had no part in it. Records are kept, and a second call computes what is missing.
"""

from __future__ import annotations

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # before any import

import argparse
import json
import sys
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import expit, logit

sys.path.insert(0, str(Path(__file__).parent / "tables"))
from encoding import encode
from labelings import LABELINGS, Rows
from tables import DEVELOPMENT

from pue.core.data import PUData, Scenario
from pue.priors.clues import CLEAR, clues
from pue.priors.evidence import evidence

FREQUENCY = (0.05, 0.7)
PRIORS = (0.01, 0.75)
SIZES = (1000, 2500, 5000)
FEWEST = 25
RIDGE = 1.0
LINES = ("single", "case_control")

Floats = NDArray[np.float64]


def drawn(y: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.intp]:
    """Rows of a problem: so many, with a share of positives of their own in most cases."""
    size, own = int(rng.choice(SIZES)), rng.random() < 0.3
    prior = float(y.mean()) if own else float(np.exp(rng.uniform(*np.log(PRIORS))))
    positives, negatives = np.flatnonzero(y), np.flatnonzero(~y)
    n = min(len(positives), int(size * prior), int(len(negatives) * prior / (1 - prior)))
    others = min(len(negatives), int(n * (1 - prior) / prior))
    return rng.permutation(
        np.concatenate([rng.choice(positives, n, replace=False), rng.choice(negatives, others, replace=False)])
    )


def problem(name: str, labeling: str, seed: int) -> dict[str, Any] | None:
    """The clues of one problem and the truth; None where too few rows would be labeled."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rng = np.random.default_rng([seed, zlib.crc32(f"{name} {labeling}".encode())])
    frame, y = DEVELOPMENT[name].read()
    x, names = encode(frame)
    y = np.asarray(y, dtype=bool)
    rows = drawn(y, rng)
    x, y = x[rows], y[rows]
    record: dict[str, Any] = {"table": name, "labeling": labeling, "seed": seed}
    if y.sum() < FEWEST:
        return record
    e, _ = LABELINGS[labeling](Rows(x.astype(np.float64), y, names, seed), rng)
    wanted = float(np.exp(rng.uniform(*np.log(FREQUENCY))))
    s = y & (rng.random(len(y)) < np.clip(e * wanted / e[y].mean(), 0, 0.97))
    if s.sum() < FEWEST or (~s).sum() < FEWEST:
        return record
    labels = torch.from_numpy(s.astype(np.int8))
    single = evidence(PUData(torch.from_numpy(x), labels), forest=True, seed=seed)
    half = rng.random(len(y)) < 0.5  # labels from one half beside the other, which is then the population
    pooled = np.concatenate([np.flatnonzero(s & half), np.flatnonzero(~half)])
    record |= {"prior": float(y.mean()), "labels": int(s.sum()), "rows": len(y), "frequency": float(s.sum() / y.sum())}
    record["single"] = clues(single).tolist()
    beside = torch.from_numpy((np.arange(len(pooled)) < int((s & half).sum())).astype(np.int8))
    if int(beside.sum()) >= FEWEST:
        data = PUData(torch.from_numpy(x[pooled]), beside, Scenario.CASE_CONTROL)
        record["case_control"] = clues(evidence(data, forest=True, seed=seed)).tolist()
        record["case_control_prior"] = float(y[~half].mean())
    return record


def line(z: Floats, target: Floats) -> Floats:
    """Intercept and slopes of a ridge regression on standardized clues, given for the clues as they are."""
    center, scale = z.mean(0), z.std(0)
    design = (z - center) / scale
    slopes = (
        np.linalg.solve(design.T @ design + RIDGE * np.eye(z.shape[1]), design.T @ (target - target.mean())) / scale
    )
    return np.concatenate([[target.mean() - center @ slopes], slopes])


def report(records: list[dict[str, Any]], kind: str) -> None:
    own = [record for record in records if kind in record]
    truth = np.array([record["prior" if kind == "single" else "case_control_prior"] for record in own])
    z, tables = np.array([record[kind] for record in own]), np.array([record["table"] for record in own])
    target = logit(np.clip(truth, 1e-3, 1 - 1e-3))
    missed = np.empty(len(own))
    for table in np.unique(tables):
        rest = tables != table
        found = line(z[rest], target[rest])
        missed[~rest] = found[0] + z[~rest] @ found[1:] - target[~rest]
    clear = expit(z[:, 1] / z[:, 0]) >= CLEAR
    found, (usual, sharp) = line(z, target), (float(np.sqrt(np.mean(missed[of] ** 2))) for of in (~clear, clear))
    error = np.abs(expit(target + missed) - truth)
    covered = np.abs(missed) <= 1.96 * np.where(clear, sharp, usual)
    print(f"{kind}: {len(own)} problems of {len(np.unique(tables))} tables")
    print(f"  Line({found[0]:.3f}, ({', '.join(f'{slope:.3f}' for slope in found[1:])}), {usual:.3f}, {sharp:.3f})")
    print(f"  table by table: mean absolute error {error.mean():.3f}, 95 % interval holds {covered.mean():.1%}")
    usual_share = np.array([0.15 <= record["frequency"] <= 0.4 for record in own])
    print(f"    15 to 40 % of the positives labeled: mean absolute error {error[usual_share].mean():.3f}")
    labelings = np.array([record["labeling"] for record in own])
    for labeling in np.unique(labelings):
        here = labelings == labeling
        print(f"    {labeling:9} {error[here].mean():.3f}  {covered[here].mean():.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0-7")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("prior_clues.jsonl"))
    args = parser.parse_args()
    first, _, last = args.seeds.partition("-")
    known = [json.loads(text) for text in args.out.read_text().splitlines()] if args.out.exists() else []
    there = {(record["table"], record["labeling"], record["seed"]) for record in known}
    wanted = [
        (name, labeling, seed)
        for seed in range(int(first), int(last or first) + 1)
        for labeling in LABELINGS
        for name in DEVELOPMENT
        if (name, labeling, seed) not in there
    ]
    made = Parallel(n_jobs=args.jobs, return_as="generator_unordered")(delayed(problem)(*each) for each in wanted)
    with args.out.open("a") as file:
        for number, record in enumerate(made, 1):
            file.write(json.dumps(record) + "\n")
            file.flush()
            known.append(record)
            print(f"\r{number}/{len(wanted)}", end="", file=sys.stderr)
    for kind in LINES:
        report(known, kind)


if __name__ == "__main__":
    main()
