"""Augmentation of whole batches against twins that treat one image, one pixel at a time."""

import math

import pytest
import torch
from torch import Tensor

from pue.core.weights import RowWeights, uniform
from pue.errors import InvalidInput
from pue.training import Augmentation
from pue.training.augment import flip, mixup, rotate, shift

SHAPES = [(7, 1, 8, 8), (5, 3, 6, 10)]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pictures(shape: tuple[int, ...], dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.rand(shape, generator=generator(9), dtype=dtype) + 0.1  # never zero: zeros come from outside


# ------------------------------------------------------------------------------------------------------ slow twins


def slow_shift(x: Tensor, pixels: int, seed: int) -> Tensor:
    """Image i of the result at (r, c) is x at (r + down − pixels, c + right − pixels), zero outside."""
    down, right = torch.randint(0, 2 * pixels + 1, (2, len(x)), generator=generator(seed))
    out = torch.zeros_like(x)
    _, _, height, width = x.shape
    for i in range(len(x)):
        for r in range(height):
            for c in range(width):
                row, column = r + int(down[i]) - pixels, c + int(right[i]) - pixels
                if 0 <= row < height and 0 <= column < width:
                    out[i, :, r, c] = x[i, :, row, column]
    return out


def slow_flip(x: Tensor, seed: int) -> Tensor:
    coins = torch.rand(len(x), generator=generator(seed))
    return torch.stack([image.flip(2) if coin < 0.5 else image for image, coin in zip(x, coins, strict=True)])


def slow_rotate(x: Tensor, degrees: float, seed: int) -> Tensor:
    """Pixel by pixel, in *pixel* units about the center: a rotation keeps lengths, whatever the image's aspect."""
    angles = (2 * torch.rand(len(x), generator=generator(seed)) - 1) * degrees
    out = torch.zeros_like(x)
    _, _, height, width = x.shape
    for i, angle in enumerate(angles.tolist()):
        cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        for r in range(height):
            for c in range(width):
                dx, dy = c - (width - 1) / 2, r - (height - 1) / 2
                column, row = cos * dx - sin * dy + (width - 1) / 2, sin * dx + cos * dy + (height - 1) / 2
                left, top = math.floor(column), math.floor(row)
                for rr, share_r in ((top, 1 - row + top), (top + 1, row - top)):
                    for cc, share_c in ((left, 1 - column + left), (left + 1, column - left)):
                        if 0 <= rr < height and 0 <= cc < width:
                            out[i, :, r, c] += share_r * share_c * x[i, :, rr, cc]
    return out


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("pixels", [1, 3])
def test_shift_equals_its_slow_twin(shape: tuple[int, ...], pixels: int) -> None:
    x = pictures(shape)
    assert torch.equal(shift(x, pixels, generator(3)), slow_shift(x, pixels, 3))


@pytest.mark.parametrize("shape", SHAPES)
def test_flip_equals_its_slow_twin(shape: tuple[int, ...]) -> None:
    x = pictures(shape)
    flipped = flip(x, generator(3))
    assert torch.equal(flipped, slow_flip(x, 3))
    assert not torch.equal(flipped, x)


# The second shape is not square: there a rotation of torch's normalised coordinates would shear the image.
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("degrees", [15.0, 90.0])
def test_rotate_equals_its_slow_twin(shape: tuple[int, ...], degrees: float) -> None:
    x = pictures(shape)
    # Angles are drawn in float32 on either side; what is left is rounding.
    torch.testing.assert_close(rotate(x, degrees, generator(3)), slow_rotate(x, degrees, 3), atol=1e-5, rtol=0)


def test_shift_reaches_both_ends_and_nothing_beyond() -> None:
    x = torch.zeros(400, 1, 9, 9)
    x[:, 0, 4, 4] = 1
    spots = torch.nonzero(shift(x, 2, generator()))[:, 2:]
    assert spots.min(0).values.tolist() == [2, 2]
    assert spots.max(0).values.tolist() == [6, 6]


def test_flip_mirrors_about_half_of_the_images() -> None:
    x = torch.arange(3.0).expand(1000, 1, 1, 3)
    mirrored = (flip(x, generator())[:, 0, 0, 0] == 2).double().mean()
    assert 0.45 < mirrored < 0.55


def test_rotations_go_both_ways() -> None:
    # The pixel right of the center ends above or below it.
    x = torch.zeros(200, 1, 9, 9)
    x[:, 0, 4, 7] = 1
    turned = rotate(x, 45.0, generator())
    above, below = turned[:, 0, :4].sum((1, 2)), turned[:, 0, 5:].sum((1, 2))
    assert 60 < int((above > below).sum()) < 140


# ------------------------------------------------------------------------------------------------- the whole thing


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shape_and_type_are_kept(dtype: torch.dtype) -> None:
    x = pictures((6, 3, 8, 8), dtype)
    y = Augmentation(shift=2, flip=True, rotate=10.0).images(x, generator())
    assert y.shape == x.shape
    assert y.dtype == dtype


def test_the_generator_alone_decides() -> None:
    x, augmentation = pictures((6, 1, 8, 8)), Augmentation(shift=2, flip=True, rotate=10.0)
    first, again, other = (augmentation.images(x, generator(seed)) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_input_is_left_alone() -> None:
    x = pictures((6, 1, 8, 8))
    before = x.clone()
    Augmentation(shift=2, flip=True, rotate=10.0).images(x, generator())
    mixup(x, RowWeights(torch.rand(6), torch.rand(6)), 1.0, generator())
    assert torch.equal(x, before)


def test_no_augmentation_is_the_identity_and_draws_nothing() -> None:
    x, g = pictures((6, 1, 8, 8)), generator()
    before = g.get_state()
    assert Augmentation().images(x, g) is x
    assert torch.equal(g.get_state(), before)


@pytest.mark.parametrize("option", [{"shift": 1}, {"flip": True}, {"rotate": 5.0}])
def test_tables_refuse_what_is_for_images(option: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match=r"need images .* shape \(4, 3\)\. For tables only mixup applies"):
        Augmentation(**option).images(torch.zeros(4, 3), generator())


@pytest.mark.parametrize("option", [{"shift": -1}, {"rotate": -5.0}, {"mixup": -0.1}])
def test_negative_strengths_are_refused(option: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="must not be negative"):
        Augmentation(**option)


# ---------------------------------------------------------------------------------------------------------- mixup


def mixed(seed: int, alpha: float = 0.7) -> tuple[Tensor, RowWeights, Tensor, RowWeights]:
    x = torch.rand(12, 3, generator=generator(9), dtype=torch.float64)
    weights = uniform(torch.tensor([1] * 4 + [0] * 8), prior=0.4, scenario="case_control")
    return x, weights, *mixup(x, weights, alpha, generator(seed))


@pytest.mark.parametrize("seed", range(5))
def test_mixup_keeps_the_mass_of_the_weights(seed: int) -> None:
    _, weights, _, blend = mixed(seed)
    torch.testing.assert_close(blend.positive.sum(), weights.positive.sum(), rtol=1e-14, atol=0)
    torch.testing.assert_close(blend.negative.sum(), weights.negative.sum(), rtol=1e-14, atol=0)


def test_mixup_is_one_mixture_of_rows_and_weights() -> None:
    x, weights, y, blend = mixed(0)
    # λ and the partners are found again from the outputs: y = λx + (1 − λ)x' must hold with one λ for the batch.
    g = generator(0)
    gammas = torch._standard_gamma(torch.full((2,), 0.7, dtype=torch.float64), generator=g)
    share, partner = float(gammas[0] / gammas.sum()), torch.randperm(12, generator=g)
    assert 0 < share < 1
    for i, j in enumerate(partner.tolist()):
        for found, source in ((y, x), (blend.positive, weights.positive), (blend.negative, weights.negative)):
            torch.testing.assert_close(found[i], share * source[i] + (1 - share) * source[j], rtol=1e-14, atol=1e-16)


def test_the_share_of_mixup_follows_the_beta_law() -> None:
    # Beta(α, α): mean 1/2, variance 1 / (4 (2α + 1)). Row i holds i, so y₀ = (1 − λ)·partner gives λ back.
    x = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    weights = RowWeights(torch.zeros(2), torch.zeros(2))
    shares = []
    for seed in range(4000):
        y, _ = mixup(x, weights, 2.0, generator(seed))
        if y[0, 0] != 0:  # the partner is the other row
            shares.append(1 - float(y[0, 0]))
    found = torch.tensor(shares)
    assert found.mean() == pytest.approx(0.5, abs=0.02)
    assert found.var() == pytest.approx(1 / 20, abs=0.005)


def test_mixup_alone_asks_for_no_images() -> None:
    x = torch.rand(4, 3)
    assert Augmentation(mixup=0.7).images(x, generator()) is x
