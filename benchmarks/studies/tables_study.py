"""The default of `pue fit` on real tables whose labels depend on features, against simpler ways; true classes judge.

    python benchmarks/studies/tables_study.py --seeds 10 --out tables_study.jsonl

Tables: scikit-learn's breast cancer (malignant is positive), digits as a table (even; below five), wine (the second
kind), and a generated one of 4,000 rows. 70 % of the rows train; a positive is labeled with a probability that depends
on three columns drawn by the seed (a third of the positives on average). The prior is **not** known to any method. A
run in the output is not computed again.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pue import PUClassifier
from pue.app.fit import fit_model
from pue.app.preparation import prepare
from pue.app.recipe import Recipe
from pue.app.rows import Rows
from pue.bench.labeling import feature_sar
from pue.core.data import PUData
from pue.core.machine import one_thread
from pue.priors import elkan_noto


def tables() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    x, y = load_breast_cancer(return_X_y=True)
    yield "breast cancer", x, 1 - y
    x, y = load_digits(return_X_y=True)
    yield "digits, even", x, (y % 2 == 0).astype(int)
    yield "digits, low", x, (y < 5).astype(int)
    x, y = load_wine(return_X_y=True)
    yield "wine", x, (y == 1).astype(int)
    x, y = make_classification(4000, 20, n_informative=8, n_redundant=4, weights=[0.7], flip_y=0.03, random_state=0)
    yield "generated", x, y


def biased(x: np.ndarray, y: np.ndarray, seed: int) -> PUData:
    rng = np.random.default_rng(seed)
    varying = np.flatnonzero(x[y == 1].std(0) > 0)
    columns = [int(column) for column in rng.choice(varying, 3, replace=False)]
    data, _ = feature_sar(
        torch.from_numpy(x), torch.from_numpy(y), features=columns, strength=1.5, frequency=1 / 3, rng=rng
    )
    return data


def one_run(x: np.ndarray, y: np.ndarray, seed: int) -> dict[str, list[float]]:
    train, test = train_test_split(np.arange(len(y)), test_size=0.3, stratify=y, random_state=seed)
    data, truth, new = biased(x[train], y[train], seed), y[test], x[test]
    recipe = Recipe(seed=seed, threshold="half")
    rows = Rows(data, None, None)
    model = fit_model(rows, recipe)
    scores = {"pue fit": model.probabilities(new) - 0.5}
    boosting = fit_model(rows, Recipe(seed=seed, threshold="half", method="wrapped_boosting"))
    scores["pue fit --method wrapped_boosting"] = boosting.probabilities(new) - 0.5
    s = data.labels.numpy()
    naive = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(data.x.numpy(), s)
    p = naive.predict_proba(new)[:, 1]
    scores["unlabeled as negative"] = p - 0.5
    prior = elkan_noto(data)
    scores["Elkan-Noto"] = p - s.mean() / prior / 2  # P(y = 1 | x) = p / c ≥ ½ with c = P(labeled) / π
    plain = PUClassifier(
        "nnpu", prior=float(prepare(rows, Recipe(seed=seed, propensity=None)).prior.value), random_state=seed
    )
    scores["nnPU without correction"] = plain.fit(data.x, data.labels).decision_function(new)
    found = {name: [float(np.mean((g >= 0) == truth)), float(roc_auc_score(truth, g))] for name, g in scores.items()}
    return {**found, "prior": [float(model.summary["prior"]["value"]), float(y[train].mean())]}


def show(records: list[dict]) -> None:
    by_table: dict[str, list[dict]] = defaultdict(list)
    for record in records:
        by_table[record["table"]].append(record["found"])
    for table, found in by_table.items():
        priors = np.array([run["prior"] for run in found])
        print(
            f"\n{table}: {len(found)} seeds, estimated prior {priors[:, 0].mean():.2f}, true {priors[:, 1].mean():.2f}"
        )
        for name in (name for name in found[0] if name != "prior"):
            values = 100 * np.array([run[name] for run in found])
            spread = values.std(0, ddof=1) if len(values) > 1 else np.zeros(2)
            mean = values.mean(0)
            print(f"  {name:28} accuracy {mean[0]:5.1f} ± {spread[0]:.1f}   AUC {mean[1]:5.1f} ± {spread[1]:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("tables_study.jsonl"))
    args = parser.parse_args()
    records = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    done = {(record["table"], record["seed"]) for record in records}
    for seed in range(args.seeds):
        for name, x, y in tables():
            if (name, seed) in done:
                continue
            with one_thread(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                record = {"table": name, "seed": seed, "found": one_run(x.astype(np.float64), y, seed)}
            records.append(record)
            with args.out.open("a") as file:
                file.write(json.dumps(record) + "\n")
    show(records)


if __name__ == "__main__":
    main()
