"""Features in place of images: learnt once from the training images, without a label, and kept for all runs."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import torch
from torch import Tensor

from pue.bench.datasets.cache import cache_folder, cached
from pue.bench.datasets.labeled import FeaturesId, LabeledSplit
from pue.core.machine import one_thread
from pue.features import Recipe, StoredEncoder, Views, kept_encoder

RECIPES: dict[str, Recipe] = {
    "simclr-16": Recipe(epochs=16),
    "simclr-100": Recipe(epochs=100),
    "smoke": Recipe(epochs=1, batch_size=64, widths=(4, 8, 8), views=Views(size=16)),
}
"""Name of a setting → how the encoder is trained. To change one is to change its name: records go by it."""


@lru_cache(maxsize=2)
def seen_by_encoder(recipe: str, split: LabeledSplit) -> LabeledSplit:
    """The same split with features for inputs: those of an encoder that saw the images of the training set alone."""
    with one_thread():
        encoder = kept_encoder(split.train_x, RECIPES[recipe], cache_folder() / "features", progress=None)
        train, test = (_features(encoder, part) for part in (split.train_x, split.test_x))
    facts = encoder.facts
    cost = FeaturesId(encoder.key[:16], float(facts["wall_seconds"]), float(facts["cpu_seconds"]))
    return replace(split, train_x=train, test_x=test, origin=split.checksum, features=cost)


def _features(encoder: StoredEncoder, images: Tensor) -> Tensor:
    key = f"{encoder.key} {len(images)} {images.sum(dtype=torch.int64)}"
    return torch.from_numpy(cached("features", key, lambda: encoder(images).numpy()))
