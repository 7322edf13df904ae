"""Methods: a name → something with `fit(task)`. Most are one line, a weighting and a risk; others have a file.

An e-variant is not a method of its own: it is the same line given propensities.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pue.core import risks
from pue.core.losses import logistic
from pue.core.risks import Risk
from pue.errors import InvalidInput, lookup
from pue.methods.communities import CommunityNames
from pue.methods.composition import Composition, ipw_weights, naive_weights, pu_weights
from pue.methods.distpu import DistPU
from pue.methods.em import LatentClass
from pue.methods.protocol import Fitted, Method, Task, UsesNegatives
from pue.methods.pubn import PUbN
from pue.methods.selfpu import SelfPU
from pue.methods.teacher import AveragedTeacher
from pue.methods.thresholds import Thresholded, informative, probabilistic_gap, share_of_population
from pue.methods.vpu import VPU
from pue.persistence import keep_functions
from pue.propensity import LBE, DeepSAREM

__all__ = [
    "METHODS", "VPU", "AveragedTeacher", "CommunityNames", "Composition", "DistPU", "Fitted", "LatentClass", "Method",
    "PUbN", "SelfPU", "Task", "Thresholded", "UsesNegatives", "find_method", "pu_weights",
]  # fmt: skip

_NAIVE = Composition("unlabeled rows taken for negatives", naive_weights, lambda prior, loss: risks.upu(loss), logistic)
_NNPU = Composition("non-negative PU risk", pu_weights, lambda prior, loss: risks.nnpu(loss))

METHODS: dict[str, Method] = {
    "anchor": Thresholded(_NAIVE, probabilistic_gap, "labeling rate against its highest value (e grows with P(y | x))"),
    "communities": CommunityNames(),
    "distpu": DistPU(),
    "distpu_warmup": DistPU(warm_up=1.0, summary="Dist-PU, first stage only"),
    "imbpu": Composition("nnPU as if classes were balanced", pu_weights, risks.imbalanced, weights_alone=False),
    "ipw": Composition("unnormalised inverse-propensity risk", ipw_weights, lambda prior, loss: risks.upu(loss)),
    "lbe": LatentClass(LBE(), "labeling bias estimation: class and propensity by EM from a P-vs-U start"),
    "naive": _NAIVE,
    "nnipw": Composition("unnormalised inverse-propensity risk, kept non-negative", ipw_weights,
                         lambda prior, loss: risks.nnpu(loss)),
    "nnpu": _NNPU,
    "pubn": PUbN(),
    "pusb": Thresholded(Composition("nnPU", pu_weights, lambda prior, loss: risks.nnpu(loss), logistic),
                        share_of_population, "nnPU, then the threshold that calls a share π positive"),
    "quantile": Thresholded(_NAIVE, share_of_population, "labeled against the rest, a share π called positive"),
    "sarem": LatentClass(DeepSAREM(), "SAR-EM: class and propensity by EM"),
    "selfpu": SelfPU(),
    "supervised": Composition("the ceiling: labels are true classes, 0 is negative", naive_weights,
                              lambda prior, loss: risks.upu(loss), logistic),
    "teacher": AveragedTeacher(),
    "tmi": Thresholded(_NAIVE, informative, "labeled against the rest, the most informative threshold; no prior"),
    "upu": Composition("unbiased PU risk", pu_weights, lambda prior, loss: risks.upu(loss)),
    "vpu": VPU(),
}  # fmt: skip


def _risks() -> dict[str, Callable[..., Risk]]:
    """The risks of all methods that have one, for models to name."""
    bases = {name: method.base if isinstance(method, Thresholded) else method for name, method in METHODS.items()}
    return {name: method.risk for name, method in bases.items() if isinstance(method, Composition)}


keep_functions("risk of ", _risks)


def find_method(method: str | Method | Any) -> Method:
    """The method of that name, or the method itself; an error that suggests a name for anything else.

    >>> find_method("nnpu").summary
    'non-negative PU risk'
    """
    if isinstance(method, str):
        return lookup("method", method, METHODS)
    if not callable(getattr(method, "fit", None)) or not hasattr(method, "summary"):
        raise InvalidInput(f"method must be a name in pue.METHODS or a value such as PUbN(tau=0.7); got {method!r}.")
    found: Method = method
    return found
