"""(a) What a PU step costs beside a supervised one: an epoch of `pue.training.train` / an epoch of a loop by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from measure import Result, Work, in_turn, pairwise_ratios
from problems import Problem, case_control, pixels, table
from torch import Tensor, nn
from torch.nn import functional

from pue.backbones import InputSpec, build
from pue.core.data import as_float
from pue.core.risks import nnpu
from pue.training import Batching, Training, train

BATCH, LABELED = 256, 32


@dataclass(frozen=True)
class Case:
    """A backbone, how its rows are made, how long an epoch is and how many pairs of epochs are measured."""

    backbone: str
    rows: Callable[[int], Tensor]
    steps: int
    repeats: int
    target: str = ""

    def problem(self) -> Problem:
        """So many unlabeled rows that an epoch is `steps` full batches, and a tenth as many labeled ones."""
        unlabeled = self.steps * (BATCH - LABELED)
        labeled = max(LABELED, unlabeled // 10)
        return case_control(self.rows(unlabeled + labeled), labeled)


CASES = (
    Case("mlp", lambda n: pixels(n, 784), steps=60, repeats=13, target="≤ 1.15"),
    Case("fast_cnn", lambda n: pixels(n, 1, 28, 28), steps=6, repeats=7, target="≤ 1.15"),
    Case("tabular", lambda n: table(n, 50), steps=200, repeats=21),
)


def results(quick: bool) -> Iterator[Result]:
    for case in CASES:
        yield compare(replace(case, steps=case.steps // 3, repeats=3) if quick else case)


def compare(case: Case) -> Result:
    """Both sides: the same network, tensors, optimizer, number of steps and rows in each step."""
    problem, backbone, steps = case.problem(), case.backbone, case.steps
    a, b = in_turn(lambda: pu(backbone, problem), lambda: supervised(backbone, problem, steps), case.repeats)
    detail = f"fastest: pue {1e3 * min(a) / steps:.2f} ms, supervised {1e3 * min(b) / steps:.2f} ms a step"
    return Result("step", f"{backbone}, {steps} steps of {BATCH}", pairwise_ratios(a, b), detail, case.target)


def pu(backbone: str, problem: Problem) -> Work:
    """One epoch of nnPU with normalised inverse-propensity weights on stratified batches."""
    network = build(backbone, InputSpec(problem.shape), seed=0)
    training = Training(epochs=1, batching=Batching(BATCH, labeled=LABELED))
    return lambda: train(network, problem.data, problem.weights, nnpu(), training, seed=0, progress=False)


def supervised(backbone: str, problem: Problem, steps: int) -> Work:
    """One epoch of binary cross-entropy with true classes, as one would write it by hand for speed."""
    network = build(backbone, InputSpec(problem.shape), seed=0)
    return lambda: _by_hand(network, problem.data.x, problem.y, steps)


def _by_hand(network: nn.Module, x: Tensor, y: Tensor, steps: int) -> float:
    settings = Training()
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.lr, weight_decay=settings.weight_decay, fused=True)
    network.train()
    total = 0.0
    for index in _shuffled(len(x), steps * BATCH).chunk(steps):
        # index_select and not x[index], which copies element by element: the baseline is to be as fast as it can be.
        scores = network(as_float(x.index_select(0, index)))
        loss = functional.binary_cross_entropy_with_logits(scores, y.index_select(0, index))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        total += loss.item()
    return total / steps


def _shuffled(n: int, count: int) -> Tensor:
    """Rows in random order, again from the start when all were seen: as many as the PU epoch uses."""
    return torch.cat([torch.randperm(n) for _ in range(-(-count // n))])[:count]
