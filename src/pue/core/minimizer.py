"""What a risk wants: what the population minimiser of uPU, nnPU, PUbN and Dist-PU does with each class.

The classes do not overlap, so that a classifier can do with each what it likes. Class k has a share q_k of the
population and a share m_k of the labels (the mix); a risk that takes the labels for unbiased gives it the weight π m_k
as positive and q_k − π m_k as negative. With biased labels these are wrong, and each risk is wrong in its own way:

- **uPU** looks at each class alone: positive where π m_k > q_k − π m_k. Classes with few labels are negative.
- **nnPU** takes only R⁻ ≥ 0 as real. A class with too many labels, q_k < π m_k, makes R⁻ negative, and other classes
  may be called positive for nothing until R⁻ is zero again: those with the most labels per cost first. (Training
  follows another direction than this risk's while R⁻ < 0, and with a bounded loss it can stop on the way.)
- **PUbN** weighs by σ_k, the first step's chance that class k gets labels. Under nnPU with an unbounded loss it is one
  for all classes with labels as soon as one class has too many of them, else π m_k / q_k.
- **Dist-PU** calls a share π of the population positive, the classes with the most labels per row first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pue.errors import InvalidInput, lookup

Floats = NDArray[np.float64]
CLOSE = 0.1
"""A class whose two weights differ by less than this part of its share is as good as a draw: its labels, drawn by
chance, decide."""


@dataclass(frozen=True)
class Minimizer:
    """What a risk does at its minimum."""

    called: tuple[float, ...]
    """Of each class, the share that is called positive."""
    draws: tuple[int, ...]
    """Classes that are as good as a draw."""
    accuracy: float
    lowest: float
    """The accuracy if all draws go wrong."""
    highest: float


def population_minimizer(
    risk: str,
    *,
    shares: Sequence[float],
    mix: Sequence[float],
    positive: Sequence[bool] | None = None,
    prior: float | None = None,
) -> Minimizer:
    """What the minimiser of "upu", "nnpu", "pubn" or "distpu" does with classes of these `shares` of the population, if
    a share `mix` of the labels goes to each (zero to negatives). Without `positive`, classes with labels are the
    positive ones; without `prior`, π is their share.

    >>> even, odd = [0.1] * 5, [0.1] * 5  # ten digits, the paper's labels
    >>> upu = population_minimizer("upu", shares=even + odd, mix=[0.65, 0.15, 0.10, 0.07, 0.03] + [0] * 5)
    >>> upu.called[:5], upu.draws, round(upu.lowest, 2), round(upu.highest, 2)
    ((1.0, 1.0, 0.5, 0.0, 0.0), (2,), 0.7, 0.8)
    >>> population_minimizer("nnpu", shares=even + odd, mix=[0.65, 0.15, 0.10, 0.07, 0.03] + [0] * 5).accuracy
    1.0
    """
    q, m = (np.asarray(values, dtype=np.float64) for values in (shares, mix))
    truth = m > 0 if positive is None else np.asarray(positive, dtype=bool)
    if q.ndim != 1 or q.shape != m.shape or q.shape != truth.shape:
        raise InvalidInput("shares, mix and positive must have one entry for each class.")
    if (q <= 0).any() or (m < 0).any() or not np.isclose(q.sum(), 1) or not np.isclose(m.sum(), 1):
        raise InvalidInput("shares must be above 0, mix not below, and each of the two must sum to 1.")
    pi = float(q[truth].sum()) if prior is None else prior
    if not 0 < pi < 1:
        raise InvalidInput(f"prior must lie in (0, 1); got {pi}.")
    called, close = lookup("risk", risk, WANTS)(q, m, pi)
    right = np.where(truth, called, 1 - called)
    ends = [float((q * np.where(close, end, right)).sum()) for end in (0.0, 1.0)]
    return Minimizer(tuple(called.tolist()), tuple(np.flatnonzero(close).tolist()), float((q * right).sum()), *ends)


def _by_sign(up: Floats, down: Floats, q: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Positive where the weight as positive is larger; half of a class where both are the same."""
    called = np.where(np.isclose(up, down, rtol=1e-9, atol=1e-12), 0.5, (up > down).astype(np.float64))
    return called, (np.abs(up - down) < CLOSE * q) & (up > 0)


def _upu(q: Floats, m: Floats, pi: float) -> tuple[Floats, NDArray[np.bool_]]:
    return _by_sign(pi * m, q - pi * m, q)


def _nnpu(q: Floats, m: Floats, pi: float) -> tuple[Floats, NDArray[np.bool_]]:
    """Least R⁺ + max(0, R⁻) with R⁺ = Σ π m_k (1 − s_k), R⁻ = Σ (q_k − π m_k) s_k: what R⁻ < 0 pays for is filled in
    the order of labels per cost, and beyond that each class is looked at alone."""
    up, down = pi * m, q - pi * m
    called, close = _by_sign(up, down, q)
    called = np.where(down <= 0, 1.0, np.where(up > 0, called, 0.0))
    paid = -float(down[down <= 0].sum()) - float((down * called)[down > 0].sum())
    for k in sorted(np.flatnonzero((down > 0) & (up > 0) & (called < 1)), key=lambda k: down[k] / up[k]):
        if paid <= 0:
            break
        more = min(1 - called[k], paid / down[k])
        called[k] += more
        paid -= more * down[k]
    return called, close & (called < 1) & (called > 0)


def _pubn(q: Floats, m: Floats, pi: float) -> tuple[Floats, NDArray[np.bool_]]:
    """σ of the first step, then π m_k against π m_k (1 − σ_k) / σ_k; classes without labels have σ = 0."""
    too_many = bool((pi * m > q * (1 + 1e-9)).any())
    sigma = np.where(m > 0, 1.0, 0.0) if too_many else np.minimum(1.0, pi * m / q)
    odds = np.divide(1 - sigma, sigma, out=np.zeros_like(q), where=sigma > 0)
    return _by_sign(pi * m, np.where(sigma > 0, pi * m * odds, q * (1 - sigma)), q)


def _distpu(q: Floats, m: Floats, pi: float) -> tuple[Floats, NDArray[np.bool_]]:
    """Least Σ m_k (1 − s_k) + |Σ q_k s_k − π| / (2π): filled up to π, and beyond where m_k / q_k > 1 / (2π)."""
    called, left = np.zeros_like(q), pi
    for k in np.argsort(-m / q, kind="stable"):
        beyond = m[k] / q[k] > 1 / (2 * pi)
        called[k] = 1.0 if beyond else min(1.0, max(0.0, left) / q[k])
        left -= called[k] * q[k]
    called[np.abs(called) < 1e-9] = 0.0
    return called, np.zeros(len(q), dtype=bool)


WANTS: dict[str, Callable[[Floats, Floats, float], tuple[Floats, NDArray[np.bool_]]]] = {
    "distpu": _distpu,
    "nnpu": _nnpu,
    "pubn": _pubn,
    "upu": _upu,
}
