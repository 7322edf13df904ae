"""Does a value fit a type annotation? For the annotations that `pue`'s dataclasses and estimators use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np
from sklearn.base import BaseEstimator


def fits(value: Any, annotation: Any) -> bool:
    """Whether the value is of the annotated type, numpy's numbers counting as Python's.

    Of a `Literal` only the type is compared: which of the words are allowed is for the class itself to say.

    >>> fits((1, 2.5), tuple[float, ...]), fits(True, int), fits(None, str | None)
    (True, False, True)
    """
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation is Any:
        return True
    if origin in (Union, UnionType):
        return any(fits(value, part) for part in parts)
    if origin is Literal:
        return any(isinstance(value, type(word)) for word in parts)
    if annotation is Callable or origin is Callable:
        return callable(value)
    if origin is np.ndarray:
        kind = get_args(parts[1])[0]
        return isinstance(value, np.ndarray) and (kind is Any or np.issubdtype(value.dtype, kind))
    if origin in (tuple, list, dict, Sequence, Mapping):
        return _container_fits(value, origin, parts)
    return _instance_fits(value, NoneType if annotation is None else annotation)


def _container_fits(value: Any, origin: Any, parts: tuple[Any, ...]) -> bool:
    if not isinstance(value, origin) or isinstance(value, str):
        return False
    if isinstance(value, Mapping):
        return all(fits(key, parts[0]) and fits(entry, parts[1]) for key, entry in value.items())
    if origin is tuple and parts[-1] is not Ellipsis:
        return len(value) == len(parts) and all(fits(item, part) for item, part in zip(value, parts, strict=True))
    return all(fits(item, parts[0]) for item in value)


def _instance_fits(value: Any, wanted: type) -> bool:
    if wanted is bool:
        return isinstance(value, bool | np.bool_)
    if wanted in (int, float):
        return isinstance(value, Integral if wanted is int else Real) and not isinstance(value, bool)
    if getattr(wanted, "_is_protocol", False) and not getattr(wanted, "_is_runtime_protocol", False):
        # Such as `Method`: what fits is a value, and values are dataclasses; a classifier, one that changes, is none.
        return is_dataclass(value) and not isinstance(value, BaseEstimator)
    return isinstance(value, wanted)
