"""What could be true instead: worlds in which the same rows, labels and scores came about.

A number that is estimated without negatives rests on the prior, on the propensities and on chance. A *world* fixes all
three: a prior, the weight w⁺ of every labeled row, and how often each row is counted. The center is what is believed;
the others are drawn around it, and an interval is the spread of a number over them. Whoever shows several numbers of
one model takes them from the same worlds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import norm
from torch import Tensor

from pue.core.data import Scenario, possible_prior
from pue.core.weights import RowWeights, effective_sample_size, pu
from pue.errors import InvalidInput

Array = NDArray[np.float64]
UNSEEN = 1.0
"""Labels that might have come next, in worlds drawn around the center: each adds a positive that may be any row, or, in
every second world, one of the clearest. Five labeled rows that are all called positive do not prove a recall of one,
nor five that are not a recall of zero; resampling them alone would say so."""
BINS = 25
"""Parts of the population in which no hidden bias may put more positives than there are rows."""


@dataclass(frozen=True, eq=False)
class World:
    """One account of the data."""

    prior: float
    positive: Array
    """w⁺ of every row, up to a factor."""
    times: NDArray[np.int64] | None = None
    """How often each row is counted; None: once."""
    model: float = 0.0
    """Where the model that is kept stands among those that were judged in its place: standard deviations of the share
    of rows that one of them calls positive."""


class Worlds(Protocol):
    """The center, and families of others, each drawn around an account of the data."""

    @property
    def center(self) -> World: ...

    def families(self, draws: int, seed: int) -> Iterator[Iterator[World]]: ...


@dataclass(frozen=True, eq=False)
class Chance:
    """Prior and weights are as they should be; only which rows were seen is chance."""

    weights: RowWeights

    @property
    def center(self) -> World:
        positive = self.weights.positive.double().numpy()
        return World(float(positive.sum()), positive)

    def draw(self, draws: int, seed: int) -> Iterator[World]:
        rng, own = np.random.default_rng(seed), self.center
        for _ in range(draws):
            yield World(own.prior, own.positive, rng.poisson(1.0, len(own.positive)))

    def families(self, draws: int, seed: int) -> Iterator[Iterator[World]]:
        yield self.draw(draws, seed)


@dataclass(frozen=True, eq=False)
class Doubts:
    """What is known of some scored rows, and how far it may be off."""

    scores: Tensor
    labels: Tensor
    prior: float
    scenario: Scenario = Scenario.SINGLE_SAMPLE
    propensity: Tensor | None = None
    """e of the labeled rows, in order, up to a factor; None: labels are a random sample of the positives."""
    sample_weight: Tensor | None = None
    prior_interval: tuple[float, float] | None = None
    """The 95 % interval of the prior; None: it is known."""
    readings: Sequence[Any] = ()
    """Other propensities that the labels do not rule out: each world believes one of them."""
    hidden: tuple[float, float] = (0.0, 0.0)
    """(center, reach): a bias that overlap hides from every test. The clearest labeled positives were labeled
    exp(center) times as often as the least clear, or, world by world, up to exp(reach) times more or less than that."""

    def __post_init__(self) -> None:
        if not (np.isfinite(self.hidden).all() and self.hidden[1] >= 0):
            raise InvalidInput(f"hidden must be two numbers, the second not negative; got {self.hidden}.")
        if self.prior_interval is not None:
            low, high = self.prior_interval
            if not 0 <= low <= self.prior <= high <= 1:
                raise InvalidInput(
                    f"prior_interval must hold the prior, {self.prior}, between its ends; got {self.prior_interval}."
                )

    @property
    def weights(self) -> RowWeights:
        """PUe's weights, or those of SCAR where there are no propensities, without the hidden bias."""
        return pu_row_weights(self.labels, self.prior, self.propensity, self.scenario, self.sample_weight)

    @property
    def center(self) -> World:
        """What is believed."""
        own = np.asarray(self.weights.positive.numpy(), dtype=np.float64)
        return World(self.prior, self._tilted(own, self.hidden[0], self.prior))

    def families(self, draws: int, seed: int) -> Iterator[Iterator[World]]:
        """Worlds around what is believed and, where the prior is an estimate, around the labels as they are.

        Most priors of a wide interval may rule out what the labels say of the recall; its percentiles over all worlds
        would then leave out what is true wherever the labels are a random sample after all.
        """
        yield self.draw(draws, seed)
        if self.prior_interval is not None:
            plain = replace(self, prior=self.plain_prior, propensity=None, prior_interval=None)
            yield replace(plain, readings=(), hidden=(0.0, 0.0)).draw(draws, seed)

    @property
    def plain_prior(self) -> float:
        """The largest prior, up to the one believed and inside its interval, at which labels that are a random sample
        leave no upper part of the rows with more positives than rows; parts that hold half of the labels or more."""
        scores, labeled = self.scores.numpy(), np.sort(self.scores[self.labels == 1].numpy())
        cuts = np.unique(labeled[: (len(labeled) + 1) // 2])
        recall = 1 - np.searchsorted(labeled, cuts, side="left") / len(labeled)
        order = np.argsort(scores, kind="stable")
        below = np.concatenate([[0.0], np.cumsum(self._anywhere[order])])
        flagged = 1 - below[np.searchsorted(scores[order], cuts, side="left")]
        lowest = self.prior if self.prior_interval is None else self.prior_interval[0]
        return float(np.clip((flagged / recall).min(), max(lowest, 1e-6), self.prior))

    def draw(self, draws: int, seed: int) -> Iterator[World]:
        """Other worlds around what is believed; the same seed gives the same ones."""
        rng = np.random.default_rng(seed)
        models = np.random.default_rng([seed, 1]).normal(size=draws)
        believed = [self._positive(reading) for reading in (self.propensity, *self.readings)]
        priors = self._priors(draws, rng)
        chosen = rng.integers(len(believed), size=draws)
        tilts = self.hidden[0] + self.hidden[1] * rng.uniform(-1, 1, draws)
        unseen = [rng.beta(UNSEEN, effective_sample_size(torch.from_numpy(believed[which]))) for which in chosen]
        for prior, which, tilt, share, model in zip(priors, chosen, tilts, unseen, models, strict=True):
            where = self._anywhere if rng.random() < 0.5 else self._clearest
            positive = self._tilted((1 - share) * believed[which] + share * self.prior * where, tilt, float(prior))
            yield World(float(prior), positive, rng.poisson(1.0, len(positive)), float(model))

    def _tilted(self, positive: Array, tilt: float, prior: float) -> Array:
        """w⁺ if the clearest labeled rows were labeled exp(tilt) times as often as the least clear."""
        if self.hidden == (0.0, 0.0):
            return positive
        return capped(positive * np.exp(-tilt * self._depth), self._bins, self._background, prior)

    @cached_property
    def _depth(self) -> Array:
        return depth(self.scores, self.labels)

    @cached_property
    def _background(self) -> Array:
        return np.asarray(self.weights.background.clamp(min=0).numpy(), dtype=np.float64)

    @cached_property
    def _anywhere(self) -> Array:
        """The population, of mass one."""
        return np.asarray(self._background / self._background.sum(), dtype=np.float64)

    @cached_property
    def _clearest(self) -> Array:
        """The part of it that scores highest, as large as the prior, of mass one."""
        order = np.argsort(-self.scores.numpy(), kind="stable")
        inside = np.empty(len(order), dtype=bool)
        inside[order] = np.cumsum(self._anywhere[order]) <= self.prior
        inside[order[0]] = True
        chosen = np.where(inside, self._anywhere, 0.0)
        return np.asarray(chosen / max(chosen.sum(), 1e-300), dtype=np.float64)

    @cached_property
    def _bins(self) -> NDArray[np.intp]:
        """Rows of about the same score: equal parts of the population."""
        scores = self.scores.numpy()
        edges = np.quantile(scores[self._background > 0], np.linspace(0, 1, BINS + 1)[1:-1])
        return np.searchsorted(np.unique(edges), scores, side="right")

    def _positive(self, reading: Any) -> Array:
        e = None if reading is None else torch.tensor(np.asarray(reading, dtype=np.float64))
        weights = pu_row_weights(self.labels, self.prior, e, self.scenario, self.sample_weight)
        return np.asarray(weights.positive.numpy(), dtype=np.float64)

    def _priors(self, draws: int, rng: np.random.Generator) -> Array:
        if self.prior_interval is None:
            return np.full(draws, self.prior)
        low, high = self.prior_interval
        # Two half normals: an interval need not lie evenly around its estimate.
        step = rng.normal(size=draws) / norm.ppf(0.975)
        drawn = self.prior + np.where(step < 0, self.prior - low, high - self.prior) * step
        return np.asarray(np.clip(drawn, 1e-6, 1 - 1e-6), dtype=np.float64)


def capped(positive: Array, place: NDArray[np.intp], background: Array, prior: float) -> Array:
    """w⁺, moved to where no bin of scores holds more positives than rows; what is too much goes to the other bins in
    proportion.

    >>> capped(np.array([0.9, 0.1]), np.array([0, 1]), np.array([0.5, 0.5]), prior=0.8)
    array([0.5, 0.3])
    """
    held = prior * np.bincount(place, positive) / positive.sum()
    room = np.bincount(place, background) / background.sum()
    found, open_ = np.minimum(held, room), held > 0
    for _ in range(len(held)):
        full = open_ & (found >= room - 1e-12)
        missing, free = prior - found.sum(), open_ & ~full
        if missing <= 1e-12 or not free.any():
            break
        found[free] = np.minimum(found[free] * (1 + missing / found[free].sum()), room[free])
    factor = np.divide(found, held, out=np.ones_like(held), where=held > 0)
    return np.asarray(positive * factor[place] * prior / positive.sum())


def depth(scores: Tensor, labels: Tensor) -> Array:
    """Where a row's score stands among those of the labeled rows: −½ the lowest, ½ the highest."""
    labeled = np.sort(scores[labels == 1].numpy())
    middle = np.searchsorted(labeled, scores.numpy(), "left") + np.searchsorted(labeled, scores.numpy(), "right")
    return np.asarray(middle / (2 * len(labeled)) - 0.5)


def pu_row_weights(
    labels: Tensor, prior: float, propensity: Tensor | None, scenario: Scenario, sample_weight: Tensor | None = None
) -> RowWeights:
    """PUe's weights, or those of SCAR where there are no propensities, of a part of the data."""
    prior = possible_prior(prior, labels, scenario, sample_weight)
    return pu(labels, propensity, prior=prior, scenario=scenario, sample_weight=sample_weight)
