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


def alzheimer(folder: str | Path | None = None, *, size: int | tuple[int, int] = (224, 224)) -> LabeledSplit:
    """5,121 + 1,279 gray scans as uint8 of shape (n, 1, height, width), from `folder`/alzheimer or PUE_DATA/alzheimer.

    The originals are 208 × 176; `size` is the height and width they are resized to (bilinear, antialiased), or one
    number for both. Classes 1, 2 and 3 (very mild, mild, moderate) are positive. Rows are in the order of their
    paths. Decoding is slow, so its result is cached (see `pue.bench.datasets.cache`).
    """
    height, width = _both(size)
    require("bench", "PIL")
    import PIL

    path = data_folder("alzheimer", folder) / TAR
    scans = _scans(path)
    key = f"{SHA256} {height}x{width} bilinear, Pillow {PIL.__version__}"
    images = torch.from_numpy(cached("alzheimer", key, lambda: _decoded(list(scans.values()), height, width, path)))
    classes = torch.tensor([_CLASSES.index(name.split("/")[1]) for name in scans])
    n = sum(name.startswith("train/") for name in scans)
    return LabeledSplit("alzheimer", images[:n], classes[:n], images[n:], classes[n:], positive=(1, 2, 3))


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
