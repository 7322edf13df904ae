"""What every tool is given: two problems with biased labels, and what a tool gives back.

`mnist` is the paper's: even digits are positive, 2,500 labels in the mix .65/.15/.10/.07/.03 beside all 60,000 images.
`table` is the generated table of benchmarks/studies/tables_study.py with 100,000 rows to learn from and 50,000 to be
judged by: a positive is labeled with a probability that depends on three columns drawn by the seed, a third of them on
average. The true share of positives in the training rows is known to every tool.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import make_classification

from pue.bench.hidden import hide, load
from pue.bench.labeling import feature_sar
from pue.bench.presets import LABELS
from pue.core.data import PUData, Scenario


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows to learn from, rows to be judged by, and the prior; true classes are kept elsewhere."""

    x: NDArray[Any]
    s: NDArray[np.int64]
    """1 labeled, 0 unlabeled."""
    prior: float
    scenario: str
    new: NDArray[Any]

    def matrix(self) -> Problem:
        """Images as rows of float32 in [0, 1], which is what most tools take."""
        return replace(self, x=_flat(self.x), new=_flat(self.new))

    def case_control(self) -> Problem:
        """A single sample for methods that want the labeled rows *beside* a sample of the population: copies of them
        in front, all rows behind. Their risk is then the same as that of a method for single samples."""
        if self.scenario == "case_control":
            return self
        labeled = self.s == 1
        s = np.concatenate([np.ones(labeled.sum(), dtype=np.int64), np.zeros(len(self.s), dtype=np.int64)])
        return replace(self, x=np.concatenate([self.x[labeled], self.x]), s=s, scenario="case_control")


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained tool: rows → 1 where it calls them positive, and rows → scores that rank."""

    calls: Callable[[NDArray[Any]], NDArray[Any]]
    scores: Callable[[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True)
class Method:
    """How a tool is used: a problem and a seed → what it has learnt."""

    fit: Callable[[Problem, int], Fitted]
    images: bool = False
    """Takes images as bytes; all others get a matrix."""
    case_control: bool = False
    """Wants labeled rows beside the sample."""

    def prepare(self, problem: Problem) -> Problem:
        """Outside the clock."""
        problem = problem.case_control() if self.case_control else problem
        return problem if self.images else problem.matrix()


def mnist(seed: int, rows: int | None = None) -> tuple[Problem, NDArray[np.int64]]:
    """From $PUE_DATA/mnist; fewer rows, fewer labels."""
    split = load("mnist", None, None, rows)
    labels = LABELS["mnist"]
    n_labeled = round(labels.n_labeled * len(split.train_classes) / 60_000)
    data = hide(split, replace(labels, n_labeled=n_labeled), seed).data
    return _problem(data, split.train_y.numpy(), split.test_x.numpy()), split.test_y.numpy()


def table(seed: int, rows: int | None = None) -> tuple[Problem, NDArray[np.int64]]:
    n = rows or 100_000
    x, y = make_classification(
        n + n // 2, 20, n_informative=8, n_redundant=4, weights=[0.7], flip_y=0.03, random_state=seed
    )
    x = x.astype(np.float32)
    rng = np.random.default_rng(seed)
    columns = [int(column) for column in rng.choice(x.shape[1], 3, replace=False)]
    data, _ = feature_sar(
        torch.from_numpy(x[:n]), torch.from_numpy(y[:n]), features=columns, strength=1.5, frequency=1 / 3, rng=rng
    )
    return _problem(data, y[:n], x[n:]), y[n:]


PROBLEMS = {"mnist": mnist, "table": table}


def _problem(data: PUData, y: NDArray[Any], new: NDArray[Any]) -> Problem:
    scenario = Scenario.parse(data.scenario).value
    return Problem(data.x.numpy(), data.labels.numpy().astype(np.int64), float(y.mean()), scenario, new)


def _flat(x: NDArray[Any]) -> NDArray[Any]:
    return x if x.ndim == 2 else x.reshape(len(x), -1).astype(np.float32) / np.float32(255)
