"""Functions by name: a model says which of ours it uses, and never brings its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from reprlib import repr as short
from typing import Any

from pue.backbones import BACKBONES
from pue.errors import ModelError
from pue.losses import LOSSES
from pue.methods import METHODS, Composition, Thresholded
from pue.methods.composition import ipw_weights, naive_weights, pu_weights
from pue.methods.thresholds import informative, probabilistic_gap, share_of_population
from pue.persistence.tree import Reader, Writer, fields

MOST = 2**16
"""No argument of a backbone is larger: neither a width nor a depth."""

FUNCTIONS: dict[str, Callable[..., Any]] = {
    f"{function.__module__.removeprefix('pue.')}.{function.__name__}": function
    for function in (
        pu_weights,
        ipw_weights,
        naive_weights,
        share_of_population,
        informative,
        probabilistic_gap,
    )
}


def known_functions() -> dict[str, Callable[..., Any]]:
    """All of them now: the registries of losses, backbones and methods may have grown."""
    compositions = {
        name: method.base if isinstance(method, Thresholded) else method for name, method in METHODS.items()
    }
    return {
        **FUNCTIONS,
        **{f"losses.{name}": loss for name, loss in LOSSES.items()},
        **{f"backbones.{name}": backbone for name, backbone in BACKBONES.items()},
        **{f"risk of {name}": method.risk for name, method in compositions.items() if isinstance(method, Composition)},
    }


class FunctionCodec:
    def owns(self, value: Any) -> bool:
        return inspect.isfunction(value) and any(value is known for known in known_functions().values())

    def encode(self, value: Any, writer: Writer, at: str) -> Any:
        return next(name for name, known in known_functions().items() if value is known)

    def decode(self, payload: Any, reader: Reader, at: str) -> Any:
        known = known_functions()
        if not isinstance(payload, str) or payload not in known:
            raise ModelError(f"{at} names the function {short(payload)}, which this version of pue does not have.")
        return known[payload]


class PartialCodec:
    """A backbone with settings, such as `partial(mlp, depth=2)`."""

    _functions = FunctionCodec()

    def owns(self, value: Any) -> bool:
        return (
            type(value) is partial
            and any(value.func is backbone for backbone in BACKBONES.values())
            and not value.args
            and all(_is_setting(setting) for setting in value.keywords.values())
        )

    def encode(self, value: Any, writer: Writer, at: str) -> Any:
        return {"function": self._functions.encode(value.func, writer, at), "settings": dict(value.keywords)}

    def decode(self, payload: Any, reader: Reader, at: str) -> Any:
        name, settings = fields(payload, at, ["function", "settings"]).values()
        function = self._functions.decode(name, reader, at)
        allowed = [
            name for name, part in inspect.signature(function).parameters.items() if part.kind is part.KEYWORD_ONLY
        ]
        found = fields(settings, at, [], optional=allowed)
        if function not in BACKBONES.values() or not all(_is_setting(setting) for setting in found.values()):
            raise ModelError(f"{at} is no backbone with settings that are small numbers: the model is damaged.")
        return partial(function, **found)


def _is_setting(value: Any) -> bool:
    return value is None or (type(value) in (bool, int, float, str) and (isinstance(value, str) or abs(value) <= MOST))
