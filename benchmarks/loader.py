"""(b) What feeding costs: index batches of pue / a `DataLoader` that fetches and converts sample by sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from measure import Result, Side, Work, in_turn, pairwise_ratios
from problems import Problem, case_control, pixels
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from pue.backbones import InputSpec, build
from pue.core.data import as_float, gather
from pue.core.risks import Risk, nnpu
from pue.core.weights import RowWeights
from pue.training import Batching, Training, train
from pue.training.batches import Batches

BATCHING = Batching(256, "joint")
"""One shuffled pass over all rows on both sides: the same number of batches and of rows."""


def results(quick: bool) -> Iterator[Result]:
    unlabeled, labeled, repeats = (6_000, 250, 3) if quick else (60_000, 2_500, 4)
    problem = case_control(pixels(unlabeled + labeled, 1, 28, 28), labeled)
    rows = f"{unlabeled + labeled:,} images"
    yield _compare(f"epoch of mlp, {rows}", lambda: epoch(problem), lambda: epoch_by_sample(problem), repeats)
    yield _compare(f"batches alone, {rows}", lambda: feed(problem), lambda: feed_by_sample(problem), repeats)


def epoch(problem: Problem) -> Work:
    network = build("mlp", InputSpec(problem.shape), seed=0)
    training = Training(epochs=1, batching=BATCHING)
    return lambda: train(network, problem.data, problem.weights, nnpu(), training, seed=0, progress=False)


def epoch_by_sample(problem: Problem) -> Work:
    """The same network, risk and optimizer, fed by the loader."""
    network, settings = build("mlp", InputSpec(problem.shape), seed=0), Training()
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.lr, weight_decay=settings.weight_decay, fused=True)
    return lambda: _steps(network, optimizer, nnpu(), _batches_by_sample(problem))


def feed(problem: Problem) -> Work:
    return lambda: _exhaust(_batches(problem))


def feed_by_sample(problem: Problem) -> Work:
    return lambda: _exhaust(_batches_by_sample(problem))


class _Samples(Dataset[tuple[Tensor, int, int]]):
    """As in the field's reference code: one sample at a time, made a float and divided by 255 on its own."""

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> tuple[Tensor, int, int]:
        return self.images[row].float() / 255, int(self.labels[row]), row


def _batches(problem: Problem) -> Iterator[tuple[Tensor, RowWeights]]:
    """What `pue.training.train` does before the network."""
    batches = Batches(problem.data.labels, problem.weights.positive, BATCHING)
    for index, factor in batches.epoch(torch.Generator().manual_seed(0)):
        yield as_float(gather(problem.data.x, index)), problem.weights.take(index, factor)


def _batches_by_sample(problem: Problem) -> Iterator[tuple[Tensor, RowWeights]]:
    labels = problem.data.labels
    strata = {value: int((labels == value).sum()) for value in (0, 1)}
    loader = DataLoader(_Samples(problem.data.x, labels), BATCHING.size, shuffle=True, num_workers=0)
    for images, here, rows in loader:
        factor = torch.ones(len(rows), dtype=torch.float64)
        for value, size in strata.items():
            factor[here == value] = size / max(1, int((here == value).sum()))
        yield images, problem.weights.take(rows, factor)


def _steps(
    network: nn.Module, optimizer: torch.optim.Optimizer, risk: Risk, batches: Iterable[tuple[Tensor, RowWeights]]
) -> float:
    network.train()
    total = 0.0
    for images, weights in batches:
        objective = risk(network(images), weights.to(images.device, images.dtype))
        optimizer.zero_grad(set_to_none=True)
        objective.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        total += objective.item()
    return total


def _exhaust(batches: Iterable[object]) -> None:
    for _ in batches:
        pass


def _compare(case: str, ours: Side, theirs: Side, repeats: int) -> Result:
    a, b = in_turn(ours, theirs, repeats)
    detail = f"fastest: pue {min(a):.2f} s, DataLoader {min(b):.2f} s"
    return Result("loader", case, pairwise_ratios(a, b), detail)
