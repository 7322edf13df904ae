"""The default: estimators that fit the kind of data, cross-fitted and pooled by held-out likelihood."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from scipy import sparse

from pue.backbones.dense import mlp
from pue.core.data import Features, PUData, is_image
from pue.persistence import kept
from pue.propensity.boosted import Boosted
from pue.propensity.crossfit import CrossFit, possible_folds
from pue.propensity.logistic import Logistic
from pue.propensity.neighbors import Neighbors
from pue.propensity.network import Network
from pue.propensity.pool import Pool, Pooled
from pue.propensity.protocol import PropensityEstimator
from pue.training import Augmentation, Batching, Training

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
    """A network and neighbors for images; logistic regression, boosted trees and neighbors for tables.

    What an image shows is seldom in doubt, so P(labeled | x) of a positive is its propensity. In tables classes
    overlap, and ê is kept above a floor that the prior sets (`pool.certain_floor`).

    `str` of the model says what was chosen: the shares of the pool.
    """

    shares_out: ClassVar = True
    folds: int = 3
    """Folds of the learned members. Neighbors have nothing to learn and get ten."""
    jobs: int = 1
    image_network: PropensityEstimator = field(default_factory=lambda: IMAGE_NETWORK)

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> Pooled:
        most = possible_folds(data)
        members = {name: CrossFit(member, min(most, self.folds), self.jobs) for name, member in self._learned(data.x)}
        members["neighbors"] = CrossFit(Neighbors(), min(most, 10), self.jobs)
        return Pool(members, overlap=not is_image(data.x)).fit(data, prior=prior, seed=seed)

    def _learned(self, x: Features) -> list[tuple[str, PropensityEstimator]]:
        if is_image(x):
            return [("network", self.image_network)]
        if sparse.issparse(x):
            return [("logistic", Logistic())]
        return [("logistic", Logistic()), ("boosted trees", Boosted(folds=2, iterations=100))]
