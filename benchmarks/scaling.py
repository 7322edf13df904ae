"""(d) Time of one whole `PUClassifier(prior=…, epochs=1).fit`, nothing subtracted, as the number of rows grows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import numpy as np
from measure import Result, Work, cpu_seconds
from problems import PRIOR, pu_labels, table

from pue import PUClassifier

COLUMNS = 50


def results(quick: bool) -> Iterator[Result]:
    sizes, rounds = ((1_000, 10_000, 100_000), 2) if quick else ((10_000, 100_000, 1_000_000), 3)
    X = table(sizes[-1], COLUMNS).numpy()
    for backbone in ("linear", "tabular"):
        sides = [partial(fit, backbone, X[:n]) for n in sizes]
        cpu_seconds(sides[0])  # the first does not count
        # One round measures every size: a slow spell of the machine touches all of them.
        seconds = np.array([[cpu_seconds(side) for side in sides] for _ in range(rounds)])
        yield from _summary(backbone, sizes, seconds)


def fit(backbone: str, X: np.ndarray) -> Work:
    labels = pu_labels(len(X), len(X) // 10).numpy()
    classifier = PUClassifier(prior=PRIOR, epochs=1, backbone=backbone, progress=False, random_state=0)
    return lambda: classifier.fit(X, labels)


def _summary(backbone: str, sizes: tuple[int, ...], seconds: np.ndarray) -> Iterator[Result]:
    fastest = seconds.min(axis=0)
    for (i, small), (j, large) in pairwise(enumerate(sizes)):
        ratios = (seconds[:, j] / seconds[:, i]) / (large / small)
        detail = f"fastest: {fastest[i]:.3f} s for {small:,}, {fastest[j]:.3f} s for {large:,}"
        yield Result("scaling", f"{backbone}, time a row at {large:,} / at {small:,}", tuple(ratios), detail)
    slopes = np.polyfit(np.log(sizes), np.log(seconds).T, 1)[0]
    yield Result(
        "scaling", f"{backbone}, exponent of t ∝ nᵏ", tuple(slopes), "least squares of log t on log n", "about 1"
    )
