"""Where the preset `fast` of MNIST comes from: one setting at a time on a part of the training set.

    python benchmarks/studies/mnist_tuning.py nnpu --propensity auto --set epochs=20 weight_decay=3e-4 \
        labeled_per_batch=64 labeled_rows=drawn --data DATA

Trains on the first 50,000 training images (2,500 labels in the paper's mix) and judges by the other 10,000; the test
images are not looked at. docs/lab/tuning.md lists what was tried.
"""

from __future__ import annotations

import argparse
import ast
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch

from pue import Augmentation, PUClassifier, PUData, evaluate
from pue.bench.datasets import mnist
from pue.bench.labeling import class_mix
from pue.propensity import Auto, estimate_propensity

MIX = {0: 0.65, 2: 0.15, 4: 0.10, 6: 0.07, 8: 0.03}
ROWS = 50_000
BASE: dict[str, Any] = {"backbone": "tabular", "epochs": 10, "lr": 1e-3, "weight_decay": 5e-3}
AUGMENTATION = ("shift", "flip", "rotate", "mixup")


def value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def settings_of(pairs: list[str]) -> dict[str, Any]:
    """Arguments of PUClassifier from NAME=VALUE; shift, flip, rotate and mixup are those of an augmentation."""
    given = {name: value(text) for name, _, text in (pair.partition("=") for pair in pairs)}
    augmented = {name: given.pop(name) for name in AUGMENTATION if name in given}
    return {**BASE, **given, **({"augmentation": Augmentation(**augmented)} if augmented else {})}


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows to train on, propensities of their labeled ones, and the images that judge."""

    data: PUData
    prior: float
    e: torch.Tensor | None
    x: torch.Tensor
    y: torch.Tensor


@cache
def problem(seed: int, propensity: str, folder: str | None) -> Problem:
    split = mnist(folder)
    y, prior = split.train_y, float(split.train_y[:ROWS].double().mean())
    rng = np.random.default_rng(seed)
    data, truth = class_mix(split.train_x[:ROWS], split.train_classes[:ROWS], mix=MIX, n_labeled=2500, rng=rng)
    e = None
    if propensity == "true":
        e = truth.labeled_propensity(data)
    elif propensity == "auto":
        e = estimate_propensity(Auto(), data, prior=prior, seed=seed).e
    return Problem(data, prior, e, split.train_x[ROWS:], y[ROWS:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method")
    parser.add_argument("--propensity", choices=["none", "auto", "true"], default="none")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="arguments of PUClassifier")
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--data", help="folder that holds mnist/ (default: $PUE_DATA)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    found = problem(args.seed, args.propensity, args.data)
    settings = settings_of(args.set)
    start = time.process_time()
    classifier = PUClassifier(
        args.method, prior=found.prior, scenario="case_control", random_state=args.seed, **settings
    )
    classifier.fit(found.data.x, found.data.labels, propensity=found.e)
    judged = evaluate(found.y, torch.from_numpy(classifier.decision_function(found.x)))
    print(f"{args.method} {args.propensity} seed {args.seed} {settings}: accuracy {100 * judged.accuracy:.2f}, "
          f"AUC {100 * judged.auc:.2f}, {time.process_time() - start:.0f} CPU s")  # fmt: skip


if __name__ == "__main__":
    main()
