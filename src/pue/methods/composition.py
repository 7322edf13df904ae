"""Methods of one stage: a weighting and a risk. An e-variant is the same line given propensities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from pue.core import weights
from pue.core.data import PUData
from pue.core.losses import Loss, sigmoid
from pue.core.risks import Risk
from pue.core.weights import RowWeights
from pue.errors import InvalidInput
from pue.methods.protocol import Fitted, Task
from pue.persistence import kept, kept_function

Weigh = Callable[[PUData, float, Tensor | None], RowWeights]
"""(data, prior, propensity of the labeled rows or None) → weights."""


@kept
@dataclass(frozen=True)
class Composition:
    """What a name stands for: which weights the rows get and which risk is minimised."""

    summary: str
    weigh: Weigh
    risk: Callable[[float, Loss], Risk]
    """(prior, loss) → risk."""
    loss: Loss = sigmoid
    """The loss it takes unless told otherwise."""
    weights_alone: bool = True
    """Whether the weights say all about what is minimised but loss and correction: then trees can do it too."""

    def fit(self, task: Task) -> Fitted:
        weighed = self.weigh(task.data, task.prior, task.propensity)
        return task.learn(weighed, self.risk(task.prior, task.loss or self.loss))


@kept_function
def pu_weights(data: PUData, prior: float, propensity: Tensor | None) -> RowWeights:
    """SCAR weights, or PUe's normalised inverse propensities where propensities are given."""
    return weights.pu(data.labels, propensity, prior=prior, scenario=data.scenario, sample_weight=data.sample_weight)


@kept_function
def ipw_weights(data: PUData, prior: float, propensity: Tensor | None) -> RowWeights:
    """Unnormalised inverse propensities; the prior is not used."""
    if propensity is None:
        raise InvalidInput(
            'this method weights by inverse propensity: pass propensity="auto", an estimator, or known values.'
        )
    return weights.inverse_propensity(data.labels, propensity, scenario=data.scenario, sample_weight=data.sample_weight)


@kept_function
def naive_weights(data: PUData, prior: float, propensity: Tensor | None) -> RowWeights:
    """Unlabeled rows count as negatives."""
    if propensity is not None:
        raise InvalidInput("unlabeled-as-negative has no use for propensities: leave propensity=None.")
    return weights.unlabeled_as_negative(data.labels, data.sample_weight)
