"""What a model may hold: every storey names its own types and functions, with a decorator where they are defined.

Only what stands here is ever built, by its name here. A file brings names and numbers, never a path and never code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pue.core.losses import LOSSES
from pue.errors import InvalidInput
from pue.persistence.class_codecs import ClassCodec, DataclassCodec, EstimatorCodec
from pue.persistence.networks import NetworkParts
from pue.persistence.tree import Codec

Kind = TypeVar("Kind", bound=type)
Function = TypeVar("Function", bound=Callable[..., Any])
Names = tuple[str, ...]
Named = Callable[[], Mapping[str, Callable[..., Any]]]
"""Functions by name as they are now: the registries of methods and backbones may grow."""

TYPES: dict[str, Codec] = {}
FUNCTIONS: dict[str, Callable[..., Any]] = {}
_FUNCTIONS: dict[str, Named] = {"losses.": lambda: LOSSES}
_FACTORIES: dict[str, Named] = {}


def kept(kind: Kind) -> Kind:
    """Models may hold values of this frozen dataclass; a class decorator.

    Fields are stored by name and checked against their annotations. A field added later needs a default, so that older
    files still load.
    """
    return _keep(kind, DataclassCodec(kind))


def kept_with_network(parts: NetworkParts) -> Callable[[Kind], Kind]:
    """Like `kept`, for a dataclass of which one field is a network."""
    return lambda kind: _keep(kind, DataclassCodec(kind, parts))


def kept_estimator(
    *,
    fitted: Mapping[str, Any],
    optional: Names = (),
    either: Names = (),
    dropped: Names = (),
    network: NetworkParts | None = None,
) -> Callable[[Kind], Kind]:
    """Models may hold this estimator in scikit-learn's style: its parameters, and the attributes `fitted` with their
    types. A fit does not always leave those that are `optional`, and leaves one of `either`; what is `dropped` belongs
    to the machine or the moment and comes back as its default.
    """
    return lambda kind: _keep(kind, EstimatorCodec(kind, fitted, optional, either, dropped, network))


def kept_function(function: Function) -> Function:
    """Models may name this function; a decorator."""
    FUNCTIONS[f"{function.__module__.removeprefix('pue.')}.{function.__name__}"] = function
    return function


def keep_functions(prefix: str, named: Named, *, with_settings: bool = False) -> None:
    """Models may name all functions of a registry; `with_settings` also as `partial(function, setting=…)`."""
    (_FACTORIES if with_settings else _FUNCTIONS)[prefix] = named


def known_functions() -> dict[str, Callable[..., Any]]:
    return {**FUNCTIONS, **_named(_FUNCTIONS), **known_factories()}


def known_factories() -> dict[str, Callable[..., Any]]:
    """The functions that a model may hold with settings."""
    return _named(_FACTORIES)


def _named(registries: Mapping[str, Named]) -> dict[str, Callable[..., Any]]:
    return {f"{prefix}{name}": found for prefix, named in registries.items() for name, found in named().items()}


def _keep(kind: Kind, codec: DataclassCodec | EstimatorCodec) -> Kind:
    name = kind.__name__
    other = TYPES.get(name)
    if isinstance(other, ClassCodec) and other.kind.__module__ != kind.__module__:
        raise InvalidInput(
            f"in the files of models {name!r} is a class of {other.kind.__module__}. Give this one another name."
        )
    TYPES[name] = codec
    return kind
