"""Methods: a name → which weights the rows get and which risk is minimised. One line each.

An e-variant is not a method of its own: it is the same line given propensities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from pue import risks, weights
from pue.data import PUData
from pue.errors import InvalidInput, UnknownName
from pue.losses import Loss, logistic, sigmoid
from pue.risks import Risk
from pue.weights import RowWeights

Weigh = Callable[[PUData, float, Tensor | None], RowWeights]
"""(data, prior, propensity of the labeled rows or None) → weights."""


@dataclass(frozen=True)
class Method:
    """What a name stands for."""

    summary: str
    weigh: Weigh
    risk: Callable[[float, Loss], Risk]
    """(prior, loss) → risk."""
    loss: Loss = sigmoid
    """The loss it takes unless told otherwise."""


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


METHODS: dict[str, Method] = {
    "distpu": Method("Dist-PU, warm-up stage: predicted share of positives equals π", pu_weights,
                     lambda prior, loss: risks.dist_pu(prior, entropy=2e-3)),
    "imbpu": Method("nnPU as if classes were balanced", pu_weights, risks.imbalanced),
    "ipw": Method("unnormalised inverse-propensity risk", ipw_weights, lambda prior, loss: risks.upu(loss)),
    "naive": Method("unlabeled rows taken for negatives", naive_weights, lambda prior, loss: risks.upu(loss), logistic),
    "nnipw": Method("unnormalised inverse-propensity risk, kept non-negative", ipw_weights,
                    lambda prior, loss: risks.nnpu(loss)),
    "nnpu": Method("non-negative PU risk", pu_weights, lambda prior, loss: risks.nnpu(loss)),
    "upu": Method("unbiased PU risk", pu_weights, lambda prior, loss: risks.upu(loss)),
}  # fmt: skip


def find_method(name: str) -> Method:
    """The method of that name, or an error that suggests one.

    >>> find_method("nnpu").summary
    'non-negative PU risk'
    """
    if name not in METHODS:
        raise UnknownName("method", name, METHODS)
    return METHODS[name]
