"""Which columns of a table mean what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from pue.app.sources.problems import require_column
from pue.app.sources.vectors import parts_of
from pue.core.data import require_propensity
from pue.errors import InvalidInput


@dataclass(frozen=True)
class Roles:
    """Which columns mean what; every other one is a feature."""

    label: str
    id: str | None = None
    ignore: tuple[str, ...] = ()
    propensity: str | None = None
    """Holds known e(x) of the labeled rows."""
    truth: str | None = None
    """Holds true classes; never a feature."""
    keep: tuple[str, ...] = ()
    """Features whatever screening says of them."""
    positive: str | None = None
    """The word that marks labeled positives, if labels are words."""
    nodata: tuple[float, ...] = ()
    """Numbers that stand for a missing value, in any column of numbers."""

    def __post_init__(self) -> None:
        if any(value != value for value in self.nodata):
            raise InvalidInput("NaN is a missing value already: --nodata takes a number such as -9999.")

    def within(self, names: Sequence[str]) -> Roles:
        """The same roles where a column of vectors that is ignored or kept stands for all of its places."""
        ignore, keep = (
            tuple(part for name in given for part in parts_of(name, names)) for given in (self.ignore, self.keep)
        )
        return replace(self, ignore=ignore, keep=keep)

    @property
    def special(self) -> list[str]:
        named = [self.label, self.id, self.propensity, self.truth]
        return [*(name for name in named if name is not None), *self.ignore]

    def check(self, names: Sequence[str]) -> None:
        """Each must be there, and none may play two parts."""
        for name in (*self.special, *self.keep):
            require_column(name, names)
        if both := set(self.keep) & set(self.special):
            raise InvalidInput(f"column {min(both)!r} cannot be kept as a feature: it is named as something else.")
        twice = {name for name in self.special if self.special.count(name) > 1}
        if twice:
            raise InvalidInput(f"column {min(twice)!r} is named twice: as label, id, truth, propensity or ignored.")

    def require_propensities(self, values: NDArray[np.float64]) -> None:
        """What the column holds for labeled rows must be probabilities."""
        try:
            require_propensity(torch.from_numpy(values), len(values))
        except InvalidInput as error:
            raise InvalidInput(f"column {self.propensity!r}: {error}") from error

    def features(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name not in self.special]


def propensities(column: pd.Series) -> NDArray[np.float64]:
    """Known e(x), NaN where a cell is empty."""
    try:
        return np.array(pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"column {column.name!r} must hold propensities, numbers in (0, 1]: {error}") from error
