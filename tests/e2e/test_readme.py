"""The README is short, its Python runs and prints what it shows, and its numbers and links are right."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

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
