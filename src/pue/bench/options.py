"""Names and options, as a spec holds them → the method or estimator they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from pue.errors import InvalidInput, UnknownName
from pue.methods import METHODS
from pue.propensity import PROPENSITIES, Network, PropensityEstimator


def make_method(name: str, options: Mapping[str, Any]) -> Any:
    """What `PUClassifier(method=…)` is given: the name, or its value with some fields changed."""
    return _changed(name, METHODS[name], options) if options else name


def make_estimator(name: str, options: Mapping[str, Any]) -> PropensityEstimator:
    """An estimator; the options of "network" may also be settings of its training.

    >>> make_estimator("network", {"alpha": 5, "epochs": 3}).training.epochs
    3
    """
    base = PROPENSITIES[name]
    if isinstance(base, Network):
        options = _with_training(base, options)
    estimator: PropensityEstimator = _changed(name, base, options)
    return estimator


def method_options(name: str) -> list[str]:
    """Which fields of a method's value can be changed by name."""
    return option_names(METHODS[name]) if name in METHODS else []


def estimator_options(name: str) -> list[str]:
    """The same for a propensity estimator."""
    base = PROPENSITIES[name]
    training = [*option_names(base.training), "batch_size"] if isinstance(base, Network) else []
    return [*option_names(base), *training]


def option_names(value: Any) -> list[str]:
    """The fields that options can change: those that hold text, numbers or nothing."""
    if not is_dataclass(value):
        return []
    found = [field.name for field in fields(value) if field.name != "summary"]
    return [name for name in found if isinstance(getattr(value, name), str | int | float | None)]


def _with_training(base: Network, options: Mapping[str, Any]) -> dict[str, Any]:
    training = base.training
    names = option_names(training)
    changes: dict[str, Any] = {name: value for name, value in options.items() if name in names}
    if "batch_size" in options:
        changes["batching"] = replace(training.batching, size=options["batch_size"])
    rest = {name: value for name, value in options.items() if name not in {*names, "batch_size"}}
    return {**rest, "training": replace(training, **changes)} if changes else rest


def _changed(name: str, value: Any, options: Mapping[str, Any]) -> Any:
    known = [*option_names(value), *(["training"] if isinstance(value, Network) else [])]
    for option in options:
        if option not in known:
            raise UnknownName(f"option of {name}", option, known)
    try:
        return replace(value, **options) if options else value
    except TypeError as error:
        raise InvalidInput(f"the options of {name} do not fit: {error}") from error
