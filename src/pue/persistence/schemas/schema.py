"""How an estimator of scikit-learn is taken apart into plain values and arrays, and put together again by our code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from pue.persistence.schemas.parts import Count, Names, Part, Sizes

Values = dict[str, Any]

FEATURES: Mapping[str, Part] = {"n_features_in_": Count(1, 2**31, "p")}
NAMED: Mapping[str, Part] = {"feature_names_in_": Names()}
MOMENT = ("n_jobs", "verbose", "memory", "warm_start")
"""Parameters that belong to the machine or the moment; they come back as their defaults."""


def as_they_are(estimator: Any, values: Values) -> Values:
    return values


def no_more(estimator: Any) -> Values:
    return {}


def any_parameters(estimator: Any) -> None:
    """scikit-learn's own checks are enough."""


@dataclass(frozen=True)
class Schema:
    """One type: what of it is stored, and how it is rebuilt."""

    path: str
    """"package.module:Class"."""
    parts: Mapping[str, Part]
    """Attributes and what they may be, checked in this order."""
    optional: Mapping[str, Part] = field(default_factory=lambda: NAMED)
    rebuilt: tuple[str, ...] = ()
    """Attributes that are not stored: they follow from others, or a fit alone needs them."""
    take: Callable[[Any], Values] = no_more
    """Entries beside the attributes, of a fitted estimator."""
    build: Callable[[Any, Values], Values] = as_they_are
    """Attributes, from an estimator with its parameters and entries that were checked."""
    check: Callable[[Any], None] = any_parameters
    """Raises where a parameter is one that no file may set."""

    @property
    def kind(self) -> Any:
        module, name = self.path.split(":")
        return getattr(import_module(module), name)

    @property
    def name(self) -> str:
        return self.path.split(":")[1]

    def entries(self, estimator: Any) -> Values:
        """What is stored of a fitted estimator, nothing of one that is not fitted."""
        held = vars(estimator)
        if not any(name.endswith("_") and not name.startswith("_") for name in held):
            return {}
        stored = {name: held[name] for name in (*self.parts, *self.optional) if name in held}
        return {**stored, **self.take(estimator)}

    def checked(self, entries: Values, at: str) -> Values:
        sizes: Sizes = {}
        parts = {**self.parts, **self.optional}
        return {name: parts[name].checked(entries[name], sizes, f"{at}.{name}") for name in parts if name in entries}
