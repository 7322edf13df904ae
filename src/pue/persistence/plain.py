"""Codecs of values that are not `pue`'s own: containers, numbers that JSON does not have, arrays, tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from reprlib import repr as short
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pue.errors import ModelError
from pue.persistence.tree import Reader, Writer, fields

_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_PRECISIONS = {"float32": torch.float32, "float64": torch.float64}


class TupleCodec:
    def owns(self, value: Any) -> bool:
        return type(value) is tuple

    def encode(self, value: tuple[Any, ...], writer: Writer, at: str) -> Any:
        return writer.encode(list(value), at)

    def decode(self, payload: Any, reader: Reader, at: str) -> tuple[Any, ...]:
        return tuple(reader.decode(_list(payload, at), at))


class DictCodec:
    """Keys are strings."""

    def owns(self, value: Any) -> bool:
        return type(value) is dict and all(type(key) is str for key in value)

    def encode(self, value: dict[str, Any], writer: Writer, at: str) -> Any:
        return {key: writer.encode(entry, f"{at}[{short(key)}]") for key, entry in value.items()}

    def decode(self, payload: Any, reader: Reader, at: str) -> dict[str, Any]:
        entries = fields(payload, at, payload if isinstance(payload, dict) else ["entries"])
        return {key: reader.decode(entry, f"{at}[{short(key)}]") for key, entry in entries.items()}


class PairsCodec:
    """A dictionary whose keys are numbers, such as the prior of every group."""

    def owns(self, value: Any) -> bool:
        return type(value) is dict and all(isinstance(key, str | bool | int | float | np.number) for key in value)

    def encode(self, value: dict[Any, Any], writer: Writer, at: str) -> Any:
        return [[writer.encode(part, at) for part in pair] for pair in value.items()]

    def decode(self, payload: Any, reader: Reader, at: str) -> dict[Any, Any]:
        pairs = [reader.decode(_list(pair, at, length=2), at) for pair in _list(payload, at)]
        if not all(isinstance(key, str | bool | int | float | np.number) for key, _ in pairs):
            raise ModelError(f"{at} has a key that is neither a number nor a string: the model is damaged.")
        return dict(pairs)


class FloatCodec:
    """The three numbers that JSON has no word for."""

    def owns(self, value: Any) -> bool:
        return type(value) is float

    def encode(self, value: float, writer: Writer, at: str) -> Any:
        return str(value)

    def decode(self, payload: Any, reader: Reader, at: str) -> float:
        return float(_choice(payload, _SPECIAL, at))


class TensorCodec:
    """A tensor, and in which order its dimensions lie in memory: sums in another order differ in their last bit."""

    def owns(self, value: Any) -> bool:
        return type(value) is Tensor

    def encode(self, value: Tensor, writer: Writer, at: str) -> Any:
        strides = value.stride()
        order = sorted(range(value.ndim), key=lambda side: (-strides[side], side))
        dense = value.permute(order)
        if order == list(range(value.ndim)) or not dense.is_contiguous():
            return writer.tensor(value, at)
        return {"name": writer.tensor(dense, at), "order": order}

    def decode(self, payload: Any, reader: Reader, at: str) -> Tensor:
        if isinstance(payload, str):
            return reader.tensor(payload, at)
        name, order = fields(payload, at, ["name", "order"]).values()
        tensor = reader.tensor(name, at)
        if not isinstance(order, list) or sorted(map(str, order)) != sorted(map(str, range(tensor.ndim))):
            raise ModelError(f"{at} has no order of dimensions: the model is damaged.")
        return tensor.permute([order.index(side) for side in range(tensor.ndim)])


class ArrayCodec:
    """A numpy array of truth values, whole numbers or floats."""

    _tensors = TensorCodec()

    def owns(self, value: Any) -> bool:
        return type(value) is np.ndarray and _plain(value.dtype)

    def encode(self, value: Any, writer: Writer, at: str) -> Any:
        native = np.asarray(value, dtype=value.dtype.newbyteorder("="))
        forward = native if min(native.strides, default=0) >= 0 else np.ascontiguousarray(native)
        writable = forward if forward.flags.writeable else forward.copy(order="K")
        return self._tensors.encode(torch.from_numpy(writable), writer, at)

    def decode(self, payload: Any, reader: Reader, at: str) -> Any:
        tensor = self._tensors.decode(payload, reader, at)
        if tensor.dtype is torch.bfloat16:
            raise ModelError(f"{at} is no array of numpy's: the model is damaged.")
        return tensor.numpy()


class ScalarCodec:
    """A number of numpy's."""

    _arrays = ArrayCodec()

    def owns(self, value: Any) -> bool:
        return isinstance(value, np.generic) and _plain(value.dtype)

    def encode(self, value: Any, writer: Writer, at: str) -> Any:
        return self._arrays.encode(np.array(value), writer, at)

    def decode(self, payload: Any, reader: Reader, at: str) -> Any:
        array = self._arrays.decode(payload, reader, at)
        if array.ndim:
            raise ModelError(f"{at} should be one number; it has shape {array.shape}. The model is damaged.")
        return array[()]


class NamesCodec:
    """An array of strings as objects, such as the names of columns."""

    def owns(self, value: Any) -> bool:
        named = type(value) is np.ndarray and value.dtype == object and value.ndim == 1
        return named and all(isinstance(name, str) for name in value)

    def encode(self, value: Any, writer: Writer, at: str) -> Any:
        return value.tolist()

    def decode(self, payload: Any, reader: Reader, at: str) -> Any:
        if not all(isinstance(name, str) for name in _list(payload, at)):
            raise ModelError(f"{at} should hold names: the model is damaged.")
        return np.array(payload, dtype=object)


class PrecisionCodec:
    """torch.float32 or torch.float64."""

    def owns(self, value: Any) -> bool:
        return value in _PRECISIONS.values() if isinstance(value, torch.dtype) else False

    def encode(self, value: torch.dtype, writer: Writer, at: str) -> Any:
        return str(value).removeprefix("torch.")

    def decode(self, payload: Any, reader: Reader, at: str) -> Any:
        return _choice(payload, _PRECISIONS, at)


@dataclass(frozen=True)
class EnumCodec:
    kind: type[Enum]

    def owns(self, value: Any) -> bool:
        return type(value) is self.kind

    def encode(self, value: Enum, writer: Writer, at: str) -> Any:
        return value.value

    def decode(self, payload: Any, reader: Reader, at: str) -> Any:
        return _choice(payload, {member.value: member for member in self.kind}, at)


def _plain(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "biuf" and dtype.itemsize <= 8


def _list(payload: Any, at: str, length: int | None = None) -> Sequence[Any]:
    if not isinstance(payload, list) or (length is not None and len(payload) != length):
        raise ModelError(f"{at} should be a list{'' if length is None else f' of {length}'}: the model is damaged.")
    return payload


def _choice(payload: Any, choices: dict[str, Any], at: str) -> Any:
    if not isinstance(payload, str) or payload not in choices:
        raise ModelError(f"{at} should be one of {', '.join(choices)}; it is {short(payload)}. The model is damaged.")
    return choices[payload]
