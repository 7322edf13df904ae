"""Communities as a classifier: those with the most labels are positive, as many as the prior allows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from pue.core.data import Features
from pue.errors import PueWarning
from pue.methods.protocol import Fitted, NeighborVote, Task
from pue.persistence import kept
from pue.propensity.communities import Communities
from pue.propensity.naming import accepted
from pue.propensity.structure import Structure


@kept
@dataclass(frozen=True)
class CommunityNames:
    """Groups in the order of their rate of labels until their size is π n; a new row goes by its nearest rows.

    Several runs of the search vote together, so that rows at the rim of a group are decided by more than one. No
    network is trained: backbone and epochs are not used. Propensities are not either, for the rate of labels need only
    tell groups that have labels from those that have none.
    """

    neighbors: int = 10
    resolution: float | None = None
    summary: str = "groups that similar rows form, by their rate of labels; new rows by their neighbors"

    def fit(self, task: Task) -> Fitted:
        task.refuse_propensity("communities")
        structure, counted = Communities(self.neighbors, self.resolution).find(task.data)
        shares, clear = accepted(structure, counted, task.prior)
        if not clear:
            warnings.warn(
                f"at a share of {task.prior:.3g} positives the groups just inside and just outside do not differ in "
                "their rate of labels: which of them are positive is chance. Check the prior, or label more rows.",
                PueWarning,
                stacklevel=2,
            )
        return Fitted(Vote(structure, shares), [])


@kept
@dataclass(frozen=True, eq=False)
class Vote(NeighborVote):
    """Log-odds of the share of a row's neighbors that lie in groups called positive."""

    structure: Structure
    share: Tensor
    """Of every row of the graph: in how many of the runs its group is called positive."""

    def scores(self, x: Features) -> Tensor:
        near = self.structure.near(x)
        votes = self.share[near]
        return torch.logit((votes.sum(1) + 0.5) / (votes.shape[1] + 1))
