"""Where the preset `fast` of Alzheimer comes from: one setting at a time, judged by later slices of the training set.

    python benchmarks/studies/alzheimer_tuning.py nnpu --set backbone=small_cnn epochs=15 flip=True shift=4 \
        --gap 0.15 --data DATA

The test images carry the numbers of slices that come after those of the training images: they show other heights of
the brain. A split at random would reward what does not carry over to them. So training takes the first images of each
class in the order of their numbers, the last fifth judges, and `--gap` leaves out a part between the two. The test
images are not looked at. docs/lab/tuning.md lists what was tried.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch
from mnist_tuning import AUGMENTATION, value

from pue import Augmentation, PUClassifier, Scenario, evaluate
from pue.bench.datasets import alzheimer
from pue.bench.labeling import scar

BASE: dict[str, Any] = {"epochs": 20, "lr": 1e-3, "weight_decay": 1e-3, "schedule": "one_cycle", "batch_size": 128}


def parts(classes: torch.Tensor, gap: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows to train on and rows that judge. Rows are in the order of their file names, 0, 1, 10, 11, …, 2, …"""
    train, judge = [], []
    for label in classes.unique():
        rows = torch.nonzero(classes == label)[:, 0]
        number = torch.tensor(sorted(range(len(rows)), key=str))
        place = number.argsort()
        train.append(rows[place[: int((0.8 - gap) * len(rows))]])
        judge.append(rows[place[int(0.8 * len(rows)) :]])
    return torch.cat(train).sort().values, torch.cat(judge).sort().values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="arguments of PUClassifier")
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--gap", type=float, default=0.0, help="share of the images between the two parts")
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--data", help="folder that holds alzheimer/ (default: $PUE_DATA)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    split = alzheimer(args.data, size=args.size)
    train, judge = parts(split.train_classes, args.gap)
    x, y = split.train_x, split.train_y
    data, _ = scar(
        x[train],
        y[train],
        n_labeled=769 * len(train) // len(x),
        scenario=Scenario.CASE_CONTROL,
        rng=np.random.default_rng(args.seed),
    )
    given = {name: value(text) for name, _, text in (pair.partition("=") for pair in args.set)}
    augmentation = Augmentation(**{name: given.pop(name) for name in AUGMENTATION if name in given})
    start = time.process_time()
    classifier = PUClassifier(
        args.method, prior=0.5, scenario="case_control", random_state=args.seed, augmentation=augmentation,
        **{**BASE, **given},
    )  # fmt: skip
    classifier.fit(data.x, data.labels)
    found = evaluate(y[judge], torch.from_numpy(classifier.decision_function(x[judge])))
    print(f"{args.method} {args.size} px gap {args.gap} {args.set}: accuracy {100 * found.accuracy:.2f}, AUC "
          f"{100 * found.auc:.2f}, {time.process_time() - start:.0f} CPU s")  # fmt: skip


if __name__ == "__main__":
    main()
