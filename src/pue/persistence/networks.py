"""Networks: what built them, what they were built for, and their state. They are built again, then filled."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from reprlib import repr as short
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from pue.errors import ModelError
from pue.persistence.tree import Reader, Writer, fields

SPARE = 2**24
"""Numbers that building a network may take beside its weights, among them the two rows of its trial pass."""


@dataclass(frozen=True)
class NetworkParts:
    """Which entries of a class are a network, its backbone and its input spec, and what builds it from these two."""

    network: str
    backbone: str
    spec: str
    build: Callable[..., nn.Module]
    pair: type[nn.Module] | None = None
    """A module made of two such networks, which the network may be instead of one."""


def encode_network(network: nn.Module, parts: NetworkParts, writer: Writer, at: str) -> Any:
    state = network.state_dict()
    return {
        "students": parts.pair is not None and isinstance(network, parts.pair),
        "channels_last": any(tensor.ndim == 4 and not tensor.is_contiguous() for tensor in state.values()),
        "state": {name: writer.tensor(tensor, f"{at}.{name}") for name, tensor in state.items()},
    }


def decode_network(payload: Any, parts: NetworkParts, around: Mapping[str, Any], reader: Reader, at: str) -> nn.Module:
    """On the CPU and ready to score, whatever it was trained on; `around` are the other entries of its class."""
    backbone, spec = around.get(parts.backbone), around.get(parts.spec)
    paired, channels_last, names = fields(payload, at, ["students", "channels_last", "state"]).values()
    names = fields(names, at, names if isinstance(names, dict) else ["weights"])
    if spec is None or backbone is None:
        raise ModelError(
            f"{at} does not know what built it: a user's own module or function, or an older version of pue. Pass the "
            "backbone as a name in pue.BACKBONES or an import path 'package.module:factory', and fit again."
        )
    state = {name: reader.tensor(tensor, f"{at}.{name}") for name, tensor in names.items()}
    try:
        numbers = sum(tensor.numel() for tensor in state.values())
        network = _build(parts, backbone, spec, reader, numbers, paired=paired is True)
        for name, tensor in network.state_dict().items():
            if name in state and state[name].dtype != tensor.dtype:
                raise ModelError(f"{name} should be of {tensor.dtype}; it is of {state[name].dtype}")
        network.load_state_dict(state)
    except Exception as error:  # a backbone, and torch, may raise anything for settings that do not belong together
        reason = str(error).partition("\n")[0]
        raise ModelError(
            f"{at} does not fit its backbone {short(backbone)} ({reason}). If the backbone was changed after fit, fit "
            "again; otherwise the model is damaged."
        ) from error
    if channels_last is True:  # convolutions of the other order of pixels differ in their last bit
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network.eval()


def _build(parts: NetworkParts, backbone: Any, spec: Any, reader: Reader, numbers: int, *, paired: bool) -> nn.Module:
    own = isinstance(backbone, str) and any(sign in backbone for sign in ":/")  # code, or a folder on somebody's disk
    factory = reader.backbones(backbone) if own else backbone
    # Convolutions take images of any size; all others have a weight for every number of a row.
    if not own and spec.size > SPARE // 2 + (0 if len(spec.shape) == 3 else numbers):
        raise ModelError(f"rows of shape {spec.shape} are too large for it")
    with _Budget(math.inf if own else SPARE + 2 * numbers):
        network = parts.build(factory, spec, seed=0)
        if not paired:
            return network
        if parts.pair is None:
            raise ModelError("it is never a pair of networks")
        return parts.pair(network, parts.build(factory, spec, seed=0))


class _Budget(TorchFunctionMode):
    """Weights are made only while there are stored ones to fill them: settings from a file cannot ask for more."""

    def __init__(self, numbers: float) -> None:
        super().__init__()
        self.left = numbers

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.empty, torch.zeros, torch.ones):
            size = args[0] if args and isinstance(args[0], tuple | list) else args
            self.left -= math.prod(side for side in size if isinstance(side, int))
            if self.left < 0:
                raise ModelError("it would need more weights than are stored")
        return func(*args, **(kwargs or {}))
