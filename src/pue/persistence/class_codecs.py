"""Codecs of `pue`'s own classes: frozen dataclasses, and estimators in scikit-learn's style."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass
from dataclasses import fields as fields_of
from functools import cache
from numbers import Integral
from typing import Any, get_type_hints

from pue.errors import ModelError
from pue.persistence.annotations import fits
from pue.persistence.networks import NetworkParts, decode_network, encode_network
from pue.persistence.tree import Reader, Writer, fields

PASSING = {"stored": False}
"""Metadata of a field that is not stored."""


@dataclass(frozen=True)
class ClassCodec:
    """Values of exactly one class."""

    kind: type[Any]

    def owns(self, value: Any) -> bool:
        return type(value) is self.kind


@dataclass(frozen=True)
class DataclassCodec(ClassCodec):
    """A dataclass: its fields by name, each checked against its annotation. One with the metadata `PASSING` belongs to
    the moment, and comes back as its default."""

    network: NetworkParts | None = None

    def encode(self, value: Any, writer: Writer, at: str) -> Any:
        return _encode({entry.name: getattr(value, entry.name) for entry in self._fields}, self.network, writer, at)

    @property
    def _fields(self) -> list[Field[Any]]:
        kind: Any = self.kind
        return [entry for entry in fields_of(kind) if entry.metadata != PASSING]

    def decode(self, payload: Any, reader: Reader, at: str) -> Any:
        kind: Any = self.kind
        needed = [e.name for e in self._fields if e.default is MISSING and e.default_factory is MISSING]
        found = fields(payload, at, needed, optional=[e.name for e in self._fields if e.name not in needed])
        values = _decode(found, self.network, reader, at)
        return _construct(kind, _checked(values, _hints(kind), kind.__name__), at)


@dataclass(frozen=True)
class EstimatorCodec(ClassCodec):
    """An estimator: its parameters, and its fitted attributes with their types; it need not be fitted."""

    fitted: Mapping[str, Any]
    optional: tuple[str, ...] = ()
    either: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    network: NetworkParts | None = None

    def encode(self, value: Any, writer: Writer, at: str) -> Any:
        parameters = value.get_params(deep=False)
        attributes = {name: entry for name, entry in vars(value).items() if name not in parameters}
        unknown = [name for name in attributes if name not in self.fitted and name not in self.dropped]
        if unknown:
            raise ModelError(
                f"{at} cannot be saved: {self.kind.__name__} has no attribute {unknown[0]!r} of its own. Delete it."
            )
        if not isinstance(parameters.get("random_state"), Integral):
            parameters.pop("random_state", None)  # None is the default, and a generator's state is no part of a model
        kept = {name: entry for name, entry in parameters.items() if name not in self.dropped}
        fitted = {name: entry for name, entry in attributes.items() if name not in self.dropped}
        return {"parameters": _encode(kept, None, writer, at), "fitted": _encode(fitted, self.network, writer, at)}

    def decode(self, payload: Any, reader: Reader, at: str) -> Any:
        kind: Any = self.kind
        parameters, attributes = fields(payload, at, ["parameters", "fitted"]).values()
        names = [name for name in inspect.signature(kind).parameters if name not in self.dropped]
        values = _decode(fields(parameters, at, [], optional=names), None, reader, at)
        estimator = _construct(kind, _checked(values, _hints(kind.__init__), kind.__name__), at)
        if attributes != {}:
            free = {*self.optional, *self.either}
            stored = fields(attributes, at, [name for name in self.fitted if name not in free], optional=free)
            if self.either and sum(name in stored for name in self.either) != 1:
                raise ModelError(f"{at} should have one of {', '.join(self.either)}: the model is damaged.")
            found = _decode(stored, self.network, reader, at, vars(estimator))
            vars(estimator).update(_checked(found, self.fitted, kind.__name__))
        return estimator


def _encode(values: Mapping[str, Any], network: NetworkParts | None, writer: Writer, at: str) -> dict[str, Any]:
    return {
        key: encode_network(value, network, writer, f"{at}.{key}")
        if network is not None and key == network.network
        else writer.encode(value, f"{at}.{key}")
        for key, value in values.items()
    }


def _decode(
    stored: Mapping[str, Any], network: NetworkParts | None, reader: Reader, at: str, around: Mapping[str, Any] = {}
) -> dict[str, Any]:
    """The values of all entries; the network last, for it is built from others. `around` are those stored elsewhere."""
    name = None if network is None else network.network
    values = {key: reader.decode(node, f"{at}.{key}") for key, node in stored.items() if key != name}
    path = values.get("backbone")
    if isinstance(path, str) and ":" in path:
        reader.backbones(path)  # refused unless the caller gave it: a later fit would import it
    if network is not None and network.network in stored:
        known = {**around, **values}
        values[network.network] = decode_network(stored[network.network], network, known, reader, f"{at}.{name}")
    return values


@cache
def _hints(of: Any) -> dict[str, Any]:
    return get_type_hints(of)


def _checked(values: dict[str, Any], hints: Mapping[str, Any], name: str) -> dict[str, Any]:
    for key, value in values.items():
        if not fits(value, hints.get(key, Any)):
            raise ModelError(f"{name}.{key} should be of type {hints[key]}; it is a {type(value).__name__}.")
    return values


def _construct(kind: Any, values: dict[str, Any], at: str) -> Any:
    try:
        return kind(**values)
    except Exception as error:  # whatever a class says about values that it does not take
        raise ModelError(f"{at} holds values that no {kind.__name__} has: {error}") from error
