"""The documentation's code runs and prints what the pages show; every page is in the site, and the site builds.

The blocks of a page run in order, in one folder and one namespace:

- ```python is executed, and ```output after it is what it printed;
- ```console holds commands, `$ pue …`, each with what it printed;
- ```text and indented blocks are not run: formulas, listings, and commands that need data or hours.

What is shown are the words that were printed; its numbers may differ as they do between machines, and … stands for
anything. The README's blocks run in test_readme.py, the gallery's in test_examples.py.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
import yaml

import pue
from pue.app.cli import main
from pue.core.data import PUData

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
LANGUAGES = {"python", "output", "console", "text"}
NUMBER = r"[-+]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?"


def named(page: Path) -> str:
    return page.relative_to(ROOT).with_suffix("").as_posix().removeprefix("docs/")


every_page = pytest.mark.parametrize("page", PAGES, ids=named)


@dataclass(frozen=True)
class Block:
    language: str
    body: str


def blocks(text: str) -> list[Block]:
    return [Block(*found) for found in re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)]


def biased_rows() -> PUData:
    """Two kinds of positives, one of which is hardly ever labeled."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 4, 400)
    x = rng.normal(size=(400, 2)) + np.array([[4, 0], [0, 4], [0, 0], [0, 0]])[kind]
    labeled = (kind < 2) & (rng.random(400) < np.where(kind == 0, 0.9, 0.05))
    return PUData(torch.from_numpy(x), torch.from_numpy(labeled.astype(np.int64)))


GIVEN: dict[str, Callable[[], dict[str, Any]]] = {"scar_test": lambda: {"data": biased_rows()}}
"""Names that a page takes for granted."""
ELSEWHERE = {"gallery"}
"""Pages whose blocks run in another test."""


# ------------------------------------------------------------------------------------------------ running


def commands(body: str) -> list[tuple[str, str]]:
    """Each command of a console block and what is shown of its output."""
    head, *parts = re.split(r"^\$ ", body.replace("\\\n", " "), flags=re.MULTILINE)
    assert not head.strip(), f"a console block begins with a command, $ pue …, not with {head!r}"
    return [(command, shown) for command, _, shown in (part.partition("\n") for part in parts)]


def run_command(command: str) -> str:
    """What `pue …` prints to stdout; it must end well."""
    program, *arguments = shlex.split(command)
    assert program == "pue", f"cannot run {program!r}; mark the block as text and say why it is not run"
    with contextlib.redirect_stdout(io.StringIO()) as out, pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code in (0, None), f"{command} ended with {ended.value.code}"
    return out.getvalue()


def run_python(body: str, names: dict[str, Any]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(body, "block", "exec", dont_inherit=True), names)
    return out.getvalue()


def run_blocks(found: list[Block], names: dict[str, Any]) -> Iterator[tuple[Block, str, str]]:
    """Whatever shows its output: the block, what it shows, what was printed."""
    printed = None
    for block in found:
        if block.language == "python":
            printed = run_python(block.body, names)
        elif block.language == "output":
            assert printed is not None, "an output block follows the python block that printed it"
            yield block, block.body, printed
            printed = None
        elif block.language == "console":
            for command, shown in commands(block.body):
                yield block, shown, run_command(command)


def plain(text: str) -> str:
    """Without the widths of columns and the places where lines are folded."""
    return " ".join(re.sub("[━─┏┓┃┡┩╇┳│└┘┴]", " ", text).split())


def matched(shown: str, printed: str) -> list[tuple[float, float]] | None:
    """The numbers of both, pair by pair; None where the words differ."""
    pattern = re.escape(re.sub(NUMBER, "#", f" {plain(shown)} ")).replace(r"\#", f"({NUMBER})")
    found = re.fullmatch(pattern.replace(r"\ …\ ", r"\ (?:.*\ )?"), f" {plain(printed)} ")
    if found is None:
        return None
    numbers = zip(re.findall(NUMBER, plain(shown)), found.groups(), strict=True)
    return [(float(ours.replace(",", "")), float(theirs.replace(",", ""))) for ours, theirs in numbers]


def near(shown: float, printed: float) -> bool:
    return abs(shown - printed) <= max(5.0, 0.1 * abs(shown))


@every_page
def test_the_blocks_run_and_print_what_is_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = blocks(page.read_text())
    if named(page) in ELSEWHERE or not {"python", "console"} & {block.language for block in found}:
        assert named(page) not in GIVEN
        return
    monkeypatch.chdir(tmp_path)
    with mock.patch.dict(pue.METHODS):  # a page may add one
        for block, shown, printed in run_blocks(found, GIVEN.get(named(page), dict)()):
            if shown.strip():
                numbers = matched(shown, printed)
                assert numbers is not None, f"the page shows\n{shown}\nbut this was printed:\n{printed}"
                if block.language == "output":  # commands also print seconds
                    assert [pair for pair in numbers if not near(*pair)] == []


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=named)
def test_every_block_is_run_or_marked(page: Path) -> None:
    text = page.read_text()
    found = blocks(text)
    assert len(re.findall(r"^\s*(?:```|~~~)", text, flags=re.MULTILINE)) == 2 * len(found), "a fence was not understood"
    assert {block.language for block in found} <= LANGUAGES


