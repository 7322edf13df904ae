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
        names = _training_options(base)
        changes = {option: value for option, value in options.items() if option in names}
        options = {option: value for option, value in options.items() if option not in names}
        base = replace(base, training=base.training.with_options(changes)) if changes else base
    estimator: PropensityEstimator = _changed(name, base, options)
    return estimator


def method_options(name: str) -> list[str]:
    """Which fields of a method's value can be changed by name."""
    return _option_names(METHODS[name])


def estimator_options(name: str) -> list[str]:
    """The same for a propensity estimator."""
    base = PROPENSITIES[name]
    return _option_names(base) + (_training_options(base) if isinstance(base, Network) else [])


def _training_options(network: Network) -> list[str]:
    return [*_option_names(network.training), "batch_size"]


def _option_names(value: Any) -> list[str]:
    """The fields that options can change: those that hold text, numbers or nothing."""
    if not is_dataclass(value):
        return []
    found = [field.name for field in fields(value) if field.name != "summary"]
    return [name for name in found if isinstance(getattr(value, name), str | int | float | None)]


def _changed(name: str, value: Any, options: Mapping[str, Any]) -> Any:
    known = _option_names(value)
    for option in options:
        if option not in known:
            raise UnknownName(f"option of {name}", option, known)
    try:
        return replace(value, **options) if options else value
    except TypeError as error:
        raise InvalidInput(f"the options of {name} do not fit: {error}") from error
