"""The scripts that measured what the pages say still find what they import, and say how they are called."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks" / "studies"
TEXTS = {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.py"))}
STUDIES = [name for name, text in TEXTS.items() if "def main(" in text]
PARTS = [name for name in TEXTS if name not in STUDIES]


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_can_be_imported_and_names_its_command(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    study = importlib.import_module(name)
    assert f"python benchmarks/studies/{name}.py" in (study.__doc__ or "")
    assert callable(study.main)


@pytest.mark.parametrize("name", PARTS)
def test_what_is_no_study_is_part_of_one(name: str) -> None:
    assert any(f"from {name} import" in TEXTS[study] or f"import {name}" in TEXTS[study] for study in STUDIES)


def test_every_study_is_listed() -> None:
    listed = (FOLDER / "README.md").read_text()
    assert [name for name in TEXTS if f"`{name}.py`" not in listed] == []
