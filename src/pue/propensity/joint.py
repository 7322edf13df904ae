"""`Joint`: class and propensity estimated together, for tables whose classes overlap.

Labels show r(x) = P(labeled | x) = e(x) f(x) alone, f(x) = P(positive | x). EM from the start "every positive has the
same chance" takes them apart. In each round, every row by models that have not seen it:

    f   a PU forest with the weights 1/e, its log-odds moved so that its mean is the prior
    q   = P(positive | x, s): 1 for labeled rows, f (1 − e) / (1 − f e) for the others
    e   labeled against not among rows weighted by q, by several members

The members (a ridge regression, which extrapolates, and small boosted trees, which see kinds of rows) are mixed by the
likelihood that they give held-out labels. The prior is kept in every round, and a start at SCAR does not take the class
for the labeling: what changes e are labels that are denser than SCAR allows.

Where classes overlap, e takes over what belongs to f. That shows in the certainty of the class, the mean of
max(f, 1 − f): it falls, and a weaker e, or none, is better. So the last step takes the strongest eᵏ, k ≤ 1, that costs
no more than a little certainty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import brentq
from torch import Tensor

from pue.core.data import Features, PUData, Scenario, as_matrix, population_rows, possible_prior, select
from pue.core.folds import content_folds, row_hash
from pue.core.randomness import derive
from pue.core.weights import pu
from pue.errors import InvalidInput
from pue.persistence import kept
from pue.propensity.crossfit import possible_folds, reference_rows
from pue.propensity.labeling import MEMBERS, Labeling
from pue.propensity.pool import mixture_shares
from pue.propensity.protocol import PropensityModel
from pue.trees.forest import Forest

Array = NDArray[np.float64]

SMALLEST = 1e-3
"""No estimate of a chance is nearer to zero or one: a round would follow one row."""
STRENGTHS = (0.25, 0.5, 0.75, 1.0)
"""Exponents of e, weakest first."""
SLACK = 0.02
"""Certainty that a correction may cost. It and the strengths were chosen on the development tables of
benchmarks/studies/tables; docs/lab/propensity.md has the figures."""


@kept
@dataclass(frozen=True)
class Joint:
    """EM of forests and simple models of the labeling, from a start at SCAR, with the prior kept."""

    rounds: int = 5
    folds: int = 3
    trees: int = 50
    """Of the forest that stands for f in each round."""
    members: tuple[str, ...] = ("boosted", "logistic")
    """Names in `labeling.MEMBERS`."""
    columns: tuple[int, ...] | None = None
    """Columns that the labeling depends on, if they are known (None: any). It identifies e."""
    most: int = 8_000
    """Rows; of larger tables so many are drawn."""
    strengths: tuple[float, ...] = STRENGTHS
    """(1.0,): e as the last round leaves it, or none."""

    def __post_init__(self) -> None:
        if self.rounds < 1 or self.folds < 2 or self.trees < 1:
            raise InvalidInput(
                f"rounds and trees must be at least 1 and folds at least 2; got {self.rounds}, {self.trees} and "
                f"{self.folds}."
            )
        if not self.strengths or min(self.strengths) <= 0 or list(self.strengths) != sorted(self.strengths):
            raise InvalidInput(f"strengths must be positive numbers, weakest first; got {self.strengths}.")

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> JointModel:
        if sparse.issparse(data.x):
            raise InvalidInput('this estimator grows trees and needs a dense table. Use propensity="logistic".')
        rows = _drawn(data, self.most)
        problem = _Problem.of(self, data.take(rows), prior, seed)
        e = np.full(len(rows), problem.frequency)
        for _ in range(self.rounds):
            q = problem.posterior(problem.positive(e), e)
            folds, columns = problem.labeling(q)
            shares = problem.shares(columns, q)
            e = columns @ shares
        own = dict(zip(self.members, shares.tolist(), strict=True))
        strength = problem.strength(e)
        f = problem.positive(problem.raised(e, strength))
        factor = problem.factor(e, strength, f)
        odds = data.scenario is Scenario.CASE_CONTROL
        model, e = JointModel(folds, own, odds, self.columns, strength, factor), _raised(e, strength, factor, odds)
        return replace(
            model,
            held_out=_of_labeled(model, data, rows, torch.from_numpy(e)),
            reference=_of_reference(data, rows, torch.from_numpy(e * f)),
        )


@kept
@dataclass(frozen=True, eq=False)
class JointModel(PropensityModel):
    """ê of new rows: the mean over folds of the members of the last round, in their shares."""

    folds: tuple[tuple[Labeling, ...], ...]
    """For each fold its members."""
    shares: dict[str, float]
    odds: bool
    looks_at: tuple[int, ...] | None
    """Columns; None: all."""
    strength: float = 1.0
    """Exponent of what the members say; 0: all positives have the same chance of a label."""
    factor: float = 1.0
    held_out: Tensor | None = None
    reference: Tensor | None = None
    """ê f̂ of a sample of the population: its sum is the number of labels."""

    def __call__(self, x: Features) -> Tensor:
        matrix = _chosen(as_matrix(x), self.looks_at)
        mean = sum(self._of_fold(members, matrix) for members in self.folds) / len(self.folds)
        return torch.from_numpy(_raised(_clipped(mean), self.strength, self.factor, self.odds))

    def _of_fold(self, members: Sequence[Labeling], matrix: NDArray[np.floating]) -> Array:
        counted = zip(members, self.shares.values(), strict=True)
        return np.asarray(sum(share * member(matrix) for member, share in counted if share > 0))

    def few(self, n: int) -> JointModel:
        return replace(self, folds=self.folds[:n])

    @property
    def description(self) -> str:
        if not self.strength:
            return "labels taken as unbiased: every correction tried made the class less certain"
        counted = ", ".join(f"{name} {share:.0%}" for name, share in self.shares.items() if share >= 0.005)
        return f"cross-fitted together with the class ({counted}; strength {self.strength:g})"


@dataclass(frozen=True, eq=False)
class _Problem:
    """The rows of an EM and its steps; every array is in the order of the rows."""

    settings: Joint
    data: PUData
    prior: float
    seed: int
    fold: NDArray[np.int64]
    features: NDArray[np.floating]
    """What the labeling may depend on."""

    @classmethod
    def of(cls, settings: Joint, data: PUData, prior: float, seed: int) -> _Problem:
        folds = min(settings.folds, possible_folds(data))
        fold = content_folds(data.x, data.labels, folds, seed=seed)
        return cls(settings, data, prior, seed, fold, _chosen(as_matrix(data.x), settings.columns))

    @property
    def single(self) -> bool:
        return self.data.scenario is Scenario.SINGLE_SAMPLE

    @property
    def population(self) -> NDArray[np.bool_]:
        return population_rows(self.data.labels, self.data.scenario).numpy()

    @property
    def frequency(self) -> float:
        """The propensity if all positives had the same, as a share."""
        mass = self.data.mass.numpy()
        rate = float(mass[self.data.labeled.numpy()].sum() / (self.prior * mass[self.population].sum()))
        return float(np.clip(self.as_share(np.asarray(rate)), SMALLEST, 1 - SMALLEST))

    def positive(self, e: Array) -> Array:
        """f of every row by a forest that has not seen it, with the prior as its mean."""
        log_odds = self._held_out(lambda seen, seed: self._forest(seen, e, seed))
        mass = self.data.mass.numpy() * self.population
        return with_mean(log_odds, self.prior, mass)

    def _forest(self, seen: NDArray[np.bool_], e: Array, seed: int) -> Callable[[NDArray[np.bool_]], Array]:
        rows = self.data.take(torch.from_numpy(seen))
        prior = possible_prior(self.prior, rows.labels, rows.scenario, rows.sample_weight)
        rate = torch.from_numpy(self.as_rate(e[seen]))[rows.labeled]
        mass, scenario = rows.sample_weight, rows.scenario
        weights = pu(rows.labels, rate / rate.max(), prior=prior, scenario=scenario, sample_weight=mass)
        trees = Forest(n_trees=self.settings.trees).fit(rows, weights, seed)
        return lambda held: trees.log_odds(as_matrix(select(self.data.x, torch.from_numpy(held))))

    def posterior(self, f: Array, e: Array) -> Array:
        """q = P(positive | x, s); unlabeled rows of case-control are a draw of p(x), whatever was labeled beside it."""
        hidden = f * (1 - e) / np.maximum(1 - f * e, 1e-12) if self.single else f
        return np.where(self.data.labeled.numpy(), 1.0, np.where(self.population, hidden, 0.0))

    def labeling(self, q: Array) -> tuple[tuple[tuple[Labeling, ...], ...], Array]:
        """The members of every fold, and their estimates of rows that they have not seen, a column for each."""
        s, weight = self.data.labeled.numpy(), q * self.data.mass.numpy()
        columns, folds = np.empty((len(s), len(self.settings.members))), []
        for k in range(int(self.fold.max()) + 1):
            held, seed = self.fold == k, derive(self.seed, 10 + k)
            seen = ~held & (weight > 0)
            members = tuple(
                MEMBERS[name](self.features[seen], s[seen], weight[seen], seed) for name in self.settings.members
            )
            columns[held] = np.column_stack([member(self.features[held]) for member in members])
            folds.append(members)
        return tuple(folds), _clipped(columns)

    def shares(self, columns: Array, q: Array) -> Array:
        """The mixture of members under which the held-out labels are most likely."""
        if columns.shape[1] == 1:
            return np.ones(1)
        like = np.where(self.data.labeled.numpy()[:, None], columns, 1 - columns)
        return mixture_shares(like, q * self.data.mass.numpy())

    def strength(self, e: Array) -> float:
        """The strongest exponent of e that leaves the class about as certain as no correction does; 0: none does."""
        least = self.certainty(np.full(len(e), self.frequency)) - SLACK
        strongest_first = reversed(self.settings.strengths)
        return next((k for k in strongest_first if self.certainty(self.raised(e, k)) >= least), 0.0)

    def certainty(self, e: Array) -> float:
        """How sure the class of a row of the population is on average, in [½, 1], with the weights 1/e."""
        f, mass = self.positive(e), self.data.mass.numpy() * self.population
        return float(np.maximum(f, 1 - f) @ mass / mass.sum())

    def raised(self, e: Array, strength: float) -> Array:
        """eᵏ; its size does not matter to weights, and stays that of e on average."""
        return self.as_share(_raised(e, strength, self.frequency ** (1 - strength), not self.single))

    def factor(self, e: Array, strength: float, f: Array) -> float:
        """What makes Σ eᵏ f over the population the number of labels."""
        mass, rate = self.data.mass.numpy(), self.as_rate(e) ** strength
        return float(mass[self.data.labeled.numpy()].sum() / ((mass * rate * f)[self.population].sum()))

    def as_rate(self, e: Array) -> Array:
        """Inside the rounds e is a share of the rows at hand, which in case-control means e / (1 + e)."""
        return e if self.single else e / (1 - e)

    def as_share(self, e: Array) -> Array:
        return e if self.single else e / (1 + e)

    def _held_out(self, fit: Callable[[NDArray[np.bool_], int], Callable[[NDArray[np.bool_]], Array]]) -> Array:
        found = np.empty(len(self.fold))
        for k in range(int(self.fold.max()) + 1):
            held = self.fold == k
            found[held] = fit(~held, derive(self.seed, k))(held)
        return found


def _clipped(share: Any) -> Array:
    return np.clip(np.asarray(share, dtype=np.float64), SMALLEST, 1 - SMALLEST)


def _raised(share: Array, strength: float, factor: float, odds: bool) -> Array:
    """The rate to this power times the factor, kept where its share is a chance."""
    rate = factor * (share / (1 - share) if odds else share) ** strength
    clipped = _clipped(rate / (1 + rate) if odds else rate)
    return clipped / (1 - clipped) if odds else clipped


def with_mean(log_odds: Array, mean: float, mass: Array) -> Array:
    """sigmoid(log-odds − τ) with the τ that gives it this mean.

    >>> with_mean(np.array([-1.0, 1.0]), 0.5, np.ones(2)).round(3)
    array([0.269, 0.731])
    """
    weight = mass / mass.sum()

    def excess(tau: float) -> float:
        return float(weight @ _sigmoid(log_odds - tau)) - mean

    return _sigmoid(log_odds - float(brentq(excess, log_odds.min() - 40, log_odds.max() + 40)))


def _sigmoid(margin: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-margin)))


def _chosen(matrix: NDArray[np.floating], columns: tuple[int, ...] | None) -> NDArray[np.floating]:
    return matrix if columns is None else matrix[:, list(columns)]


def _drawn(data: PUData, most: int) -> Tensor:
    """At most so many rows, chosen by content: the first in the order of `reference_rows`."""
    order = np.argsort(row_hash(data.x, seed=1), kind="stable")
    return torch.from_numpy(np.sort(order[:most]))


def _of_labeled(model: JointModel, data: PUData, rows: Tensor, e: Tensor) -> Tensor:
    """ê of all labeled rows: out of fold where a row was drawn, else from models none of which has seen it."""
    own = torch.full((data.n_rows,), torch.nan, dtype=torch.float64)
    own[rows] = e
    others = data.labeled & own.isnan()
    if bool(others.any()):
        own[others] = model(select(data.x, others))
    return own[data.labeled]


def _of_reference(data: PUData, rows: Tensor, r: Tensor) -> Tensor | None:
    """r of `reference_rows`, if all of them were drawn."""
    own = torch.full((data.n_rows,), torch.nan, dtype=torch.float64)
    own[rows] = r
    found = own[reference_rows(data)]
    return None if bool(found.isnan().any()) else found
