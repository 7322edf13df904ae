"""Slow twins of the estimators of the prior: plain loops over Python floats, each with its formula."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import minimize

Numbers = Sequence[float]


def best_bin(score: Numbers, labels: Sequence[int], mass: Numbers, delta: float = 0.1, gamma: float = 0.01) -> float:
    """Garg et al. 2021: over *all* thresholds t, the smallest upper bound of F̄_U(t) / F̄_P(t)."""
    n_p = math.fsum(m for m, s in zip(mass, labels, strict=True) if s == 1)
    n_u = math.fsum(m for m, s in zip(mass, labels, strict=True) if s == 0)
    slack = math.sqrt(math.log(4 / delta) / (2 * n_u)) + math.sqrt(math.log(4 / delta) / (2 * n_p))
    best, chosen = math.inf, math.nan
    for t in sorted(set(score)):
        above = [(m, s) for v, m, s in zip(score, mass, labels, strict=True) if v >= t]
        p = math.fsum(m for m, s in above if s == 1) / n_p
        u = math.fsum(m for m, s in above if s == 0) / n_u
        if p > 0 and u / p + (1 + gamma) * slack / p < best - 1e-12:
            best, chosen = u / p + (1 + gamma) * slack / p, u / p
    return chosen


def tice_bound(labeled: float, total: float, c: float, delta: float) -> float:
    """Bekker and Davis 2018: L/T − √(c (1 − c) (1 − δ) / (δ T))."""
    return labeled / total - math.sqrt(c * (1 - c) * (1 - delta) / (delta * total))


def tice_tree(
    bins: Sequence[Sequence[int]], labels: Sequence[int], grow: Sequence[bool], c: float, bins_each: int = 4
) -> float:
    """The largest bound in the nodes of the tree, by recursion: without a limit on splits their order is no matter."""
    outside = [i for i, g in enumerate(grow) if not g]
    delta = max(0.025, 1 / (1 + 0.004 * len(outside)))
    best = sum(labels[i] for i in outside) / len(outside)

    def split(inside: list[int], outside: list[int], free: list[int]) -> None:
        nonlocal best
        kept, gains = [], []
        for feature in free:
            parts = [[i for i in outside if bins[i][feature] == b] for b in range(bins_each)]
            if max(sum(labels[i] for i in part) for part in parts) < 1:
                continue
            grown = [[i for i in inside if bins[i][feature] == b] for b in range(bins_each)]
            kept.append(feature)
            gains.append(max(sum(labels[i] for i in part) / (len(part) + 5) for part in grown))
        if not kept or max(gains) <= 0:
            return
        feature = kept[gains.index(max(gains))]
        parts = [[i for i in outside if bins[i][feature] == b] for b in range(bins_each)]
        if sum(1 for part in parts if part) == 1:
            return
        for part in parts:
            if len(part) >= 10:
                best = max(best, tice_bound(sum(labels[i] for i in part), len(part), c, delta))
        for b, part in enumerate(parts):
            grown = [i for i in inside if bins[i][feature] == b]
            if sum(labels[i] for i in part) > 0 and len(grown) > 10:
                split(grown, part, [f for f in kept if f != feature])

    split([i for i, g in enumerate(grow) if g], outside, list(range(len(bins[0]))))
    return best


def dedpul_fixed_point(ratio: Numbers, tol: float = 1e-5) -> float:
    """Ivanov 2020: α ← mean of the posteriors min(1, α r)."""
    alpha, last = 1.0, math.inf
    while last - alpha >= tol:
        last = alpha
        alpha = math.fsum(min(1.0, last * r) for r in ratio) / len(ratio)
    return alpha


def kernel_density(points: Numbers, mass: Numbers, at: float, bandwidth: float) -> float:
    """A sum of normal densities whose width is `bandwidth` standard deviations of the points."""
    total = math.fsum(mass)
    center = math.fsum(m * x for m, x in zip(mass, points, strict=True)) / total
    spread = math.sqrt(math.fsum(m * (x - center) ** 2 for m, x in zip(mass, points, strict=True)) / total)
    h = bandwidth * spread
    bumps = [m / total * math.exp(-(((at - x) / h) ** 2) / 2) for m, x in zip(mass, points, strict=True)]
    return math.fsum(bumps) / (h * math.sqrt(2 * math.pi))


def onto_simplex(v: Numbers) -> list[float]:
    """max(v − τ, 0) with the τ, found by bisection, that makes the sum one."""
    low, high = min(v) - 1, max(v)
    for _ in range(200):
        tau = (low + high) / 2
        low, high = (tau, high) if math.fsum(max(x - tau, 0) for x in v) > 1 else (low, tau)
    return [max(x - tau, 0) for x in v]


def nearest_distribution(kernel: np.ndarray, target: np.ndarray) -> float:
    """min over v ≥ 0 with sum 1 of (target − v)ᵀ K (target − v), by SciPy's general solver."""
    n = len(target)
    objective: Callable[[np.ndarray], float] = lambda v: float((target - v) @ kernel @ (target - v))  # noqa: E731
    found = minimize(
        objective,
        np.full(n, 1 / n),
        jac=lambda v: -2 * kernel @ (target - v),
        bounds=[(0, 1)] * n,
        constraints={"type": "eq", "fun": lambda v: v.sum() - 1, "jac": lambda v: np.ones(n)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 2000},
    )
    return float(found.fun)


def prior(y_unlabeled: Sequence[int], n_labeled: int, scenario: str) -> float:
    """π by counting: over U in case-control, over P and U together in a single sample."""
    if scenario == "case_control":
        return sum(y_unlabeled) / len(y_unlabeled)
    return (n_labeled + sum(y_unlabeled)) / (n_labeled + len(y_unlabeled))
