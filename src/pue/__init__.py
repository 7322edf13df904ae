"""Positive-unlabeled learning when the labels are biased."""

from pue.backbones import BACKBONES, InputSpec
from pue.data import PUData, Scenario, Truth
from pue.datasets import DATASETS
from pue.estimators import PUClassifier
from pue.losses import LOSSES
from pue.methods import METHODS
from pue.metrics import Metrics, evaluate
from pue.priors import PRIORS
from pue.propensity import PROPENSITIES
from pue.training import Augmentation

__version__ = "0.1.0"

__all__ = [
    "BACKBONES",
    "DATASETS",
    "LOSSES",
    "METHODS",
    "PRIORS",
    "PROPENSITIES",
    "Augmentation",
    "InputSpec",
    "Metrics",
    "PUClassifier",
    "PUData",
    "Scenario",
    "Truth",
    "evaluate",
]
