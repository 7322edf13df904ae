"""Frames as they come: words, dates and gaps are encoded as `pue fit` encodes them, numbers pass as they are.

pandas is not imported here: whoever passes a frame has imported it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pue.errors import InvalidInput, MissingExtra, require


class FrameEncoder(ABC):
    """What turns the columns of a frame into numbers, each row by itself."""

    @property
    @abstractmethod
    def feature_names(self) -> list[str]: ...

    @abstractmethod
    def transform(self, frame: Any) -> NDArray[np.float32]:
        """Features of each row, without NaN."""


def is_frame(X: Any) -> bool:
    return all(hasattr(X, name) for name in ("columns", "dtypes", "iloc"))


def not_numbers(X: Any, *, missing: bool) -> tuple[str, str] | None:
    """The first column of a frame that a classifier cannot take as it is, and what it holds; None for what is no frame,
    and where all columns are numbers. Gaps count unless values may be `missing`."""
    if not is_frame(X):
        return None
    for name, dtype in zip(X.columns, X.dtypes, strict=True):
        if getattr(dtype, "kind", "O") not in "biuf":
            return str(name), f"{dtype} values"
    gaps = [] if missing else [str(name) for name in X.columns if X[name].isna().any()]
    return (gaps[0], "gaps") if gaps else None


def fit_encoder(frame: Any, why: tuple[str, str], seed: int) -> FrameEncoder:
    """The encoder of `pue fit`; where its libraries are missing, an error that names the column and the remedy."""
    try:
        require("app", "pandas", "skrub")
    except MissingExtra as error:
        raise InvalidInput(
            f"column {why[0]!r} holds {why[1]}, and only numbers can be learnt from. {error}, and it is encoded as pue "
            f"fit does it; or encode it yourself, for example with pandas.get_dummies, or drop it."
        ) from error
    from pue.estimators.vectorizer.vectorize import fit_vectorizer

    return fit_vectorizer(frame.rename(columns=str), seed=seed)


def encode(encoder: FrameEncoder, frame: Any) -> NDArray[np.float32]:
    if not is_frame(frame):
        raise InvalidInput("this classifier was fitted on a frame whose columns it encodes: pass a pandas frame again.")
    return encoder.transform(frame.rename(columns=str))
