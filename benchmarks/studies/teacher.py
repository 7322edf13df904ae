"""What is each part of the method `teacher` worth?

    python benchmarks/studies/teacher.py --data DATA --seeds 100,101 --out docs/results/teacher.jsonl
    python benchmarks/studies/teacher.py --out docs/results/teacher.jsonl --show

MNIST as pixels (50,000 training images, the other 10,000 judge) and CIFAR-10 as features learnt without labels (40,000
and 10,000), labels in the paper's mix, propensities none, estimated and true. Each variant lacks one part, or has one
alone; all train for as many epochs. Test images are not looked at. A run that was cut goes on where it was.
"""

from __future__ import annotations

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # before any import

import argparse
import json
import time
import warnings
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pue import PUClassifier, evaluate
from pue.basis import Wishes, settle_propensities
from pue.bench.datasets import LabeledSplit, cifar10, mnist
from pue.bench.features import seen_by_encoder
from pue.bench.hidden import Hidden, hide
from pue.bench.presets import LABELS
from pue.bench.propensities import share_distance
from pue.files import write_text
from pue.methods import AveragedTeacher, Method, find_method
from pue.propensity import FLOOR, PROPENSITIES

VARIANTS: dict[str, Method] = {
    "nnPU, as many epochs": find_method("nnpu"),
    "teacher alone": AveragedTeacher(neighbors=0, weight=1.0),
    "teacher, neighbors": AveragedTeacher(weight=1.0),
    "neighbors, the network its own teacher": AveragedTeacher(weight=1.0, decay=0.0),
    "neighbors, lessons count half": AveragedTeacher(weight=0.5),
    "neighbors, lessons count thrice": AveragedTeacher(weight=3.0),
    "neighbors, lessons count ten times": AveragedTeacher(weight=10.0),
}
"""Records also hold `teacher, blends` and `all`: with blends of two rows (mixup), which made it worse and went."""


@dataclass(frozen=True)
class Problem:
    """A data set, and how rows are trained on."""

    rows: int
    """The first so many train, the others judge."""
    n_labeled: int
    estimator: str
    settings: dict[str, Any]


DRAWN: dict[str, Any] = {"backbone": "tabular", "labeled_per_batch": 64, "labeled_rows": "drawn", "lr": 1e-3}
PROBLEMS = {
    "mnist": Problem(50_000, 2_500, "auto", {**DRAWN, "epochs": 20, "weight_decay": 3e-4}),
    "cifar10": Problem(40_000, 800, "likely", {**DRAWN, "epochs": 10, "weight_decay": 1e-2}),
}


@cache
def split_of(name: str, features: str, folder: str | None) -> LabeledSplit:
    whole = mnist(folder) if name == "mnist" else seen_by_encoder(features, cifar10(folder))
    n, x, classes = PROBLEMS[name].rows, whole.train_x, whole.train_classes
    return LabeledSplit(whole.name, x[:n], classes[:n], x[n:], classes[n:], whole.positive)


@cache
def hidden_of(name: str, features: str, folder: str | None, seed: int) -> Hidden:
    labels = replace(LABELS[name], n_labeled=PROBLEMS[name].n_labeled)
    return hide(split_of(name, features, folder), labels, seed)


def prior_of(hidden: Hidden) -> float:
    return float(hidden.split.train_y.double().mean())


@cache
def propensities(kind: str, name: str, features: str, folder: str | None, seed: int) -> Tensor | None:
    hidden = hidden_of(name, features, folder, seed)
    if kind != "estimated":
        return hidden.propensity if kind == "true" else None
    wishes = Wishes(prior_of(hidden), PROPENSITIES[PROBLEMS[name].estimator], FLOOR)
    found = settle_propensities(hidden.data, wishes, prior_of(hidden), seed=seed)
    assert found is not None
    return found.e


def measured(name: str, kind: str, variant: str, seed: int, features: str, folder: str | None) -> dict[str, Any]:
    hidden = hidden_of(name, features, folder, seed)
    e = propensities(kind, name, features, folder, seed)
    began = time.process_time()
    settings = PROBLEMS[name].settings
    model = PUClassifier(VARIANTS[variant], prior=prior_of(hidden), scenario="case_control", random_state=seed,
                         progress=False, **settings)  # fmt: skip
    model.fit(hidden.data.x, hidden.data.labels, propensity=e)
    judged = evaluate(hidden.split.test_y, torch.from_numpy(model.decision_function(hidden.split.test_x)))
    distance = None if e is None else round(float(share_distance(1 / e, hidden.classes, hidden.split)), 4)
    return {
        "set": name, "propensity": kind, "variant": variant, "seed": seed, "accuracy": round(100 * judged.accuracy, 3),
        "auc": round(100 * judged.auc, 3), "share_distance": distance, "cpu": round(time.process_time() - began, 1),
        "features": features if name == "cifar10" else None,
    }  # fmt: skip


def key(record: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(record[name] for name in ("set", "propensity", "variant", "seed", "features"))


def shown(records: list[dict[str, Any]]) -> str:
    """A table a data set: variants by propensities, mean ± standard deviation over seeds."""
    lines = []
    for name in dict.fromkeys(record["set"] for record in records):
        own = [record for record in records if record["set"] == name]
        kinds = list(dict.fromkeys(record["propensity"] for record in own))
        lines += [f"{name}, seeds {sorted({record['seed'] for record in own})}", "",
                  "| variant | " + " | ".join(kinds) + " | CPU s |", "|---" * (len(kinds) + 2) + "|"]  # fmt: skip
        for variant in dict.fromkeys(record["variant"] for record in own):
            mine = [record for record in own if record["variant"] == variant]
            cells = [spread([r["accuracy"] for r in mine if r["propensity"] == kind]) for kind in kinds]
            cpu = np.mean([record["cpu"] for record in mine])
            lines.append(f"| {variant} | " + " | ".join(cells) + f" | {cpu:.0f} |")
        lines.append("")
    return "\n".join(lines)


def spread(values: list[float]) -> str:
    if not values:
        return "–"
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="mnist,cifar10")
    parser.add_argument("--propensities", default="none,estimated,true")
    parser.add_argument("--variants", default=",".join(map(str, range(len(VARIANTS)))), help="their numbers")
    parser.add_argument("--seeds", default="100")
    parser.add_argument("--features", default="simclr-60+patches", help="of CIFAR-10")
    parser.add_argument("--out", type=Path, default=Path("teacher.jsonl"))
    parser.add_argument("--data", help="folder that holds mnist/ and cifar10/ (default: $PUE_DATA)")
    parser.add_argument("--show", action="store_true", help="print the tables of what there is")
    given = parser.parse_args()
    found = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    if not given.show:
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        variants = [list(VARIANTS)[int(number)] for number in given.variants.split(",")]
        done = {key(record) for record in found}
        for seed in map(int, given.seeds.split(",")):
            for name in given.sets.split(","):
                for kind in given.propensities.split(","):
                    for variant in variants:
                        features = given.features if name == "cifar10" else None
                        if (name, kind, variant, seed, features) in done:
                            continue
                        found.append(measured(name, kind, variant, seed, given.features, given.data))
                        print(json.dumps(found[-1]), flush=True)
                        write_text(given.out, "".join(json.dumps(record) + "\n" for record in found))
    print(shown(found))


if __name__ == "__main__":
    main()
