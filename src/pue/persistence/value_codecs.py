"""Codecs of values that are no classes of `pue`'s own: containers, numbers that JSON does not have, arrays, tensors,
and functions by name: a model says which of ours it uses, and never brings its own.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from reprlib import repr as short
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pue.core.data import Scenario
from pue.errors import ModelError
from pue.persistence.registry import known_factories, known_functions
from pue.persistence.tree import Codec, Reader, Writer, fields

MOST = 2**16
"""No argument of a backbone is larger: neither a width nor a depth."""


@dataclass(frozen=True)
class ValueCodec:
    """Three functions."""

    owns: Callable[[Any], bool]
    encode: Callable[[Any, Writer, str], Any]
    decode: Callable[[Any, Reader, str], Any]


def _of(kind: type) -> Callable[[Any], bool]:
    return lambda value: type(value) is kind


def _named(kind: type, choices: Mapping[str, Any], spell: Callable[[Any], str]) -> ValueCodec:
    """Values that have a name each."""

    def decode(payload: Any, reader: Reader, at: str) -> Any:
        if not isinstance(payload, str) or payload not in choices:
            wanted = ", ".join(choices)
            raise ModelError(f"{at} should be one of {wanted}; it is {short(payload)}. The model is damaged.")
        return choices[payload]

    return ValueCodec(
        lambda value: type(value) is kind and spell(value) in choices, lambda value, *_: spell(value), decode
    )


def _has_words(value: Any) -> bool:
    return type(value) is dict and all(type(key) is str for key in value)


def _encode_dict(value: dict[str, Any], writer: Writer, at: str) -> dict[str, Any]:
    return {key: writer.encode(entry, f"{at}[{short(key)}]") for key, entry in value.items()}


def _decode_dict(payload: Any, reader: Reader, at: str) -> dict[str, Any]:
    entries = fields(payload, at, payload if isinstance(payload, dict) else ["entries"])
    return {key: reader.decode(entry, f"{at}[{short(key)}]") for key, entry in entries.items()}


def _are_keys(keys: Iterable[Any]) -> bool:
    return all(isinstance(key, str | bool | int | float | np.number) for key in keys)


def _encode_pairs(value: dict[Any, Any], writer: Writer, at: str) -> list[Any]:
    return [[writer.encode(part, at) for part in pair] for pair in value.items()]


def _decode_pairs(payload: Any, reader: Reader, at: str) -> dict[Any, Any]:
    pairs = [reader.decode(_list(pair, at, length=2), at) for pair in _list(payload, at)]
    if not _are_keys(key for key, _ in pairs):
        raise ModelError(f"{at} has a key that is neither a number nor a string: the model is damaged.")
    return dict(pairs)


def _list(payload: Any, at: str, length: int | None = None) -> Sequence[Any]:
    if not isinstance(payload, list) or (length is not None and len(payload) != length):
        raise ModelError(f"{at} should be a list{'' if length is None else f' of {length}'}: the model is damaged.")
    return payload


def _encode_tensor(value: Tensor, writer: Writer, at: str) -> Any:
    """Its name, and in which order its dimensions lie in memory: sums in another order differ in their last bit."""
    strides = value.stride()
    order = sorted(range(value.ndim), key=lambda side: (-strides[side], side))
    dense = value.permute(order)
    if order == list(range(value.ndim)) or not dense.is_contiguous():
        return writer.tensor(value, at)
    return {"name": writer.tensor(dense, at), "order": order}


def _decode_tensor(payload: Any, reader: Reader, at: str) -> Tensor:
    if isinstance(payload, str):
        return reader.tensor(payload, at)
    name, order = fields(payload, at, ["name", "order"]).values()
    tensor = reader.tensor(name, at)
    if not isinstance(order, list) or sorted(map(str, order)) != sorted(map(str, range(tensor.ndim))):
        raise ModelError(f"{at} has no order of dimensions: the model is damaged.")
    return tensor.permute([order.index(side) for side in range(tensor.ndim)])


def _plain(dtype: np.dtype[Any]) -> bool:
    """Truth values, whole numbers or floats."""
    return dtype.kind in "biuf" and dtype.itemsize <= 8


def _encode_array(value: Any, writer: Writer, at: str) -> Any:
    native = np.asarray(value, dtype=value.dtype.newbyteorder("="))
    if native.flags.c_contiguous:  # whatever the strides of sides of length one, which say nothing, happen to be
        native = native.ravel().reshape(native.shape)
    forward = native if min(native.strides, default=0) >= 0 else np.ascontiguousarray(native)
    writable = forward if forward.flags.writeable else forward.copy(order="K")
    return _encode_tensor(torch.from_numpy(writable), writer, at)


def _decode_array(payload: Any, reader: Reader, at: str) -> Any:
    tensor = _decode_tensor(payload, reader, at)
    if tensor.dtype is torch.bfloat16:
        raise ModelError(f"{at} is no array of numpy's: the model is damaged.")
    return tensor.numpy()


def _decode_number(payload: Any, reader: Reader, at: str) -> Any:
    array = _decode_array(payload, reader, at)
    if array.ndim:
        raise ModelError(f"{at} should be one number; it has shape {array.shape}. The model is damaged.")
    return array[()]


def _are_names(value: Any) -> bool:
    named = type(value) is np.ndarray and value.dtype == object and value.ndim == 1
    return named and all(isinstance(name, str) for name in value)


def _decode_names(payload: Any, reader: Reader, at: str) -> Any:
    if not all(isinstance(name, str) for name in _list(payload, at)):
        raise ModelError(f"{at} should hold names: the model is damaged.")
    return np.array(payload, dtype=object)


def _is_known(value: Any) -> bool:
    return inspect.isfunction(value) and any(value is known for known in known_functions().values())


def _name(value: Any) -> str:
    return next(name for name, known in known_functions().items() if value is known)


def _decode_function(payload: Any, reader: Reader, at: str) -> Any:
    known = known_functions()
    if not isinstance(payload, str) or payload not in known:
        raise ModelError(f"{at} names the function {short(payload)}, which this version of pue does not have.")
    return known[payload]


def _is_backbone(value: Any) -> bool:
    """With settings, such as `partial(mlp, depth=2)`."""
    return (
        type(value) is partial
        and any(value.func is factory for factory in known_factories().values())
        and not value.args
        and all(map(_is_setting, value.keywords.values()))
    )


def _is_setting(value: Any) -> bool:
    return value is None or (type(value) in (bool, int, float, str) and (isinstance(value, str) or abs(value) <= MOST))


def _decode_backbone(payload: Any, reader: Reader, at: str) -> Any:
    name, settings = fields(payload, at, ["function", "settings"]).values()
    function = _decode_function(name, reader, at)
    parameters = inspect.signature(function).parameters
    found = fields(settings, at, [], [name for name, part in parameters.items() if part.kind is part.KEYWORD_ONLY])
    if function not in known_factories().values() or not all(map(_is_setting, found.values())):
        raise ModelError(f"{at} is no backbone with settings that are small numbers: the model is damaged.")
    return partial(function, **found)


VALUES: dict[str, Codec] = {
    "tuple": ValueCodec(
        _of(tuple),
        lambda value, writer, at: writer.encode(list(value), at),
        lambda payload, reader, at: tuple(reader.decode(_list(payload, at), at)),
    ),
    "dict": ValueCodec(_has_words, _encode_dict, _decode_dict),
    # A dictionary whose keys are numbers, such as the prior of every group.
    "pairs": ValueCodec(lambda value: type(value) is dict and _are_keys(value), _encode_pairs, _decode_pairs),
    # The three numbers that JSON has no word for.
    "float": _named(float, {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}, str),
    "tensor": ValueCodec(_of(Tensor), _encode_tensor, _decode_tensor),
    "array": ValueCodec(lambda value: type(value) is np.ndarray and _plain(value.dtype), _encode_array, _decode_array),
    "number": ValueCodec(
        lambda value: isinstance(value, np.generic) and _plain(value.dtype),
        lambda value, writer, at: _encode_array(np.array(value), writer, at),
        _decode_number,
    ),
    # An array of strings as objects, such as the names of columns.
    "names": ValueCodec(_are_names, lambda value, *_: value.tolist(), _decode_names),
    "precision": _named(
        torch.dtype, {"float32": torch.float32, "float64": torch.float64}, lambda kind: str(kind).removeprefix("torch.")
    ),
    "scenario": _named(Scenario, {member.value: member for member in Scenario}, lambda member: member.value),
    "function": ValueCodec(_is_known, lambda value, *_: _name(value), _decode_function),
    "partial": ValueCodec(
        _is_backbone,
        lambda value, *_: {"function": _name(value.func), "settings": dict(value.keywords)},
        _decode_backbone,
    ),
}
