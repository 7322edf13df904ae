"""Networks of images: epochs by size, a time that was given, and thumbnails of the best rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from pue.app.cli import main
from pue.app.fit import fit_model
from pue.app.model import load_model
from pue.app.recipe import Recipe
from pue.app.rows import Rows
from pue.app.thumbnails import is_thumbnail
from pue.app.time_budget import LEAST, MOST, PIXELS, SECONDS, sized
from pue.core.data import PUData
from pue.errors import InvalidInput


def images(n: int, side: int) -> PUData:
    return PUData(torch.zeros((n, 1, side, side), dtype=torch.uint8), torch.arange(n) % 2)


@pytest.mark.parametrize(("n", "side", "epochs"), [(600, 28, 61), (40, 8, MOST), (5_000, 64, LEAST)])
def test_epochs_go_by_size(n: int, side: int, epochs: int) -> None:
    assert sized(Recipe(), images(n, side)).epochs == epochs
    assert sized(Recipe(epochs=3), images(n, side)).epochs == 3
    if LEAST < epochs < MOST:
        assert abs(epochs * n * side**2 * 5 / PIXELS - SECONDS) < 1


def test_tables_are_left_alone() -> None:
    assert sized(Recipe(), PUData(torch.zeros((9, 2)), torch.arange(9) % 2)).epochs is None


def test_a_time_that_was_given_is_kept_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on by a second whenever it is looked at: one epoch takes one, all networks five."""
    now = iter(range(10_000))
    monkeypatch.setattr("pue.app.time_budget.time.perf_counter", lambda: float(next(now)))
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.integers(0, 256, (60, 1, 8, 8), dtype=np.uint8))
    rows, said = Rows(PUData(x, torch.arange(60) % 3 // 2), None, None), []
    recipe = Recipe(time_budget=40.0, prior=0.5, propensity=None, progress=False)
    model = fit_model(rows, recipe, say=said.append)
    found = next(text for text in said if "as many as fit into 40 s here" in text)
    assert f"--epochs {model.classifier.epochs} repeats them" in found
    assert 1 <= model.classifier.epochs <= 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time_budget": 5.0, "epochs": 3}, "takes the place of epochs"),
        ({"time_budget": 0.0}, "a number of seconds above 0"),
    ],
)
def test_a_budget_that_contradicts_is_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Recipe(**options)  # type: ignore[arg-type]


def test_trees_have_no_time_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=80), "s": (rng.random(80) < 0.3).astype(int)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    how = ["--prior", "0.5", "--propensity", "none", "--time-budget", "2m", "-o", str(tmp_path / "m")]
    with pytest.raises(SystemExit):
        main(["fit", str(tmp_path / "t.csv"), "--label", "s", *how])
    assert "a time budget is for networks" in capsys.readouterr().err


def test_positives_alone_are_listed_and_the_best_rows_are_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    (tmp_path / "scans").mkdir()
    bright = rng.random(60) < 0.5
    for number, each in enumerate(bright):
        pixels = rng.integers(0, 100, (8, 8)) + 120 * each
        Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / "scans" / f"{number:02d}.png")
    listed = np.flatnonzero(bright)[::2]
    pd.DataFrame({"file": [f"{number:02d}.png" for number in listed]}).to_csv(tmp_path / "only.csv", index=False)
    where = [str(tmp_path / "scans"), "--labels", str(tmp_path / "only.csv"), "--label", "known"]
    with pytest.raises(SystemExit) as end:
        main(["fit", *where, "--prior", "0.5", "--propensity", "none", "--epochs", "4", "-o", str(tmp_path / "m")])
    assert not end.value.code
    assert f"{len(listed)} positives are listed; the other {60 - len(listed)} images" in capsys.readouterr().err
    top = load_model(tmp_path / "m").summary["top_rows"]
    assert len(top["images"]) == len(top["rows"]) == 20
    assert all(map(is_thumbnail, top["images"]))
    with pytest.raises(SystemExit):
        main(["report", str(tmp_path / "m"), "-o", str(tmp_path / "page.html")])
    assert (tmp_path / "page.html").read_text().count('<img src="data:image/png') == 20