def test_a_match_can_fail() -> None:
    printed = "accuracy  90.1 %\n┃ called ┃ 1,200 ┃\nlast line"
    assert matched("accuracy 88.72 %\n…\nlast line\n", printed) == [(88.72, 90.1)]
    assert matched("accuracy -1 % called 3 last\nline", printed) == [(-1, 90.1), (3, 1200)]
    assert matched("… 3 last …", printed) == [(3, 1200)]
    for shown in ("accuracy 90.1 %\n", "precision 90.1 %\n…", "…\naccuracy 90.1 %", "accuracy …\nlast"):
        assert matched(shown, printed) is None
    assert near(95.0, 91.0)
    assert not near(95.0, 71.0)


def test_a_block_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ZeroDivisionError):
        list(run_blocks(blocks("```python\n1 / 0\n```\n"), {}))
    with pytest.raises(AssertionError, match="ended with 2"):
        list(run_blocks(blocks("```console\n$ pue inspect nowhere\n```\n"), {}))
    with pytest.raises(AssertionError, match="mark the block as text"):
        list(run_blocks(blocks("```console\n$ rm model\n```\n"), {}))
    found = run_blocks(blocks("```python\nx = 2\nprint(x)\n```\n\n```output\n3\n```\n"), {})
    assert list(found) == [(Block("output", "3\n"), "3\n", "2\n")]


# --------------------------------------------------------------------------------------------------- site


def nav_pages(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for inner in entry.values() if isinstance(entry, dict) else entry:
            yield from nav_pages(inner)


def site_hooks() -> ModuleType:
    (path,) = SITE["hooks"]
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_is_in_the_navigation_once() -> None:
    there = [page.relative_to(DOCS).as_posix() for page in PAGES] + list(site_hooks().PAGES.values())
    assert sorted(nav_pages(SITE["nav"])) == sorted(there)


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    assert [link for link in links if not link.startswith("http") and not (page.parent / link).exists()] == []


def test_links_that_leave_the_folder_become_pages_or_names() -> None:
    rewrite = site_hooks().rewrite
    inside = "[ours](../RESULTS.md), [how](tuning.md), [a file](../src/pue/risks.py), [web](https://example.org)"
    assert rewrite(inside, "selection.md") == (
        "[ours](results.md), [how](tuning.md), a file (`src/pue/risks.py`), [web](https://example.org)"
    )
    deeper = "[ours](../../RESULTS.md), [how](tuning.md), [why](../priors.md#which), [a file](../../Makefile)"
    assert rewrite(deeper, "lab/mnist.md") == (
        "[ours](../results.md), [how](tuning.md), [why](../priors.md#which), a file (`Makefile`)"
    )
    outside = (
        "![plot](docs/images/a.png) [asked](CONTRIBUTING.md) [why](docs/tuning.md#seeds) [bench](benchmarks/README.md)"
    )
    assert rewrite(outside, "results.md") == (
        "![plot](images/a.png) [asked](contributing.md) [why](tuning.md#seeds) bench (`benchmarks/README.md`)"
    )


def reference() -> dict[str, Any]:
    """What the API page documents: path → value."""
    found = {}
    for path in re.findall(r"^::: ([\w.]+)$", (DOCS / "api.md").read_text(), flags=re.MULTILINE):
        owner, _, name = path.rpartition(".")
        try:
            found[path] = importlib.import_module(path)
        except ModuleNotFoundError:
            found[path] = getattr(importlib.import_module(owner), name)
    return found


def test_the_reference_holds_every_public_name() -> None:
    documented = reference()
    values = {path.rpartition(".")[2]: value for path, value in documented.items()}
    assert set(pue.__all__) | set(importlib.import_module("pue.judging").__all__) <= set(values)
    assert [name for name in pue.__all__ if values[name] is not getattr(pue, name)] == []
    modules = {path for path, value in documented.items() if isinstance(value, ModuleType)}
    assert modules == {"pue.core.decisions", "pue.judging.calibration", "pue.core.risks", "pue.core.weights"}
    assert "pue.app.model.PUModel" in documented


def test_the_members_that_the_reference_names_are_members() -> None:
    named_members = re.findall(
        r"^::: ([\w.]+)\n    options:\n(?:      .*\n)*?      members: \[(.*)\]",
        (DOCS / "api.md").read_text(),
        re.MULTILINE,
    )
    assert named_members
    for path, members in named_members:
        value = reference()[path]
        assert [name for name in members.split(", ") if not hasattr(value, name)] == []


def test_the_site_builds_without_a_warning_and_without_the_network(tmp_path: Path) -> None:
    missing = [name for name in ("mkdocs", "material", "mkdocstrings_handlers") if not importlib.util.find_spec(name)]
    if missing:
        pytest.skip(f"the site is built by {', '.join(missing)}: install the extra docs, pip install '.[docs]'")
    arguments = ["build", "--strict", "--config-file", str(ROOT / "mkdocs.yml"), "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", *arguments], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    for page in nav_pages(SITE["nav"]):
        html = (tmp_path / "site" / page).with_suffix(".html").read_text()
        outside = re.findall(r"""<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//[^>]*>""", html)
        assert outside == []
    reference_page = (tmp_path / "site" / "api.html").read_text()
    assert "PUClassifier" in reference_page
    assert "<blockquote>" not in reference_page, "an example in a docstring was taken for a quotation"
