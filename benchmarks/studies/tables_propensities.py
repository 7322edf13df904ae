"""May `auto` take a joint model of class and labeling on tables? nnPU with estimated propensities, true classes judge.

    python benchmarks/studies/tables_propensities.py --seed 100 --out tables_propensities.jsonl

Tables: those of tables_study.py, a generated one of 12,000 rows, and three whose classes lie 1, 2 or 4 apart.
Labels depend on columns by a logistic curve, a step or a bump, or on nothing; 70 % of the rows train, the prior is
given. Accuracy with each estimator minus that without correction. A run in the output is not computed again.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from tables_study import tables

from pue import PUClassifier
from pue.bench.labeling import feature_sar
from pue.core.data import PUData
from pue.core.machine import one_thread

ESTIMATORS = ("none", "auto", "sarem")
BIASES = ("logistic", "step", "bump", "none")


def problems(seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    for name, x, y in tables():
        yield name, x.astype(np.float64), y
    x, y = make_classification(
        12_000, 20, n_informative=8, n_redundant=4, weights=[0.7], flip_y=0.03, random_state=seed
    )
    yield "generated 12k", x, y
    for gap in (1, 2, 4):
        rng = np.random.default_rng(seed)
        y = rng.random(4000) < 0.4
        x = rng.normal(size=(4000, 5))
        x[:, 0] += gap * y
        x[:, 2] += gap * y * np.tanh(x[:, 1])
        yield f"gap {gap}", x, y.astype(int)


def labelings(name: str, x: np.ndarray, y: np.ndarray, seed: int) -> Iterator[PUData]:
    """In the order of BIASES."""
    rng = np.random.default_rng(seed)
    varying = np.flatnonzero(x[y == 1].std(0) > 0)
    columns = [1] if name.startswith("gap") else [int(column) for column in rng.choice(varying, 3, replace=False)]
    features, classes, strength = torch.from_numpy(x), torch.from_numpy(y), 1.5 if len(columns) > 1 else 2.0
    yield feature_sar(features, classes, features=columns, strength=strength, frequency=1 / 3, rng=rng)[0]
    values, positives = x[:, columns[0]], x[y == 1, columns[0]]
    bump = np.exp(-(((values - positives.mean()) / positives.std()) ** 2))
    for e in (np.where(values > np.median(positives), 0.55, 0.08), 0.6 * bump + 0.05, np.full(len(y), 0.3)):
        yield PUData(features, torch.from_numpy(((y == 1) & (rng.random(len(y)) < e)).astype(int)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("tables_propensities.jsonl"))
    given = parser.parse_args()
    records = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    found = {(record["table"], record["bias"], record["estimator"]): record["accuracy"] for record in records}
    for name, x, y in problems(given.seed):
        train, test = train_test_split(np.arange(len(y)), test_size=0.3, stratify=y, random_state=given.seed)
        for bias, data in zip(BIASES, labelings(name, x[train], y[train], given.seed), strict=True):
            for estimator in ESTIMATORS:
                if (name, bias, estimator) in found:
                    continue
                with one_thread(), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model = PUClassifier(
                        prior=float(y[train].mean()),
                        propensity=None if estimator == "none" else estimator,
                        random_state=given.seed,
                        progress=False,
                    ).fit(data.x, data.labels)
                    accuracy = float(np.mean((model.decision_function(x[test]) > 0) == y[test]))
                found[name, bias, estimator] = accuracy
                record = {"seed": given.seed, "table": name, "bias": bias, "estimator": estimator, "accuracy": accuracy}
                with given.out.open("a") as file:
                    file.write(json.dumps(record) + "\n")
    show(found)


def show(found: dict[tuple[str, str, str], float]) -> None:
    for bias in BIASES:
        names = sorted({table for table, kind, _ in found if kind == bias})
        for estimator in ESTIMATORS[1:]:
            gains = [100 * (found[table, bias, estimator] - found[table, bias, "none"]) for table in names]
            print(f"{bias:9} {estimator:6} {np.mean(gains):+5.1f} points on average over {len(gains)} tables")


if __name__ == "__main__":
    main()
