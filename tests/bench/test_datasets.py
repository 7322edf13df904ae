"""Data sets: the digits that come with scikit-learn, small fabricated files, and the real ones where PUE_DATA says."""

import functools
import gzip
import hashlib
import importlib
import inspect
import io
import os
import struct
import subprocess
import sys
import tarfile
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from pue.bench.datasets import (
    DATASETS,
    LabeledSplit,
    alzheimer,
    available,
    cifar10,
    digits,
    fashion_mnist,
    fetch,
    mnist,
)
from pue.bench.datasets.cache import cache_folder, cached
from pue.bench.datasets.fetch import CATALOG, DatasetInfo
from pue.bench.datasets.files import DIGESTS
from pue.errors import InvalidInput, MissingData, PueWarning

alzheimer_module = importlib.import_module("pue.bench.datasets.alzheimer")  # which the function of this name hides
STEMS = list(DIGESTS["mnist"])


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """No test reads or fills the user's cache."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("PUE_CACHE", str(folder))
    return folder


def local(name: str) -> Path:
    """The folder that holds the real files of `name`, or the test is skipped."""
    base = os.environ.get("PUE_DATA")
    if base is None:
        pytest.skip(f"PUE_DATA is not set: point it at the folder that holds {name}/ to run this test")
    if not (Path(base) / name).is_dir():
        pytest.skip(f"PUE_DATA={base} has no folder {name}")
    return Path(base)


@functools.cache
def real(name: str) -> LabeledSplit:
    """The real data, loaded once; scans small, for they take long to decode."""
    return DATASETS[name](local(name), **{"size": 16} if name == "alzheimer" else {})


# --------------------------------------------------------------------------------------------------------- digits


def test_digits_are_split_once_and_scaled() -> None:
    split = digits()
    assert split.train_x.shape == (1257, 64)
    assert split.test_x.shape == (540, 64)
    assert split.train_x.dtype == torch.float32
    assert split.train_x.min() == 0
    assert split.train_x.max() == 1


def test_even_digits_are_positive() -> None:
    split = digits()
    assert torch.equal(split.train_y, 1 - split.train_classes % 2)
    assert torch.equal(split.test_y, 1 - split.test_classes % 2)


def test_the_split_is_stratified() -> None:
    split = digits()
    for digit in range(10):
        shares = [float((classes == digit).double().mean()) for classes in (split.train_classes, split.test_classes)]
        assert shares[0] == pytest.approx(shares[1], abs=0.003)


def test_the_seed_decides_the_split_and_the_share_its_size() -> None:
    assert torch.equal(digits(seed=1).train_x, digits(seed=1).train_x)
    assert not torch.equal(digits(seed=1).train_x, digits(seed=2).train_x)


def test_the_two_parts_together_are_all_digits() -> None:
    split = digits()
    both = torch.unique(torch.cat([split.train_x, split.test_x]), dim=0)
    everything = torch.unique(torch.cat([digits(seed=3).train_x, digits(seed=3).test_x]), dim=0)
    assert torch.equal(both, everything)
    assert len(split.train_x) + len(split.test_x) == 1797


def test_the_registry_names_every_loader() -> None:
    assert set(DATASETS) == {"digits", "mnist", "fashion_mnist", "cifar10", "alzheimer"}
    assert isinstance(DATASETS["digits"](), LabeledSplit)


# ------------------------------------------------------------------------------------------------------- checksum


def test_the_checksum_is_that_of_the_content() -> None:
    split = digits()
    assert split.checksum == digits().checksum
    assert len(split.checksum) == 16
    assert int(split.checksum, 16) >= 0
    assert split.checksum != digits(seed=1).checksum
    assert split.checksum == replace(split, train_x=split.train_x.T.contiguous().T).checksum  # however it lies


@pytest.mark.parametrize("field", ["train_x", "train_classes", "test_x", "test_classes"])
def test_the_checksum_sees_one_changed_value_a_shape_and_a_type(field: str) -> None:
    split = digits()
    tensor = getattr(split, field)
    changed = tensor.clone()
    changed.view(-1)[-1] += 1
    others = [changed, tensor[..., None], tensor.to(torch.float64), tensor[:0]]
    assert len({split.checksum} | {replace(split, **{field: other}).checksum for other in others}) == 5


def test_a_split_stays_frozen_with_its_checksum() -> None:
    split = digits()
    assert split.checksum is split.checksum  # computed once
    with pytest.raises(FrozenInstanceError):
        split.checksum = "0"  # type: ignore[misc]


# ------------------------------------------------------------------------------------------------------ idx files


def fabricated_idx(home: Path, monkeypatch: pytest.MonkeyPatch, *, packed_digest: bool) -> dict[str, bytes]:
    """Seven and three images of 4×5 with their labels as .gz files, known to the loader by their hashes."""
    home.mkdir()
    rng = np.random.default_rng(0)
    raw = {}
    for stem in STEMS:
        n = 7 if stem.startswith("train") else 3
        shape = (n, 4, 5) if "images" in stem else (n,)
        content = rng.integers(0, 256 if "images" in stem else 10, shape, np.uint8).tobytes()
        raw[stem] = struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape) + content
        packed = gzip.compress(raw[stem])
        (home / f"{stem}.gz").write_bytes(packed)
        digest = hashlib.md5(packed) if packed_digest else hashlib.sha256(raw[stem])
        monkeypatch.setitem(DIGESTS[home.name], stem, digest.hexdigest())
    return raw


def test_idx_files_become_images_and_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = fabricated_idx(tmp_path / "mnist", monkeypatch, packed_digest=False)
    split = mnist(tmp_path)
    assert split.train_x.shape == (7, 1, 4, 5)
    assert split.test_x.shape == (3, 1, 4, 5)
    assert split.train_x.numpy().tobytes() == raw["train-images-idx3-ubyte"][16:]
    assert split.test_classes.tolist() == list(raw["t10k-labels-idx1-ubyte"][8:])
    assert split.train_classes.dtype == torch.int64


def test_mnist_may_be_packed_again_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = fabricated_idx(tmp_path / "mnist", monkeypatch, packed_digest=False)
    before = mnist(tmp_path).checksum
    again, plain = (tmp_path / "mnist" / f"{stem}.gz" for stem in STEMS[:2])
    again.write_bytes(gzip.compress(raw[STEMS[0]], compresslevel=1, mtime=1))
    plain.unlink()
    plain.with_suffix("").write_bytes(raw[STEMS[1]])
    assert mnist(tmp_path).checksum == before
    plain.with_suffix("").write_bytes(raw[STEMS[1]][:-1])
    with pytest.raises(MissingData, match=r"train-labels-idx1-ubyte is damaged"):
        mnist(tmp_path)


def test_fashion_mnist_is_known_by_its_packed_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = fabricated_idx(tmp_path / "fashion_mnist", monkeypatch, packed_digest=True)
    split = fashion_mnist(tmp_path)
    assert split.name == "fashion_mnist"
    assert split.positive == (0, 2, 4, 6)
    assert split.test_y.tolist() == [int(c in (0, 2, 4, 6)) for c in raw["t10k-labels-idx1-ubyte"][8:]]
    (tmp_path / "fashion_mnist" / f"{STEMS[0]}.gz").write_bytes(gzip.compress(raw[STEMS[0]], mtime=1))
    with pytest.raises(MissingData, match=r"train-images-idx3-ubyte\.gz is damaged .*wrong checksum"):
        fashion_mnist(tmp_path)
    (tmp_path / "fashion_mnist" / f"{STEMS[0]}.gz").unlink()
    with pytest.raises(MissingData, match=r"ubyte\.gz is missing in .*fashion_mnist needs its four original idx\.gz"):
        fashion_mnist(tmp_path)


def test_real_fashion_mnist_has_ten_equal_classes() -> None:
    split = real("fashion_mnist")
    assert torch.bincount(split.train_classes).tolist() == [6000] * 10
    assert torch.bincount(split.test_classes).tolist() == [1000] * 10


# ---------------------------------------------------------------------------------------------------------- MNIST


def test_mnist_has_its_shapes_and_class_counts() -> None:
    split = real("mnist")
    assert split.train_x.shape == (60_000, 1, 28, 28)
    assert split.test_x.shape == (10_000, 1, 28, 28)
    assert split.train_x.dtype == split.test_x.dtype == torch.uint8
    assert int(split.train_x.max()) == 255
    # METHODS 2.2: even digits of the training set, 29,492 together, and 4,926 in the test set.
    counts = torch.bincount(split.train_classes)
    assert counts[[0, 2, 4, 6, 8]].tolist() == [5923, 5958, 5842, 5918, 5851]
    assert int(split.train_y.sum()) == 29_492
    assert int(split.test_y.sum()) == 4926
    assert torch.equal(split.train_y, 1 - split.train_classes % 2)


def test_mnist_images_stand_upright_beside_their_labels() -> None:
    # The first training image is a five: 5, 0, 4, 1, 9 … A transposed image would have other sums of rows.
    split = real("mnist")
    assert split.train_classes[:5].tolist() == [5, 0, 4, 1, 9]
    assert split.test_classes[:5].tolist() == [7, 2, 1, 0, 4]
    stroke = split.train_x[split.train_classes == 1].double().mean(0)[0]
    assert stroke.sum(0).max() > 1.5 * stroke.sum(1).max()  # a one is narrow and tall


def test_mnist_is_found_through_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fabricated_idx(tmp_path / "mnist", monkeypatch, packed_digest=False)
    monkeypatch.setenv("PUE_DATA", str(tmp_path))
    assert len(mnist().test_x) == 3


@pytest.mark.parametrize("harm", ["cut", "flip", "other"])
@pytest.mark.parametrize("name", ["train-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"])
def test_a_damaged_file_is_refused(name: str, harm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fabricated_idx(tmp_path / "mnist", monkeypatch, packed_digest=False)
    raw = bytearray((tmp_path / "mnist" / name).read_bytes())
    raw[len(raw) // 2] ^= 1
    damaged = {"cut": raw[:-1], "flip": raw, "other": b"<html>not found</html>"}[harm]
    (tmp_path / "mnist" / name).write_bytes(damaged)
    with pytest.raises(MissingData, match=rf"{name} is damaged .*wrong checksum.*Fetch it again"):
        mnist(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fabricated_idx(tmp_path / "mnist", monkeypatch, packed_digest=False)
    (tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(MissingData, match=r"t10k-labels-idx1-ubyte\.gz is missing in .* four original idx\.gz files"):
        mnist(tmp_path)


def test_a_missing_folder_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match=r"there is no folder .*mnist\. `pue data get mnist` .* or point PUE_DATA"):
        mnist(tmp_path)


def test_no_folder_at_all_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUE_DATA", raising=False)
    with pytest.raises(MissingData, match=r"where is mnist.*set PUE_DATA to the folder that holds mnist/"):
        mnist()


def test_missing_data_is_a_file_not_found_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        mnist(tmp_path / "nowhere")


# ------------------------------------------------------------------------------------------------------- CIFAR-10


def fabricated_cifar10(home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, np.ndarray]:
    """Four records a file, known to the loader."""
    home.mkdir()
    rng = np.random.default_rng(0)
    records = {}
    for name in DIGESTS["cifar10"]:
        records[name] = rng.integers(0, 256, (4, 3073), np.uint8)
        records[name][:, 0] %= 10
        (home / name).write_bytes(records[name].tobytes())
        monkeypatch.setitem(DIGESTS["cifar10"], name, hashlib.md5(records[name].tobytes()).hexdigest())
    return records


def test_cifar10_records_become_planes_and_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = fabricated_cifar10(tmp_path / "cifar10", monkeypatch)
    split = cifar10(tmp_path)
    assert split.train_x.shape == (20, 3, 32, 32)
    assert split.test_x.shape == (4, 3, 32, 32)
    third = records["data_batch_3.bin"]
    assert split.train_x[8:12].numpy().tobytes() == third[:, 1:].tobytes()
    assert split.train_x[9, 1, 2, 3] == third[1, 1 + 1024 + 2 * 32 + 3]  # green, third row, fourth column
    assert split.test_classes.tolist() == records["test_batch.bin"][:, 0].tolist()
    assert split.train_y.tolist() == [int(c in (0, 1, 8, 9)) for c in split.train_classes.tolist()]


def test_a_bad_cifar10_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fabricated_cifar10(tmp_path / "cifar10", monkeypatch)
    path = tmp_path / "cifar10" / "data_batch_2.bin"
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    with pytest.raises(MissingData, match=r"data_batch_2\.bin is damaged .*wrong checksum.*Fetch it again"):
        cifar10(tmp_path)
    monkeypatch.setitem(DIGESTS["cifar10"], path.name, hashlib.md5(content[:-1]).hexdigest())
    with pytest.raises(MissingData, match=r"not a multiple of 3073 bytes"):
        cifar10(tmp_path)
    path.unlink()
    with pytest.raises(MissingData, match=r"data_batch_2\.bin is missing in .*CIFAR-10 needs the six files"):
        cifar10(tmp_path)


def test_real_cifar10_has_its_classes_and_upright_planes() -> None:
    split = real("cifar10")
    assert split.train_x.shape == (50_000, 3, 32, 32)
    assert split.test_x.shape == (10_000, 3, 32, 32)
    assert torch.bincount(split.train_classes).tolist() == [5000] * 10
    assert int(split.train_y.sum()) == 20_000
    assert int(split.test_y.sum()) == 4000
    assert split.test_classes[:5].tolist() == [3, 8, 8, 0, 6]
    airplanes = split.train_x[split.train_classes == 0].double().mean((0, 3))
    assert airplanes[2].mean() > airplanes[0].mean()  # the sky is blue …
    assert airplanes[2, 0] > airplanes[2, 31]  # … and above


# ------------------------------------------------------------------------------------------------------ Alzheimer

SCANS = {
    "train/NonDemented/b.jpg": 0,
    "train/ModerateDemented/a.jpg": 3,
    "test/VeryMildDemented/a.jpg": 1,
    "train/NonDemented/a10.jpg": 0,
    "train/MildDemented/a2.jpg": 2,
    "test/MildDemented/a.jpg": 2,
}


def jpeg(seed: int) -> bytes:
    """A smooth picture 12 high and 10 wide."""
    across = np.linspace(0, 200, 10) + 5 * seed
    file = io.BytesIO()
    Image.fromarray(np.tile(across, (12, 1)).astype(np.uint8)).save(file, "JPEG")
    return file.getvalue()


def pack(path: Path, members: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """A tar that the loader knows."""
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            tar.addfile(header, io.BytesIO(content))
    trust(path, monkeypatch)


def trust(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alzheimer_module, "SHA256", hashlib.sha256(path.read_bytes()).hexdigest())


@pytest.fixture
def scans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tar = tmp_path / "alzheimer" / "alzheimer-4class.tar"
    pack(tar, {name: jpeg(seed) for seed, name in enumerate(SCANS)}, monkeypatch)
    return tar


def test_scans_are_sorted_resized_and_classed(scans: Path) -> None:
    split = alzheimer(scans.parents[1], size=(8, 6))
    train = sorted(name for name in SCANS if name.startswith("train/"))
    test = sorted(name for name in SCANS if name.startswith("test/"))
    assert split.train_classes.tolist() == [SCANS[name] for name in train]
    assert split.test_classes.tolist() == [SCANS[name] for name in test]
    assert split.positive == (1, 2, 3)
    assert split.train_x.shape == (4, 1, 8, 6)
    assert split.test_x.shape == (2, 1, 8, 6)
    for image, name in zip([*split.train_x, *split.test_x], train + test, strict=True):
        with Image.open(io.BytesIO(jpeg(list(SCANS).index(name)))) as original:
            expected = np.asarray(original.resize((6, 8), Image.Resampling.BILINEAR))
        assert np.array_equal(image[0].numpy(), expected)


def test_downsizing_averages_instead_of_skipping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.BytesIO()
    stripes = np.tile(np.array([0, 255], np.uint8), (16, 8))
    Image.fromarray(stripes).save(file, "JPEG", quality=100)
    tar = tmp_path / "alzheimer" / "alzheimer-4class.tar"
    pack(tar, {"train/NonDemented/a.jpg": file.getvalue()}, monkeypatch)
    image = alzheimer(tmp_path, size=4).train_x
    assert image.shape == (1, 1, 4, 4)
    assert (image.float() - 127.5).abs().max() < 16  # gray, where every second column taken would be black or white


@pytest.mark.parametrize("size", [0, -1, (0, 5), (5, 0), (1, 2, 3), (2.5, 3), ()])
def test_a_size_without_pixels_is_refused(size: object, scans: Path) -> None:
    with pytest.raises(InvalidInput, match="size must be a height and a width in whole pixels"):
        alzheimer(scans.parents[1], size=size)  # type: ignore[arg-type]


def test_bad_tars_are_refused(scans: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = scans.read_bytes()
    scans.write_bytes(good[:-1])
    with pytest.raises(MissingData, match=r"alzheimer-4class\.tar is damaged .*wrong checksum"):
        alzheimer(scans.parents[1], size=4)
    scans.write_bytes(b"<html>please sign in</html>" * 100)
    trust(scans, monkeypatch)
    with pytest.raises(MissingData, match=r"alzheimer-4class\.tar is damaged .*not a tar"):
        alzheimer(scans.parents[1], size=4)
    scans.unlink()
    with pytest.raises(MissingData, match=r"alzheimer needs alzheimer-4class\.tar \(sha256 [0-9a-f]{64}\) there"):
        alzheimer(scans.parents[1], size=4)


@pytest.mark.parametrize(
    "name", ["../train/NonDemented/a.jpg", "/train/NonDemented/a.jpg", "train/Other/a.jpg", "a.exe"]
)
def test_a_member_that_does_not_belong_is_refused(name: str, scans: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack(scans, {"train/NonDemented/a.jpg": jpeg(0), name: jpeg(1)}, monkeypatch)
    with pytest.raises(MissingData, match="unexpected member"):
        alzheimer(scans.parents[1], size=4)


@pytest.mark.parametrize("content", [b"", b"not a picture", jpeg(0)[:300]], ids=["empty", "text", "cut"])
def test_a_scan_that_cannot_be_decoded_is_refused(content: bytes, scans: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack(scans, {"train/NonDemented/a.jpg": content}, monkeypatch)
    with pytest.raises(MissingData, match="cannot decode an image"):
        alzheimer(scans.parents[1], size=4)


def test_scans_are_decoded_once_for_each_size(scans: Path, monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> None:
    first, other = (alzheimer(scans.parents[1], size=size).checksum for size in (4, 5))
    monkeypatch.setattr(alzheimer_module, "_decoded", None)
    assert alzheimer(scans.parents[1], size=4).checksum == first
    assert alzheimer(scans.parents[1], size=(5, 5)).checksum == other
    assert len(list(own_cache.iterdir())) == 2
    with pytest.raises(TypeError):
        alzheimer(scans.parents[1], size=6)


def test_real_scans_have_their_counts() -> None:
    split = real("alzheimer")
    assert torch.bincount(split.train_classes).tolist() == [2560, 1792, 717, 52]
    assert torch.bincount(split.test_classes).tolist() == [640, 448, 179, 12]
    assert split.train_x.shape == (5121, 1, 16, 16)
    assert int(split.train_y.sum()) == 2561
    assert int(split.test_y.sum()) == 639


# ---------------------------------------------------------------------------------------------------------- cache


def test_the_cache_returns_what_was_made() -> None:
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    assert np.array_equal(cached("a", "key", lambda: array.transpose()), array.transpose())
    again = cached("a", "key", lambda: pytest.fail("made twice"))
    assert np.array_equal(again, array.transpose())
    assert again.flags.writeable
    assert again.dtype == np.uint8


def test_another_key_is_another_array() -> None:
    assert cached("a", "one", lambda: np.zeros(3)).sum() == 0
    assert cached("a", "two", lambda: np.ones(3)).sum() == 3


@pytest.mark.parametrize("harm", ["empty", "cut", "tail", "flip", "header", "longer", "renamed", "npy", "folder"])
def test_a_cache_file_that_is_not_ours_is_made_again(harm: str, own_cache: Path) -> None:
    array = np.arange(100, dtype=np.uint8)
    cached("a", "key", lambda: array)
    (file,) = own_cache.iterdir()
    raw = file.read_bytes()
    flipped, header = bytearray(raw), bytearray(raw)
    flipped[-60] ^= 1
    header[20] ^= 1
    foreign = io.BytesIO()
    np.save(foreign, array + 1)
    contents = {"empty": b"", "cut": raw[:50], "tail": raw[:-1], "flip": bytes(flipped), "header": bytes(header)}
    contents |= {"longer": raw + b"x", "npy": foreign.getvalue()}
    if harm in contents:
        file.write_bytes(contents[harm])
    else:
        file.unlink()
    if harm == "folder":
        file.mkdir()
    if harm == "renamed":  # right in itself, but the array of another key
        cached("a", "other", lambda: array + 1)
        (other,) = own_cache.iterdir()
        other.rename(file)
    with pytest.warns(PueWarning, match="was altered or cut off: it is not used, and made again"):
        assert np.array_equal(cached("a", "key", lambda: array), array)
    if harm != "folder":
        assert file.read_bytes() == raw


@pytest.mark.parametrize(
    "header",
    ["'|S0', 'fortran_order': False, 'shape': (1200000000,)", "'<f8', 'fortran_order': False, 'shape': (10000000000,)",
     "'|O', 'fortran_order': False, 'shape': (1,)", "'<f8', 'fortran_order': False, 'shape': (-1,)", "'<f8'"],
)  # fmt: skip
def test_no_header_of_a_cache_decides_what_is_allocated(header: str, own_cache: Path) -> None:
    """Vouched for, as whoever may write there could."""
    array = np.arange(100, dtype=np.uint8)
    cached("a", "key", lambda: array)
    (file,) = own_cache.iterdir()
    text = ("{'descr': " + header + ", }").ljust(117).encode() + b"\n"
    raw = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(8)
    file.write_bytes(raw + hashlib.sha256(b"key" + raw).digest())
    with pytest.warns(PueWarning, match="made again"):
        assert np.array_equal(cached("a", "key", lambda: array), array)


@pytest.mark.parametrize("value", ["/dev/null", "/dev/null/deeper", "/proc/nowhere"])
def test_no_place_for_a_cache_means_no_cache(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUE_CACHE", value)
    for _ in range(2):
        assert cached("a", "key", lambda: np.ones(3)).sum() == 3


def test_the_environment_says_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
    monkeypatch.setenv("PUE_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("PUE_CACHE")
    assert cache_folder() == tmp_path / "shared" / "pue"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "pue"


# -------------------------------------------------------------------------------------------------------- catalog


def test_the_catalog_lists_every_data_set() -> None:
    assert [entry.name for entry in available()] == list(DATASETS)


def test_the_catalog_says_what_is_there_and_how_to_get_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fabricated_cifar10(tmp_path / "cifar10", monkeypatch)
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / f"{STEMS[0]}.gz").write_bytes(b"")
    entries = {entry.name: entry for entry in available(tmp_path)}
    assert {name for name, entry in entries.items() if entry.found} == {"digits", "cifar10"}
    assert entries["cifar10"].place == str(tmp_path / "cifar10")
    assert entries["mnist"].place == "pue data get mnist"
    assert entries["alzheimer"].place == "by hand: pue data get alzheimer says how"


def test_the_catalog_works_without_a_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUE_DATA", raising=False)
    entries = available()
    assert [entry.found for entry in entries] == [True, False, False, False, False]
    assert "set PUE_DATA" in entries[1].place


@pytest.mark.parametrize("entry", CATALOG, ids=lambda entry: entry.name)
def test_the_catalog_is_true(entry: DatasetInfo) -> None:
    split = digits() if entry.name == "digits" else real(entry.name)
    assert (entry.train, entry.test) == (len(split.train_x), len(split.test_x))
    assert entry.positive == split.positive
    size = inspect.signature(DATASETS[entry.name]).parameters.get("size")
    assert entry.shape == (tuple(split.train_x.shape[1:]) if size is None else (1, *size.default))


@pytest.mark.parametrize("name", [name for name in DATASETS if name != "digits"])
def test_complete_data_need_no_fetching(name: str) -> None:
    base = local(name)
    assert fetch(name, base, sources=[]) == base / name


def test_a_list_of_data_sets_needs_no_training_stack():
    code = "import pue, sys; pue.DATASETS; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "pue.bench.datasets.fetch" in found
    assert {name.split(".")[1] for name in found if name.startswith("pue.")} <= {"bench", "errors", "files"}


def test_people_are_found_by_their_looks_and_are_in_one_part_only() -> None:
    """What `subjects` says of the real scans; the split keeps to it."""
    folder = local("alzheimer")
    subject, both = alzheimer_module.subjects(folder), alzheimer(folder, size=64)
    classes = torch.cat([both.train_classes, both.test_classes]).numpy()
    official = np.repeat([0, 1], [len(both.train_classes), len(both.test_classes)])
    sizes = np.bincount(subject)
    assert (len(sizes), set(sizes.tolist())) == (196, {32, 64})
    assert all(len(set(classes[subject == one])) == 1 for one in range(196))
    assert all(len(set(official[subject == one])) == 2 for one in range(196))
    test = alzheimer_module.held_out_subjects(subject, classes)
    assert not set(subject[test]) & set(subject[~test])
    split = alzheimer(folder, size=16, disjoint=True)
    assert split.test_classes.tolist() == classes[test].tolist()
    assert 0.18 < test.mean() < 0.24
