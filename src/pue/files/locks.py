"""Who makes a thing holds its lock, so that nobody else makes it at the same time.

A lock is a hidden file that the kernel locks for a process and frees when the process ends, however it ends: one that a
dead process left is no obstacle.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pue.errors import Busy
from pue.files.writing import recover, unfinished

try:
    import fcntl
except ImportError:  # no such locks on this system: two writers are then not told of each other
    fcntl = None  # type: ignore[assignment]

_OURS: set[Path] = set()
"""Locks that this process holds."""


@contextmanager
def making(path: str | Path, *, wait: bool = False) -> Iterator[None]:
    """Nobody else makes `path` in the meantime; `Busy` where somebody does and we should not wait.

    What killed processes left of it is removed first, and what they left of other things beside it. Inside a `making`
    of the same path it does nothing.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, making(f"{folder}/model"):
    ...     os.listdir(folder)
    ['.model.lock']
    """
    target = Path(os.path.realpath(path))
    lock = target.with_name(f".{target.name}.lock")
    if lock in _OURS:
        yield
        return
    made = [folder for folder in target.parents if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        for folder in reversed(made):  # if nothing comes of it, no empty folder stays behind
            stack.callback(_remove_if_empty, folder)
        try:
            stack.enter_context(hold(lock, wait=wait))
        except Busy:
            raise Busy(
                f"another process is writing {target}. Wait until it has ended, or choose another name."
            ) from None
        stack.callback(_OURS.discard, lock)
        _OURS.add(lock)
        recover(target)
        _sweep(target.parent)
        yield


@contextmanager
def hold(lock: Path, *, wait: bool) -> Iterator[None]:
    """The lock `lock`, which is gone afterwards; `Busy` where another process holds it and we should not wait."""
    handle = _locked(lock, wait)
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            os.unlink(lock)  # while we hold it: whoever waits for it sees that it is gone and tries again
        os.close(handle)


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _sweep(folder: Path) -> None:
    """Remove what dead makers left in a folder: what they began is there, and a lock that nobody holds."""
    for target in unfinished(folder):
        lock = target.with_name(f".{target.name}.lock")
        if lock not in _OURS and lock.exists():
            with suppress(Busy, OSError), hold(lock, wait=False):
                recover(target)


def _locked(lock: Path, wait: bool) -> int:
    """An open handle that holds the lock."""
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
        try:
            if fcntl is None:
                return handle
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except OSError as error:
                if error.errno in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                    return handle  # a disk without locks, as some in networks are
                raise
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(lock)):
                    return handle
        except BlockingIOError:
            os.close(handle)
            raise Busy(f"another process holds {lock}.") from None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # the file was removed by its last holder: lock the new one
