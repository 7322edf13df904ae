"""Learning-rate schedules: pure functions of where the run is, so a resumed run needs no scheduler state."""

from __future__ import annotations

import math
from collections.abc import Callable

Schedule = Callable[[int, int, float], float]
"""(epoch, number of epochs, share of all steps done) → factor on the learning rate."""


def constant(epoch: int, epochs: int, progress: float) -> float:
    """The same rate throughout."""
    return 1.0


def cosine(epoch: int, epochs: int, progress: float) -> float:
    """Half a cosine from 1 towards 0, changed once an epoch, as the paper's recipe does.

    >>> [round(cosine(epoch, 4, 0.0), 3) for epoch in range(4)]
    [1.0, 0.854, 0.5, 0.146]
    """
    return (1 + math.cos(math.pi * epoch / epochs)) / 2


def cosine_to_70(epoch: int, epochs: int, progress: float) -> float:
    """Half a cosine from 1 towards 0.7: the second stage of Dist-PU's authors.

    >>> round(cosine_to_70(2, 4, 0.0), 3)
    0.85
    """
    return 0.7 + 0.3 * cosine(epoch, epochs, progress)


def one_cycle(epoch: int, epochs: int, progress: float) -> float:
    """Up from 1/25 over the first 30 % of the steps, then down to 10⁻⁴ of that (Smith and Topin 2018).

    >>> [round(one_cycle(0, 1, progress), 3) for progress in (0.0, 0.3, 0.65, 1.0)]
    [0.04, 1.0, 0.5, 0.0]
    """
    start, end, peak_at = 1 / 25, 1 / 25e4, 0.3
    if progress < peak_at:
        return start + (1 - start) * (1 - math.cos(math.pi * progress / peak_at)) / 2
    return end + (1 - end) * (1 + math.cos(math.pi * (progress - peak_at) / (1 - peak_at))) / 2


SCHEDULES: dict[str, Schedule] = {
    "constant": constant,
    "cosine": cosine,
    "cosine_to_70": cosine_to_70,
    "one_cycle": one_cycle,
}
