"""How strong should the correction of a table be? Accuracy of a forest by the exponent of ê, on development tables.

    python benchmarks/studies/tables/strength.py                 # 14 tables, four labelings, seed 0, two processes

The prior is given. `Joint` estimates e; a forest of 100 trees is weighted by 1/eᵏ for every exponent k, and the rule of
`Joint` picks one. Points of accuracy above no correction, mean over tables; *recovered* is over logistic and kinds.
"""

from __future__ import annotations

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # before any import

import argparse
import multiprocessing
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import torch
from labelings import Floats
from problems import Problem, pose
from tables import DEVELOPMENT

from pue.core.data import PUData
from pue.core.weights import pu
from pue.propensity.auto import LEVEL, _scar_test
from pue.propensity.joint import Joint, _Problem
from pue.trees import Forest

EXPONENTS = (0.5, 1.0, 1.5)
LABELINGS = ("logistic", "kinds", "scar", "easy")
RULES = {"tested": "by certainty, where the test of SCAR speaks against it", "always": "by certainty, without the test"}

Cell = tuple[str, str, int]


def accuracies(cell: Cell) -> dict[str, float]:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    problem = pose(*cell)
    data = PUData(torch.from_numpy(problem.train.x), torch.from_numpy(problem.train.s.astype(np.int8)))
    em = _Problem.of(Joint(), data, problem.prior, problem.seed)
    e = np.full(data.n_rows, em.frequency)
    for _ in range(em.settings.rounds):
        q = em.posterior(em.positive(e), e)
        columns = em.labeling(q)[1]
        e = columns @ em.shares(columns, q)
    test, strength = _scar_test(data, problem.prior, problem.seed), em.strength(e)
    found = {f"{k:g}": accuracy(problem, data, em.raised(e, k)) for k in EXPONENTS}
    found |= {"none": accuracy(problem, data, None), "true": accuracy(problem, data, problem.train.e)}
    found["always"] = accuracy(problem, data, em.raised(e, strength)) if strength else found["none"]
    found["tested"] = found["always"] if test is not None and test.p_value <= LEVEL else found["none"]
    return found


def accuracy(problem: Problem, data: PUData, e: Floats | None) -> float:
    labeled = None if e is None else torch.from_numpy(e)[data.labeled]
    trees, threshold = Forest().learn(data, pu(data.labels, labeled, prior=problem.prior), problem.seed)
    return float(np.mean((trees.log_odds(problem.test.x) >= threshold) == problem.test.y))


def study(
    found_in: Callable[[Cell], dict[str, float]],
    labelings: Sequence[str],
    rows: dict[str, str],
    *,
    seeds: int,
    says: str,
) -> None:
    """Compute the accuracies of all cells and print what every row gains over none. `says`: the script's own words."""
    parser = argparse.ArgumentParser(description=says, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default=",".join(DEVELOPMENT))
    parser.add_argument("--seeds", type=int, default=seeds)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    cells = [(t, kind, seed) for seed in range(args.seeds) for t in args.tables.split(",") for kind in labelings]
    with ProcessPoolExecutor(args.jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = dict(zip(cells, pool.map(found_in, cells), strict=True))
    print(f"| propensities | {' | '.join(labelings)} | recovered |\n|{'---|' * (len(labelings) + 2)}")
    for name, words in rows.items():
        gains = [[f[name] - f["none"] for (_, own, _), f in found.items() if own == kind] for kind in labelings]
        shown = " | ".join(f"{100 * np.mean(gain):+.1f}".replace("-", "−") for gain in gains)
        print(f"| {words} | {shown} | {recovered(found, name):.2f} |")


def main() -> None:
    names = ("true", *(f"{k:g}" for k in EXPONENTS))
    study(accuracies, LABELINGS, {**{name: name for name in names}, **RULES}, seeds=1, says=__doc__ or "")


def recovered(found: dict[Cell, dict[str, float]], name: str) -> float:
    """Over the labelings whose bias the data can show."""
    seen = [each for (_, kind, _), each in found.items() if kind in LABELINGS[:2]]
    return sum(each[name] - each["none"] for each in seen) / sum(each["true"] - each["none"] for each in seen)


if __name__ == "__main__":
    main()
