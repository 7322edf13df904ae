"""Features in place of images: learnt once from the training images, without a label, and kept for all runs."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pue.bench.datasets.cache import cache_folder, cached
from pue.bench.datasets.labeled import FeaturesId, LabeledSplit
from pue.core.machine import one_thread
from pue.features import Recipe, StoredEncoder, Views, kept_encoder
from pue.features.relatives import SHARPNESS, Relatives
from pue.propensity.patches import fit_patches


@dataclass(frozen=True)
class FeatureSet:
    """Which features a run sees: an encoder's, and beside them so many small patterns, as 200 components."""

    encoder: Recipe
    patterns: int = 0


@dataclass(frozen=True)
class FamilyShares:
    """How near an image is to every family of near-identical training images (`pue.features.relatives`)."""


RECIPES: dict[str, FeatureSet | FamilyShares] = {
    "families": FamilyShares(),
    "simclr-30": FeatureSet(Recipe(epochs=30)),
    "simclr-30+patches": FeatureSet(Recipe(epochs=30), patterns=800),
    "simclr-60+patches": FeatureSet(Recipe(epochs=60), patterns=800),
    "smoke": FeatureSet(Recipe(epochs=1, batch_size=64, widths=(4, 8, 8), views=Views(size=16)), patterns=4),
}
"""Name of a setting → the features. To change one is to change its name: records go by it."""


@lru_cache(maxsize=2)
def seen_by_encoder(name: str, split: LabeledSplit) -> LabeledSplit:
    """The same split with features for inputs: what made them saw nothing but training images."""
    wanted = RECIPES[name]
    if isinstance(wanted, FamilyShares):
        return _seen_by_family(split)
    with one_thread():
        encoder = kept_encoder(split.train_x, wanted.encoder, cache_folder() / "features")
        train, test = (_encoded(encoder, part) for part in (split.train_x, split.test_x))
        spent = 0.0
        if wanted.patterns:
            patches, spent = _patches(split, wanted.patterns)
            parts = [_alike(found, len(train)) for found in (torch.cat([train, test]), patches)]
            train, test = torch.split(torch.cat(parts, dim=1), [len(train), len(test)])
    facts = encoder.facts
    cost = FeaturesId(encoder.key[:16], float(facts["wall_seconds"]), float(facts["cpu_seconds"]) + spent)
    return replace(split, train_x=train, test_x=test, origin=split.checksum, features=cost)


def _seen_by_family(split: LabeledSplit) -> LabeledSplit:
    def make() -> NDArray[np.float32]:
        wall, cpu = time.perf_counter(), time.process_time()
        with one_thread():
            found = Relatives.fit(split.train_x)
            values = torch.cat([found.own, found(split.test_x)])
        spent = torch.zeros(1, values.shape[1])
        spent[0, :2] = torch.tensor([time.perf_counter() - wall, time.process_time() - cpu])
        return torch.cat([values, spent]).numpy()

    key = f"{split.checksum} {SHARPNESS:g}"
    kept = torch.from_numpy(cached("relatives", key, make))
    train, test = torch.split(kept[:-1], [len(split.train_x), len(split.test_x)])
    cost = FeaturesId(hashlib.sha256(f"families {key}".encode()).hexdigest()[:16], *kept[-1, :2].tolist())
    return replace(split, train_x=train.clone(), test_x=test.clone(), origin=split.checksum, features=cost)


def _encoded(encoder: StoredEncoder, images: Tensor) -> Tensor:
    key = f"{encoder.key} {len(images)} {images.sum(dtype=torch.int64)}"
    return torch.from_numpy(cached("features", key, lambda: encoder(images).numpy()))


def _patches(split: LabeledSplit, patterns: int) -> tuple[Tensor, float]:
    """Components of patterns found in training images, of all images, and the processor seconds that took once."""

    def make() -> NDArray[np.float32]:
        began = time.process_time()
        found = fit_patches(split.train_x, patterns=patterns)
        values = torch.cat([found(split.train_x), found(split.test_x)])
        spent = torch.full((1, values.shape[1]), time.process_time() - began)
        return torch.cat([values, spent]).numpy()

    kept = torch.from_numpy(cached("patches", f"{split.checksum} {patterns}", make))
    return kept[:-1], float(kept[-1, 0])


def _alike(found: Tensor, n_train: int) -> Tensor:
    """Centered, and of unit variance on average over the columns, so that two kinds of features have equal say."""
    center = found[:n_train].mean(0)
    return (found - center) / found[:n_train].var(0).mean().sqrt().clamp(min=1e-12)
