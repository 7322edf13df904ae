"""Where the preset `best` of CIFAR-10 comes from: what features are worth, and settings on a part of the training set.

    python benchmarks/studies/cifar10_features.py --features simclr-30+patches --data DATA probe
    python benchmarks/studies/cifar10_features.py --features simclr-30+patches --data DATA rows \
        --methods nnpu,distpu --propensities none,patches,true --set backbone=tabular epochs=10 weight_decay=1e-4

Trains on the first 40,000 training images (800 labels in the paper's mix) and judges by the true classes of the other
10,000; the encoder saw all 50,000 without a label, and test images are not looked at. docs/lab/features.md has results.
"""

from __future__ import annotations

import argparse
import ast
import time
import warnings
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from pue import PUClassifier, evaluate
from pue.basis import Wishes, settle_propensities
from pue.bench.datasets import LabeledSplit, cifar10
from pue.bench.features import seen_by_encoder
from pue.bench.hidden import Hidden, hide
from pue.bench.presets import LABELS
from pue.bench.propensities import share_distance
from pue.propensity import FLOOR, PROPENSITIES

ROWS, PRIOR = 40_000, 0.4


def value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def probe(split: LabeledSplit) -> None:
    """Ten classes and two, by 20 neighbors (of 10,000 rows, for speed) and by least squares."""
    scaled = [(part - split.train_x.mean(0)) / split.train_x.std(0) for part in (split.train_x, split.test_x)]
    few = torch.arange(0, ROWS, 4)
    near = (functional.normalize(scaled[1]) @ functional.normalize(scaled[0][few]).T).topk(20).indices
    ones = [torch.cat([part, torch.ones(len(part), 1)], dim=1) for part in scaled]
    gram = ones[0].T @ ones[0] + 100 * torch.eye(ones[0].shape[1])
    for train, test in ((split.train_classes, split.test_classes), (split.train_y, split.test_y)):
        target = functional.one_hot(train).float()
        linear = (ones[1] @ torch.linalg.solve(gram, ones[0].T @ (target - target.mean(0)))).argmax(1)
        voted = target[few][near].sum(1).argmax(1)
        print(f"{target.shape[1]} classes: neighbors {share(voted, test):.2f}, linear {share(linear, test):.2f}")


def share(found: Tensor, true: Tensor) -> float:
    return 100 * float((found == true).float().mean())


def estimated(name: str, hidden: Hidden, seed: int) -> Tensor | None:
    """e of the labeled rows: none, the true ones, or those of an estimator."""
    if name == "none":
        return None
    if name == "true":
        return hidden.propensity
    began = time.process_time()
    found = settle_propensities(hidden.data, Wishes(PRIOR, PROPENSITIES[name], FLOOR), PRIOR, seed=seed)
    assert found is not None
    distance = share_distance(1 / found.e, hidden.classes, hidden.split)
    print(f"seed {seed} {name}: share distance {distance:.3f}, {time.process_time() - began:.0f} CPU s", flush=True)
    return found.e


def accuracy(method: str, hidden: Hidden, e: Tensor | None, seed: int, settings: dict[str, Any]) -> float:
    scenario, x, labels = "case_control", hidden.data.x, hidden.data.labels
    if method == "supervised":
        scenario, x, labels = "single_sample", hidden.split.train_x, hidden.split.train_y
        settings = {**settings, "batching": "pooled", "labeled_per_batch": None, "labeled_rows": "weighted"}
    model = PUClassifier(method, prior=PRIOR, scenario=scenario, random_state=seed, progress=False, **settings)
    model.fit(x, labels, propensity=e)
    scores = torch.from_numpy(model.decision_function(hidden.split.test_x))
    return 100 * evaluate(hidden.split.test_y, scores).accuracy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["probe", "rows"])
    parser.add_argument("--features", default="simclr-30+patches")
    parser.add_argument("--methods", default="nnpu,distpu")
    parser.add_argument("--propensities", default="none,patches,true")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="arguments of PUClassifier")
    parser.add_argument("--seeds", default="100")
    parser.add_argument("--data", help="folder that holds cifar10/ (default: $PUE_DATA)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    seen = seen_by_encoder(args.features, cifar10(args.data))
    x, classes = seen.train_x, seen.train_classes
    split = LabeledSplit(seen.name, x[:ROWS], classes[:ROWS], x[ROWS:], classes[ROWS:], seen.positive)
    if args.what == "probe":
        probe(split)
        return
    settings = {name: value(text) for name, _, text in (pair.partition("=") for pair in args.set)}
    for seed in map(int, args.seeds.split(",")):
        hidden = hide(split, replace(LABELS["cifar10"], n_labeled=800), seed)
        for name in args.propensities.split(","):
            e = estimated(name, hidden, seed)
            for method in args.methods.split(","):
                began = time.process_time()
                found = accuracy(method, hidden, e, seed, settings)
                cpu = time.process_time() - began
                print(f"seed {seed} {method} {name}: accuracy {found:.2f}, {cpu:.1f} CPU s  {settings}", flush=True)


if __name__ == "__main__":
    main()
