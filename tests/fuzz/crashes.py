"""What a process leaves behind that fails at its k-th operation on the disk, or is killed at any moment.

As SQLite does: an operation fails at every place in turn. A command runs in a child of this process; at one of its
operations it is killed, or meets a full disk, a broken one or a lack of memory. What it was to write must then be there
whole, old or new, or not at all; the same command must succeed the next time without help; and no hidden name may be
left after that.
"""

from __future__ import annotations

import builtins
import errno
import importlib
import io
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import ground
from commands import COMMANDS
from ground import Ground

import pue

writing = importlib.import_module("pue.files.writing")
KILLED = 137
NEVER_REPLACED = ("to_check.csv",)
KEPT = (*NEVER_REPLACED, "comparison")
"""What stands is not made again, so nobody removes the lock of one that was killed at its very end."""
KILLS = 6
"""One case in so many is a kill by the clock, not by the number of an operation."""


def prepare(folder: Path) -> Ground:
    pue.load  # noqa: B018  lazy: imported here, not in every child
    return ground.prepare(folder)


# ------------------------------------------------------------------------------------------------ failures


class Failing:
    """Counts operations on the disk in this process and fails at one of them."""

    def __init__(self, at: int, how: Callable[[], NoReturn], after: bool) -> None:
        self.at, self.how, self.after, self.count = at, how, after, 0

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            here = self.count == self.at
            self.count += 1
            if here and not self.after:
                self.how()
            found = function(*arguments, **options)
            if here:
                self.how()
            return found

        return call

    def install(self) -> None:
        for name in ("replace", "fsync", "mkdir", "unlink", "rmdir", "rename", "open"):
            setattr(os, name, self.wrap(getattr(os, name)))
        shutil.rmtree = self.wrap(shutil.rmtree)
        writing.exchange = self.wrap(writing.exchange)
        write = io.open

        def opened(file: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
            return (self.wrap(write) if set(mode) & set("wxa+") else write)(file, mode, *rest, **options)

        builtins.open = io.open = opened


def killed() -> NoReturn:
    os._exit(KILLED)


def full() -> NoReturn:
    raise OSError(errno.ENOSPC, "No space left on device")


def broken() -> NoReturn:
    raise OSError(errno.EIO, "Input/output error")


def no_memory() -> NoReturn:
    raise MemoryError


WAYS = {"killed": killed, "full": full, "broken": broken, "no memory": no_memory}


def in_child(work: Callable[[], None]) -> int:
    """The exit code of a child of this process that does the work: 0 done, 3 an error of ours or of the system."""
    child = os.fork()
    if child == 0:
        code = 9
        try:
            sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
            work()
            code = 0
        except (Exception, SystemExit) as error:
            expected = (pue.errors.PueError, OSError, MemoryError, SystemExit)
            code = 3 if isinstance(error, expected) else 9
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# ------------------------------------------------------------------------------------------------ cases


def kind_of(seed: int) -> str:
    rng = random.Random(seed)
    name = rng.choice(list(COMMANDS))
    return f"{name}, by the clock" if seed % KILLS == KILLS - 1 else name


def run_case(ground: Ground, seed: int) -> tuple[str, str]:
    rng = random.Random(seed)
    command = COMMANDS[rng.choice(list(COMMANDS))]
    place = ground.folder / "now" / "crash"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    target = place / command.name
    old = rng.random() < 0.7 and command.name not in NEVER_REPLACED
    if old:
        assert in_child(lambda: command.make(ground, target, 1)) == 0
    if seed % KILLS == KILLS - 1:
        ended = by_the_clock(command, ground, target, rng)
    else:
        ended = at_an_operation(command, ground, target, rng)
    if target.exists() and (any(visible(target)) if target.is_dir() else True):
        assert command.whole(target) in (-1, 1, 2), "neither the old nor the new one"
    else:
        assert not old or command.name == "cache" or any(place.iterdir()), "what was there is gone"
        if old and command.name in ("model", "fitted"):
            assert command.whole(target) in (-1, 1), "the old model cannot be loaded"
    assert in_child(lambda: command.make(ground, target, 2)) == 0, "the next run does not go on"
    assert command.whole(target) in (-1, 2)
    ends = (".partial", ".replaced") if command.name in KEPT else (".partial", ".replaced", ".lock")
    left = [path.name for path in place.rglob("*") if path.name.endswith(ends)]
    assert left == [] or (command.name in ("cache",) and ended == "killed"), f"left behind: {left}"
    return kind_of(seed), ended


def visible(folder: Path) -> list[Path]:
    """What is there for others than who was killed."""
    return [path for path in folder.iterdir() if not path.name.startswith(".")]


def at_an_operation(command: Any, ground: Ground, target: Path, rng: random.Random) -> str:
    way = rng.choice(["killed", "killed", "killed", "full", "broken", "no memory"])
    at, after = int(rng.expovariate(1 / 12)), rng.random() < 0.5

    def work() -> None:
        Failing(at, WAYS[way], after).install()
        command.make(ground, target, 2)

    code = in_child(work)
    while code == 0 and at and command.name not in NEVER_REPLACED:  # there were fewer operations than that
        at //= 2
        code = in_child(work)
    assert code in (0, 3, KILLED), f"{way} at operation {at}: exit {code}"
    return {0: "not met", 3: way, KILLED: "killed"}[code]


def by_the_clock(command: Any, ground: Ground, target: Path, rng: random.Random) -> str:
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            while True:
                command.make(ground, target, 2)
        os._exit(9)
    time.sleep(rng.uniform(0, 0.15))
    os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == -signal.SIGKILL, f"exit {code} before the kill"
    return "killed"
