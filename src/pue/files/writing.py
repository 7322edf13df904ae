"""Writers of files and folders, and what to do after one that was killed."""

from __future__ import annotations

import errno
import glob
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pue.files.exchange import exchange

_NEW, _OLD = "partial", "replaced"
_OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


@contextmanager
def writing(path: str | Path) -> Iterator[Path]:
    """A path to write a file to, which takes the place of `path` when the context is left in order.

    Missing folders are made, and a link stays a link.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with writing(f"{folder}/table.csv") as partial:
    ...         _ = partial.write_text("a,b")
    ...     os.listdir(folder)
    ['table.csv']
    """
    with _naming(path):
        target = _target(path)
        partial = _beside(target, _NEW)
        try:
            yield partial
            _flush(partial)
            os.replace(partial, target)
            _flush(target.parent)
        finally:
            _remove(partial)


def write_bytes(path: str | Path, *chunks: bytes | memoryview) -> None:
    with writing(path) as partial, partial.open("xb") as file:
        file.writelines(chunks)


def write_text(path: str | Path, text: str) -> None:
    write_bytes(path, text.encode())


@contextmanager
def writing_folder(path: str | Path) -> Iterator[Path]:
    """An empty folder to fill, which takes the place of the folder `path` when the context is left in order."""
    with _naming(path):
        target = _target(path)
        partial, old = _beside(target, _NEW), _beside(target, _OLD)
        try:
            partial.mkdir()
            yield partial
            for inside in [*partial.rglob("*"), partial]:
                _flush(inside)
            _swap(partial, target, old)
        finally:
            _remove(partial, *[old] * target.exists())


@contextmanager
def _naming(path: str | Path) -> Iterator[None]:
    """A full disk does not say of which file; the error that passes here does."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in _OF_THE_DISK:
            raise type(error)(error.errno, error.strerror, os.fspath(path)) from error
        raise


def unfinished(folder: Path, names: str = "*") -> set[Path]:
    """The files and folders in `folder`, by a pattern of their names, whose writing was cut off by a kill."""
    left = (found for kind in (_NEW, _OLD) for found in folder.glob(f".{names}.*.{kind}"))
    return {folder / found.name[1:].rsplit(".", 2)[0] for found in left}


def recover(target: Path) -> None:
    """Remove what a killed process left of `target`, and bring back the folder it was about to replace.

    Only for whoever alone writes there: what a living process is writing goes too.
    """
    for old in set_aside(target):
        if not target.exists():
            os.replace(old, target)
            _flush(target.parent)
        _remove(old)
    _remove(*_left(target, _NEW))


def set_aside(target: Path) -> list[Path]:
    """Former folders `target` under hidden names; one is the last good one if there is no `target`."""
    return _left(target, _OLD)


def _left(target: Path, kind: str) -> list[Path]:
    return sorted(target.absolute().parent.glob(f".{glob.escape(target.name)}.*.{kind}"))


def _target(path: str | Path) -> Path:
    """Where `path` leads, its folder made if need be and known to the disk."""
    target = Path(os.path.realpath(path))
    missing = [folder for folder in target.parents if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        _flush(folder.parent)
    return target


def _beside(target: Path, kind: str) -> Path:
    return target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}.{kind}")


def _swap(partial: Path, target: Path, old: Path) -> None:
    """The new folder in the place of the old one; whatever goes wrong, the old one is back.

    Where the two can change places in one step there is no moment without a folder. Elsewhere there is one, and
    `recover` ends it if we are killed in it.
    """
    if target.exists() and exchange(partial, target):
        try:
            _flush(target.parent)
        except BaseException:
            exchange(partial, target)
            raise
        return
    try:
        if target.exists():
            os.replace(target, old)
        os.replace(partial, target)
        _flush(target.parent)
    except BaseException:
        if not partial.exists():
            os.replace(target, partial)
        if old.exists():
            os.replace(old, target)
        raise


def _flush(path: Path) -> None:
    """What a file holds, or which names a folder holds, reaches the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL or not path.is_dir():  # some network disks cannot flush a folder
            raise
    finally:
        os.close(descriptor)


def _remove(*paths: Path) -> None:
    """Delete files and folders, also when Ctrl-C comes in the middle of it."""
    try:
        _delete(*paths)
    except BaseException:
        _delete(*paths)
        raise


def _delete(*paths: Path) -> None:
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
