"""Markers of missing values and numbers too large for a model: named, and offered a way out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

import pue
from pue.app.cli import app
from pue.app.model import load_model
from pue.app.roles import Roles
from pue.errors import InvalidInput, ScoreIsNoNumber
from pue.estimators.vectorizer.vectorize import fit_vectorizer


def frame(n: int = 120, marker: float | None = None) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    y = rng.random(n) < 0.4
    table = pd.DataFrame({"a": rng.normal(size=n) + 2 * y, "b": rng.normal(size=n)})
    table["s"] = (y & (rng.random(n) < 0.6)).astype(int)
    if marker is not None:
        table.loc[[5, 40], "b"] = marker
    return table


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.mark.parametrize("marker", [-3.4028234663852886e38, 3.4e38, 1e200, -np.inf])
def test_a_marker_is_named_by_row_and_column_with_the_way_out(marker: float, tmp_path: Path) -> None:
    frame(marker=marker).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(
        InvalidInput, match=r"column 'b' holds .* in row\(s\) 5, 40 \(the first is 0\).*--nodata -?(3|1|inf)"
    ):
        run("fit", tmp_path / "t.parquet", "--label", "s", "-o", tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_with_nodata_the_marker_is_a_missing_value_at_fit_and_for_ever_after(tmp_path: Path) -> None:
    marker = -3.4028234663852886e38
    frame(marker=marker).to_csv(tmp_path / "t.csv", index=False)
    frame().assign(b=frame(marker=np.nan)["b"]).to_csv(tmp_path / "empty.csv", index=False)
    options = ["--label", "s", "--prior", "0.4", "--method", "logistic", "--propensity", "none", "-q"]
    run("fit", tmp_path / "t.csv", *options, "-o", tmp_path / "m", "--nodata", marker, "--nodata", -9999)
    run("fit", tmp_path / "empty.csv", *options, "-o", tmp_path / "n")
    for name, model in (("marked", "m"), ("empty", "n")):
        run(
            "predict",
            tmp_path / model,
            tmp_path / ("t.csv" if model == "m" else "empty.csv"),
            "-o",
            tmp_path / f"{name}_scores.csv",
        )
    marked, empty = (pd.read_csv(tmp_path / f"{name}_scores.csv") for name in ("marked", "empty"))
    pd.testing.assert_frame_equal(marked, empty)
    assert np.isfinite(marked["probability"]).all()
    with pytest.raises(InvalidInput, match=r"row\(s\) 5, 40"):
        run("predict", tmp_path / "n", tmp_path / "t.csv", "-o", tmp_path / "x.csv")
    assert not (tmp_path / "x.csv").exists()
    run("predict", tmp_path / "n", tmp_path / "t.csv", "-o", tmp_path / "x.csv", "--nodata", marker)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "x.csv"), empty)
    run("evaluate", tmp_path / "n", tmp_path / "t.csv", "--nodata", marker)


def test_rows_are_counted_over_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pue.app import rows as rows_module
    from pue.app.rows import feature_batches
    from pue.app.sources.opening import open_source

    table = frame(100)
    vectorizer = fit_vectorizer(table[["a", "b"]])
    table.loc[77, "a"] = 1e35
    table.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InvalidInput, match=r"'a' .* row\(s\) 77 \(the first"):
        list(feature_batches(open_source(tmp_path / "t.parquet"), vectorizer, size=30))
    assert rows_module.IMAGE_BATCH > 0


def test_a_column_of_markers_alone_says_nothing() -> None:
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [-9999.0] * 3, "c": [5.0, -9999.0, 5.0], "w": ["-9999", "1", "2"]})
    vectorizer = fit_vectorizer(table, nodata=(-9999.0,))
    assert vectorizer.dropped == {"b": "all values are missing"}
    assert vectorizer.transform(table)[:, vectorizer.places(["w"])].tolist() == [[1.5, 1.0], [1.0, 0.0], [2.0, 0.0]]
    with pytest.raises(InvalidInput, match="NaN is a missing value already"):
        Roles("s", nodata=(float("nan"),))


def test_a_model_with_weights_that_are_no_numbers_decides_nothing(tmp_path: Path) -> None:
    frame().to_parquet(tmp_path / "t.parquet")
    run("fit", tmp_path / "t.parquet", "--label", "s", "--prior", "0.4", "--method", "upu", "--propensity", "none",
        "--epochs", "1", "-o", tmp_path / "m", "-q")  # fmt: skip
    model = load_model(tmp_path / "m")
    with torch.no_grad():
        next(model.classifier.network_.parameters()).fill_(torch.nan)
    model.save(tmp_path / "nan")
    assert isinstance(pue.load(tmp_path / "nan"), type(model))
    with pytest.raises(ScoreIsNoNumber, match=r"row\(s\) 0, 1, 2, 3, 4 and 115 more is no number"):
        run("predict", tmp_path / "nan", tmp_path / "t.parquet", "-o", tmp_path / "x.csv")
    assert not (tmp_path / "x.csv").exists()
    assert json.loads((tmp_path / "nan" / "manifest.json").read_text())["schema"] == 2
