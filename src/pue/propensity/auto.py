"""The default: what is safe for the kind of data.

Images: estimators of P(labeled | x), cross-fitted and pooled by held-out likelihood. Tables: one propensity for all
unless the test of SCAR speaks against that; then class and propensity together (`Joint`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import torch
from scipy import sparse
from torch import Tensor

from pue.backbones.dense import mlp
from pue.core.data import Features, PUData, is_image, possible_prior
from pue.persistence import PASSING, kept
from pue.propensity.crossfit import CrossFit, possible_folds
from pue.propensity.groups import Constant, ConstantModel
from pue.propensity.joint import Joint
from pue.propensity.logistic import Logistic
from pue.propensity.neighbors import Neighbors
from pue.propensity.network import Network
from pue.propensity.pool import Pool, Pooled
from pue.propensity.protocol import PropensityEstimator, PropensityModel
from pue.propensity.scar import FEWEST_LABELED, FEWEST_UNLABELED, ScarTest, scar_test, without_gaps
from pue.training import Augmentation, Batching, Training

LEVEL = 0.2
"""Of the test of SCAR that decides about tables. Overlap hides biases from the test, and `Joint` refuses corrections
that make the class less certain, so acting needs less evidence than the verdict "biased" (0.05) does."""
FEWEST = 10
"""Labels, or unlabeled rows, below which nothing but SCAR can be estimated."""
RARE = 0.1
"""Of positives that are rarer than this, chances of a label are not told from chances of the class: on development
tables with 1 to 5 % positives `Joint` ranked worse than no correction, by up to 29 points of AUC, and true propensities
gained 1 to 3."""

MANY = 8_000
"""Rows of a table from which the joint estimate, which draws so many of them, must not take longer than the rest."""
SPARING = Joint(trees=25)

HIDDEN = (1.0, 3.0)
"""A bias of tables that overlap hides, see `PropensityModel.hidden_bias`. Labeled rows are clearer than other
positives, and a test sees that only in part: without it estimated metrics flattered by four to nine points on
development tables, and their intervals held the truth in about half of the cases. docs/lab/evaluation.md has the
figures with it."""

IMAGE_NETWORK = Network(
    alpha=0.0,
    backbone=partial(mlp, depth=2),
    training=Training(
        epochs=8,
        batching=Batching(512, "pooled"),
        lr=2e-3,
        weight_decay=1e-4,
        augmentation=Augmentation(shift=2),
        validation=0.1,
        criterion="likelihood",
        keep="best",
    ),
)
"""Out of fold the paper's pull has nothing to protect from; small shifts and the best epoch generalise better."""


@kept
@dataclass(frozen=True)
class Auto:
    """A pool of a network and neighbors for images; for tables SCAR, or `Joint` where the test speaks against SCAR.

    What an image shows is seldom in doubt, so P(labeled | x) of a positive is its propensity. In tables classes
    overlap: labels that are denser than SCAR allows are the only sign of a bias, and where there is none an estimate
    would only add noise. A bias that overlap hides stays unrepaired; what it would change is among the `readings`.
    Sparse tables get a pool of logistic regressions, kept above a floor that the prior sets (`pool.certain_floor`).
    """

    shares_out: ClassVar = True
    folds: int = 3
    """Folds of the learned members. Neighbors have nothing to learn and get ten."""
    jobs: int = 1
    image_network: PropensityEstimator = field(default_factory=lambda: IMAGE_NETWORK)
    columns: tuple[int, ...] | None = None
    """Columns of a table that the labeling depends on, if they are known: then e is identified, and needs no test."""

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> PropensityModel:
        if is_image(data.x) or sparse.issparse(data.x):
            return self._pool(data, prior, seed)
        return self._table(data, prior, seed)

    def _table(self, data: PUData, prior: float, seed: int) -> PropensityModel:
        """SCAR or `Joint`, whichever the test of SCAR leaves; both are kept, for what they disagree about is doubt."""
        unbiased = Constant().fit(data, prior=prior)
        if min(data.n_labeled, int(data.unlabeled.sum())) < FEWEST:
            possible_folds(data)
            return Chosen(unbiased, (), None)
        if prior < RARE and self.columns is None:
            test = None if data.sample_weight is not None else _scar_test(data, prior, seed)
            return Chosen(unbiased, (), None if test is None else test.p_value, test)
        estimator = Joint() if data.n_rows <= MANY else SPARING
        joint = replace(estimator, columns=self.columns).fit(data, prior=prior, seed=seed)
        if data.sample_weight is not None:  # the test counts rows
            return Chosen(joint, (unbiased,), None)
        test = _scar_test(data, prior, seed)
        p = None if test is None else test.p_value
        if self.columns is not None or (p is not None and p <= LEVEL):
            return Chosen(joint, (unbiased,), p, test)
        return Chosen(unbiased, (joint,), p, test)

    def _pool(self, data: PUData, prior: float, seed: int) -> Pooled:
        most = possible_folds(data)
        members = {name: CrossFit(member, min(most, self.folds), self.jobs) for name, member in self._learned(data.x)}
        members["neighbors"] = CrossFit(Neighbors(), min(most, 10), self.jobs)
        return Pool(members, overlap=not is_image(data.x)).fit(data, prior=prior, seed=seed)

    def _learned(self, x: Features) -> list[tuple[str, PropensityEstimator]]:
        return [("network", self.image_network)] if is_image(x) else [("logistic", Logistic())]


@kept
@dataclass(frozen=True, eq=False)
class Chosen(PropensityModel):
    """One reading of the labels, and others that they do not rule out or that the test alone spoke against."""

    model: PropensityModel
    others: tuple[PropensityModel, ...]
    p_value: float | None
    """Of the test of SCAR; None: not tested."""
    test: ScarTest | None = field(default=None, metadata=PASSING)
    """For who asks the same of the same rows."""

    def __call__(self, x: Features) -> Tensor:
        return self.model(x)

    @property
    def held_out(self) -> Tensor | None:
        return self.model.held_out

    @property
    def reference(self) -> Tensor | None:
        return self.model.reference

    def readings(self, x: Features) -> Tensor:
        return torch.cat([self.model.readings(x), *(other.readings(x) for other in self.others)], dim=1)

    @property
    def hidden_bias(self) -> tuple[float, float]:
        return HIDDEN

    def few(self, n: int) -> Chosen:
        return replace(self, model=self.model.few(n), others=tuple(other.few(n) for other in self.others))

    @property
    def description(self) -> str:
        if isinstance(self.model, ConstantModel):
            tested = "not tested" if self.p_value is None else f"test of SCAR: p = {self.p_value:.2g}"
            rare = "; too few positives to tell a bias from the class" if (self.p_value or 1.0) <= LEVEL else ""
            return f"labels taken as unbiased ({tested}{rare})"
        return self.model.description


def _scar_test(data: PUData, prior: float, seed: int) -> ScarTest | None:
    """SCAR at this prior; None where there are too few rows to test it."""
    if data.n_labeled < FEWEST_LABELED or int(data.unlabeled.sum()) < FEWEST_UNLABELED:
        return None
    prior = possible_prior(prior, data.labels, data.scenario)
    return scar_test(PUData(without_gaps(data.x), data.labels, data.scenario), prior=prior, seed=seed)
