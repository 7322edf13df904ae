"""Positive-unlabeled learning when the labels are biased.

Names are imported when they are used: a command that only shows its help need not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pue.backbones import BACKBONES, InputSpec
    from pue.criteria import CRITERIA
    from pue.data import PUData, Scenario, Truth
    from pue.datasets import DATASETS
    from pue.diagnostics import Diagnosis, diagnose
    from pue.estimators import PUClassifier
    from pue.losses import LOSSES
    from pue.methods import METHODS, VPU, DistPU, PUbN, SelfPU
    from pue.metrics import EstimatedMetrics, Metrics, estimate_metrics, evaluate
    from pue.persistence import load
    from pue.priors import PRIORS, PriorEstimate, estimate_prior
    from pue.propensity import PROPENSITIES
    from pue.scar import ScarTest, scar_test
    from pue.sweep import Sweep, prior_sweep
    from pue.training import Augmentation
    from pue.trials import SearchResult, search
    from pue.wrapper import PUWrapper

__version__ = "0.1.0"

__all__ = [
    "BACKBONES",
    "CRITERIA",
    "DATASETS",
    "LOSSES",
    "METHODS",
    "PRIORS",
    "PROPENSITIES",
    "VPU",
    "Augmentation",
    "Diagnosis",
    "DistPU",
    "EstimatedMetrics",
    "InputSpec",
    "Metrics",
    "PUClassifier",
    "PUData",
    "PUWrapper",
    "PUbN",
    "PriorEstimate",
    "ScarTest",
    "Scenario",
    "SearchResult",
    "SelfPU",
    "Sweep",
    "Truth",
    "diagnose",
    "estimate_metrics",
    "estimate_prior",
    "evaluate",
    "load",
    "prior_sweep",
    "scar_test",
    "search",
]

_HOMES = {
    "backbones": ("BACKBONES", "InputSpec"),
    "criteria": ("CRITERIA",),
    "data": ("PUData", "Scenario", "Truth"),
    "datasets": ("DATASETS",),
    "diagnostics": ("Diagnosis", "diagnose"),
    "estimators": ("PUClassifier",),
    "losses": ("LOSSES",),
    "methods": ("METHODS", "VPU", "DistPU", "PUbN", "SelfPU"),
    "metrics": ("EstimatedMetrics", "Metrics", "estimate_metrics", "evaluate"),
    "persistence": ("load",),
    "priors": ("PRIORS", "PriorEstimate", "estimate_prior"),
    "propensity": ("PROPENSITIES",),
    "scar": ("ScarTest", "scar_test"),
    "sweep": ("Sweep", "prior_sweep"),
    "training": ("Augmentation",),
    "trials": ("SearchResult", "search"),
    "wrapper": ("PUWrapper",),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"pue.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'pue' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
