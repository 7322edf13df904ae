"""TIcE (Bekker and Davis 2018): no subset is labeled more often than c, so the best subset bounds c from below."""

from __future__ import annotations

import heapq
from itertools import count
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from pue.core.data import PUData
from pue.core.folds import row_hash
from pue.priors.evidence import Evidence, Floats, as_evidence
from pue.priors.shares import held_inside, prior_from_unlabeled, unlabeled_from_frequency

FOLDS, ITERATIONS, MOST_SPLITS = 5, 2, 500
BINS = 4
"""Every feature, brought to [0, 1], is cut at 1/4, 1/2 and 3/4."""
CAUTION = 5
"""k of the split criterion max L / (T + k)."""
SMALLEST = 10
"""Smaller subsets bound nothing."""


class Counts(NamedTuple):
    total: Floats
    labeled: Floats


def tice(data: PUData | Evidence) -> float:
    """π̂ from the largest lower bound of c = P(labeled | positive) over subsets found by trees on the features.

    A tree grown on one fold proposes subsets, the other folds bound c in them; c is the mean over five folds. It
    assumes SCAR and a subset of positives that boxes can find. Under biased labeling c tends to the largest propensity.
    """
    rows = as_evidence(data)
    known = rows.rows(rows.labels >= 0)  # c is a share of labeled rows among labeled and unlabeled ones
    c = label_frequency(known)
    return held_inside(prior_from_unlabeled(unlabeled_from_frequency(c, known), rows), rows, "TIcE")


def lower_bound(labeled: Floats, total: Floats, c: float, delta: float) -> Floats:
    """L/T − √(c (1 − c) (1 − δ) / (δ T)): with probability 1 − δ no more than c (one-sided Chebyshev)."""
    total = np.maximum(total, 1e-12)
    return np.asarray(labeled / total - np.sqrt(c * (1 - c) * (1 - delta) / (delta * total)))


def confidence(total: float) -> float:
    """δ = max(0.025, 1 / (1 + 0.004 T))."""
    return max(0.025, 1 / (1 + 0.004 * total))


def label_frequency(rows: Evidence, *, most_splits: int = MOST_SPLITS) -> float:
    """c, the share of the positives at hand that is labeled; refined once, because the bound itself depends on c."""
    low, width = rows.z.min(axis=0), np.ptp(rows.z, axis=0)
    bins = np.minimum((rows.z - low) / np.where(width > 0, width, 1) * BINS, BINS - 1).astype(np.intp)
    # Equal rows share a fold, wherever they stand.
    fold = (row_hash(torch.from_numpy(rows.z)) % np.uint64(FOLDS)).astype(int)
    folds = np.unique(fold)
    c = 0.5
    for _ in range(ITERATIONS):
        bounds = [_best_bound(rows, bins, fold == k, c, most_splits) for k in folds]
        c = min(max(float(np.mean(bounds)), 1e-6), 1 - 1e-6)
    return c


def _best_bound(rows: Evidence, bins: NDArray[np.intp], grow: NDArray[np.bool_], c: float, most_splits: int) -> float:
    """The largest bound over the nodes of a tree grown on `grow`, taken on the other rows, best nodes first."""
    offset = BINS * np.arange(bins.shape[1])

    def counts(index: NDArray[np.intp]) -> Counts:
        """T and L of every bin of every feature, at once."""
        place = (bins[index] + offset).ravel()
        mass = np.repeat(rows.mass[index], bins.shape[1])
        labeled = mass * np.repeat(rows.labeled[index], bins.shape[1])
        by_bin = [np.bincount(place, weight, bins.shape[1] * BINS) for weight in (mass, labeled)]
        return Counts(*np.array(by_bin, dtype=np.float64).reshape(2, -1, BINS))

    growing, bounding = np.flatnonzero(grow), np.flatnonzero(~grow)
    if len(growing) == 0 or len(bounding) == 0:
        return rows.labeled_mass / float(rows.mass.sum())
    total = float(rows.mass[bounding].sum())
    delta = confidence(total)
    best = float((rows.mass * rows.labeled)[bounding].sum()) / total
    order = count()  # ties in the queue are broken by age, not by comparing arrays
    queue = [(0.0, next(order), growing, bounding, np.ones(bins.shape[1], dtype=bool))]
    for _ in range(most_splits):
        if not queue:
            break
        _, _, growing, bounding, free = heapq.heappop(queue)
        inside, outside = counts(growing), counts(bounding)
        free = free & (outside.labeled.max(axis=1) >= 1)
        gain = np.where(free, (inside.labeled / (inside.total + CAUTION)).max(axis=1), -1)
        feature = int(gain.argmax())
        if gain[feature] <= 0 or (outside.total[feature] > 0).sum() == 1:
            continue
        free = free & (np.arange(len(free)) != feature)
        bound = lower_bound(outside.labeled[feature], outside.total[feature], c, delta)
        best = max(best, float(np.where(outside.total[feature] >= SMALLEST, bound, 0).max()))
        promise = lower_bound(inside.labeled[feature], inside.total[feature], c, delta)
        # Fewer labels than this cannot beat the best bound, however pure the subset.
        needed = c * (1 - c) * (1 - delta) / (delta * max(1 - best, 1e-6) ** 2)
        for b in range(BINS):
            if outside.labeled[feature, b] > needed and inside.total[feature, b] > SMALLEST:
                child = (growing[bins[growing, feature] == b], bounding[bins[bounding, feature] == b])
                heapq.heappush(queue, (-float(promise[b]), next(order), *child, free))
    return best
