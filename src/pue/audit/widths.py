"""What n answers buy: the intervals that are to be expected if the model is right."""

from __future__ import annotations

from typing import Any

import numpy as np

from pue.audit.answers import asked_of
from pue.audit.plans import plan
from pue.audit.score_test import Ratio, interval

SIZES = (50, 100, 200, 500)
DRAWS = 40
Z = 1.96


def power(
    scores: Any, labels: Any = None, *, sizes: tuple[int, ...] = SIZES, draws: int = DRAWS, seed: int = 0, **asked: Any
) -> dict[int, dict[str, float]]:
    """Number of answers → quantity → expected half width of its 95 % interval, if the model is right.

    Answers are drawn from what the model expects, `draws` times; `asked` goes to `plan`. Sizes beyond the number of
    unlabeled rows are left out.

    >>> halves = power(np.linspace(0, 1, 2000), sizes=(50, 200), draws=5)
    >>> halves[200]["prior"] < halves[50]["prior"] < 0.2
    True
    """
    unlabeled = len(np.asarray(scores)) if labels is None else int((np.asarray(labels) == 0).sum())
    found = {}
    for n in sizes:
        if n <= unlabeled:
            found[n] = _half_widths(scores, labels, n, draws, seed, asked)
    return found


def _half_widths(scores: Any, labels: Any, n: int, draws: int, seed: int, asked: dict[str, Any]) -> dict[str, float]:
    drawn = plan(scores, labels, n=n, seed=seed, **asked)
    size = np.array([s.size for s in drawn.strata], float)
    share = np.array([s.expected for s in drawn.strata]) / size
    count = np.array([s.drawn for s in drawn.strata])
    yes = np.random.default_rng(seed).binomial(count, np.clip(share, 0, 1), (draws, len(count))).astype(float)
    quantities = asked_of(drawn, size)
    _, low, high = interval(Ratio.stacked(quantities.values()), size, count.astype(float), yes, Z)
    halves = (high - low).mean(-1) / 2
    return dict(zip(quantities, halves.tolist(), strict=True))
