"""By what is the labeling driven? Labeled rows beside the rows that are taken for positives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from pue.core.data import PUData, as_matrix, is_image, population_rows, select
from pue.core.folds import content_folds, held_out_values
from pue.diagnosis.found import Driver
from pue.propensity.auto import Chosen
from pue.propensity.clipping import FLOOR
from pue.propensity.estimate import LabeledPropensity
from pue.propensity.joint import JointModel
from pue.propensity.logistic import labeled_probability
from pue.propensity.scar import ScarTest, without_gaps

Array = NDArray[np.float64]
FOLDS = 3
RIDGE = 0.05
"""Added to the variances, which are one: columns that repeat each other share their part."""
FAR = 5.0
"""Standardised values are cut here."""
CLEAR = 2.0
"""Standard errors beyond which a difference is told. On 56 development problems with three known drivers the first
column named was one of them, with its sign, in 33 of the 43 in which SCAR was in doubt; beyond two errors in 22 of
23."""
MOST_COLUMNS = 2_000
MOST = 30_000
"""Rows of the population that a score is fitted to; of more, every second, third, …"""


def estimated_positives(data: PUData, scar: ScarTest, e: Tensor | None, prior: float, seed: int) -> Tensor:
    """1 for rows among the π n that rank highest by a score they did not help to fit, 0 for others, NaN for unknown.

    The score is a logistic regression of the labeled rows, weighted by 1/ê, against the population: unweighted it would
    take the bias of the labels for a mark of the class. Of a large population some rows stand for all. Images keep the
    ranking of the SCAR test, in which it does.
    """
    if is_image(data.x):
        return torch.where(torch.isnan(scar.depth), torch.nan, (scar.depth <= 1).double())
    population = population_rows(data.labels, data.scenario)
    weight = torch.ones(data.n_rows, dtype=torch.float64)
    if e is not None:
        weight[data.labeled] = (1 / e) / (1 / e).mean()
    fold = torch.from_numpy(content_folds(data.x, data.labels, FOLDS, seed=seed))

    def called(k: int) -> Tensor:
        labeled, everyone = (torch.nonzero(rows & (fold != k))[:, 0] for rows in (data.labeled, population))
        background = everyone[:: -(-len(everyone) // MOST)]
        each = len(everyone) / len(background)
        rows = torch.cat([labeled, background])
        target = torch.arange(len(rows)) < len(labeled)
        weights = torch.cat([weight[labeled], torch.full((len(background),), each, dtype=torch.float64)])
        scores = labeled_probability(select(data.x, rows), target, weights, C=1.0)(select(data.x, fold == k))
        return (scores >= scores[population[fold == k]].quantile(1 - prior)).double()

    return held_out_values(fold, called, FOLDS)


def find_drivers(
    data: PUData, ranked: Tensor, names: Sequence[str] | None, found: LabeledPropensity | None = None
) -> Iterator[Driver]:
    """What each column itself adds to the difference between labeled rows and estimated positives, largest first; none
    that chance could have made.

    Labels that follow one column differ in all that go along with it. With log e = βᵀz in standardised columns z, the
    labeled rows differ from the positives by about Cov(z) β standard deviations, so Cov(z)⁻¹ takes the part of each
    column out of the differences. Where class and labeling were estimated together (`Joint`) the log-odds of ê say what
    Cov(z) β is; else the rows themselves do, for other estimates of ê know the class too. Sparse and very wide tables
    keep the plain differences.
    """
    positives = (ranked == 1) & population_rows(data.labels, data.scenario)
    if sparse.issparse(data.x) or data.x.shape[1] > MOST_COLUMNS:
        own, error = _differences(data, positives), np.full(data.x.shape[1], 1.0)
    else:
        own, error = _own_differences(data, positives, found)
    clear = np.abs(own) > CLEAR * error / np.sqrt(data.n_labeled)
    for column in np.argsort(-np.abs(own), kind="stable"):
        if clear[column]:
            yield Driver(str(column) if names is None else names[column], float(own[column]))


def _own_differences(data: PUData, positives: Tensor, found: LabeledPropensity | None) -> tuple[Array, Array]:
    """The part of each column, and its standard error times √n for n labeled rows: that of the differences, which are
    means of n rows, taken through Cov(z)⁻¹ as they are. Columns that repeat each other have a large one."""
    rows = positives | data.labeled
    matrix = as_matrix(select(without_gaps(data.x), rows)).astype(np.float64)
    mean, variance = _moments(matrix[positives[rows].numpy()])
    z = np.clip((matrix - mean) / np.sqrt(np.where(variance > 0, variance, 1.0)), -FAR, FAR)
    labeled = data.labeled[rows].numpy()
    differences = z[labeled].mean(0) - z[positives[rows].numpy()].mean(0)
    covariance = (z - z.mean(0)).T @ (z - z.mean(0)) / len(z) + RIDGE * np.eye(z.shape[1])
    expected = np.zeros(z.shape[1])
    if found is not None and isinstance(found.model, Chosen | JointModel):
        e = found.model(select(data.x, rows)).clamp(FLOOR, 1 - FLOOR)
        e[torch.from_numpy(labeled)] = found.e.clamp(FLOOR, 1 - FLOOR)
        log_odds = torch.logit(e).numpy()
        expected = z.T @ (log_odds - log_odds.mean()) / len(z)
    inverse = np.linalg.inv(covariance)
    error = np.sqrt(np.diag(inverse))
    if not np.abs(expected).max() > 1e-9:  # one propensity for all rows
        return inverse @ differences, error
    # The propensities say which columns; how large the differences are, the rows themselves say.
    size = max(0.0, float(expected @ differences)) / float(expected @ expected)
    return size * (inverse @ expected), error


def _differences(data: PUData, positives: Tensor) -> Array:
    labeled, reference = (_moments(as_matrix(select(data.x, rows))) for rows in (data.labeled, positives))
    sd = np.sqrt(reference[1])
    return np.asarray((labeled[0] - reference[0]) / np.where(sd > 0, sd, 1.0))


def _moments(matrix: Any) -> tuple[Array, Array]:
    """Mean and variance of every column; sparse tables stay sparse."""
    mean = np.asarray(matrix.mean(axis=0), dtype=np.float64).ravel()
    square = matrix.multiply(matrix) if sparse.issparse(matrix) else matrix.astype(np.float64) ** 2
    return mean, np.maximum(np.asarray(square.mean(axis=0)).ravel() - mean**2, 0.0)
