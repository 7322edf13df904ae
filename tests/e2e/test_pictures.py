"""README's picture shows what the code gives today."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import pictures

    return pictures


@pytest.fixture
def audited(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import audit_picture

    return audit_picture


def test_the_numbers_of_the_audit_are_those_of_today(audited: ModuleType) -> None:
    here, there = audited.numbers(), json.loads(audited.NUMBERS.read_text())
    for mine, shown in zip(here["known"], there["known"], strict=True):
        np.testing.assert_allclose(mine[1:], shown[1:], atol=0.03, err_msg="run python docs/audit_picture.py")


def test_the_audit_settles_what_labels_leave_open(audited: ModuleType) -> None:
    assert Image.open(audited.PICTURE).text["Description"] == audited.fingerprint(), "run python docs/audit_picture.py"
    found = json.loads(audited.NUMBERS.read_text())
    widths = [high - low for _, _, low, high in found["known"]]
    assert widths == sorted(widths, reverse=True)
    assert all(low < found["truth"] < high for _, _, low, high in found["known"])
    assert audited.draw(found).axes[0].get_xlim() == (0, 1)


@pytest.mark.parametrize("seed", [0, 3])
def test_the_numbers_are_those_of_today(pictures: ModuleType, seed: int) -> None:
    here, there = pictures.shares(seed), json.loads(pictures.NUMBERS.read_text())[seed]
    for kind, values in there.items():
        np.testing.assert_allclose(here[kind], values, atol=0.02, err_msg=f"{kind}: run python docs/pictures.py")


def test_the_picture_is_drawn_from_the_numbers(pictures: ModuleType) -> None:
    assert Image.open(pictures.PICTURE).text["Description"] == pictures.fingerprint(), "run python docs/pictures.py"
    figure = pictures.draw(json.loads(pictures.NUMBERS.read_text()))
    assert figure.axes[0].get_ylim()[0] == 0


def test_what_the_readme_says_of_it(pictures: ModuleType) -> None:
    runs = json.loads(pictures.NUMBERS.read_text())
    assert len(runs) == pictures.SEEDS == 6
    labeled, weighted, due = (np.mean([run[kind] for run in runs], axis=0) for kind in ("labeled", "auto", "positives"))
    assert 0.6 < labeled[0] < 0.7
    assert 3 < labeled[4] * pictures.N_LABELED < 5
    assert abs(weighted[0] - due[0]) < 0.03
    assert 0.4 < weighted[4] / due[4] < 0.7
    assert np.abs(labeled - due).sum() / 2 > 0.4
    assert np.abs(weighted - due).sum() / 2 < 0.12


def test_every_picture_is_shown_and_known() -> None:
    pages = [ROOT / "README.md", ROOT / "RESULTS.md", *(ROOT / "docs").rglob("*.md")]
    shown = {name for page in pages for name in re.findall(r"images/([\w/-]+\.(?:png|svg))", page.read_text())}
    folder = ROOT / "docs" / "images"
    kept = [path for path in folder.rglob("*") if path.suffix in (".png", ".svg")]
    assert {path.relative_to(folder).as_posix() for path in kept} == shown
    assert {name for name in shown if not name.startswith(("results/", "tables/"))} == {"weights.png", "audit.png"}
