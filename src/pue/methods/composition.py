"""Methods of one stage: a weighting and a risk. An e-variant is the same line given propensities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from pue import weights
from pue.data import PUData
from pue.errors import InvalidInput
from pue.losses import Loss, sigmoid
from pue.methods.protocol import Fitted, Task
from pue.risks import Risk
from pue.weights import RowWeights

Weigh = Callable[[PUData, float, Tensor | None], RowWeights]
"""(data, prior, propensity of the labeled rows or None) → weights."""


@dataclass(frozen=True)
class Composition:
    """What a name stands for: which weights the rows get and which risk is minimised."""

    summary: str
    weigh: Weigh
    risk: Callable[[float, Loss], Risk]
    """(prior, loss) → risk."""
    loss: Loss = sigmoid
    """The loss it takes unless told otherwise."""

    def fit(self, task: Task) -> Fitted:
        network = task.build(task.seed)
        weighed = self.weigh(task.data, task.prior, task.propensity)
        history = task.train(network, weighed, self.risk(task.prior, task.loss or self.loss))
        return Fitted(network, history)


def pu_weights(data: PUData, prior: float, propensity: Tensor | None) -> RowWeights:
    """SCAR weights, or PUe's normalised inverse propensities where propensities are given."""
    if propensity is None:
        return weights.uniform(data.labels, prior=prior, scenario=data.scenario, sample_weight=data.sample_weight)
    return weights.normalized_inverse_propensity(
        data.labels, propensity, prior=prior, scenario=data.scenario, sample_weight=data.sample_weight
    )


def ipw_weights(data: PUData, prior: float, propensity: Tensor | None) -> RowWeights:
    """Unnormalised inverse propensities; the prior is not used."""
    if propensity is None:
        raise InvalidInput(
            'this method weights by inverse propensity: pass propensity="auto", an estimator, or known values.'
        )
    return weights.inverse_propensity(data.labels, propensity, scenario=data.scenario, sample_weight=data.sample_weight)


def naive_weights(data: PUData, prior: float, propensity: Tensor | None) -> RowWeights:
    """Unlabeled rows count as negatives."""
    if propensity is not None:
        raise InvalidInput("unlabeled-as-negative has no use for propensities: leave propensity=None.")
    return weights.unlabeled_as_negative(data.labels, data.sample_weight)
