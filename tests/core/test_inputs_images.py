"""Gray images may come without an axis for the channel, and channels may come last."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from pue import PUClassifier
from pue.core.inputs import as_features


@pytest.mark.parametrize("propensity", [None, "auto"])
@pytest.mark.filterwarnings("ignore::pue.errors.PueWarning")
def test_images_without_channels_are_those_of_one_channel(propensity: str | None) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    x = (rng.integers(0, 100, (120, 12, 12)) + 100 * y[:, None, None]).astype(np.uint8)
    s = (y == 1) & (rng.random(120) < 0.5)
    found = []
    for images in (x, x[:, None]):
        clf = PUClassifier(prior=0.5, propensity=propensity, epochs=2, random_state=0, progress=False)
        found.append(clf.fit(images, s.astype(int)).decision_function(images))
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_channels_may_come_last(channels: int) -> None:
    images = np.random.default_rng(0).integers(0, 255, (40, 12, 14, channels)).astype(np.uint8)
    first = as_features(np.ascontiguousarray(images.transpose(0, 3, 1, 2)))
    last = as_features(images)
    assert isinstance(last, Tensor)
    assert isinstance(first, Tensor)
    assert last.shape == (40, channels, 12, 14)
    assert last.is_contiguous()
    assert torch.equal(first, last)


def test_tiny_images_of_three_columns_are_taken_as_they_come() -> None:
    found = as_features(np.zeros((5, 3, 8, 3), dtype=np.uint8))
    assert found.shape == (5, 3, 8, 3)
