"""Positive-unlabeled learning when the labels are biased."""

from pue.backbones import BACKBONES, InputSpec
from pue.criteria import CRITERIA
from pue.data import PUData, Scenario, Truth
from pue.datasets import DATASETS
from pue.diagnostics import Diagnosis, diagnose
from pue.estimators import PUClassifier
from pue.losses import LOSSES
from pue.methods import METHODS, VPU, DistPU, PUbN, SelfPU
from pue.metrics import Metrics, evaluate
from pue.priors import PRIORS, PriorEstimate, estimate_prior
from pue.propensity import PROPENSITIES
from pue.scar_test import ScarTest, scar_test
from pue.search import SearchResult, search
from pue.sweep import Sweep, prior_sweep
from pue.training import Augmentation

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
    "InputSpec",
    "Metrics",
    "PUClassifier",
    "PUData",
    "PUbN",
    "PriorEstimate",
    "ScarTest",
    "Scenario",
    "SearchResult",
    "SelfPU",
    "Sweep",
    "Truth",
    "diagnose",
    "estimate_prior",
    "evaluate",
    "prior_sweep",
    "scar_test",
    "search",
]
