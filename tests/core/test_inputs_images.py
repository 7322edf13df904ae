"""Gray images may come without an axis for the channel."""

from __future__ import annotations

import numpy as np
import pytest

from pue import PUClassifier


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
