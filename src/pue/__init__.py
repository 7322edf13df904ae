"""Positive-unlabeled learning when the labels are biased.

Names are imported when they are used: a command that only shows its help need not wait for torch.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pue.backbones import BACKBONES, InputSpec, Pretrained
    from pue.bench.datasets import DATASETS
    from pue.core.criteria import CRITERIA
    from pue.core.data import PUData, Scenario, Truth
    from pue.core.losses import LOSSES
    from pue.diagnosis.diagnose import diagnose
    from pue.diagnosis.found import Diagnosis
    from pue.estimators.classifier import PUClassifier
    from pue.estimators.prior_sweep import Sweep, prior_sweep
    from pue.estimators.search import SearchResult, search
    from pue.estimators.wrapper import PUWrapper
    from pue.features import Views, fit_encoder, load_encoder, open_encoder
    from pue.judging import EstimatedMetrics, Metrics, estimate_metrics, evaluate, make_scorer
    from pue.methods import METHODS, VPU, DistPU, PUbN, SelfPU
    from pue.priors import PRIORS, PriorEstimate, estimate_prior
    from pue.propensity import PROPENSITIES
    from pue.propensity.scar import ScarTest, scar_test
    from pue.training import Augmentation
    from pue.trees import Blend, Boosting, Forest

__version__ = "0.1.0"

__all__ = [
    "BACKBONES", "CRITERIA", "DATASETS", "LOSSES", "METHODS", "PRIORS", "PROPENSITIES", "VPU", "Augmentation", "Blend",
    "Boosting", "Diagnosis", "DistPU", "EstimatedMetrics", "Forest", "InputSpec", "Metrics", "PUClassifier", "PUData",
    "PUWrapper", "PUbN", "Pretrained", "PriorEstimate", "ScarTest", "Scenario", "SearchResult", "SelfPU", "Sweep",
    "Truth", "Views", "diagnose", "estimate_metrics", "estimate_prior", "evaluate", "fit_encoder", "load",
    "load_encoder", "make_scorer", "open_encoder", "prior_sweep", "scar_test", "search",
]  # fmt: skip

_HOMES = {
    "backbones": ("BACKBONES", "InputSpec", "Pretrained"),
    "bench.datasets": ("DATASETS",),
    "core.criteria": ("CRITERIA",),
    "core.data": ("PUData", "Scenario", "Truth"),
    "core.losses": ("LOSSES",),
    "diagnosis.diagnose": ("diagnose",),
    "diagnosis.found": ("Diagnosis",),
    "estimators.classifier": ("PUClassifier",),
    "estimators.prior_sweep": ("Sweep", "prior_sweep"),
    "estimators.search": ("SearchResult", "search"),
    "estimators.wrapper": ("PUWrapper",),
    "features": ("Views", "fit_encoder", "load_encoder", "open_encoder"),
    "judging": ("EstimatedMetrics", "Metrics", "estimate_metrics", "evaluate", "make_scorer"),
    "methods": ("METHODS", "VPU", "DistPU", "PUbN", "SelfPU"),
    "priors": ("PRIORS", "PriorEstimate", "estimate_prior"),
    "propensity": ("PROPENSITIES",),
    "propensity.scar": ("ScarTest", "scar_test"),
    "training": ("Augmentation",),
    "trees": ("Blend", "Boosting", "Forest"),
}
_MODULES = {
    "bench": ("labeling",),
    "core": ("corrections", "criteria", "decisions", "folds", "losses", "risks", "theory", "weights"),
}
"""Modules that are part of the promise too: `from pue import losses, risks, weights`."""
_BEHIND_EXTRAS = {"screen_columns": "pue.app.screening.screen"}
"""Names that need the libraries of an extra, and say so."""
_OPEN = ("audit", "backbones", "core", "features", "judging", "methods", "priors", "propensity", "training", "trees")
_PACKAGES = {**{name: name for name in _OPEN}, "metrics": "judging"}
"""Packages that work as attributes after `import pue`: `pue.metrics.make_scorer("f1")`."""


Factory = Callable[..., Any]

_MODEL_HOMES = {
    "PUModel": "pue.app.model",
    **dict.fromkeys(("Vectorizer", "Categories", "Dates", "Numbers", "Texts"), "pue.estimators.vectorizer.vectorize"),
}
"""Where a type is registered that need not be known to all: the application's libraries are many and slow."""


def load(path: str | PathLike[str], *, backbone: Factory | Mapping[str, Factory] | None = None) -> Any:
    """The model that `save` or `pue fit` wrote, on the CPU. Nothing of a damaged or hostile folder is run: it is a
    `ModelError`.

    A model whose backbone is an import path "package.module:factory" does not import it: pass what stands there as
    `backbone`, or a dictionary from import paths where there are several. So with a folder of features, "features/":
    pass `Pretrained("features/")`.
    """
    from pue.estimators import classifier, wrapper  # noqa: F401  they and what they import register their types
    from pue.persistence import model

    def import_home(name: str) -> None:
        if name in _MODEL_HOMES:
            import_module(_MODEL_HOMES[name])

    return model.load(path, backbone=backbone, unknown=import_home)


def __getattr__(name: str) -> Any:
    if name in _BEHIND_EXTRAS:
        return getattr(import_module(_BEHIND_EXTRAS[name]), name)
    if name in _PACKAGES:
        return import_module(f"pue.{_PACKAGES[name]}")
    for package, names in _MODULES.items():
        if name in names:
            return import_module(f"pue.{package}.{name}")
    for module, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"pue.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'pue' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
