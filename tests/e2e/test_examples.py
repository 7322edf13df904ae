"""Every example runs, prints what the gallery shows, and stands in the gallery word for word."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
PAGE = (ROOT / "docs" / "gallery.md").read_text()
NUMBER = re.compile(r"\d+(?:\.\d+)?")


@pytest.fixture
def gallery(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    sys.modules.pop("gallery", None)
    import gallery

    return gallery


def shown(name: str) -> str:
    """The output on the page, which stands right above the link to the file."""
    return re.findall(rf"```output\n([^`]*)```\n\n\[`{name}\.py`\]", PAGE)[0]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_the_gallery_shows(
    name: str, gallery: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here, there = gallery.printed(name), shown(name)
    assert NUMBER.sub("#", here) == NUMBER.sub("#", there)
    pairs = zip(map(float, NUMBER.findall(here)), map(float, NUMBER.findall(there)), strict=True)
    # Percentages may differ by two points between processors, shares by two hundredths.
    assert [pair for pair in pairs if abs(pair[0] - pair[1]) > (2 if pair[1] > 1 else 0.02)] == []


def test_the_gallery_is_made_of_the_examples(gallery: ModuleType) -> None:
    assert sorted(gallery.ORDER) == EXAMPLES
    assert gallery.HEAD + "".join(gallery.section(name, shown(name)) for name in gallery.ORDER) == PAGE, (
        "run python docs/gallery.py"
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_short(name: str) -> None:
    assert len((ROOT / "examples" / f"{name}.py").read_text().splitlines()) <= 50
