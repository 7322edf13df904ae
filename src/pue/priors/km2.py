"""KM2 (Ramaswamy et al. 2016): how much of P can be taken out of U before the rest is no distribution any more?

Distributions are mean embeddings under a Gaussian kernel. With at most `max_rows` rows a side there is one kernel
matrix of (2 max_rows)² floats, whatever the size of the data: 64 MB by default.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from pue.core.data import PUData
from pue.core.folds import row_hash
from pue.priors.evidence import Evidence, Floats, as_evidence
from pue.priors.shares import held_inside, prior_from_unlabeled

Kernel = NDArray[np.float32]
WIDTHS = np.logspace(-1, 1, 5)
"""Kernel widths tried, in medians of the distances."""
LARGEST, EPSILON = 8.0, 0.04
"""λ is sought in [1, 8], to this accuracy; so α is at most 7/8."""


def km2(data: PUData | Evidence, *, max_rows: int = 2000) -> float:
    """α = (λ − 1) / λ at the λ where the slope of d passes 1/√min(n_U, n_P).

    d(λ) is the distance from λ F_U + (1 − λ) F_P to the nearest distribution: zero while what is left of U after P is
    taken out is one, rising from there on. It assumes SCAR. Under biased labeling it tends to π·ē / max e.
    """
    rows = as_evidence(data)
    z, u, p = _sample(rows, max_rows)
    alpha = mixture_proportion(z, u, p, min(int((u > 0).sum()), int((p > 0).sum())))
    return held_inside(prior_from_unlabeled(alpha, rows), rows, "KM2")


def mixture_proportion(z: Floats, u: Floats, p: Floats, n: int) -> float:
    """α from points with weights `u` (as a sample of U) and `p` (of P), each with sum one."""
    kernel, distance = best_kernel(z, u - p)
    threshold = 1 / math.sqrt(n)
    if threshold > 0.9 * distance:  # too few rows for KM2's threshold: KM1's, which looks at the slope at the start
        start = math.sqrt(nearest(kernel, 1.05 * u - 0.05 * p, u)[1]) / 0.05
        threshold = 0.8 * start + 0.2 * distance
    low, high, rest = 1.0, LARGEST, u
    while high - low > EPSILON:
        middle = (low + high) / 2
        rest, slope = slope_at(kernel, middle, u, p, rest)
        low, high = (low, middle) if slope > threshold else (middle, high)
    middle = (low + high) / 2
    return (middle - 1) / middle


def slope_at(kernel: Kernel, lam: float, u: Floats, p: Floats, start: Floats) -> tuple[Floats, float]:
    """The distribution v nearest to u_λ = λ F_U + (1 − λ) F_P, and d'(λ) = ⟨u_λ − v, F_U − F_P⟩ / d(λ).

    As v is the nearest, its own change adds nothing to the slope.
    """
    target = lam * u + (1 - lam) * p
    v, squared = nearest(kernel, target, start)
    if squared <= 0:
        return v, 0.0
    return v, float((target - v) @ _times(kernel, u - p)) / math.sqrt(squared)


def best_kernel(z: Floats, difference: Floats) -> tuple[Kernel, float]:
    """The Gaussian kernel that tells U from P best, and the distance of the two."""
    norms = (z * z).sum(axis=1)
    few = slice(None, None, max(1, len(z) // 1000))  # the median of a million distances is enough
    median = math.sqrt(max(float(np.median(_squared(z[few], z[few], norms[few], norms[few]))), 1e-12))
    widths = WIDTHS * median
    apart = np.zeros(len(widths))
    for rows in np.array_split(np.arange(len(z)), max(1, len(z) // 256)):  # never two full matrices at once
        block = _squared(z[rows], z, norms[rows], norms)
        for i, width in enumerate(widths):
            apart[i] += difference[rows] @ (np.exp(block / (-2 * width**2)) @ difference)
    best = int(apart.argmax())
    kernel = np.empty((len(z), len(z)), dtype=np.float32)
    for rows in np.array_split(np.arange(len(z)), max(1, len(z) // 256)):
        block = _squared(z[rows], z, norms[rows], norms)
        kernel[rows] = np.exp(block / (-2 * widths[best] ** 2))
    return kernel, math.sqrt(max(float(apart[best]), 0.0))


def nearest(kernel: Kernel, target: Floats, start: Floats, *, steps: int = 200) -> tuple[Floats, float]:
    """min over distributions v of (target − v)ᵀ K (target − v), by accelerated projected gradients.

    Slopes are right to about a percent after 200 steps, long before v has settled: many v are nearly as near.
    """
    curvature = float(kernel.sum(axis=1).max())  # at least the largest eigenvalue, as no entry is negative
    v = momentum = start
    t = 1.0
    for step in range(steps):
        last, v = v, onto_simplex(momentum - _times(kernel, momentum - target) / curvature)
        if step % 10 == 9:
            gradient = _times(kernel, v - target)
            gap = float(v @ gradient) - float(gradient.min())  # half of what v may still be off by
            if gap <= 1e-4 * float((v - target) @ gradient):
                break
        if float((momentum - v) @ (v - last)) > 0:  # overshot: start the acceleration anew
            t = 1.0
        t, before = (1 + math.sqrt(1 + 4 * t * t)) / 2, t
        momentum = v + (before - 1) / t * (v - last)
    return v, max(float((v - target) @ _times(kernel, v - target)), 0.0)


def _times(kernel: Kernel, v: Floats) -> Floats:
    return (kernel @ v.astype(np.float32)).astype(np.float64)


def onto_simplex(v: Floats) -> Floats:
    """The nearest point with non-negative entries and sum one (Held et al. 1974).

    >>> onto_simplex(np.array([0.5, 0.9, -1.0]))
    array([0.3, 0.7, 0. ])
    """
    falling = np.sort(v)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(v) + 1)
    return np.asarray(np.maximum(v - excess[np.flatnonzero(falling > excess)[-1]], 0))


def _squared(a: Floats, b: Floats, norms_a: Floats, norms_b: Floats) -> Floats:
    return np.maximum(norms_a[:, None] + norms_b[None, :] - 2 * (a @ b.T), 0)


def _sample(rows: Evidence, max_rows: int) -> tuple[Floats, Floats, Floats]:
    """Points and their weights as samples of U and of P; of many rows those with the smallest hash."""
    order = np.argsort(row_hash(torch.from_numpy(rows.z)), kind="stable")
    chosen_u, chosen_p = (order[mask[order]][:max_rows] for mask in (rows.unlabeled, rows.labeled))
    index = np.concatenate([chosen_u, chosen_p])
    side = np.arange(len(index)) < len(chosen_u)
    u, p = np.where(side, rows.mass[index], 0.0), np.where(side, 0.0, rows.mass[index])
    return rows.z[index], u / u.sum(), p / p.sum()
