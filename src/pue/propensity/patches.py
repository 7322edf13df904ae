"""For natural images: the pool on features that were learnt without labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Tensor

from pue.data import Features, PUData
from pue.patches import PatchFeatures, fit_patches
from pue.propensity.crossfit import CrossFit, possible_folds
from pue.propensity.logistic import Logistic
from pue.propensity.neighbors import Neighbors
from pue.propensity.pool import Pool, Pooled


@dataclass(frozen=True)
class Patches:
    """Cross-fitted logistic regression and neighbors, pooled as in `Auto`, on patch features (`pue.patches`).

    A few hundred labels are too few to learn what a car looks like; the unlabeled images are not. Tables have no
    patches: there it is the same pool on the columns.
    """

    shares_out: ClassVar = True
    patterns: int = 400
    components: int = 200
    folds: int = 3
    jobs: int = 1

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> PatchesModel:
        most = possible_folds(data)
        features = None
        if len(data.x.shape) == 4:
            features = fit_patches(data.x, patterns=self.patterns, components=self.components, seed=seed)
        seen = data if features is None else replace(data, x=features(data.x))
        members = {
            "logistic": CrossFit(Logistic(), min(most, self.folds), self.jobs),
            "neighbors": CrossFit(Neighbors(), min(most, 10), self.jobs),
        }
        return PatchesModel(features, Pool(members).fit(seen, prior=prior, seed=seed))


@dataclass(frozen=True, eq=False)
class PatchesModel:
    """The pool, and the features it looks at."""

    features: PatchFeatures | None
    pooled: Pooled

    @property
    def held_out(self) -> Tensor:
        return self.pooled.held_out

    @property
    def reference(self) -> Tensor:
        return self.pooled.reference

    def __call__(self, x: Features) -> Tensor:
        return self.pooled(x if self.features is None else self.features(x))

    def __str__(self) -> str:
        return f"{self.pooled}" + ("" if self.features is None else ", on patches")
