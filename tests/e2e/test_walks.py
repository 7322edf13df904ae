"""The three walks of docs/architecture.md, as the calls really go: every hop after the one above it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"
TRACER = """
import sys
from pathlib import Path

import pue

ROOT = Path(pue.__file__).parent.as_posix() + "/"
ENTERED = {}


def note(frame, event, argument):
    if event == "call" and frame.f_code.co_filename.startswith(ROOT):
        key = frame.f_code.co_filename.removeprefix(ROOT), frame.f_code.co_name
        frames = ENTERED.setdefault(key, [])
        if not frames or key[1] == "batches" and all(frame is not known for known in frames):
            frames.append(frame)  # a generator is entered again and again, but its frame is one


def traced(act):
    sys.setprofile(note)
    try:
        act()
    except SystemExit as end:
        assert not end.code, end.code
    finally:
        sys.setprofile(None)
    for (file, name), frames in ENTERED.items():
        print(file, name, len(frames))
"""
CLASSIFIER = """
import numpy as np
from pue.estimators.classifier import PUClassifier

rng = np.random.default_rng(0)
y = rng.random(300) < 0.4
X, s = rng.normal(size=(300, 3)) + 4 * y[:, None], y & (rng.random(300) < 0.5)
traced(lambda: PUClassifier(propensity="logistic", epochs=1, random_state=0).fit(X, s))
"""
COMMANDS = """
from pue.app.cli import main

def commands():
    for given in {commands!r}:
        sys.argv = ["pue", *given]
        try:
            main()
        except SystemExit as end:
            assert not end.code, end.code

traced(commands)
"""


def hops(title: str) -> list[tuple[str, str]]:
    """File and function of every numbered line under a heading."""
    section = PAGE.read_text().partition(f"### {title}\n")[2].partition("\n#")[0]
    return re.findall(r"^\d+\. `(\S+)` `(\w+)`", section, flags=re.MULTILINE)


def trace(code: str) -> dict[tuple[str, str], int]:
    """What was called and how often, in the order of the first calls; in a process of its own."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TRACER + code], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    found = re.findall(r"^(\S+\.py) (\S+) (\d+)$", run.stdout, flags=re.MULTILINE)
    return {(file, name): int(times) for file, name, times in found}


def table(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    y = rng.random(300) < 0.4
    frame = pd.DataFrame(rng.normal(size=(300, 3)) + 4 * y[:, None], columns=list("abc"))
    frame.assign(s=(y & (rng.random(300) < 0.5)).astype(int)).to_parquet(folder / "rows.parquet")
    return folder / "rows.parquet"


def fit_commands(folder: Path) -> str:
    given = ["fit", str(table(folder)), "--label", "s", "-o", str(folder / "model"), "--epochs", "1", "--quiet"]
    return COMMANDS.format(commands=[given])


def bench_commands(folder: Path) -> str:
    smoke = ["bench", "digits", "--preset", "smoke", "--seeds", "1", "--methods", "nnPUe", "--jobs", "0"]
    runs = str(folder / "runs")
    return COMMANDS.format(commands=[[*smoke, "--out", runs], ["report", runs, "-o", str(folder / "RESULTS.md")]])


@pytest.mark.parametrize(
    ("title", "code"),
    [
        ("`PUClassifier.fit`", lambda folder: CLASSIFIER),
        ("`pue fit`", fit_commands),
        ("`pue bench` → RESULTS.md", bench_commands),
    ],
)
def test_a_walk_goes_as_the_page_says(title: str, code: Callable[[Path], str], tmp_path: Path) -> None:
    walk = hops(title)
    assert len(walk) >= 10
    files = [file for file, _ in walk]
    assert len(set(files)) == len(files), "a hop goes back to a file that the walk has left"
    calls = trace(code(tmp_path))
    order = list(calls)
    places = [order.index(hop) for hop in walk]
    assert places == sorted(places)
    if title == "`pue fit`":  # the three passes that the page promises, and one row
        assert calls["app/sources/stored_table.py", "batches"] == 4
