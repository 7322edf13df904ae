"""Brain scans with four degrees of dementia (Kaggle, "Alzheimer's Dataset (4 class of Images)"), any against none."""

from __future__ import annotations

import io
import re
import tarfile
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from pue.bench.datasets.cache import cached
from pue.bench.datasets.files import DIGESTS, damaged, read_known
from pue.bench.datasets.labeled import LabeledSplit, data_folder
from pue.errors import InvalidInput, require

TAR = "alzheimer-4class.tar"
SHA256 = DIGESTS["alzheimer"][TAR]
PACK = (
    "tar --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --mtime=2020-01-01T00:00Z --mode=ug=rwX,o=rX "
    f"-cf {TAR} train test"
)
"""GNU tar, on the two folders of the download: gives exactly the file of this sha256."""
_CLASSES = ("NonDemented", "VeryMildDemented", "MildDemented", "ModerateDemented")
_NAME = re.compile(rf"(train|test)/({'|'.join(_CLASSES)})/[^/]+\.jpg")


def alzheimer(
    folder: str | Path | None = None, *, size: int | tuple[int, int] = (224, 224), disjoint: bool = False
) -> LabeledSplit:
    """5,121 + 1,279 gray scans as uint8 of shape (n, 1, height, width), from `folder`/alzheimer or PUE_DATA/alzheimer.

    The originals are 208 × 176; `size` is the height and width they are resized to (bilinear, antialiased), or one
    number for both. Classes 1, 2 and 3 (very mild, mild, moderate) are positive. Rows are in the order of their
    paths. Decoding is slow, so its result is cached (see `pue.bench.datasets.cache`).

    The official folders share their 200 people, slices 1 to 25 in one and 26 to 32 in the other, so that whoever
    recognises people scores well there. `disjoint`: no one is in both parts; `subjects` finds people by their looks,
    and about a fifth of them, class by class, are the test set.
    """
    height, width = _both(size)
    require("bench", "PIL")
    import PIL

    path = data_folder("alzheimer", folder) / TAR
    scans = _scans(path)
    key = f"{SHA256} {height}x{width} bilinear, Pillow {PIL.__version__}"
    images = torch.from_numpy(cached("alzheimer", key, lambda: _decoded(list(scans.values()), height, width, path)))
    classes = torch.tensor([_CLASSES.index(name.split("/")[1]) for name in scans])
    test = torch.tensor([name.startswith("test/") for name in scans])
    if disjoint:
        test = torch.from_numpy(held_out_subjects(subjects(folder), classes.numpy()))
    return LabeledSplit("alzheimer", images[~test], classes[~test], images[test], classes[test], positive=(1, 2, 3))


def subjects(folder: str | Path | None = None) -> NDArray[np.int64]:
    """Who each scan is of, training folder first: families of near-identical scans at 64 × 64. There are 196 of
    them, of 32 or 64 slices, each of one class and in both folders: 200 people, four pairs of whom look alike."""
    from pue.propensity.duplicates import families

    scans = alzheimer(folder, size=64)
    return families(torch.cat([scans.train_x, scans.test_x])).family


def held_out_subjects(subject: NDArray[np.int64], classes: NDArray[np.int64], share: float = 0.2) -> NDArray[np.bool_]:
    """Which scans are held out: of each class, subjects drawn until they are a `share` of it. A subject belongs to the
    class of most of its scans.

    >>> subject = np.repeat(np.arange(10), 4)
    >>> test = held_out_subjects(subject, np.repeat([0, 1], 20))
    >>> sorted(set(subject[test]) & set(subject[~test])), int(test[:20].sum()), int(test[20:].sum())
    ([], 4, 4)
    """
    rng, test = np.random.default_rng(0), np.zeros(len(subject), dtype=bool)
    counts = np.zeros((subject.max() + 1, classes.max() + 1), dtype=np.int64)
    np.add.at(counts, (subject, classes), 1)
    for name in range(counts.shape[1]):
        own = rng.permutation(np.flatnonzero(counts.argmax(1) == name))
        before = np.concatenate([[0], counts[own].sum(1).cumsum()])[:-1]
        test |= np.isin(subject, own[before < share * (classes == name).sum()])
    return test


def _both(size: int | tuple[int, int]) -> tuple[int, int]:
    sides = (size, size) if isinstance(size, int) else tuple(size)
    if len(sides) != 2 or any(not isinstance(side, int) or side < 1 for side in sides):
        raise InvalidInput(f"size must be a height and a width in whole pixels, or one number for both; got {size}.")
    return sides


def _scans(path: Path) -> dict[str, bytes]:
    """The JPEG files by their path in the tar: training set first, each part sorted. Nothing is extracted."""
    raw = read_known(path, SHA256, needs=f"alzheimer needs {TAR} (sha256 {SHA256}) there.")
    try:
        with tarfile.open(fileobj=io.BytesIO(raw), mode="r:") as tar:
            start = {member.name: (member.offset_data, member.size) for member in tar if member.isfile()}
    except tarfile.TarError as error:
        raise damaged(path, "not a tar") from error
    if strangers := [name for name in start if not _NAME.fullmatch(name)]:
        raise damaged(path, f"unexpected member {strangers[0]}")
    names = sorted(start, key=lambda name: (name.startswith("test/"), name))
    return {name: raw[start[name][0] : sum(start[name])] for name in names}


def _decoded(files: list[bytes], height: int, width: int, path: Path) -> NDArray[np.uint8]:
    from PIL import Image

    images = np.empty((len(files), 1, height, width), np.uint8)
    for image, file in zip(images, files, strict=True):
        try:
            with Image.open(io.BytesIO(file), formats=["JPEG"]) as scan:
                image[0] = np.asarray(scan.convert("L").resize((width, height), Image.Resampling.BILINEAR))
        except OSError as error:
            raise damaged(path, f"cannot decode an image: {error}") from error
    return images
