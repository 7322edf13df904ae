"""Mini-batches as index lookups. Each row of a batch comes with a *factor*: how many rows of the sample it stands for.

A row drawn with probability p into b places gets the factor 1 / (b p), so the weighted sums of a batch have the sums
over the whole sample as their expectation. (In joint batches that holds given at least one row of each kind: a batch
without a labeled row loses its positive part, as in the reference codes.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pue.errors import InvalidInput
from pue.persistence import kept

Mode = Literal["stratified", "joint", "pooled"]
LabeledRows = Literal["weighted", "drawn"]


@kept
@dataclass(frozen=True)
class Batching:
    """How batches are made.

    "stratified": every batch holds the same number of labeled rows; an epoch is one pass over the unlabeled rows.
    "joint": one shuffled pass over all rows, as the paper's loader; each kind of row is averaged on its own.
    "pooled": the same pass, all rows averaged alike: for models of the label itself, which is then one more column.
    Data that fit into one batch are used whole.
    """

    size: int = 256
    mode: Mode = "stratified"
    labeled: int | None = None
    """Labeled rows in a stratified batch; None: their share of the data, but at least an eighth of the batch."""
    labeled_rows: LabeledRows = "weighted"
    """"weighted": all alike, then weighted. "drawn": drawn in proportion to w⁺, then unweighted; steadier."""

    def __post_init__(self) -> None:
        if self.size < 2:
            raise InvalidInput(f"batch_size must be at least 2; got {self.size}.")
        if self.mode not in ("stratified", "joint", "pooled"):
            raise InvalidInput(f"batching must be 'stratified', 'joint' or 'pooled'; got {self.mode!r}.")
        if self.labeled_rows not in ("weighted", "drawn"):
            raise InvalidInput(f"labeled_rows must be 'weighted' or 'drawn'; got {self.labeled_rows!r}.")
        if self.mode != "stratified" and (self.labeled_rows == "drawn" or self.labeled is not None):
            raise InvalidInput(f"{self.mode} batches cannot fix or draw the labeled rows. Use batching='stratified'.")


def automatic_size(n_rows: int) -> int:
    """Rows of a batch where nobody says: the fixed price of a step is not worth paying more than 20,000 times an epoch.

    >>> [automatic_size(n) for n in (1_000, 5_000_000, 6_000_000, 50_000_000, 10**10)]
    [256, 256, 512, 4096, 4096]
    """
    size = 256
    while size < 4096 and n_rows > 20_000 * size:
        size *= 2
    return size


class Batches:
    """The batches of a training set, epoch by epoch: `(index, factor)` pairs from a generator.

    >>> labels = torch.tensor([1, 1, 1, 1] + [0] * 12)
    >>> batches = Batches(labels, torch.ones(16), Batching(size=8, labeled=2))
    >>> [(len(index), factor[0].item(), factor[-1].item()) for index, factor in batches.epoch(torch.Generator())]
    [(8, 2.0, 2.0), (8, 2.0, 2.0)]
    """

    def __init__(self, labels: Tensor, positive_weights: Tensor, batching: Batching) -> None:
        self._labels = labels
        self._batching = batching
        self._rows = {value: torch.nonzero(labels == value)[:, 0] for value in (1, 0, -1) if (labels == value).any()}
        self._whole = len(labels) <= batching.size and batching.labeled is None and batching.labeled_rows == "weighted"
        self._sizes = stratum_sizes({value: len(rows) for value, rows in self._rows.items()}, batching)
        self._draw = positive_weights[self._rows[1]].double()
        by_unlabeled = batching.mode == "stratified" and not self._whole
        rows, size = (len(self._rows[0]), self._sizes[0]) if by_unlabeled else (len(labels), batching.size)
        self.steps = max(1, -(-rows // size))

    def epoch(self, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        if self._whole:
            return iter([(torch.arange(len(self._labels)), torch.ones(len(self._labels), dtype=torch.float64))])
        return self._stratified(generator) if self._batching.mode == "stratified" else self._shuffled(generator)

    def _stratified(self, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        # Near-equal pieces instead of a small last batch: nothing is dropped and batch norm never sees a crumb.
        unlabeled = self._rows[0][torch.randperm(len(self._rows[0]), generator=generator)].tensor_split(self.steps)
        labeled = {
            value: self._labeled(value, self.steps * size, generator)
            for value, size in self._sizes.items()
            if value != 0
        }
        for step, rows in enumerate(unlabeled):
            index, factor = [], []
            for value, (drawn, share) in labeled.items():
                part = slice(step * self._sizes[value], (step + 1) * self._sizes[value])
                index.append(drawn[part])
                factor.append(share[part])
            index.append(rows)
            factor.append(torch.full((len(rows),), len(self._rows[0]) / len(rows), dtype=torch.float64))
            yield torch.cat(index), torch.cat(factor)

    def _labeled(self, value: int, total: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        drawn = value == 1 and self._batching.labeled_rows == "drawn"
        rows = self._rows[value]
        index, factor = draw_labeled(len(rows), self._sizes[value], total, generator, self._draw if drawn else None)
        return rows[index], factor

    def _shuffled(self, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        for index in torch.randperm(len(self._labels), generator=generator).tensor_split(self.steps):
            factor = torch.full((len(index),), len(self._labels) / len(index), dtype=torch.float64)
            if self._batching.mode == "pooled":
                yield index, factor
                continue
            labels = self._labels[index]
            for value, rows in self._rows.items():
                here = labels == value
                factor[here] = len(rows) / max(1, int(here.sum()))
            yield index, factor


def stratum_sizes(counts: dict[int, int], batching: Batching) -> dict[int, int]:
    """How many rows of each label a stratified batch holds, from how many there are.

    >>> stratum_sizes({1: 1_000, 0: 99_000}, Batching(size=256))
    {1: 32, 0: 224}
    """
    size, n = batching.size, sum(counts.values())
    most = size // len(counts)
    sizes = {
        value: max(1, min(count, most, max(size // 8, round(size * count / n))))
        for value, count in counts.items()
        if value != 0
    }
    wanted = batching.labeled
    if wanted is not None:
        if not 1 <= wanted < size:
            raise InvalidInput(f"labeled_per_batch must lie between 1 and batch_size - 1, {size - 1}; got {wanted}.")
        if wanted > counts[1]:
            raise InvalidInput(
                f"a batch needs {wanted} labeled rows but there are only {counts[1]}. Lower labeled_per_batch, or "
                "leave it out to have it chosen."
            )
        sizes[1] = wanted
        if -1 in sizes:
            sizes[-1] = max(1, min(sizes[-1], size - 1 - wanted))
    return {**sizes, 0: max(1, size - sum(sizes.values()))}


def draw_labeled(
    n: int, size: int, total: int, generator: torch.Generator, weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """`total` places, `size` of them a batch, filled by passes over n rows, or by draws in proportion to weights."""
    if weights is not None:
        # Inverse transform on the cumulated weights: unlike torch.multinomial it has no limit on the rows.
        reach = weights.cumsum(0)
        spots = torch.rand(total, generator=generator, dtype=torch.float64) * reach[-1]
        chosen = torch.searchsorted(reach, spots, right=True).clamp(max=n - 1)
        return chosen, reach[-1] / (size * weights[chosen])
    passes = -(-total // n)
    order = torch.cat([torch.randperm(n, generator=generator) for _ in range(passes)])[:total]
    return order, torch.full((total,), n / size, dtype=torch.float64)
