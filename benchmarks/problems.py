"""Synthetic PU problems. Speed and memory do not depend on what the features hold, so they hold noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pue.core.data import PUData, Scenario
from pue.core.weights import RowWeights, normalized_inverse_propensity

PRIOR = 0.5


@dataclass(frozen=True)
class Problem:
    """What a PU learner gets, and classes for the supervised loop beside it."""

    data: PUData
    weights: RowWeights
    y: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one row."""
        return tuple(self.data.x.shape[1:])


def pixels(n: int, *shape: int) -> Tensor:
    """Bytes 0…255. Drawn in place: making them takes no memory beyond their own."""
    return torch.from_numpy(np.random.default_rng(0).integers(0, 256, (n, *shape), dtype=np.uint8))


def table(n: int, columns: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(0).standard_normal((n, columns), dtype=np.float32))


def pu_labels(n: int, labeled: int) -> Tensor:
    """The first rows are labeled, the others are not."""
    return (torch.arange(n) < labeled).to(torch.int8)


def case_control(x: Tensor, labeled: int) -> Problem:
    """The paper's setting: labeled rows beside a sample of p(x), weighted by their normalised inverse propensity."""
    generator = torch.Generator().manual_seed(0)
    data = PUData(x, pu_labels(len(x), labeled), Scenario.CASE_CONTROL)
    propensity = 0.1 + 0.8 * torch.rand(labeled, generator=generator)
    weights = normalized_inverse_propensity(data.labels, propensity, prior=PRIOR, scenario=data.scenario)
    return Problem(data, weights, (torch.rand(len(x), generator=generator) < PRIOR).float())
