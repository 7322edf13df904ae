"""Views, agreement, encoders: training without labels, what it keeps, and what becomes of it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import twins
from torch import nn

import pue
from pue import PUClassifier
from pue.backbones import Pretrained
from pue.backbones.encoder import Whitening
from pue.errors import InvalidInput, MissingData, ModelError
from pue.features import Recipe, Views, fit_encoder, kept_encoder, load_encoder, open_encoder
from pue.features import fit as fitting
from pue.features.agreement import simclr, vicreg
from pue.features.views import crop, recolor
from pue.persistence.model import save

TINY = Recipe(epochs=2, batch_size=16, widths=(4, 8, 8), views=Views(size=16), half=False)


def stripes(n: int = 64, channels: int = 3) -> torch.Tensor:
    """Images of four kinds: stripes down or across, wide or narrow, with noise."""
    generator = torch.Generator().manual_seed(0)
    kind = torch.arange(n) % 4
    steps = torch.arange(16)
    wave = torch.where(kind[:, None] < 2, torch.sin(steps * 0.8), torch.sin(steps * 2.0))
    image = torch.where((kind % 2 == 0)[:, None, None], wave[:, :, None].expand(-1, 16, 16), wave[:, None, :])
    noise = torch.randn(n, channels, 16, 16, generator=generator)
    return ((image[:, None] + 0.5 * noise).sigmoid() * 255).to(torch.uint8)


# ------------------------------------------------------------------------------------------------ views


def test_a_view_that_may_not_differ_is_the_image() -> None:
    same = Views(size=16, smallest=1.0, flip=False, color=0.0, hue=0.0, gray=0.0)
    x = stripes().float() / 255
    torch.testing.assert_close(recolor(x, same, torch.Generator()), x)


def test_gray_views_have_equal_channels_and_the_brightness_of_their_image() -> None:
    x = torch.rand(8, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    gray = recolor(x, Views(size=16, color=0.0, hue=0.0, gray=1.0), torch.Generator())
    level = (torch.tensor([0.299, 0.587, 0.114])[:, None, None] * x).sum(1)
    for channel in gray.unbind(1):
        torch.testing.assert_close(channel, level, atol=4e-3, rtol=0)  # the printed matrix has three decimals


def test_a_crop_shows_a_connected_part_of_the_image_mirrored_or_not() -> None:
    ramp = torch.linspace(0, 1, 32).expand(200, 1, 32, 32)
    seen = crop(ramp, Views(size=16, smallest=0.2), torch.Generator().manual_seed(0))
    steps = seen.diff(dim=3)
    mirrored = (steps <= 1e-6).all(dim=3).all(dim=2)[:, 0]
    assert bool(((steps >= -1e-6).all(dim=3).all(dim=2)[:, 0] | mirrored).all())
    assert 60 < int(mirrored.sum()) < 140
    width = seen.amax((1, 2, 3)) - seen.amin((1, 2, 3))
    assert 0.3 < float(width.min()) < 0.55
    assert float(width.max()) > 0.9
    assert not bool((crop(ramp, Views(size=16, flip=False), torch.Generator()).diff(dim=3) < -1e-6).any())


def test_views_depend_on_the_generator_alone() -> None:
    x = torch.rand(4, 3, 20, 20)
    one, same, other = (Views(size=16)(x, torch.Generator().manual_seed(seed)) for seed in (3, 3, 4))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("wrong", [{"size": 8}, {"smallest": 0.0}, {"color": 1.5}])
def test_views_that_show_nothing_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="views"):
        Views(**wrong)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------ agreement


def test_agreements_are_their_slow_twins() -> None:
    generator = torch.Generator().manual_seed(0)
    one, other = torch.randn(2, 5, 3, generator=generator, dtype=torch.float64)
    assert simclr(one, other).item() == pytest.approx(twins.simclr(one.tolist(), other.tolist(), 0.5))
    assert vicreg(one, other).item() == pytest.approx(twins.vicreg(one.tolist(), other.tolist()))


# ------------------------------------------------------------------------------------------------ encoder


def test_the_first_layer_whitens() -> None:
    layer = Whitening(3)
    images = stripes(256).float() / 255
    layer.fit(images, ridge=0.0)
    raw = nn.functional.conv2d(images, layer.weight, layer.bias).transpose(0, 1).flatten(1)
    torch.testing.assert_close(torch.cov(raw[:12]), torch.eye(12), atol=1e-2, rtol=0)
    torch.testing.assert_close(raw[12:], -raw[:12])


def test_training_without_labels_finds_kinds() -> None:
    images, kind = stripes(256), torch.arange(256) % 4

    def alike(epochs: int) -> float:
        """Share of images whose nearest neighbor is of their kind; by chance a quarter."""
        recipe = Recipe(epochs=epochs, batch_size=64, widths=(8, 16, 16), ema=0.9, views=TINY.views)
        z = fit_encoder(images, recipe)(images)
        z = (z - z.mean(0)) / z.std(0)
        nearest = (torch.cdist(z, z) + 1e9 * torch.eye(len(z))).argmin(1)
        return float((kind[nearest] == kind).float().mean())

    assert alike(1) < 0.6
    assert alike(20) > 0.75


def test_a_training_that_was_stopped_continues_to_the_same_encoder(tmp_path: Path) -> None:
    images, stop = stripes(), KeyboardInterrupt()

    def interrupt(record: object, network: object) -> None:
        raise stop

    whole = fit_encoder(images, TINY)
    with pytest.raises(KeyboardInterrupt):
        fit_encoder(images, TINY, checkpoints=tmp_path, on_epoch=interrupt)
    resumed = fit_encoder(images, TINY, checkpoints=tmp_path)
    assert torch.equal(whole(images), resumed(images))
    assert resumed.facts["cpu_seconds"] > 0
    assert resumed.facts["images"] == 64


def test_an_encoder_is_trained_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = stripes()
    first = kept_encoder(images, TINY, tmp_path)
    monkeypatch.setattr(fitting, "fit_encoder", lambda *_, **__: pytest.fail("trained again"))
    again = kept_encoder(images, TINY, tmp_path)
    assert torch.equal(first(images), again(images))
    assert again.key == TINY.key(images)
    with pytest.raises(pytest.fail.Exception):
        kept_encoder(images.flip(0), TINY, tmp_path)


def test_features_do_not_depend_on_company_or_on_mirroring() -> None:
    images = stripes(40)
    found = fit_encoder(images, TINY)
    torch.testing.assert_close(found(images)[7:8], found(images[7:8]))
    torch.testing.assert_close(found(images.flip(3)), found(images))


def test_other_images_are_refused() -> None:
    found = fit_encoder(stripes(16), TINY)
    with pytest.raises(InvalidInput, match=r"3 channel\(s\); these have 1"):
        found(stripes(4, channels=1))
    with pytest.raises(InvalidInput, match="at least 16 pixels"):
        fit_encoder(torch.zeros(20, 1, 8, 8), TINY)
    with pytest.raises(InvalidInput, match="at least 16 pixels"):
        found(torch.zeros(4, 48))


# ---------------------------------------------------------------------------------------- the start of a network


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("features") / "encoder"
    save(fit_encoder(stripes(), TINY), path)
    return path


@pytest.mark.parametrize("frozen", [True, False])
def test_a_network_begins_with_the_encoder(folder: Path, frozen: bool, tmp_path: Path) -> None:
    images, labels = stripes().numpy(), np.arange(64) % 8 == 0
    backbone = Pretrained(str(folder), frozen=True) if frozen else f"{folder}/"
    fitted = PUClassifier(prior=0.25, backbone=backbone, epochs=2, random_state=0).fit(images, labels)
    before, after = load_encoder(folder).encoder.state_dict(), fitted.network_.encoder.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before) is frozen
    if not frozen:
        fitted.save(tmp_path / "model")
        with pytest.raises(ModelError, match=r"no place on your disk.*Pretrained\(folder\)"):
            pue.load(tmp_path / "model")
        again = pue.load(tmp_path / "model", backbone=Pretrained(str(folder)))
        np.testing.assert_array_equal(again.decision_function(images), fitted.decision_function(images))


def test_a_folder_that_is_no_encoder_is_refused(tmp_path: Path) -> None:
    fitted = PUClassifier(prior=0.25, backbone="linear", epochs=1).fit(np.random.rand(20, 2), np.arange(20) < 5)
    fitted.save(tmp_path / "model")
    with pytest.raises(InvalidInput, match="PUClassifier, no encoder"):
        load_encoder(tmp_path / "model")


# ------------------------------------------------------------------------------------------ encoders from elsewhere


class Means(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean((2, 3))


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_a_torchscript_file_encodes(tmp_path: Path) -> None:
    torch.jit.script(Means()).save(str(tmp_path / "means.pt"))
    images = stripes(600)
    torch.testing.assert_close(open_encoder(tmp_path / "means.pt")(images), images.float().mean((2, 3)) / 255)


def test_an_import_path_encodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_encoder.py").write_text("def make():\n    return lambda x: x.flatten(1)[:, :5]\n")
    monkeypatch.syspath_prepend(tmp_path)
    images = stripes(8)
    assert torch.equal(open_encoder("own_encoder:make")(images), images.flatten(1)[:, :5].float() / 255)


def test_an_onnx_file_encodes(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    (tmp_path / "flat.onnx").write_bytes(_flatten_onnx())
    images = stripes(8)
    torch.testing.assert_close(open_encoder(tmp_path / "flat.onnx")(images), images.flatten(1).float() / 255)


@pytest.mark.parametrize(
    ("encoder", "said"),
    [
        ("nowhere.onnx", "there is no file"),
        ("nowhere:make", "cannot make the encoder"),
        ("nothing", "is no encoder"),
        ("json:dumps", "cannot make the encoder"),
    ],
)
def test_what_is_no_encoder_is_refused(encoder: str, said: str) -> None:
    with pytest.raises((InvalidInput, MissingData), match=said):
        open_encoder(encoder)


def test_files_that_hold_something_else_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    for name in ("text.pt", "text.onnx"):
        (tmp_path / name).write_text("hello")
        with pytest.raises(InvalidInput, match=name):
            open_encoder(tmp_path / name)


@pytest.mark.parametrize(("code", "said"), [("x[:, :, ::2]", "one vector an image"), ("x[:, 0, 0] / 0", "not finite")])
def test_an_encoder_gives_one_finite_vector_an_image(
    code: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad_encoder.py").write_text(f"def make():\n    return lambda x: {code}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "bad_encoder", raising=False)
    with pytest.raises(InvalidInput, match=said):
        open_encoder("bad_encoder:make")(stripes(4))


def _flatten_onnx() -> bytes:
    """The smallest ONNX file that does something, written by hand: y = Flatten(x)."""

    def field(number: int, value: bytes | int) -> bytes:
        if isinstance(value, int):
            return bytes([number << 3, value])
        return bytes([number << 3 | 2, len(value)]) + value

    def tensor(name: bytes, dims: list[bytes]) -> bytes:
        shape = b"".join(field(1, field(2, dim)) for dim in dims)
        return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))

    node = field(1, b"x") + field(2, b"y") + field(4, b"Flatten")
    graph = field(1, node) + field(2, b"g")
    graph += field(11, tensor(b"x", [b"n", b"c", b"h", b"w"])) + field(12, tensor(b"y", [b"n", b"d"]))
    return field(1, 8) + field(7, graph) + field(8, field(1, b"") + field(2, 13))
