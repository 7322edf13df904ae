"""Do probabilities without negatives mean something? Scikit-learn's digits, biased labels, against the true classes.

    python benchmarks/studies/digits_calibration.py --seeds 6 --out digits_calibration.jsonl

The 64 pixels are columns of a table; even digits are positive, and a zero is labeled with probability .6, a two .4, a
four .3, a six .2, an eight .1. 70 % of the rows train, as `pue fit` does it (propensities estimated, prior given,
probabilities calibrated on out-of-fold scores); the expected calibration error is that of the other 30 %. A seed in the
output is not measured again.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from pue.app.fit import fit_model
from pue.app.recipe import Recipe
from pue.app.rows import Rows
from pue.core.data import PUData
from pue.core.machine import one_thread
from pue.judging import calibration_error

PROPENSITY = np.array([0.6, 0, 0.4, 0, 0.3, 0, 0.2, 0, 0.1, 0])


def one_seed(seed: int) -> dict[str, float]:
    digits = load_digits()
    x = torch.from_numpy(digits.data.astype(np.float32))
    train, test = train_test_split(np.arange(len(x)), test_size=0.3, stratify=digits.target, random_state=seed)
    s = np.random.default_rng(seed).random(len(train)) < PROPENSITY[digits.target[train]]
    pixels, y = x[test].numpy(), torch.from_numpy((digits.target[test] % 2 == 0).astype(int))
    found = {}
    for name, propensity in (("corrected", "auto"), ("unbiased", None)):
        rows = Rows(PUData(x[train], torch.from_numpy(s.astype(int))), None, None)
        model = fit_model(rows, Recipe(prior=0.5, propensity=propensity, seed=seed, progress=False))
        scores = model.classifier.decision_function(pixels)
        found[f"{name}, accuracy"] = float(np.mean((scores > 0) == y.numpy()))
        found[f"{name}, calibrated"] = calibration_error(y, torch.from_numpy(model.probabilities(pixels)))
        found[f"{name}, sigmoid of the score"] = calibration_error(y, torch.sigmoid(torch.from_numpy(scores)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--out", type=Path, default=Path("digits_calibration.jsonl"))
    given = parser.parse_args()
    done = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    for seed in sorted(set(range(given.seeds)) - {record["seed"] for record in done}):
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done.append({"seed": seed, "found": one_seed(seed)})
        with given.out.open("a") as file:
            file.write(json.dumps(done[-1]) + "\n")
    for name in done[0]["found"]:
        values = 100 * np.array([record["found"][name] for record in done])
        print(f"{name:32} {values.mean():5.2f} ± {values.std(ddof=1):.2f}, {len(values)} seeds")


if __name__ == "__main__":
    main()
