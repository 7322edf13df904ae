"""Which σ PUbN's second step wants: many readings of one first step, on a part of the training set of MNIST.

    python benchmarks/studies/pubn_tuning.py --kinds auto,true --seeds 100,101 --sharpness 1,10,30 --tau 0.9,1 \
        --set epochs=10 weight_decay=1e-3 labeled_per_batch=64 labeled_rows=drawn --data DATA

The split of mnist_tuning.py: trains on 50,000 training images, judged by the other 10,000; the test images are not
looked at. The first step is trained once for each seed and source of propensities. docs/lab/tuning.md lists what was
tried.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field, fields
from itertools import product
from typing import Any

import torch
from mnist_tuning import problem, settings_of
from torch import nn

from pue import PUClassifier, evaluate
from pue.methods.protocol import Fitted, Task
from pue.methods.pubn import PUbN


@dataclass(frozen=True, eq=False)
class FirstStepKept(Task):
    """A task that trains the network of stage 0 once and then takes it from memory."""

    memory: dict[str, Any] = field(default_factory=dict)

    def train(self, network: nn.Module, *args: Any, stage: int = 0, **changes: Any) -> list[Any]:
        if stage:
            return super().train(network, *args, stage=stage, **changes)
        if "first" in self.memory:
            network.load_state_dict(self.memory["first"])
            network.eval()
            return []
        history = super().train(network, *args, **changes)
        self.memory["first"] = {name: part.clone() for name, part in network.state_dict().items()}
        return history


@dataclass(frozen=True)
class Remembered(PUbN):
    memory: dict[str, Any] = field(default_factory=dict, compare=False)

    def fit(self, task: Task) -> Fitted:
        same = {each.name: getattr(task, each.name) for each in fields(Task)}
        return super().fit(FirstStepKept(**same, memory=self.memory))


def numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default="none,auto,true")
    parser.add_argument("--seeds", default="100,101")
    parser.add_argument("--sharpness", type=numbers, default=[1.0, 10.0])
    parser.add_argument("--tau", type=numbers, default=[0.9])
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="arguments of PUClassifier")
    parser.add_argument("--data", help="folder that holds mnist/ (default: $PUE_DATA)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    settings = settings_of(args.set)
    for seed, kind in product(map(int, args.seeds.split(",")), args.kinds.split(",")):
        found = problem(seed, kind, args.data)
        memory: dict[str, Any] = {}
        for sharpness, tau in product(args.sharpness, args.tau):
            start = time.process_time()
            method = Remembered(tau=tau, sharpness=sharpness, memory=memory)
            classifier = PUClassifier(
                method, prior=found.prior, scenario="case_control", random_state=seed, progress=False, **settings
            )
            classifier.fit(found.data.x, found.data.labels, propensity=found.e)
            judged = evaluate(found.y, torch.from_numpy(classifier.decision_function(found.x)))
            print(f"{kind} seed {seed} sharpness {sharpness:g} tau {tau:g} {' '.join(args.set)}: "
                  f"{100 * judged.accuracy:.2f} (recall {100 * judged.recall:.1f}, precision "
                  f"{100 * judged.precision:.1f}), {time.process_time() - start:.0f} CPU s", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
