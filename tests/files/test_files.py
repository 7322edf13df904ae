"""The one writer: whatever fails, at whatever step, the disk holds the new, the old or nothing, and no hidden name."""

from __future__ import annotations

import errno
import importlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest

from pue.files import recover, unfinished, write_bytes, write_text, writing, writing_folder

writing_module = importlib.import_module("pue.files.writing")  # `pue.files.writing` is the function

STEPS: list[tuple[Any, str]] = [
    (os, "fsync"),
    (os, "replace"),
    (Path, "mkdir"),
    (Path, "open"),
    (Path, "unlink"),
    (shutil, "rmtree"),
    (writing_module, "exchange"),
]


@pytest.fixture(params=[True, False], ids=["exchanged", "renamed twice"], autouse=True)
def exchanging(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether two folders can change places in one step; a system without that is as good, but for a moment."""
    if not request.param:
        monkeypatch.setattr(writing_module, "exchange", lambda one, other: False)
    return bool(request.param)


def interrupted() -> NoReturn:
    raise KeyboardInterrupt


def full() -> NoReturn:
    raise OSError(errno.ENOSPC, "No space left on device")


@contextmanager
def failing(step: int, fail: Callable[[], NoReturn], *, after: bool = False) -> Iterator[list[str]]:
    """The call `step` of those that touch the disk fails, before or after it has done its work."""
    calls: list[str] = []

    def counted(function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            calls.append(name)
            at = len(calls) - 1
            if at == step and not after:
                fail()
            result = function(*args, **options)
            if at == step:
                with suppress(AttributeError):
                    result.close()
                fail()
            return result

        return call

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in STEPS:
            patch.setattr(owner, name, counted(getattr(owner, name), name))
        yield calls


def write_file(path: Path, text: str) -> None:
    write_text(path, text)


def write_folder(path: Path, text: str) -> None:
    with writing_folder(path) as folder:
        (folder / "a").write_text(text)
        (folder / "deep").mkdir()
        (folder / "deep" / "b").write_text(text)


def content(path: Path) -> set[str]:
    """The texts in a file or folder: one, if it is whole."""
    found = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    assert len(found) in (1, 2)
    return {file.read_text() for file in found}


def steps_of(write: Callable[[Path, str], None], path: Path) -> list[str]:
    with failing(-1, interrupted) as calls:
        write(path, "counted")
    return calls


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("fail", [interrupted, full])
@pytest.mark.parametrize("old", [None, "old"], ids=["new", "replacing"])
@pytest.mark.parametrize("write", [write_file, write_folder])
def test_whole_old_or_absent_whatever_fails(
    write: Callable[[Path, str], None], old: str | None, fail: Callable[[], NoReturn], after: bool, tmp_path: Path
) -> None:
    def begin(name: str) -> Path:
        path = tmp_path / name / "target"
        path.parent.mkdir()
        if old is not None:
            write(path, old)
        return path

    steps = steps_of(write, begin("counted"))
    assert {"fsync", "open"} <= set(steps)
    renamed = max(place for place, name in enumerate(steps) if name in ("replace", "exchange"))
    for step, name in enumerate(steps):
        path = begin(str(step))
        with pytest.raises((KeyboardInterrupt, OSError)), failing(step, fail, after=after):
            write(path, "new")
        left = os.listdir(path.parent)
        assert set(left) <= {"target"}, f"{name}, step {step}"
        found = content(path) if left else {old}
        assert found in ({"new"}, {old}), f"{name}, step {step}"
        if step < renamed:
            assert found == {old}, f"{name}, step {step}: the old one stands until the new one does"


@pytest.mark.parametrize("write", [write_file, write_folder])
def test_everything_reaches_the_disk_before_it_gets_its_name(
    write: Callable[[Path, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    fsync, replace = os.fsync, os.replace

    def flushed(descriptor: int) -> None:
        fsync(descriptor)
        events.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)

    def renamed(source: Path, target: Path) -> None:
        replace(source, target)
        events.append("renamed")

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", renamed)
    write(tmp_path / "made" / "target", "new")
    made, *inside, rename, folder = events
    assert (made, rename, folder) == (tmp_path.name, "renamed", "made")  # the folders that hold the two new names
    assert set(inside[:-1]) == (set() if write is write_file else {"a", "deep", "b"})
    assert inside[-1].startswith(".target.")
    assert inside[-1].endswith(".partial")


def test_what_the_body_raises_passes_and_leaves_the_old(tmp_path: Path) -> None:
    write_text(tmp_path / "file", "old")
    write_folder(tmp_path / "folder", "old")
    with pytest.raises(IsADirectoryError), writing(tmp_path / "file") as partial:
        partial.write_text((tmp_path / "folder").read_text())
    with pytest.raises(UnicodeEncodeError), writing_folder(tmp_path / "folder") as partial:
        (partial / "a").write_text("\ud800")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
    assert content(tmp_path / "file") == content(tmp_path / "folder") == {"old"}


def test_a_file_that_was_never_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), writing(tmp_path / "file"):
        pass
    assert os.listdir(tmp_path) == []


def test_pieces_are_joined(tmp_path: Path) -> None:
    write_bytes(tmp_path / "file", b"a", memoryview(b"b"), b"")
    assert (tmp_path / "file").read_bytes() == b"ab"
    write_bytes(str(tmp_path / "file"))
    assert (tmp_path / "file").read_bytes() == b""


@pytest.mark.parametrize("write", [write_file, write_folder])
def test_a_link_stays_a_link(write: Callable[[Path, str], None], tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "here" / "real")
    for text in ("old", "new"):
        write(tmp_path / "link", text)
    assert (tmp_path / "link").is_symlink()
    assert content(tmp_path / "here" / "real") == {"new"}
    assert os.listdir(tmp_path / "here") == ["real"]


def test_a_disk_that_cannot_flush_a_folder_is_good_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def refused(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.EINVAL, "Invalid argument")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refused)
    write_file(tmp_path / "file", "new")
    write_folder(tmp_path / "folder", "new")
    assert content(tmp_path / "file") == content(tmp_path / "folder") == {"new"}


# ------------------------------------------------------------------------------------------ after a kill


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("write", [write_file, write_folder])
def test_what_a_kill_leaves_is_recovered(write: Callable[[Path, str], None], after: bool, tmp_path: Path) -> None:
    def begin(name: str) -> Path:
        path = tmp_path / name / "[a].x"
        path.parent.mkdir()
        write(path, "old")
        write(path.with_name("other"), "other")
        return path

    left = 0
    for step in range(len(steps_of(write, begin("counted")))):
        path = begin(str(step))
        if (child := os.fork()) == 0:
            with failing(step, lambda: os._exit(9), after=after):
                write(path, "new")
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        for target in unfinished(path.parent):
            assert target == path
            recover(target)
            left += 1
        assert sorted(os.listdir(path.parent)) == ["[a].x", "other"], step
        assert content(path) in ({"old"}, {"new"}), step
        assert content(path.with_name("other")) == {"other"}
    assert left > 1


def test_only_names_of_the_pattern_are_looked_for(tmp_path: Path) -> None:
    for name in (".epoch-3.0123.partial", ".epoch-4.0123.replaced", ".model.0123.partial", ".epoch-5.lock"):
        (tmp_path / name).mkdir()
    assert unfinished(tmp_path, "epoch-*") == {tmp_path / "epoch-3", tmp_path / "epoch-4"}
    assert len(unfinished(tmp_path)) == 3
    assert unfinished(tmp_path / "nowhere") == set()


def test_of_two_that_were_set_aside_one_comes_back(tmp_path: Path) -> None:
    for token in ("0123", "4567"):
        write_folder(tmp_path / f".model.{token}.replaced", token)
    recover(tmp_path / "model")
    assert os.listdir(tmp_path) == ["model"]
    assert content(tmp_path / "model") in ({"0123"}, {"4567"})
