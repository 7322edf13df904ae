"""A prior for biased labels (Jain et al. 2020): labeling may differ between clusters, but not inside one."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import sklearn
import torch
from numpy.typing import NDArray
from scipy.special import expit, logit

from pue.core.data import PUData
from pue.core.folds import row_hash
from pue.priors.bbe import best_bin
from pue.priors.evidence import Evidence, Floats, as_evidence
from pue.priors.shares import held_inside, prior_from_unlabeled

SCORE_WEIGHT = 0.5
"""Spread of the score beside that of all features together, when rows are clustered."""
MOST_CLUSTERS = 25
CLUSTERINGS = 5
NEIGHBORS, ROUNDS = 10, 3
MOST_ANCHORS = 25_000
"""Neighbours are looked for among so many rows at most: time grows with rows × anchors."""


def clustered(data: PUData | Evidence) -> float:
    """α = Σ_c (m_{U,c} / m_U) α_c, with best bins inside clusters of the labeled rows.

    The clusters see the features and the score, so that labeled rows of one kind and one rate of labels come together;
    every unlabeled row joins its nearest cluster, and the positives among those are told from the rest by the score.
    There are √n_P / 2 clusters, at most 25. Because one clustering may be unlucky, the median over five is taken.
    """
    return from_denoised(denoised(as_evidence(data)))


def from_denoised(rows: Evidence) -> float:
    """The estimate from scores that are already smooth."""
    points, score = _points(rows)
    alphas = [_within(rows, score, _assign(rows, points, seed)) for seed in range(CLUSTERINGS)]
    return held_inside(prior_from_unlabeled(float(np.median(alphas)), rows), rows, "the clustered")


def _points(rows: Evidence) -> tuple[Floats, Floats]:
    """What is clustered: the features, together of variance d, and the score, of variance d / 4."""
    score = logit(np.clip(rows.q, 1e-9, 1 - 1e-9))
    features = rows.z - rows.z.mean(axis=0)
    features /= max(float(features.std()), 1e-12)
    spread = (score - score.mean()) / max(float(score.std()), 1e-12)
    return np.column_stack([features, SCORE_WEIGHT * math.sqrt(features.shape[1]) * spread]), score


def _assign(rows: Evidence, points: Floats, seed: int) -> NDArray[np.int32]:
    labeled = np.flatnonzero(rows.labeled)
    # In the order of their hash, so that the start does not depend on the order of the table; of the features as they
    # came, for the last digit of a mean depends on the order in which it was summed up.
    hashes = row_hash(torch.from_numpy(np.ascontiguousarray(rows.z[labeled])))
    ordered = labeled[np.argsort(hashes, kind="stable")]
    k = min(MOST_CLUSTERS, max(1, round(math.sqrt(rows.labeled_mass) / 2)), len(np.unique(hashes)))
    means = sklearn.cluster.KMeans(k, n_init=1, random_state=seed)
    return np.asarray(means.fit(points[ordered], sample_weight=rows.mass[ordered]).predict(points))


def _within(rows: Evidence, score: Floats, cluster: NDArray[np.int32]) -> float:
    positives = 0.0
    for c in np.unique(cluster[rows.labeled]):
        here = cluster == c
        inside = rows.rows(here)
        if inside.labeled_mass > 0 and inside.unlabeled_mass > 0:
            positives += inside.unlabeled_mass * min(1.0, best_bin(inside, score[here]))
    return positives / rows.unlabeled_mass


def denoised(rows: Evidence) -> Evidence:
    """The evidence with logit q averaged over the nearest rows *of the same fold*, and over theirs.

    A network that has seen a few dozen labels of some kind of positive is unsure about each single row of that kind,
    but rows that look alike are of one kind: averaged over neighbours, its doubts mostly cancel. Rows of other folds
    were scored by models that have seen this row and its label; their scores would give it away.
    """
    score = logit(np.clip(rows.q, 1e-9, 1 - 1e-9))
    for fold in np.unique(rows.fold):
        inside = np.flatnonzero(rows.fold == fold)
        score[inside] = _averaged(score[inside], rows.z[inside])
    return replace(rows, q=expit(score))


def _averaged(score: Floats, z: Floats) -> Floats:
    # Anchors are chosen by content, so that the order of the rows does not matter.
    anchors = np.argsort(row_hash(torch.from_numpy(z)), kind="stable")[:MOST_ANCHORS]
    points = z.astype(np.float32)
    search = sklearn.neighbors.NearestNeighbors(n_neighbors=min(NEIGHBORS, len(anchors)), algorithm="brute")
    near = anchors[search.fit(points[anchors]).kneighbors(points, return_distance=False)]
    for _ in range(ROUNDS):
        score = score[near].mean(axis=1)
    return score
