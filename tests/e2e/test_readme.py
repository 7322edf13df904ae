"""The README is short, its Python runs and prints what it shows, and its numbers and links are right."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pue.app.cli import main

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
LINES = README.splitlines()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_it_is_short() -> None:
    assert len(LINES) <= 120
    assert [line for line in LINES if len(line) > 120] == []


def test_the_python_runs_and_prints_what_is_shown() -> None:
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()) as out:
        for block in blocks("python"):
            exec(compile(block, "README.md", "exec", dont_inherit=True), names)
    (shown,) = blocks("output")
    assert re.sub(r"\d+", "#", out.getvalue()) == re.sub(r"\d+", "#", shown)
    here, there = (np.array(re.findall(r"\d+", text), dtype=int) for text in (out.getvalue(), shown))
    assert np.abs(here - there).max() <= 3, f"the README shows\n{shown}\nbut this was printed:\n{out.getvalue()}"


def test_the_five_lines_are_five() -> None:
    assert len([line for line in blocks("python")[-1].splitlines() if line.strip()]) <= 5


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert [link for link in links if not link.startswith("http") and not (ROOT / link).exists()] == []


@pytest.mark.parametrize("method", ["uPU", "nnPU", "PUbN", "Dist-PU"])
def test_the_table_shows_the_results(method: str) -> None:
    """RESULTS.md is made from the records; MNIST comes first in it."""
    (cells,) = (line.strip("| ").split(" | ")[1:] for line in LINES if line.startswith(f"| {method} |"))
    results = (ROOT / "RESULTS.md").read_text()
    rows = [re.escape(row) for row in (method, f"{method}e", f"{method}e'")]
    assert cells == [re.findall(rf"^\| {row} \| 6 \| (\S+ ± \S+) ", results, flags=re.MULTILINE)[0] for row in rows]


def test_the_six_commands_run_on_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they stand there, one after the other, on a small table of that name."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = rng.random(240) < 0.4
    frame = pd.DataFrame({"a": rng.normal(size=240) + 3 * y, "b": rng.normal(size=240)})
    frame["fraud"] = (y & (rng.random(240) < 0.5)).astype(int)
    frame.to_parquet("claims.parquet")
    frame.sample(frac=1, random_state=1).to_parquet("later.parquet")
    commands = re.findall(r"^    (pue .*?)(?: +#.*)?$", README, flags=re.MULTILINE)
    assert [command.split()[1] for command in commands][:6] == [
        "diagnose", "fit", "evaluate", "predict", "report", "compare",
    ]  # fmt: skip
    for command in commands:
        with pytest.raises(SystemExit) as end:
            main([*shlex.split(command)[1:], *(["--epochs", "2"] if " compare " in command else [])])
        assert not end.value.code, command
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert pd.read_parquet("scores.parquet")["positive"].sum() > 0


@pytest.mark.parametrize("name", ["metrics.make_scorer", "judging.make_scorer", "make_scorer", "trees.Forest"])
def test_a_plain_import_is_enough(name: str) -> None:
    code = f"import pue; print(pue.{name}.__name__)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.stdout.strip() == name.split(".")[-1], ended.stderr
