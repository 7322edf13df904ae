"""No number without its spread and n."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """A mean, its sample standard deviation (ddof = 1; None for a single value) and the number of values."""

    mean: float
    sd: float | None
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """The spread of some values, or None where there are none.

        >>> Spread.of([1.0, 2.0, 3.0]), Spread.of([4.0]), Spread.of([])
        (Spread(mean=2.0, sd=1.0, n=3), Spread(mean=4.0, sd=None, n=1), None)
        """
        n = len(values)
        if n == 0:
            return None
        mean = math.fsum(values) / n
        sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1)) if n > 1 else None
        return cls(mean, sd, n)

    def text(self, form: str = ".2f") -> str:
        """
        >>> Spread(92.283, 1.319, 6).text(), Spread(92.283, None, 1).text()
        ('92.28 ± 1.32', '92.28')
        """
        mean = f"{self.mean:{form}}"
        return mean if self.sd is None else f"{mean} ± {self.sd:{form.removeprefix('+')}}"
