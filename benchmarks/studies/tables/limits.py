"""What keeps `Joint` from true propensities? Accuracy of a forest with the prior given, on development tables.

    python benchmarks/studies/tables/limits.py  # 14 tables, two labelings, seeds 0 and 1, two processes

Every row weighs the same forest of 100 trees by another ê of the labeled rows. *Classes known* is the same estimate of
the labeling beside the class of a forest that was grown, out of fold, on the true classes: what is lost without them is
lost by the class, not by the model of the labeling. *From communities* starts the rounds elsewhere: if they end with
the same accuracy, more rounds or another start have nothing to find. Points of accuracy above no correction.
"""

from __future__ import annotations

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # before any import

import warnings

import numpy as np
import torch
from labelings import Floats
from problems import Problem, pose
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import cross_val_predict
from strength import LABELINGS, Cell, accuracy, study

from pue.core.data import PUData
from pue.propensity import Communities
from pue.propensity.joint import Joint, _clipped, _Problem

SHOWN = LABELINGS[:2]
ROWS = {
    "true": "true propensities",
    "known": "classes known",
    "joint": "`Joint`, as its last round leaves it",
    "twelve": "the same, twelve rounds",
    "elsewhere": "the same, from communities",
    "communities": "communities alone",
}


def accuracies(cell: Cell) -> dict[str, float]:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    problem = pose(*cell)
    data = PUData(torch.from_numpy(problem.train.x), torch.from_numpy(problem.train.s.astype(np.int8)))
    em = _Problem.of(Joint(), data, problem.prior, problem.seed)
    scar, groups = np.full(data.n_rows, em.frequency), by_communities(data, problem)
    five = after(em, scar, 5)
    tried = {
        "none": None,
        "true": problem.train.e,
        "known": after(em, scar, 5, true_classes(problem)),
        "joint": five,
        "twelve": after(em, five, 7),
        "elsewhere": after(em, groups, 5),
        "communities": groups,
    }
    return {name: accuracy(problem, data, e) for name, e in tried.items()}


def after(em: _Problem, e: Floats, rounds: int, f: Floats | None = None) -> Floats:
    """ê after so many rounds; `f`: the class is not estimated but given."""
    for _ in range(rounds):
        q = em.posterior(em.positive(e) if f is None else f, e)
        columns = em.labeling(q)[1]
        e = columns @ em.shares(columns, q)
    return e


def true_classes(problem: Problem) -> Floats:
    forest = ExtraTreesClassifier(200, min_samples_leaf=3, n_jobs=1, random_state=problem.seed)
    return cross_val_predict(forest, problem.train.x, problem.train.y, cv=5, method="predict_proba")[:, 1]


def by_communities(data: PUData, problem: Problem) -> Floats:
    model = Communities().fit(data, prior=problem.prior, seed=problem.seed)
    e = model(data.x).clone()
    assert model.held_out is not None
    e[data.labeled] = model.held_out
    return _clipped(e.numpy())


def main() -> None:
    study(accuracies, SHOWN, ROWS, seeds=2, says=__doc__ or "")


if __name__ == "__main__":
    main()
