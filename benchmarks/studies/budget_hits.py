"""How often does the interval of a budget's expected hits hold the truth?

    python benchmarks/studies/budget_hits.py --seeds 0-2 --out docs/results/budget_hits.jsonl

The development tables of `benchmarks/studies/tables`, three labelings each: `pue fit` with an estimated prior on all
rows, then a budget of a tenth of the unlabeled rows, spent on them. True classes count the hits. A run that was cut
goes on where it was.
"""

from __future__ import annotations

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # before any import

import argparse
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

sys.path.insert(0, str(Path(__file__).parent / "tables"))
from problems import pose
from tables import DEVELOPMENT

from pue.app.fit_source import fit_source
from pue.app.predict import predict_source
from pue.app.recipe import Recipe
from pue.app.roles import Roles
from pue.app.sources.opening import open_source
from pue.files import write_text

LABELINGS = ("scar", "logistic", "kinds")
SHARE = 0.1


def measured(table: str, labeling: str, seed: int) -> dict[str, Any]:
    """Expected hits and true ones, of a model of the training rows of a problem."""
    problem = pose(table, labeling, seed).train
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "rows.parquet"
        problem.frame.assign(labeled=problem.s.astype(int)).to_parquet(data, index=False)
        source = open_source(data)
        model = fit_source(source, Roles("labeled"), Recipe(seed=seed, progress=False))
        budget = round(SHARE * int((~problem.s).sum()))
        done = predict_source(model, source, Path(folder) / "scores.parquet", budget=budget)
        chosen = pd.read_parquet(Path(folder) / "scores.parquet")["positive"] == 1
    hits = int((chosen & problem.y).sum())
    expected = done["expected_hits"]
    inside = bool(expected["low"] <= hits <= expected["high"])
    about = {"table": table, "labeling": labeling, "seed": seed, "budget": budget, "true": hits}
    return {**about, **expected, "inside": inside, "base": float(problem.y[~problem.s].mean())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0-0", help="first-last")
    parser.add_argument("--out", type=Path, default=Path("budget_hits.jsonl"))
    given = parser.parse_args()
    first, _, last = given.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    wanted = [(seed, table, labeling) for seed in seeds for table in DEVELOPMENT for labeling in LABELINGS]
    found = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    done = {(record["seed"], record["table"], record["labeling"]) for record in found}
    for seed, table, labeling in (problem for problem in wanted if problem not in done):
        found.append(measured(table, labeling, seed))
        print(json.dumps(found[-1]), flush=True)
        write_text(given.out, "".join(json.dumps(record) + "\n" for record in found))
    inside, ratio = [r["inside"] for r in found], [r["true"] / max(r["value"], 1) for r in found]
    wide = np.mean([(record["high"] - record["low"]) / record["budget"] for record in found])
    print(f"{sum(inside)} of {len(inside)} intervals hold the truth; median of true / expected: {np.median(ratio):.2f}")
    print(f"mean width: {wide:.2f} of the budget")


if __name__ == "__main__":
    main()
