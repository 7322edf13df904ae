"""How much of what true propensities gain is within reach of any method?

    python benchmarks/studies/tables/alike.py                   # 14 development tables, two labelings, seeds 0 and 1
    python benchmarks/studies/tables/alike.py --tables report

f is the chance of the class given a row, by forests of the true classes, out of fold, isotonic; with the true e it
gives the rate of labels e f. The least biased world (`theory.least_biased`) has other classes, other propensities and
the same labels. No method can tell the two apart, with the prior given and any number of rows. What it wins in the true
world it pays for in the other, where no correction is right: `theory.within_reach` says the most that a price buys.
"""

from __future__ import annotations

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # before any import

import argparse
import multiprocessing
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import torch
from labelings import Bools, Floats
from problems import pose
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import KFold, cross_val_predict
from strength import Cell
from tables import DEVELOPMENT, REPORT

from pue.core.theory import least_biased, within_reach

LABELINGS = ("logistic", "kinds")
PRICES = (0.0, 0.3, 1.0, 2.0, 3.0, 5.0)
"""Points of accuracy, lost in the least biased world."""


def class_chances(x: Floats, y: Bools, seed: int) -> Floats:
    forest = ExtraTreesClassifier(200, min_samples_leaf=3, n_jobs=1, random_state=seed)
    p = cross_val_predict(forest, x, y, cv=5, method="predict_proba")[:, 1]
    found = np.empty(len(p))
    for fit, rest in KFold(5, shuffle=True, random_state=seed).split(p):
        found[rest] = IsotonicRegression(out_of_bounds="clip", y_min=0, y_max=1).fit(p[fit], y[fit]).predict(p[rest])
    return found


def reach(cell: Cell) -> tuple[float, list[float]]:
    """Points that the true propensities win, and the share of them that each price buys."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    part = pose(*cell).train
    f = torch.from_numpy(class_chances(part.x.astype(np.float64), part.y, cell[2]))
    other, _ = least_biased(f * torch.from_numpy(part.e), float(f.mean()))
    won = (2 * f - 1) * ((f > 0.5).double() - (other > 0.5).double())
    return 100 * float(won.mean()), [within_reach(f, other, price / 100) for price in PRICES]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default="development", help="development, report, or names with commas")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    tables = {"development": DEVELOPMENT, "report": REPORT}.get(args.tables, args.tables.split(","))
    cells = [(table, kind, seed) for seed in range(args.seeds) for table in tables for kind in LABELINGS]
    with ProcessPoolExecutor(args.jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = dict(zip(cells, pool.map(reach, cells), strict=True))
    print(f"| labeling | points to win |{'|'.join(f' at {price:g} ' for price in PRICES)}|")
    print("|---" * (len(PRICES) + 2) + "|")
    for kinds in ((LABELINGS[0],), (LABELINGS[1],), LABELINGS):
        won = np.array([points for (_, kind, _), (points, _) in found.items() if kind in kinds])
        share = np.array([shares for (_, kind, _), (_, shares) in found.items() if kind in kinds])
        reached = (won[:, None] * np.nan_to_num(share)).sum(0) / won.sum()
        print(f"| {' and '.join(kinds)} | {won.mean():.1f} |{'|'.join(f' {value:.2f} ' for value in reached)}|")
    short = sum(np.nan_to_num(shares[PRICES.index(1.0)], nan=1.0) < 0.85 for _, shares in found.values())
    print(f"in {short} of {len(found)} cells .85 costs more than a point")


if __name__ == "__main__":
    main()
