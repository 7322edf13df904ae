"""Drift: columns that changed are named, others are not; a labeling that changed is said; a list of positives."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from pue.app.cli import main
from pue.app.drift import _compared, drifted, profiles_of
from pue.app.sources.folders import with_rest
from pue.app.sources.opening import open_source
from pue.errors import PueWarning
from pue.estimators.vectorizer.vectorize import fit_vectorizer


def rows(n: int, seed: int, **changed: object) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "count": rng.poisson(2, n),
            "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "region": rng.choice(["north", "south", "east"], n),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
        }
    ).assign(**changed)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("size", lambda f: f["size"] + 1),
        ("count", lambda f: f["count"] * 3),
        ("gaps", lambda f: f["gaps"].where(np.arange(len(f)) % 2 == 0)),
        ("region", lambda f: f["region"].replace("east", "west")),
        ("when", lambda f: f["when"] + pd.Timedelta("200D")),
    ],
)
def test_a_column_that_changed_is_named_and_no_other(name: str, change: object) -> None:
    vectorizer = fit_vectorizer(rows(1000, 0))
    profiles = profiles_of(vectorizer, vectorizer.transform(rows(1000, 0)))
    assert drifted(profiles, vectorizer, vectorizer.transform(rows(800, 1))) == []
    later = rows(800, 1)
    (found,) = drifted(profiles, vectorizer, vectorizer.transform(later.assign(**{name: change(later)})))  # type: ignore[operator]
    assert found.column == name
    assert found.moved >= 0.1
    assert f"column {name!r} has drifted: " in str(found)


def test_few_rows_say_nothing() -> None:
    vectorizer = fit_vectorizer(rows(1000, 0))
    profiles = profiles_of(vectorizer, vectorizer.transform(rows(1000, 0)))
    assert drifted(profiles, vectorizer, vectorizer.transform(rows(40, 1, size=9.0))) == []


def test_the_comparison_is_that_of_the_formula() -> None:
    before, now = np.array([50, 30, 20, 0]), np.array([10, 10, 10, 0])
    moved, p = _compared(before, now)
    shares = before / 100, now / 30
    assert moved == pytest.approx(0.5 * sum(abs(a - b) for a, b in zip(*shares, strict=True)))
    total = before + now
    expected = [total * part.sum() / total.sum() for part in (before, now)]
    statistic = sum(
        (seen - wanted) ** 2 / wanted
        for part, hoped in zip((before, now), expected, strict=True)
        for seen, wanted in zip(part, hoped, strict=True)
        if wanted > 0
    )
    assert p == pytest.approx(np.exp(-statistic / 2))  # χ² of two degrees of freedom


def test_predict_and_evaluate_say_what_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    y = rng.random(500) < 0.4
    frame = rows(500, 0).assign(size=rng.normal(size=500) + 2 * y, s=(y & (rng.random(500) < 0.3)).astype(int))
    frame.to_parquet(tmp_path / "t.parquet")
    fit = ["fit", "t.parquet", "--label", "s", "--prior", "0.4", "--propensity", "none", "--method", "logistic"]

    def run(*arguments: str) -> tuple[str, str]:
        with pytest.raises(SystemExit) as end:
            main([str(tmp_path / part) if part.endswith((".parquet", "model", ".csv")) else part for part in arguments])
        printed = capsys.readouterr()
        assert not end.value.code, printed.err
        return printed.out, printed.err

    run(*fit, "-o", "model", "--quiet")
    assert "drifted" not in run("predict", "model", "t.parquet", "-o", "a.csv")[1]
    frame.assign(count=frame["count"] + 5, s=(y & (rng.random(500) < 0.9)).astype(int)).to_parquet(
        tmp_path / "later.parquet"
    )
    _, err = run("predict", "model", "later.parquet", "-o", "b.csv")
    assert err.count("drifted") == 1
    assert "note: column 'count' has drifted: " in err
    out, err = run("evaluate", "model", "later.parquet")
    assert "The labeling has changed: " in out
    assert "column 'count' has drifted" in err
    assert "The labeling has changed" not in run("evaluate", "model", "t.parquet")[0]
    found = json.loads(run("predict", "model", "later.parquet", "-o", "c.csv", "--json")[0])
    assert found["drifted"] == ["count"]


@pytest.mark.parametrize("columns", [["file"], ["file", "found"]])
def test_a_list_of_positives_leaves_the_rest_of_the_folder_unlabeled(tmp_path: Path, columns: list[str]) -> None:
    folder = tmp_path / "scans"
    folder.mkdir()
    for k in range(6):
        Image.new("L", (4, 4), 40 * k).save(folder / f"{k}.png")
    table = pd.DataFrame({"file": ["4.png", "1.png"], "found": [1, 1]})[columns]
    table.to_csv(tmp_path / "list.csv", index=False)
    source = open_source(folder, labels=tmp_path / "list.csv")
    with pytest.warns(PueWarning, match="2 positives are listed; the other 4 images of scans are unlabeled"):
        whole = with_rest(source, "found")
    assert whole.read(["found"])["found"].tolist() == [1, 1, 0, 0, 0, 0]
    assert whole.images(0, 6)[:, 0, 0, 0].tolist() == [160, 40, 0, 80, 120, 200]
    both = pd.DataFrame({"file": ["4.png", "1.png"], "found": [1, 0]})
    both.to_csv(tmp_path / "list.csv", index=False)
    assert with_rest(open_source(folder, labels=tmp_path / "list.csv"), "found").n_rows == 2
