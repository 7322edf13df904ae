"""Values ⇄ a tree of JSON, and tensors beside it. What a type looks like there is a codec's business."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from reprlib import repr as short
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from pue.errors import ModelError

Backbones = Callable[[str], Any]
"""What a caller gives for the import path of a backbone."""

DTYPES = (torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int8, torch.int16, torch.int32,
          torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64)  # fmt: skip


class Codec(Protocol):
    """How values of one type are written and read; `at` says where in the model they stand, for messages."""

    def owns(self, value: Any) -> bool: ...
    def encode(self, value: Any, writer: Writer, at: str) -> Any: ...
    def decode(self, payload: Any, reader: Reader, at: str) -> Any: ...


class Writer:
    """Takes a value apart; tensors gather on the way."""

    def __init__(self, types: Mapping[str, Codec]) -> None:
        self.types = types
        self.tensors: dict[str, Tensor] = {}

    def encode(self, value: Any, at: str) -> Any:
        if isinstance(value, np.str_):
            return str(value)
        if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
            return value
        if type(value) is list:
            return [self.encode(item, f"{at}[{place}]") for place, item in enumerate(value)]
        for name, codec in self.types.items():
            if codec.owns(value):
                return {"type": name, "value": codec.encode(value, self, at)}
        raise ModelError(f"{at} cannot be saved: {_remedy(value)}")

    def tensor(self, tensor: Tensor, at: str) -> str:
        """The name under which a tensor is kept."""
        if tensor.layout is not torch.strided or tensor.dtype not in DTYPES:
            raise ModelError(
                f"{at} cannot be saved: a {tensor.layout} tensor of {tensor.dtype} has no place in a model."
            )
        name = f"t{len(self.tensors)}"
        self.tensors[name] = tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        return name


class Reader:
    """Puts a value together again; every tensor is asked for exactly once."""

    def __init__(
        self,
        types: Mapping[str, Codec],
        tensors: Mapping[str, Tensor],
        backbones: Backbones,
        unknown: Callable[[str], None],
    ) -> None:
        self.types, self.backbones, self._unknown = types, backbones, unknown
        self._tensors = dict(tensors)

    def decode(self, node: Any, at: str) -> Any:
        if isinstance(node, float) and not math.isfinite(node):
            raise ModelError(f"{at} is too large for a number: the model is damaged.")
        if node is None or isinstance(node, bool | int | float | str):
            return node
        if isinstance(node, list):
            return [self.decode(item, f"{at}[{place}]") for place, item in enumerate(node)]
        name, payload = fields(node, at, ["type", "value"]).values()
        if isinstance(name, str) and name not in self.types:
            self._unknown(name)
        if not isinstance(name, str) or name not in self.types:
            raise ModelError(
                f"{at} is of type {short(name)}, which this version of pue does not know. If a newer version wrote it, "
                "upgrade pue; otherwise do not trust this model."
            )
        return self.types[name].decode(payload, self, at)

    def tensor(self, name: Any, at: str) -> Tensor:
        if not isinstance(name, str) or name not in self._tensors:
            raise ModelError(f"{at}: there is no tensor {short(name)}, or it is used twice. The model is damaged.")
        # A copy, aligned as torch aligns: products of unaligned numbers may differ in their last bit.
        return self._tensors.pop(name).clone()

    def finish(self) -> None:
        """Nothing may be left over: what is stored belongs to the model."""
        left = list(self._tensors)
        if left:
            raise ModelError(f"the model does not use {', '.join(left[:5])}: it is damaged, or not only a model.")


def fields(payload: Any, at: str, names: Iterable[str], optional: Iterable[str] = ()) -> dict[str, Any]:
    """The entries of an object in the order of `names`, or an error where some are missing or unknown."""
    wanted = list(names)
    allowed = dict.fromkeys([*wanted, *optional])
    if not isinstance(payload, dict):
        raise ModelError(
            f"{at} should hold {', '.join(wanted)}; it is a {type(payload).__name__}. The model is damaged."
        )
    unknown = [name for name in payload if name not in allowed]
    missing = [name for name in wanted if name not in payload]
    if unknown or missing:
        wrong = f"has no {missing[0]!r}" if missing else f"has {short(unknown[0])}, which is unknown"
        raise ModelError(f"{at} {wrong}. The model is damaged, or a newer version of pue wrote it: upgrade pue.")
    return {name: payload[name] for name in allowed if name in payload}


def _remedy(value: Any) -> str:
    if isinstance(value, torch.nn.Module) or (callable(value) and hasattr(value, "__name__")):
        return (
            "a model holds names and numbers, never code, and this is a user's own module or function. Pass it as an "
            "import path, backbone='package.module:factory', or use a name in pue.BACKBONES or pue.LOSSES; in place of "
            "a function of the features, as in Known and Groups, give the index of a column."
        )
    kind = type(value)
    return (
        f"pue does not know how to write a {kind.__module__}.{kind.__qualname__}. Use pue's own methods and propensity "
        "estimators, and plain numbers, strings, lists, arrays and tensors."
    )
