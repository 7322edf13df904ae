"""How good are estimates without negatives? MNIST with the paper's biased labels, nnPUe, against the true test classes.

    python benchmarks/studies/mnist_without_negatives.py --data DATA --seeds 6 --out without_negatives.jsonl

Scores of the training rows are out of fold (with few folds the models see fewer labels than the final one, and the
estimates are too low); metrics, intervals and probabilities are estimated from the 2,500 biased labels and the 60,000
unlabeled images alone. The truth is that of the model fitted on all training rows, on the 10,000 test images. Scores
are kept in RUNS, so that a seed whose scores are there takes seconds.

Columns: "corrected" judges with ê of the rows around (`from_others`), as `pue fit` does; "own" with the row's own ê;
"true" with the true propensities; "scar" as if labels were unbiased.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch

from pue import PUClassifier
from pue.bench.hidden import hide, load
from pue.bench.propensities import propensities
from pue.bench.store import Store
from pue.bench.suites import resolve
from pue.core.machine import one_thread
from pue.estimators.held_out import out_of_fold
from pue.judging import calibration_error, estimate_metrics, evaluate
from pue.judging.calibration import CALIBRATIONS, calibrate
from pue.judging.worlds import pu_row_weights
from pue.propensity.features import fit_reduction
from pue.propensity.smooth import from_others

METRICS = ("accuracy", "precision", "recall", "f1", "auc", "ap")
KINDS = ("corrected", "own", "true", "scar")


def scores_of(seed: int, folds: int, data: Path | None, runs: Path) -> dict[str, np.ndarray]:
    """Out-of-fold scores of the training rows, and the final model's scores of the test images."""
    file = runs / f"without_negatives-{seed}-{folds}.npz"
    if not file.exists():
        (spec,) = resolve("mnist", methods=["nnPUe"], seeds=[seed])
        split = load("mnist", data, None, None)
        hidden = hide(split, spec.labels, seed)
        rows, prior = hidden.data, float(split.train_y.double().mean())
        e = torch.tensor(propensities(spec, hidden, prior, Store(runs), wait=True)["values"], dtype=torch.float64)
        classifier = PUClassifier(
            "nnpu",
            prior=prior,
            scenario="case_control",
            backbone=spec.settings.backbone,
            random_state=seed,
            progress=False,
            **spec.settings.classifier,
        )
        held = out_of_fold(classifier, rows, prior=prior, propensity=e, folds=folds, seed=seed)
        fitted = classifier.fit(rows.x, rows.labels, propensity=e)
        np.savez(file, held=held.numpy(), e=e.numpy(), test=fitted.decision_function(split.test_x))
    return dict(np.load(file))


def one_seed(seed: int, folds: int, data: Path | None, runs: Path) -> dict:
    found = scores_of(seed, folds, data, runs)
    split = load("mnist", data, None, None)
    hidden = hide(split, resolve("mnist", methods=["nnPUe"], seeds=[seed])[0].labels, seed)
    rows, prior = hidden.data, float(split.train_y.double().mean())
    held, e, test = (torch.from_numpy(found[name]).double() for name in ("held", "e", "test"))
    images = rows.x[rows.labeled]
    around = from_others(e, fit_reduction(images, seed=seed)(images))
    truth = evaluate(split.test_y, test).as_dict()
    record = {
        "seed": seed,
        "folds": folds,
        "truth": {name: truth[name] for name in METRICS},
        "estimates": {},
        "calibration": {},
    }
    for kind, propensity in zip(KINDS, (around, e, hidden.propensity, None), strict=True):
        estimate = estimate_metrics(
            held, rows.labels, prior=prior, propensity=propensity, scenario="case_control", seed=seed
        )
        record["estimates"][kind] = {
            name: [getattr(estimate, name).value, getattr(estimate, name).low, getattr(estimate, name).high]
            for name in METRICS
        }
        weights = pu_row_weights(rows.labels, prior, propensity, rows.scenario)
        for method in CALIBRATIONS:
            p = calibrate(held, weights, method)(test)
            record["calibration"][f"{kind}, {method}"] = calibration_error(split.test_y, p)
    record["calibration"]["sigmoid of the score"] = calibration_error(split.test_y, torch.sigmoid(test))
    return record


def show(records: list[dict]) -> None:
    print(f"{len(records)} seeds; mean absolute error in points, and how often the 95 % interval covers")
    for kind in KINDS:
        cells = []
        for name in METRICS:
            gaps = [abs(r["estimates"][kind][name][0] - r["truth"][name]) for r in records]
            inside = [
                r["estimates"][kind][name][1] <= r["truth"][name] <= r["estimates"][kind][name][2] for r in records
            ]
            cells.append(f"{name} {100 * np.mean(gaps):.2f} ({100 * np.mean(inside):.0f} %)")
        print(f"  {kind:18}", "  ".join(cells))
    for name in records[0]["calibration"]:
        errors = [100 * r["calibration"][name] for r in records]
        spread = np.std(errors, ddof=1) if len(errors) > 1 else 0.0
        print(f"  calibration error, {name:30} {np.mean(errors):.2f} ± {spread:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with mnist/; default: PUE_DATA")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("without_negatives.jsonl"))
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where scores and propensities are kept")
    arguments = parser.parse_args()
    lines = arguments.out.read_text().splitlines() if arguments.out.exists() else []
    records = [json.loads(line) for line in lines]
    for seed in sorted(set(range(arguments.seeds)) - {record["seed"] for record in records}):
        with one_thread():
            records.append(one_seed(seed, arguments.folds, arguments.data, arguments.runs))
        with arguments.out.open("a") as file:
            file.write(json.dumps(records[-1]) + "\n")
    show(sorted(records, key=lambda record: record["seed"]))


if __name__ == "__main__":
    main()
