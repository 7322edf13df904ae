"""DEDPUL (Ivanov 2020): the ratio of the densities of the scores, and the prior that is consistent with it."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.special import logit

from pue.core.data import PUData
from pue.priors.evidence import Evidence, Floats, as_evidence
from pue.priors.shares import held_inside, prior_from_unlabeled

BANDWIDTH_U, BANDWIDTH_P = 0.05, 0.1
"""Of the kernels, in standard deviations of the logits; as in the author's code."""
GRID = 2048
QUANTILES = 1000
"""Scores at which the ratio is looked at: each stands for the same share of U."""
WINDOW = 50
"""The ratio is the median over so many quantiles on either side: a tenth of U, as in the author's code."""


def dedpul(data: PUData | Evidence) -> float:
    """α is the fixed point of α ← mean over U of min(1, α f_P / f_U), from α = 1; or the `kink`, if larger.

    The densities are those of the logit of q, by kernels; their ratio is smoothed and sorted, so that it rises with
    q. It assumes SCAR and scores at which only positives are found. Under biased labeling it tends to π·ē / max e.
    """
    rows = as_evidence(data)
    ratio = density_ratio(rows, rows.q)
    alpha = max(fixed_point(ratio), kink(ratio))
    return held_inside(prior_from_unlabeled(alpha, rows), rows, "DEDPUL")


def density_ratio(rows: Evidence, q: Floats) -> Floats:
    """f_P / f_U at equal shares of U, rising, with mean one over U as the ratio of two densities has."""
    score = logit(np.clip(q, 1e-9, 1 - 1e-9))
    low, high = score.min(), score.max()
    margin = 0.05 * (high - low) + 1e-6
    grid = np.linspace(low - margin, high + margin, GRID)
    f_u, f_p = (
        _density(score[side], rows.mass[side], grid, bandwidth)
        for side, bandwidth in ((rows.unlabeled, BANDWIDTH_U), (rows.labeled, BANDWIDTH_P))
    )
    order = np.argsort(score[rows.unlabeled], kind="stable")
    reach = np.cumsum(rows.mass[rows.unlabeled][order])
    at = np.searchsorted(reach, (np.arange(QUANTILES) + 0.5) / QUANTILES * reach[-1])
    points = score[rows.unlabeled][order][at]
    ratio = np.interp(points, grid, f_p) / np.interp(points, grid, f_u)
    smooth = np.array([np.median(ratio[max(0, i - WINDOW) : i + WINDOW + 1]) for i in range(QUANTILES)])
    return np.asarray(np.sort(smooth) / smooth.mean())


def fixed_point(ratio: Floats, *, tol: float = 1e-5, max_iter: int = 1000) -> float:
    """EM: the posterior of a row of U is min(1, α r), and α is the mean posterior."""
    alpha = 1.0
    for _ in range(max_iter):
        last, alpha = alpha, float(np.minimum(1, alpha * ratio).mean())
        if last - alpha < tol:
            break
    return alpha


def kink(ratio: Floats, *, step: float = 0.001, most: float = 0.05) -> float:
    """Where α − mean min(1, α r) bends most, among the α at which it is still below `most`.

    Bumps of the ratio pull the fixed point below the α at which the posteriors begin to be cut off in earnest.
    """
    alphas = np.arange(0, 1 + step / 2, step)
    excess = np.array([alpha - np.minimum(1, alpha * ratio).mean() for alpha in alphas])
    bend = np.where(excess[1:-1] < most, np.diff(excess, 2), -np.inf)
    return float(alphas[1:-1][bend.argmax()])


def _density(score: Floats, mass: Floats, grid: Floats, bandwidth: float) -> Floats:
    """A kernel density on the grid. Every row is dealt to its two neighbours there: O(n), not O(n²)."""
    step = grid[1] - grid[0]
    place = (score - grid[0]) / step
    left = np.clip(place.astype(int), 0, len(grid) - 2)
    right_share = place - left
    weight = mass / mass.sum()
    dealt = np.bincount(left, weight * (1 - right_share), len(grid)) + np.bincount(
        left + 1, weight * right_share, len(grid)
    )
    center = float(weight @ score)
    spread = float(np.sqrt(weight @ (score - center) ** 2))
    smooth = gaussian_filter1d(dealt, max(bandwidth * spread / step, 0.5), mode="constant")
    return np.asarray(smooth / step + 1e-12)
