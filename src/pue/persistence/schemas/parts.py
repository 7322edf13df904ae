"""What a fitted attribute may be: numbers of a type, a shape and a range, checked before an estimator is built."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pue.errors import ModelError

FLOATS = ("float32", "float64")
WHOLE = ("int32", "int64", "uint8", "uint32", "uint64")
NUMBERS = (*FLOATS, *WHOLE, "int8", "int16", "uint16", "bool")
ANY = math.inf
TINY = float(np.nextafter(0.0, 1.0))
Sizes = dict[str, int]
"""How long the sides are that have a letter; arrays of one estimator that share a letter are of one length."""


class Part(Protocol):
    def checked(self, value: Any, sizes: Sizes, at: str) -> Any:
        """The value as the estimator wants it, or a `ModelError`."""


@dataclass(frozen=True)
class Numbers:
    """An array of one of these types, one of these shapes, and numbers in a range; NaN is in no range.

    >>> sizes = {"p": 2}
    >>> Numbers(("k", "p")).checked(np.ones((1, 2)), sizes, "coef_").shape, sizes
    ((1, 2), {'p': 2, 'k': 1})
    """

    shape: tuple[str | int, ...] = ("p",)
    low: float = -ANY
    high: float = ANY
    types: tuple[str, ...] = FLOATS
    infinite: bool = False
    missing: bool = False
    """Whether NaN may be among them."""
    optional: bool = False
    """Whether None may stand for the array."""
    scalar: bool = False
    """Whether one number may stand for the array."""

    def checked(self, value: Any, sizes: Sizes, at: str) -> Any:
        if value is None and self.optional:
            return None
        array = np.asarray(value)
        if array.dtype.name not in self.types or not isinstance(value, np.ndarray | np.generic | int | float):
            raise _damaged(at, f"should hold numbers of type {' or '.join(self.types)}")
        if not (self.scalar and array.ndim == 0):
            require_shape(array, self.shape, sizes, at)
        require_range(array, self.low, self.high, at, infinite=self.infinite, missing=self.missing)
        return value if array.ndim == 0 else array


@dataclass(frozen=True)
class Count:
    """A whole number; with a letter it is the length of sides."""

    low: int = 0
    high: int = 2**53
    letter: str | None = None

    def checked(self, value: Any, sizes: Sizes, at: str) -> Any:
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        if not whole or not self.low <= int(value) <= self.high:
            raise _damaged(at, f"should be a whole number between {self.low} and {self.high}")
        if self.letter is not None and sizes.setdefault(self.letter, int(value)) != int(value):
            raise _damaged(at, f"should be {sizes[self.letter]}")
        return value


@dataclass(frozen=True)
class Words:
    """One of these words."""

    words: tuple[str | bool, ...]

    def checked(self, value: Any, sizes: Sizes, at: str) -> Any:
        if not any(type(value) is type(word) and value == word for word in self.words):
            raise _damaged(at, f"should be one of {', '.join(map(str, self.words))}")
        return value


@dataclass(frozen=True)
class Names:
    """Strings, as an array of objects."""

    letter: str = "p"

    def checked(self, value: Any, sizes: Sizes, at: str) -> Any:
        if not isinstance(value, np.ndarray) or value.dtype != object or not all(type(name) is str for name in value):
            raise _damaged(at, "should hold names")
        require_shape(value, (self.letter,), sizes, at)
        return value


@dataclass(frozen=True)
class Classes:
    """The classes, in increasing order and at least two."""

    letter: str = "k"

    def checked(self, value: Any, sizes: Sizes, at: str) -> Any:
        Numbers((self.letter,), types=NUMBERS).checked(value, sizes, at)
        if len(value) < 2 or not (value[1:] > value[:-1]).all():
            raise _damaged(at, "should hold two classes or more, in order")
        return value


def require_shape(array: NDArray[Any], shape: tuple[str | int, ...], sizes: Sizes, at: str) -> None:
    """The sides as they should be; a letter that is not known yet is learned."""
    if array.ndim != len(shape):
        raise _damaged(at, f"should have {len(shape)} sides; it has {array.ndim}")
    for side, found in zip(shape, array.shape, strict=True):
        wanted = sizes.setdefault(side, found) if isinstance(side, str) else side
        if wanted != found:
            raise _damaged(at, f"should be {wanted} long; it is {found}")


def require_range(
    array: NDArray[Any], low: float, high: float, at: str, *, infinite: bool = False, missing: bool = False
) -> None:
    known = array[~np.isnan(array)] if missing and array.dtype.kind == "f" else array
    inside = (known >= low) & (known <= high)  # false for NaN
    if not (inside.all() and (infinite or np.isfinite(known).all())):
        raise _damaged(at, f"should lie between {low} and {high}, and be finite")


def require(holds: bool | np.bool_, at: str, what: str) -> None:
    if not holds:
        raise _damaged(at, what)


def _damaged(at: str, what: str) -> ModelError:
    return ModelError(f"{at} {what}. The model is damaged; fit it again.")
