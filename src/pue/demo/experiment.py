"""The experiment of the demo: methods × variants × seeds on digits with biased labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pue.datasets import digits
from pue.estimators import PUClassifier
from pue.labeling import class_mix
from pue.metrics import evaluate

MIX = {0: 0.65, 2: 0.15, 4: 0.10, 6: 0.07, 8: 0.03}
N_LABELED = 130
METHODS = {"upu": "uPU", "nnpu": "nnPU", "distpu": "Dist-PU"}
VARIANTS = {"plain": "plain", "estimated": "estimated e", "true": "true e"}


@dataclass(frozen=True)
class Run:
    """The outcome of one training."""

    method: str
    variant: str
    seed: int
    accuracy: float
    auc: float
    shares: dict[int, float]
    """Total weight that each even digit has among the labeled rows."""
    population: dict[int, float]
    """The share it should have: that among all positives."""


def run(method: str, variant: str, seed: int) -> Run:
    """Hide the labels, train a linear model, and measure it on digits it has not seen."""
    torch.set_num_threads(1)
    split = digits(seed=seed)
    data, truth = class_mix(
        split.train_x, split.train_classes, mix=MIX, n_labeled=N_LABELED, rng=np.random.default_rng(seed)
    )
    classifier = PUClassifier(
        method,
        propensity="auto" if variant == "estimated" else None,
        prior=float(split.train_y.double().mean()),
        scenario="case_control",
        backbone="linear",
        progress=False,
        random_state=seed,
    )
    classifier.fit(data.x, data.labels, propensity=truth.labeled_propensity(data) if variant == "true" else None)
    metrics = evaluate(split.test_y, torch.from_numpy(classifier.decision_function(split.test_x)))
    assert truth.classes is not None  # class_mix knows them
    labeled_digits = truth.classes[data.labeled].numpy()
    weight = np.ones(data.n_labeled) if classifier.propensity_ is None else 1 / classifier.propensity_
    positives = split.train_classes[split.train_y == 1].numpy()
    return Run(
        method,
        variant,
        seed,
        metrics.accuracy,
        metrics.auc,
        {digit: float(weight[labeled_digits == digit].sum() / weight.sum()) for digit in MIX},
        {digit: float(np.mean(positives == digit)) for digit in MIX},
    )


def run_all(seeds: int, jobs: int, console: Console) -> list[Run]:
    """All methods × variants × seeds, in parallel, with a bar on a terminal."""
    cases = [(method, variant, seed) for seed in range(seeds) for method in METHODS for variant in VARIANTS]
    results: Iterator[Run] = Parallel(n_jobs=jobs, return_as="generator_unordered")(
        delayed(run)(*case) for case in cases
    )
    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TextColumn("ETA"), TimeRemainingColumn())
    done: list[Run] = []
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("training", total=len(cases))
        for result in results:
            done.append(result)
            bar.advance(task)
    return sorted(done, key=lambda r: (list(METHODS).index(r.method), list(VARIANTS).index(r.variant), r.seed))


def select(runs: Sequence[Run], **wanted: str) -> list[Run]:
    return [r for r in runs if all(getattr(r, name) == value for name, value in wanted.items())]
