"""Images without labels, for the one training loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from pue.core.data import gather
from pue.core.weights import RowWeights
from pue.training.feeds import Draw, ValidationRows
from pue.training.processes import Part, place


class ImageFeed:
    """Shuffled batches of near-equal size; no row has a weight."""

    held_out: ValidationRows | None = None

    def __init__(self, images: Tensor, batch_size: int) -> None:
        self._images = images
        self.steps = max(1, len(images) // batch_size)
        self.shape = tuple(images.shape)

    def epoch(self, generator: torch.Generator) -> Iterator[Draw]:
        for rows in torch.randperm(len(self._images), generator=generator).tensor_split(self.steps):
            part = Part(*place(), len(rows))
            rows = part.of(rows)
            nothing = torch.zeros(len(rows))
            share = torch.full((len(rows),), 1 / part.total(len(rows)))
            yield Draw(gather(self._images, rows), rows, RowWeights(nothing, nothing), share, part)

    def fingerprint(self, digest: Any) -> None:
        digest.update(self._images.contiguous().numpy().data)
