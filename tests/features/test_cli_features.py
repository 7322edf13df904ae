"""`pue features`: an encoder from a folder of images, and a table that other commands take."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from pue.app.cli import main
from pue.features import load_encoder


@pytest.fixture
def scans(tmp_path: Path) -> Path:
    folder = tmp_path / "scans"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(24):
        Image.fromarray(rng.integers(0, 256, (20, 20, 3), np.uint8)).save(folder / f"{number:02}.png")
    table = pd.DataFrame({"file": [f"{number:02}.png" for number in range(24)], "s": np.arange(24) % 4 == 0})
    table.to_csv(folder / "labels.csv", index=False)
    return folder


def command(*arguments: object) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    return int(end.value.code or 0)


def test_images_become_an_encoder_and_then_a_table(scans: Path, capsys: pytest.CaptureFixture[str]) -> None:
    encoder, table = scans.parent / "features", scans.parent / "table.parquet"
    assert command("features", "fit", scans, "-o", encoder, "--epochs", 1, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["features"] == 256
    assert said["images"] == 24
    assert said["views_size"] == 16
    assert command("features", "apply", scans, "-o", table, "--encoder", encoder, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"rows": 24, "features": 256}
    found = pd.read_parquet(table)
    assert list(found.columns[:3]) == ["file", "s", "feature_0"]
    assert len(found) == 24
    pixels = np.stack([np.asarray(Image.open(scans / name)) for name in found["file"]]).transpose(0, 3, 1, 2)
    expected = load_encoder(encoder)(torch.from_numpy(pixels.copy())).numpy()
    np.testing.assert_allclose(found.filter(like="feature_").to_numpy(), expected, rtol=1e-5, atol=1e-6)


def test_what_has_no_images_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows.csv").write_text("a,s\n1,1\n2,0\n")
    for verb, more in (("fit", []), ("apply", ["--encoder", "torch.nn:Flatten"])):
        output = tmp_path / ("out" if verb == "fit" else "out.csv")
        assert command("features", verb, tmp_path / "rows.csv", "-o", output, *more) == 2
        assert "holds a table, no images" in capsys.readouterr().err
        assert not output.exists()
