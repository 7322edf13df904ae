"""The scripts that measured what the pages say still find what they import, and say how they are called."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks" / "studies"
STUDIES = sorted(path.stem for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_can_be_imported_and_names_its_command(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    study = importlib.import_module(name)
    assert f"python benchmarks/studies/{name}.py" in (study.__doc__ or "")
    assert callable(study.main)


def test_every_study_is_listed() -> None:
    listed = (FOLDER / "README.md").read_text()
    assert [name for name in STUDIES if f"`{name}.py`" not in listed] == []
