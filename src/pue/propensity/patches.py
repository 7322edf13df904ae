"""For natural images: the pool on features learnt without a label, which of a few hundred small patterns occur where
(Coates, Lee, Ng 2011)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from pue.core.data import Features, PUData, as_float, is_image
from pue.core.folds import row_hash
from pue.errors import InvalidInput
from pue.persistence import kept
from pue.propensity.crossfit import CrossFit, possible_folds
from pue.propensity.logistic import Logistic
from pue.propensity.neighbors import Neighbors
from pue.propensity.pool import Pool, Pooled
from pue.propensity.protocol import PropensityModel

FIT_IMAGES = 10_000
"""Patterns, scales and components are those of at most so many images."""
FIT_PATCHES = 60_000
BLOCK = 250
"""Images at a time: some 80 MB of responses."""
ROUNDS = 15


@kept
@dataclass(frozen=True)
class Patches:
    """Cross-fitted logistic regression and neighbors, pooled as in `Auto`, on `PatchFeatures`.

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
        if is_image(data.x):
            features = fit_patches(data.x, patterns=self.patterns, components=self.components, seed=seed)
        seen = data if features is None else replace(data, x=features(data.x))
        members = {
            "logistic": CrossFit(Logistic(), min(most, self.folds), self.jobs),
            "neighbors": CrossFit(Neighbors(), min(most, 10), self.jobs),
        }
        return PatchesModel(features, Pool(members).fit(seen, prior=prior, seed=seed))


@kept
@dataclass(frozen=True, eq=False)
class PatchesModel(PropensityModel):
    """The pool, and the features it looks at."""

    features: PatchFeatures | None
    pooled: Pooled

    @property
    def held_out(self) -> Tensor | None:
        return self.pooled.held_out

    @property
    def reference(self) -> Tensor | None:
        return self.pooled.reference

    def __call__(self, x: Features) -> Tensor:
        return self.pooled(x if self.features is None else self.features(x))

    @property
    def description(self) -> str:
        return self.pooled.description + ("" if self.features is None else ", on patches")


@kept
@dataclass(frozen=True, eq=False)
class PatchFeatures:
    """Images (n, channels, height, width) → (n, components) float32, piece by piece."""

    patch: int
    stride: int
    mean: Tensor
    whitening: Tensor
    patterns: Tensor
    center: Tensor
    components: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        if len(x) == 0:
            return torch.empty(0, self.components.shape[1])
        return torch.cat([(self.responses(block) - self.center) @ self.components for block in torch.split(x, BLOCK)])

    def responses(self, x: Tensor) -> Tensor:
        """How strongly each pattern occurs in each quarter of the images."""
        parts = []
        for block in torch.split(x, BLOCK):
            windows = functional.unfold(as_float(block), self.patch, stride=self.stride).transpose(1, 2)
            whitened = (_contrast(windows) - self.mean) @ self.whitening
            match = torch.relu(whitened @ self.patterns.T - 0.5)
            down, across = ((side - self.patch) // self.stride + 1 for side in x.shape[2:])
            image = match.transpose(1, 2).reshape(len(block), -1, down, across)
            parts.append(functional.adaptive_avg_pool2d(image, 2).flatten(1))
        return torch.cat(parts)


def fit_patches(
    x: Tensor, *, patterns: int = 400, patch: int = 6, stride: int = 2, components: int = 200, seed: int = 0
) -> PatchFeatures:
    """Patterns are the centers of whitened patches of some images; features the principal components of the responses.

    >>> images = torch.randint(0, 256, (40, 1, 12, 12), dtype=torch.uint8)
    >>> fit_patches(images, patterns=8, components=5)(images).shape
    torch.Size([40, 5])
    """
    if x.ndim != 4 or min(x.shape[2:]) < patch + stride:
        raise InvalidInput(
            f"patches need images (n, channels, height, width) of at least {patch + stride} pixels a side; rows have "
            f"shape {tuple(x.shape[1:])}. Use propensity='auto'."
        )
    generator = torch.Generator().manual_seed(seed % 2**63)
    # Images chosen by content, so that the order of the rows does not matter.
    some = x[torch.from_numpy(np.argsort(row_hash(x, seed=seed), kind="stable")[:FIT_IMAGES])]
    windows = (
        functional.unfold(as_float(some[: FIT_IMAGES // 2]), patch, stride=patch // 2).transpose(1, 2).flatten(0, 1)
    )
    windows = _contrast(windows[torch.randperm(len(windows), generator=generator)[:FIT_PATCHES]])
    mean = windows.mean(0)
    strength, direction = torch.linalg.eigh((windows - mean).T @ (windows - mean) / len(windows))
    whitening = direction @ torch.diag((strength.clamp(min=0) + 0.1).rsqrt()) @ direction.T
    centers = _spherical_centers((windows - mean) @ whitening, patterns, generator)
    nothing = torch.zeros(())
    raw = PatchFeatures(patch, stride, mean, whitening, centers, nothing, nothing).responses(some)
    center, spread = raw.mean(0), raw.std(0).clamp(min=1e-6)
    scaled = (raw - center) / spread
    _, axes = torch.linalg.eigh(scaled.T @ scaled / len(scaled))
    largest = axes.flip(1)[:, : min(components, len(some) - 1)]
    return PatchFeatures(patch, stride, mean, whitening, centers, center, largest / spread[:, None])


def _contrast(windows: Tensor) -> Tensor:
    """Brightness and contrast of every patch taken out."""
    return (windows - windows.mean(-1, keepdim=True)) / (windows.var(-1, keepdim=True) + 0.01).sqrt()


def _spherical_centers(points: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Unit vectors that the points cluster around by angle: k-means with cosines."""
    chosen = torch.randint(len(points), (count,), generator=generator)
    centers = functional.normalize(points[chosen], dim=1)
    for _ in range(ROUNDS):
        nearest = (points @ centers.T).argmax(1)
        sums = torch.zeros_like(centers).index_add_(0, nearest, points)
        empty = sums.norm(dim=1) == 0
        centers = torch.where(empty[:, None], centers, functional.normalize(sums, dim=1))
    return centers
