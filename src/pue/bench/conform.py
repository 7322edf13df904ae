"""Values that come from TOML, the command line or Python → exactly what a dataclass says its fields are."""

from __future__ import annotations

import math
import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pue.errors import InvalidInput, UnknownName

T = TypeVar("T")
Scalar = str | int | float | bool
Options = tuple[tuple[str, Scalar], ...]
"""Names and values in the order of the names; a mapping is taken too. 15.0 and 15 are the same value."""

_WORDS = {str: "text", int: "a whole number", float: "a finite number", bool: "true or false"}


def conform(instance: Any) -> None:
    """Every field of a frozen dataclass becomes what its annotation says, or an error names the field."""
    for name, hint in _hints(type(instance)).items():  # type: ignore[arg-type]
        object.__setattr__(instance, name, _as(getattr(instance, name), hint, name))


def make(cls: type[T], table: Mapping[str, Any], kind: str) -> T:
    """A dataclass from a table; a name that is no field, or a field that is missing, is an error."""
    known = {field.name: field for field in fields(cls)}  # type: ignore[arg-type]
    for name in table:
        if name not in known:
            raise UnknownName(f"field of {kind}", name, known)
    for name, field in known.items():
        if name not in table and field.default is MISSING and field.default_factory is MISSING:
            raise InvalidInput(f"{kind} needs the field {name!r}.")
    instance = cls(**table)
    conform(instance)
    return instance


def plain(value: Any) -> Any:
    """A dataclass as dictionaries and lists, without what is None or empty: what TOML and JSON can hold."""
    if is_dataclass(value):
        entries = {field.name: getattr(value, field.name) for field in fields(value)}
        options = {name for name, hint in _hints(type(value)).items() if hint == Options}  # type: ignore[arg-type]
        entries = {name: dict(entry) if name in options else entry for name, entry in entries.items()}
        return {name: plain(entry) for name, entry in entries.items() if entry is not None and entry != {}}
    return list(value) if isinstance(value, tuple) else value


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls)


def _as(value: Any, hint: Any, where: str) -> Any:
    if hint == Options:
        return _options(value, where)
    if get_origin(hint) in (Union, types.UnionType):
        return _one_of(value, get_args(hint), where)
    if get_origin(hint) is tuple:
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise InvalidInput(f"{where} must be a list of numbers; got {value!r}.")
        return tuple(_as(entry, get_args(hint)[0], where) for entry in value)
    if is_dataclass(hint) and isinstance(hint, type) and isinstance(value, Mapping):
        return make(hint, value, where)
    if get_origin(hint) is Mapping or is_dataclass(hint):
        if not isinstance(value, get_origin(hint) or hint):
            raise InvalidInput(f"{where} must be a table of values; got {value!r}.")
        return value
    return _scalar(value, hint, where)


def _one_of(value: Any, hints: tuple[Any, ...], where: str) -> Any:
    """The first kind that fits: exact types before conversions, so that "data" | float keeps both."""
    if value is None and type(None) in hints:
        return None
    hints = tuple(hint for hint in hints if hint is not type(None))
    for hint in hints:
        if type(value) is hint:
            return _as(value, hint, where)
    return _as(value, hints[-1], where)


def _scalar(value: Any, hint: type, where: str) -> Any:
    fits = isinstance(value, hint) and not (hint is int and isinstance(value, bool))
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value, fits = float(value), True
    if not fits or (hint is float and not math.isfinite(value)):
        raise InvalidInput(f"{where} must be {_WORDS[hint]}; got {value!r}.")
    return value


def _options(value: Any, where: str) -> Options:
    try:
        pairs = dict(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"{where} must be a table of names and values; got {value!r}.") from None
    for name, entry in pairs.items():
        if not isinstance(entry, str | bool | int | float) or (isinstance(entry, float) and not math.isfinite(entry)):
            raise InvalidInput(f"{where}.{name} must be text, a finite number, true or false; got {entry!r}.")
    return tuple(sorted((str(name), _whole(entry)) for name, entry in pairs.items()))


def _whole(entry: Scalar) -> Scalar:
    return int(entry) if isinstance(entry, float) and entry.is_integer() else entry
