"""Every type that a model may hold. A file names them by these names; where they lie in `pue` is known only here."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from torch import nn

from pue.backbones import InputSpec
from pue.data import Scenario
from pue.persistence.functions import FunctionCodec, PartialCodec
from pue.persistence.plain import (
    ArrayCodec,
    DictCodec,
    EnumCodec,
    FloatCodec,
    NamesCodec,
    PairsCodec,
    PrecisionCodec,
    ScalarCodec,
    TensorCodec,
    TupleCodec,
)
from pue.persistence.records import Estimator, Parts, Record
from pue.persistence.skops_files import SkopsCodec
from pue.persistence.tree import Codec
from pue.priors import PriorEstimate
from pue.probabilities import Calibrator
from pue.propensity import PropensityModel, PropensityReport
from pue.training import EpochRecord


def _records(module: str, *names: str) -> dict[str, Codec]:
    return {name: Record(f"{module}:{name}") for name in names}


_FITTED: dict[str, Any] = {
    "prior_": float,
    "prior_estimate_": PriorEstimate | None,
    "propensity_": NDArray[Any] | None,
    "propensity_report_": PropensityReport | None,
    "_propensity_model": PropensityModel | None,
    "classes_": NDArray[Any],
    "n_features_in_": int,
    "feature_names_in_": NDArray[Any],
}
"""What every fitted `PUEstimator` has."""

TYPES: dict[str, Codec] = {
    "tuple": TupleCodec(),
    "dict": DictCodec(),
    "pairs": PairsCodec(),
    "float": FloatCodec(),
    "tensor": TensorCodec(),
    "array": ArrayCodec(),
    "number": ScalarCodec(),
    "names": NamesCodec(),
    "precision": PrecisionCodec(),
    "scenario": EnumCodec(Scenario),
    "function": FunctionCodec(),
    "partial": PartialCodec(),
    "skops": SkopsCodec(),
    **_records("backbones.inputs", "InputSpec"),
    **_records("training.augment", "Augmentation"),
    **_records("training.batches", "Batching"),
    **_records("training.settings", "EpochRecord", "Training"),
    **_records("priors.interval", "PriorEstimate"),
    **_records("reduction", "Reduction"),
    **_records("patches", "PatchFeatures"),
    **_records("methods.composition", "Composition"),
    **_records("methods.distpu", "DistPU"),
    **_records("methods.em", "LatentClass"),
    **_records("methods.pubn", "PUbN"),
    **_records("methods.selfpu", "SelfPU"),
    **_records("methods.thresholds", "Thresholded"),
    **_records("methods.vpu", "VPU"),
    **_records("model.model", "HeldOut", "PUModel"),
    **_records("probabilities", "Monotone", "Sigmoid"),
    **_records("tables.encoders", "Categories", "Dates", "Numbers", "Texts"),
    **_records("tables.vectorize", "Vectorizer"),
    **_records("propensity.anchor", "Anchor", "AnchorModel"),
    **_records("propensity.auto", "Auto"),
    **_records("propensity.boosted", "Boosted", "BoostedModel", "Platt"),
    **_records("propensity.calibration", "Power", "Steps"),
    **_records("propensity.constant", "Constant", "ConstantModel"),
    **_records("propensity.crossfit", "CrossFit", "CrossFitted"),
    **_records("propensity.double_logistic", "DoubleLogistic"),
    **_records("propensity.groups", "GroupModel", "Groups"),
    **_records("propensity.known", "Known", "KnownModel"),
    **_records("propensity.lbe", "LBE"),
    **_records("propensity.local_certainty", "LocalCertainty"),
    **_records("propensity.logistic", "Logistic", "LogisticModel"),
    **_records("propensity.neighbors", "Neighbors", "NeighborsModel"),
    **_records("propensity.network", "Network"),
    "NetworkModel": Record("propensity.network:NetworkModel", Parts("network", "backbone", "spec")),
    **_records("propensity.newton", "Design", "LinearModel"),
    **_records("propensity.patches", "Patches", "PatchesModel"),
    **_records("propensity.pool", "Pool", "Pooled"),
    **_records("propensity.process", "PropensityReport"),
    **_records("propensity.sarem", "SAREM"),
    **_records("propensity.sarem_deep", "DeepSAREM"),
    "PUClassifier": Estimator(
        "estimators:PUClassifier",
        fitted={
            **_FITTED,
            "input_spec_": InputSpec,
            "network_": nn.Module,
            "history_": list[EpochRecord],
            "threshold_": float,
        },
        optional=("feature_names_in_",),
        dropped=("checkpoint_dir", "progress", "_metadata_request"),
        network=Parts("network_", "backbone", "input_spec_"),
    ),
    "PUWrapper": Estimator(
        "wrapper:PUWrapper",
        fitted={**_FITTED, "estimator_": BaseEstimator, "calibrator_": Calibrator},
        optional=("feature_names_in_",),
        dropped=("_metadata_request",),
    ),
}
