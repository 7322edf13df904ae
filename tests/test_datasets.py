"""Data sets: the digits that come with scikit-learn, and MNIST where PUE_DATA says it lies."""

import os
from pathlib import Path

import pytest
import torch

from pue.datasets import DATASETS, LabeledSplit, digits, mnist
from pue.errors import MissingData


def local_mnist() -> Path:
    """The folder of the real files, or the test is skipped."""
    base = os.environ.get("PUE_DATA")
    if base is None:
        pytest.skip("PUE_DATA is not set: point it at the folder that holds mnist/ to run this test")
    if not (Path(base) / "mnist").is_dir():
        pytest.skip(f"PUE_DATA={base} has no folder mnist")
    return Path(base) / "mnist"


def copied(folder: Path, to: Path) -> Path:
    """The four files, as links, in a folder of their own that a test may spoil."""
    (to / "mnist").mkdir()
    for file in folder.glob("*.gz"):
        (to / "mnist" / file.name).symlink_to(file.resolve())
    return to / "mnist"


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
    assert len(digits(test_share=0.5).test_x) == 899


def test_the_two_parts_together_are_all_digits() -> None:
    split = digits()
    both = torch.unique(torch.cat([split.train_x, split.test_x]), dim=0)
    everything = torch.unique(torch.cat([digits(seed=3).train_x, digits(seed=3).test_x]), dim=0)
    assert torch.equal(both, everything)
    assert len(split.train_x) + len(split.test_x) == 1797


def test_the_registry_names_every_loader() -> None:
    assert set(DATASETS) == {"digits", "mnist", "fashion_mnist", "cifar10", "alzheimer"}
    assert isinstance(DATASETS["digits"](), LabeledSplit)


# ---------------------------------------------------------------------------------------------------------- MNIST


def test_mnist_has_its_shapes_and_class_counts() -> None:
    split = mnist(local_mnist().parent)
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
    split = mnist(local_mnist().parent)
    assert split.train_classes[:5].tolist() == [5, 0, 4, 1, 9]
    assert split.test_classes[:5].tolist() == [7, 2, 1, 0, 4]
    stroke = split.train_x[split.train_classes == 1].double().mean(0)[0]
    assert stroke.sum(0).max() > 1.5 * stroke.sum(1).max()  # a one is narrow and tall


def test_mnist_is_found_through_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = copied(local_mnist(), tmp_path)
    monkeypatch.setenv("PUE_DATA", str(home.parent))
    assert len(mnist().test_x) == 10_000


@pytest.mark.parametrize("harm", ["cut", "flip", "other"])
@pytest.mark.parametrize("name", ["train-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"])
def test_a_damaged_file_is_refused(name: str, harm: str, tmp_path: Path) -> None:
    home = copied(local_mnist(), tmp_path)
    raw = bytearray((home / name).read_bytes())
    raw[len(raw) // 2] ^= 1
    damaged = {"cut": raw[:-1], "flip": raw, "other": b"<html>not found</html>"}[harm]
    (home / name).unlink()
    (home / name).write_bytes(damaged)
    with pytest.raises(MissingData, match=rf"{name} is damaged .*wrong checksum.*Fetch it again"):
        mnist(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    home = copied(local_mnist(), tmp_path)
    (home / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(MissingData, match=r"t10k-labels-idx1-ubyte\.gz is missing in .* four original idx\.gz files"):
        mnist(tmp_path)


def test_a_missing_folder_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(
        MissingData, match=r"there is no folder .*mnist\. Put the files of mnist there, or point PUE_DATA"
    ):
        mnist(tmp_path)


def test_no_folder_at_all_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUE_DATA", raising=False)
    with pytest.raises(MissingData, match=r"where is mnist.*set PUE_DATA to the folder that holds mnist/"):
        mnist()


def test_missing_data_is_a_file_not_found_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        mnist(tmp_path / "nowhere")
