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
from pue.propensity.logistic import labeled_probability
from pue.propensity.scar import ScarTest

FOLDS = 3
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


def find_drivers(data: PUData, ranked: Tensor, names: Sequence[str] | None) -> Iterator[Driver]:
    """Standardised mean differences of labeled rows and estimated positives, column by column."""
    positives = (ranked == 1) & population_rows(data.labels, data.scenario)
    labeled, reference = (_moments(as_matrix(select(data.x, rows))) for rows in (data.labeled, positives))
    sd = np.sqrt(reference[1])
    difference = (labeled[0] - reference[0]) / np.where(sd > 0, sd, 1.0)
    for column in np.argsort(-np.abs(difference), kind="stable"):
        yield Driver(str(column) if names is None else names[column], float(difference[column]))


def _moments(matrix: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and variance of every column; sparse tables stay sparse."""
    mean = np.asarray(matrix.mean(axis=0), dtype=np.float64).ravel()
    square = matrix.multiply(matrix) if sparse.issparse(matrix) else matrix.astype(np.float64) ** 2
    return mean, np.maximum(np.asarray(square.mean(axis=0)).ravel() - mean**2, 0.0)
