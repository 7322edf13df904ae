"""SAR-EM and LBE as classifiers: their network for the class, trained beside the one for the propensity."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pue.methods.protocol import Fitted, Task
from pue.persistence import kept
from pue.propensity.em import NetworkEM


@kept
@dataclass(frozen=True)
class LatentClass:
    """The f of an estimator of f · e. Propensities are what it estimates itself, so none can be given."""

    estimator: NetworkEM
    summary: str

    def fit(self, task: Task) -> Fitted:
        task.refuse_propensity("a method that learns class and propensity together")
        settings = replace(
            self.estimator,
            lr=task.training.lr,
            weight_decay=task.training.weight_decay,
            batch_size=task.training.batching.size,
        )
        network, _ = settings.fit_pair(task.data, seed=task.seed, build=task.build)
        return Fitted(network, [])
