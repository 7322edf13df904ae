"""One maker at a time, however the others end, and a reader never meets half of a replacement."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from pue.errors import Busy
from pue.files import hold, making, unfinished, write_text, writing_folder
from pue.persistence.model import load, save

HOLD = """
import sys, time
from pathlib import Path
from pue.files import making, writing_folder
with making(sys.argv[1]):
    with writing_folder(sys.argv[1]) as partial:
        (partial / "a").write_text("new")
        print("held", flush=True)
        time.sleep(60)
"""


def holder(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "held\n"
    return process


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_a_second_maker_is_told_and_a_dead_one_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "model"
    process = holder(path)
    with (
        pytest.raises(Busy, match=r"another process is writing .*model\. Wait until it has ended, or choose"),
        making(path),
    ):
        pass
    assert unfinished(tmp_path) == {path}
    kill(process)
    assert {name.split(".")[1] for name in os.listdir(tmp_path)} == {"model"}  # its lock, and what it had begun
    with making(path):
        assert os.listdir(tmp_path) == [".model.lock"]
    assert os.listdir(tmp_path) == []


def test_what_dead_makers_left_beside_is_swept_and_what_the_living_make_is_not(tmp_path: Path) -> None:
    dead, living = holder(tmp_path / "dead"), holder(tmp_path / "living")
    kill(dead)
    (tmp_path / ".mine.lock").touch()  # of another program: not ours to remove
    with making(tmp_path / "other"):
        left = {name.split(".")[1] for name in os.listdir(tmp_path)}
    assert left == {"living", "other", "mine"}
    kill(living)


def test_inside_a_making_of_the_same_path_it_does_nothing(tmp_path: Path) -> None:
    with making(tmp_path / "a"), making(tmp_path / "a"):
        write_text(tmp_path / "a", "x")
    assert os.listdir(tmp_path) == ["a"]
    with pytest.raises(ZeroDivisionError), making(tmp_path / "deep" / "er" / "a"):
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == ["a"], "folders that were made for nothing go again"


def test_whoever_waits_gets_the_lock_in_the_end(tmp_path: Path) -> None:
    order: list[int] = []

    def work(number: int) -> None:
        with hold(tmp_path / ".lock", wait=True):
            order.append(number)
            time.sleep(0.01)
            order.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert order[::2] == order[1::2]
    assert sorted(order[::2]) == list(range(6))


REPLACE = """
import sys, numpy as np
from pue.persistence.model import save
for turn in range(int(sys.argv[2])):
    save({"turn": np.full(2000, turn % 2)}, sys.argv[1])
"""


def test_a_load_during_replacements_finds_the_old_or_the_new(tmp_path: Path) -> None:
    save({"turn": np.zeros(2000, dtype=np.int64)}, tmp_path / "model")
    process = subprocess.Popen([sys.executable, "-c", REPLACE, str(tmp_path / "model"), "60"])
    loads, seen = 0, set()
    try:
        while process.poll() is None:
            found = load(tmp_path / "model")["turn"]
            assert len(set(found.tolist())) == 1
            seen.add(int(found[0]))
            loads += 1
    finally:
        process.kill() if process.poll() is None else None
        process.wait()
    assert process.returncode == 0
    assert loads > 20
    assert seen == {0, 1}
    assert os.listdir(tmp_path) == ["model"]


KILLED = """
import os, sys, importlib
writing = importlib.import_module("pue.files.writing")
exchange, calls = writing.exchange, 0
def stop(one, other):
    done = exchange(one, other) if sys.argv[2] == "after" else False
    os._exit(9)
writing.exchange = stop
with writing.writing_folder(sys.argv[1]) as partial:
    (partial / "a").write_text("new")
"""


@pytest.mark.parametrize(("moment", "text"), [("before", "old"), ("after", "new")])
def test_a_kill_at_the_exchange_leaves_a_whole_folder(moment: str, text: str, tmp_path: Path) -> None:
    with writing_folder(tmp_path / "folder") as partial:
        (partial / "a").write_text("old")
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "folder"), moment], check=False)
    assert ended.returncode == 9
    assert (tmp_path / "folder" / "a").read_text() == text
    with making(tmp_path / "folder"):
        pass
    assert os.listdir(tmp_path) == ["folder"]


def test_a_full_disk_says_of_which_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"No space left on device: .*full"), writing_folder(tmp_path / "full"):
        raise OSError(28, "No space left on device")
    with pytest.raises(OSError, match=r"^.Errno 5. elsewhere$"), writing_folder(tmp_path / "full"):
        raise OSError(5, "elsewhere")
