"""`Blend`: a forest, boosting and a regression on the same weights, in the shares that held-out rows ask for.

None of the three is best everywhere. Boosting finds the two columns of a hundred that matter, a forest is steady where
every row's labels are few, and where the class is a slope in a few columns a line needs a tenth of the labels that
trees need. Which it is on the table at hand shows on rows held out, without one true class: with the logistic loss the
PU risk of the shares a and a constant c,

    R(a, c) = Σ b log(1 + e^g) − Σ w⁺ g,        g = Σ_k a_k g_k + c,        b = w⁺ + w⁻,

is convex, and g_k are scores by members that have not seen the row.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize

from pue.core.data import PUData
from pue.core.folds import content_folds, most_folds
from pue.core.randomness import derive
from pue.core.weights import RowWeights
from pue.errors import InvalidInput
from pue.persistence import kept
from pue.trees.blended import Blended, Floats, scores
from pue.trees.boosted import BoostedTrees
from pue.trees.boosting import Boosting
from pue.trees.forest import Forest
from pue.trees.gradient import sigmoid, softplus
from pue.trees.nodes import Trees, dense
from pue.trees.ridge import Ridge, contest
from pue.trees.thresholds import prior_threshold

ENOUGH = 10_000
"""Of more rows only one of the folds is held out: three shares need no more, and it takes a third of the time."""
MOST = 2.0
"""No share is larger: where labels outweigh the rows, the risk would fall without end as shares grow."""
EXACT = {"ftol": 1e-13, "gtol": 1e-9, "maxiter": 500}
Members = tuple[Trees, BoostedTrees, Ridge]


@kept
@dataclass(frozen=True)
class Blend:
    """Three members that are fitted apart, and whose scores add up.

    >>> from pue.core.weights import uniform
    >>> data = PUData(torch.arange(90.0)[:, None], torch.tensor([0] * 65 + [1] * 25))
    >>> blended, threshold = Blend().learn(data, uniform(data.labels, prior=0.4), seed=0)
    >>> low, high = blended.log_odds([[0.0], [89.0]])
    >>> bool(low < threshold < high)
    True
    """

    called: ClassVar[str] = "a blend"

    forest: Forest = field(default_factory=Forest)
    boosting: Boosting = field(default_factory=Boosting)
    folds: int = 3
    """Parts that are held out in turn to find the shares. Never more than there are labeled rows."""
    pull: float = 1.0
    """How strongly shares are drawn to a third each, over the number of labels."""

    def __post_init__(self) -> None:
        if not (isinstance(self.folds, Integral) and self.folds >= 2):
            raise InvalidInput(f"folds must be a whole number, at least 2; got {self.folds!r}.")
        if not 0 <= self.pull < np.inf:
            raise InvalidInput(f"pull must be a number, at least 0; got {self.pull!r}.")

    def fit(self, data: PUData, weights: RowWeights, seed: int) -> Blended:
        """The blend of these rows."""
        return self.learn(data, weights, seed)[0]

    def learn(self, data: PUData, weights: RowWeights, seed: int) -> tuple[Blended, float]:
        """The blend, and the threshold at which it decides: that of the held-out scores."""
        data, weights = _used(data, weights)
        members = self.members(data, weights, seed)
        held, columns = self._held_out(data, weights, seed)
        if not bool(held.any()):
            blended = Blended(*members, np.full(3, 1 / 3), 0.0)
            return blended, prior_threshold(blended.log_odds(dense(data.x)), weights)
        judging = _as_much(weights, held)
        shares, start = blending(columns, judging, self.pull / labels_worth(judging, data.mass[held].numpy()))
        return Blended(*members, shares, start), prior_threshold(columns @ shares + start, judging)

    def members(self, data: PUData, weights: RowWeights, seed: int) -> Members:
        """Each member on all of these rows."""
        forest = self.forest.fit(data, weights, derive(seed, 0))
        return forest, self.boosting.fit(data, weights, derive(seed, 1)), contest(data, weights)

    def _held_out(self, data: PUData, weights: RowWeights, seed: int) -> tuple[torch.Tensor, Floats]:
        """Which rows were held out, and their scores by members that have not seen them, (rows, members). None is where
        there are too few rows."""
        teaches = (weights.positive > 0).to(torch.int8)  # every fold needs some
        folds = min(self.folds, most_folds(data.x, teaches))
        if folds < 2:
            return torch.zeros(data.n_rows, dtype=torch.bool), np.empty((0, 3))
        lighter = self._lighter()
        fold, matrix = content_folds(data.x, teaches, folds, seed=seed), dense(data.x)
        found = np.full((len(fold), 3), np.nan)
        for k in range(folds if float(data.mass.sum()) <= ENOUGH else 1):
            held = fold == k
            seen = torch.from_numpy(~held)
            members = lighter.members(data.take(seen), _as_much(weights, seen), derive(seed, 2 + k))
            found[held] = scores(*members, matrix[held])
        there = ~np.isnan(found[:, 0])
        return torch.from_numpy(there), found[there]

    def _lighter(self) -> Blend:
        """Half the trees and half the sums of trees: enough to see which member says more."""
        folds = self.boosting.folds
        boosting = replace(self.boosting, folds=max(2, (10 if folds == "auto" else folds) // 2))
        return replace(self, forest=replace(self.forest, n_trees=-(-self.forest.n_trees // 2)), boosting=boosting)


def blending(columns: Floats, weights: RowWeights, pull: float) -> tuple[Floats, float]:
    """The shares, in [0, `MOST`], and the constant that have the least logistic PU risk, and a little pull to equal
    shares."""
    positive, background = weights.positive.numpy(), weights.background.clamp(min=0).numpy()
    n = columns.shape[1]
    z = np.column_stack([columns, np.ones(len(columns))])
    wanted, equal = positive @ z, np.full(n, 1 / n)

    def objective(at: Floats) -> tuple[float, Floats]:
        margin, away = z @ at, at[:n] - equal
        gradient = (background * sigmoid(margin)) @ z - wanted
        gradient[:n] += 2 * pull * away
        return float(background @ softplus(margin) - wanted @ at + pull * away @ away), gradient

    bounds = [(0.0, MOST)] * n + [(None, None)]
    found = minimize(objective, np.append(equal, 0.0), jac=True, method="L-BFGS-B", bounds=bounds, options=EXACT).x
    return np.asarray(found[:n], dtype=np.float64), float(found[n])


def labels_worth(weights: RowWeights, mass: NDArray[np.float64]) -> float:
    """How many labels of one weight are worth as much as these, by Kish.

    >>> half = RowWeights(torch.tensor([0.25, 0.25, 0.0]).double(), torch.tensor([0.0, 0.0, 0.5]).double())
    >>> labels_worth(half, np.ones(3))
    2.0
    """
    positive = weights.positive.numpy()
    there = positive > 0
    return float(positive.sum() ** 2 / (positive[there] ** 2 / mass[there]).sum())


def _used(data: PUData, weights: RowWeights) -> tuple[PUData, RowWeights]:
    """Rows that have some weight; the others teach nothing, and decide about no fold."""
    used = (weights.positive > 0) | (weights.background > 0)
    if bool(used.all()):
        return data, weights
    return data.take(used), RowWeights(weights.positive[used], weights.negative[used])


def _as_much(weights: RowWeights, rows: torch.Tensor) -> RowWeights:
    """The weights of some rows, as much in all as those of all rows."""
    positive, background = (
        each[rows] * (each.sum() / each[rows].sum()) for each in (weights.positive, weights.background.clamp(min=0))
    )
    return RowWeights(positive, background - positive)
