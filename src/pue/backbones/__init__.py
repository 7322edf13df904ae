"""Networks: anything that maps a batch of inputs to one score a row.

A backbone is a callable that takes an `InputSpec` and returns an `nn.Module`. `BACKBONES` names ours; a user brings an
`nn.Module`, a class or function, an import path "package.module:factory", or a folder of `pue features fit`
that the network begins with, "features/".
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from pue.backbones.cnn13 import cnn13
from pue.backbones.dense import linear, mlp, tabular
from pue.backbones.fast_cnn import fast_cnn, small_cnn
from pue.backbones.imagenet import cnn13_imagenet, resnet50_imagenet
from pue.backbones.inputs import InputSpec
from pue.backbones.resnet50 import resnet50
from pue.backbones.stored import Pretrained
from pue.core.randomness import seeded
from pue.errors import InvalidInput, lookup
from pue.persistence import keep_functions

Backbone = Callable[[InputSpec], nn.Module]

BACKBONES: dict[str, Backbone] = {
    "cnn13": cnn13,
    "cnn13_imagenet": cnn13_imagenet,
    "fast_cnn": fast_cnn,
    "linear": linear,
    "mlp": mlp,
    "resnet50": resnet50,
    "resnet50_imagenet": resnet50_imagenet,
    "small_cnn": small_cnn,
    "tabular": tabular,
}
keep_functions("backbones.", lambda: BACKBONES, with_settings=True)

__all__ = ["BACKBONES", "Backbone", "InputSpec", "Pretrained", "build", "known_backbone"]


def known_backbone(name: str, *also: str) -> Backbone | None:
    """The backbone that text stands for; None for an import path, which is code and not looked at before it is used.
    `also` are names that mean something to the caller.

    >>> known_backbone("features/")
    Pretrained(folder='features/', frozen=False)
    """
    if ":" in name:
        return None
    return Pretrained(name) if "/" in name else lookup("backbone", name, BACKBONES, "auto", *also)


def build(backbone: str | nn.Module | Callable[..., Any], spec: InputSpec, *, seed: int) -> nn.Module:
    """A network for inputs of this kind that gives scores of shape (n,), its weights drawn from `seed` alone.

    "auto" takes `fast_cnn` for images and `tabular` for tables. A module is copied, never trained in place.

    >>> network = build("linear", InputSpec((3,)), seed=0)
    >>> network(torch.zeros(5, 3)).shape
    torch.Size([5])
    """
    if backbone == "auto":
        backbone = "fast_cnn" if len(spec.shape) == 3 else "tabular"
    with seeded(seed):
        return _with_vector_scores(_make(backbone, spec).to(spec.dtype), spec)


def _make(backbone: str | nn.Module | Callable[..., Any], spec: InputSpec) -> nn.Module:
    if isinstance(backbone, nn.Module):
        return copy.deepcopy(backbone)
    if isinstance(backbone, str):
        backbone = known_backbone(backbone) or _import(backbone)
    if not callable(backbone):
        raise InvalidInput(
            f"backbone must be a name, an nn.Module or a callable that takes an InputSpec; got {backbone!r}."
        )
    network = backbone(spec)
    if not isinstance(network, nn.Module):
        raise InvalidInput(f"the backbone gave a {type(network).__name__}, not a torch.nn.Module.")
    return network


def _import(path: str) -> Any:
    module_name, _, attribute = path.partition(":")
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"cannot import the backbone {path!r}: {error}. Write 'package.module:factory' and check that the "
            "package is installed."
        ) from error


class _Squeeze(nn.Module):
    """Scores (n, 1) → (n,), said once and explicitly: silent broadcasting would pair every row with every other."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.network(x)
        return scores.squeeze(1)


def _with_vector_scores(network: nn.Module, spec: InputSpec) -> nn.Module:
    was_training = network.training
    with torch.no_grad():
        shape = tuple(network.eval()(torch.zeros(2, *spec.shape, dtype=spec.dtype)).shape)
    network.train(was_training)
    if shape == (2,):
        return network
    if shape == (2, 1):
        return _Squeeze(network)
    raise InvalidInput(
        f"the backbone must give one score a row, shape (n,) or (n, 1); for 2 rows it gave {shape}. End it with "
        "nn.Linear(width, 1)."
    )
