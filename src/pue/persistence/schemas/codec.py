"""Estimators of scikit-learn ⇄ the tree: their parameters as plain values, their fitted attributes by schema."""

from __future__ import annotations

import inspect
import warnings
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from pue.errors import ModelError
from pue.persistence.schemas.registry import SCHEMAS
from pue.persistence.schemas.schema import MOMENT, Schema, Values
from pue.persistence.tree import Reader, Writer, fields

PRECISIONS = {"float32": np.float32, "float64": np.float64, "int64": np.int64}
MOST_LETTERS, MOST_ENTRIES = 1000, 10_000
_LIBRARIES = ("sklearn", "skrub", "lightgbm", "xgboost", "catboost")


class SchemaCodec:
    """Whatever is an estimator of a known library; what has no schema is refused with the remedy."""

    def owns(self, value: Any) -> bool:
        return isinstance(value, BaseEstimator) and type(value).__module__.split(".")[0] in _LIBRARIES

    def encode(self, value: Any, writer: Writer, at: str) -> Any:
        schema = SCHEMAS.get(type(value).__name__)
        if schema is None or schema.kind is not type(value):
            raise ModelError(f"{at} cannot be saved: {_no_schema(type(value))}")
        parameters = value.get_params(deep=False)
        entries = schema.entries(value)
        known = {*parameters, *schema.parts, *schema.optional, *schema.rebuilt}
        foreign = [name for name in vars(value) if name not in known]
        if foreign:
            raise ModelError(
                f"{at} cannot be saved: the attribute {foreign[0]!r} is none that pue keeps of a {schema.name}. Delete "
                "it (set_output and warm starts leave such), or fit a fresh estimator."
            )
        return {
            "kind": schema.name,
            "parameters": {
                name: writer.encode(_plain(entry, f"{at}.{name}"), f"{at}.{name}")
                for name, entry in parameters.items()
                if _is_kept(name, entry)
            },
            "fitted": {name: writer.encode(entry, f"{at}.{name}") for name, entry in entries.items()},
        }

    def decode(self, payload: Any, reader: Reader, at: str) -> Any:
        kind, parameters, entries = fields(payload, at, ["kind", "parameters", "fitted"]).values()
        schema = SCHEMAS.get(kind) if isinstance(kind, str) else None
        if schema is None:
            raise ModelError(f"{at} is an estimator without a schema: the model is damaged, or not pue's.")
        values = {name: reader.decode(entry, f"{at}.{name}") for name, entry in _object(parameters, at).items()}
        estimator = _estimator(schema, values, at)
        if entries == {}:
            return estimator
        free = [name for name in entries if name in schema.optional] if isinstance(entries, dict) else []
        stored = fields(entries, at, schema.parts, optional=free)
        found = schema.checked({name: reader.decode(node, f"{at}.{name}") for name, node in stored.items()}, at)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                vars(estimator).update(schema.build(estimator, found))
        except ModelError:
            raise
        except Exception as error:  # whatever a part says about numbers that do not fit each other
            raise ModelError(f"{at} is no {schema.name}: {error}. The model is damaged; fit it again.") from error
        return estimator


def _is_kept(name: str, value: Any) -> bool:
    return name not in MOMENT and (name != "random_state" or isinstance(value, Integral))


def _plain(value: Any, at: str) -> Any:
    """A parameter as it is stored: a type of numbers by its name."""
    if isinstance(value, type) and issubclass(value, np.number):
        return np.dtype(value).name
    if callable(value) or isinstance(value, np.ndarray):
        raise ModelError(
            f"{at} cannot be saved: a {type(value).__name__} is no plain value. Leave the parameter at its default, or "
            "pass numbers, words or a list of them."
        )
    return value


def _estimator(schema: Schema, parameters: Values, at: str) -> Any:
    """With parameters that scikit-learn's own checks accept, before anything fitted is looked at."""
    kind = schema.kind
    allowed = [name for name in inspect.signature(kind).parameters if name not in MOMENT]
    fields(parameters, at, [], optional=allowed)
    for name, value in parameters.items():
        if not is_parameter(value):
            raise ModelError(f"{at}.{name} is no parameter of an estimator: the model is damaged.")
    if "dtype" in parameters:
        if parameters["dtype"] not in PRECISIONS:
            raise ModelError(f"{at}.dtype should be one of {', '.join(PRECISIONS)}: the model is damaged.")
        parameters = {**parameters, "dtype": PRECISIONS[parameters["dtype"]]}
    try:
        estimator = kind(**parameters)
        estimator._validate_params()
    except Exception as error:  # InvalidParameterError and whatever a constructor raises
        raise ModelError(f"{at} has parameters that no {schema.name} takes: {error}") from error
    schema.check(estimator)
    return estimator


def is_parameter(value: Any, levels: int = 4) -> bool:
    """Plain and small: words, numbers, estimators, and short lists and dictionaries of them."""
    if value is None or isinstance(value, bool | float | np.floating | np.bool_ | BaseEstimator):
        return True
    if isinstance(value, Integral):
        return abs(int(value)) < 2**63
    if isinstance(value, str):
        return len(value) <= MOST_LETTERS
    if isinstance(value, dict):
        return is_parameter([*value, *value.values()], levels)
    small = isinstance(value, list | tuple) and len(value) <= MOST_ENTRIES and levels > 0
    return small and all(is_parameter(item, levels - 1) for item in value)


def _object(payload: Any, at: str) -> Values:
    return fields(payload, at, payload if isinstance(payload, dict) else ["entries"])


def _no_schema(kind: type) -> str:
    return (
        f"a model holds numbers, and pue knows those of {', '.join(sorted(SCHEMAS))}, not of {kind.__module__}."
        f"{kind.__qualname__}. Use one of these, alone or in a Pipeline (for boosting of LightGBM: "
        'PUClassifier(backbone="boosting")), or fit again where the model is needed.'
    )
