"""Patch features: a slow twin, no dependence on order or labels, and propensities that need them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from pue.bench.labeling import class_mix
from pue.core.data import PUData, Scenario
from pue.errors import InvalidInput
from pue.propensity import CrossFit, Logistic, Patches, estimate_propensity
from pue.propensity.patches import fit_patches


def stripes(n: int, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Images of stripes in one of four directions, shifted at random: alike only to those who look for patterns."""
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % 4
    angle, phase = kind * np.pi / 4, rng.uniform(0, 2 * np.pi, n)
    row, column = np.mgrid[:16, :16]
    wave = np.cos(angle)[:, None, None] * row + np.sin(angle)[:, None, None] * column
    bright = 0.5 + 0.35 * np.sin(1.6 * wave + phase[:, None, None]) + 0.1 * rng.normal(size=wave.shape)
    pixels = (255 * bright.clip(0, 1)).astype(np.uint8)
    return torch.from_numpy(pixels)[:, None], torch.from_numpy(kind)


def test_responses_are_those_of_the_slow_twin() -> None:
    x, _ = stripes(40)
    fitted = fit_patches(x, patterns=6, components=5)
    found = fitted.responses(x[:3])
    image = x[1, 0].double() / 255
    places = range(0, 16 - 6 + 1, 2)
    match = np.zeros((6, len(places), len(places)))
    for i, top in enumerate(places):
        for j, left in enumerate(places):
            window = image[top : top + 6, left : left + 6].flatten()
            window = (window - window.mean()) / torch.sqrt(window.var() + 0.01)
            whitened = (window - fitted.mean.double()) @ fitted.whitening.double()
            for k, pattern in enumerate(fitted.patterns.double()):
                match[k, i, j] = max(0.0, float(whitened @ pattern) - 0.5)
    half = [slice(0, 3), slice(3, 6)]
    expected = [match[k][rows, columns].mean() for k in range(6) for rows in half for columns in half]
    np.testing.assert_allclose(found[1].numpy(), expected, atol=1e-4)


def test_the_order_of_images_does_not_matter_and_blocks_do_not_either() -> None:
    x, _ = stripes(600)
    order = torch.randperm(600, generator=torch.Generator().manual_seed(0))
    features = fit_patches(x, patterns=8, components=5)
    torch.testing.assert_close(features(x)[order], fit_patches(x[order], patterns=8, components=5)(x[order]))
    torch.testing.assert_close(features(x)[:10], features(x[:10]), atol=1e-4, rtol=1e-4)
    assert features(x[:0]).shape == (0, 5)


def test_patterns_tell_apart_what_pixels_do_not() -> None:
    x, kind = stripes(1200)
    data, truth = class_mix(
        x, kind, mix={0: 0.8, 1: 0.2}, n_labeled=200, scenario=Scenario.CASE_CONTROL, rng=np.random.default_rng(0)
    )
    labeled_kind = truth.classes[data.labeled]

    def ratio(estimator: Patches | CrossFit) -> float:
        found = estimate_propensity(estimator, data, prior=0.5)
        e, report = found.e, found.report
        assert report.source.startswith("cross-fitted")
        return float(e[labeled_kind == 0].log().mean() - e[labeled_kind == 1].log().mean())

    # The true ratio is 4, log 4 = 1.39; pixels of shifted stripes say nothing linear.
    assert ratio(Patches(patterns=40, components=20)) == pytest.approx(1.39, abs=0.25)
    assert ratio(CrossFit(Logistic())) < 0.5


def test_a_new_image_gets_the_estimate_of_its_kind() -> None:
    x, kind = stripes(800)
    data, _ = class_mix(x, kind, mix={0: 0.8, 1: 0.2}, n_labeled=150, rng=np.random.default_rng(0))
    model = Patches(patterns=40, components=20).fit(data, prior=0.5)
    new, new_kind = stripes(200, seed=9)
    e = model(new)
    assert float(e[new_kind == 0].mean()) > 2 * float(e[new_kind == 1].mean()) > float(e[new_kind == 2].mean())
    assert model.description.endswith("on patches")


def test_images_too_small_for_a_patch_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at least 8 pixels a side"):
        fit_patches(torch.zeros(10, 1, 7, 7, dtype=torch.uint8))


def test_too_few_rows_are_refused_with_the_remedy() -> None:
    x = torch.zeros(4, 1, 16, 16, dtype=torch.uint8)
    with pytest.raises(InvalidInput, match="at least 2 distinct labeled"):
        Patches().fit(PUData(x, torch.tensor([1, 0, 0, 0]), Scenario.CASE_CONTROL), prior=0.5)
