"""The first hour of a practitioner: tables made on the spot, each ends in the right message and a sound model."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from pue.app.cli import main
from pue.app.model import load_model

N = 400
WORDS = ("late", "broken", "engine", "paid", "friend", "street", "night", "water")
CHEAP = ["--prior", "0.4", "--propensity", "none", "--method", "forest"]


def claims(seed: int = 0, n: int = N, prior: float = 0.4) -> tuple[pd.DataFrame, np.ndarray]:
    """Amounts tell frauds apart; half of them are labeled."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < prior
    frame = pd.DataFrame(
        {
            "amount": (rng.normal(size=n) + 2.5 * y).round(3),
            "age": rng.integers(18, 90, n),
            "region": np.where(rng.random(n) < 0.2 + 0.5 * y, "north", "south"),
        }
    )
    return frame.assign(fraud=(y & (rng.random(n) < 0.5)).astype(int)), y


Step = Callable[[pd.DataFrame, np.ndarray, np.random.Generator, Path], Path]


def as_csv(frame: pd.DataFrame, folder: Path, name: str = "t.csv", **options: str) -> Path:
    frame.to_csv(folder / name, index=False, **options)  # type: ignore[call-overload]
    return folder / name


def leak(frame: pd.DataFrame, y: np.ndarray, rng: np.random.Generator, folder: Path) -> Path:
    return as_csv(frame.assign(loss=np.where(frame["fraud"] == 1, rng.gamma(2, 100, N), np.nan)), folder)


def identifier(frame: pd.DataFrame, y: np.ndarray, rng: np.random.Generator, folder: Path) -> Path:
    return as_csv(frame.assign(claim=[f"AP-{k}" for k in rng.permutation(N)]), folder)


def free_text(frame: pd.DataFrame, y: np.ndarray, rng: np.random.Generator, folder: Path) -> Path:
    return as_csv(frame.assign(note=[" ".join(rng.choice(WORDS, 4)) for _ in range(N)]), folder)


def dates(frame: pd.DataFrame, y: np.ndarray, rng: np.random.Generator, folder: Path) -> Path:
    days = np.sort(np.array("2024-01-01", "datetime64[D]") + rng.integers(0, 300, N))
    return as_csv(frame.assign(when=pd.Series(days).dt.strftime("%d.%m.%Y")), folder)


def gaps(frame: pd.DataFrame, y: np.ndarray, rng: np.random.Generator, folder: Path) -> Path:
    return as_csv(frame.assign(age=frame["age"].where(rng.random(N) < 0.7)), folder)


def semicolons(frame: pd.DataFrame, y: np.ndarray, rng: np.random.Generator, folder: Path) -> Path:
    return as_csv(frame, folder, sep=";", decimal=",")


def json_lines(frame: pd.DataFrame, y: np.ndarray, rng: np.random.Generator, folder: Path) -> Path:
    frame.to_json(folder / "t.jsonl.gz", orient="records", lines=True)
    return folder / "t.jsonl.gz"


STEPS: dict[str, tuple[Step, str, list[str]]] = {
    "leak": (leak, "note: column 'loss' is left out, for it gives the label away", ["amount", "age", "region"]),
    "id": (identifier, "note: column 'claim' is left out, for it names rows", ["amount", "age", "region"]),
    "text": (free_text, "", ["amount", "age", "region", "note"]),
    "dates": (dates, "note: column 'when' is used, but it orders the table", ["amount", "age", "region", "when"]),
    "gaps": (gaps, "", ["amount", "age", "region"]),
    "semicolons": (semicolons, "cells of t.csv are separated by ';', and its numbers have decimal commas",
                   ["amount", "age", "region"]),
    "JSON lines": (json_lines, "", ["amount", "age", "region"]),
}  # fmt: skip


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    assert not end.value.code, printed.err
    return printed.out, printed.err


@pytest.mark.parametrize(("step", "message", "columns"), STEPS.values(), ids=list(STEPS))
def test_a_table_ends_in_the_right_message_and_a_sound_model(
    step: Step, message: str, columns: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame, y = claims()
    path = step(frame, y, np.random.default_rng(1), tmp_path)
    _, err = run(capsys, "fit", path, "--label", "fraud", *CHEAP, "-o", tmp_path / "model")
    assert message in err
    assert message or "note:" not in err
    model = load_model(tmp_path / "model")
    assert [model.summary["data"]["columns"][k]["name"] for k in range(len(columns))] == columns

    later, truth = claims(seed=2)
    if set(columns) <= set(later.columns):
        assert np.mean(model.predict(later) == truth) > 0.85


def test_rare_positives_are_ranked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame, y = claims(n=3000, prior=0.03)
    path = as_csv(frame, tmp_path)
    how = ["--prior", "0.03", "--propensity", "none", "--method", "forest"]
    run(capsys, "fit", path, "--label", "fraud", *how, "-o", tmp_path / "model", "--quiet")
    out, _ = run(capsys, "predict", tmp_path / "model", path, "-o", tmp_path / "s.csv", "--budget", 40, "--explain", 2)
    assert "Expected hits: " in out
    assert f"Passed over: {frame['fraud'].sum():,} rows that have a label already" in out
    found = pd.read_csv(tmp_path / "s.csv")
    chosen = found["positive"] == 1
    assert chosen.sum() == 40
    assert not (chosen & (frame["fraud"] == 1)).any()
    assert y[chosen].mean() > 5 * y[frame["fraud"] == 0].mean()
    assert found.loc[chosen, "reason_1"].str.startswith("amount = ").mean() > 0.5


def test_a_sheet_goes_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calamine = pytest.importorskip("python_calamine")
    assert calamine
    from test_formats import sheet

    frame, _ = claims()
    rows = [list(frame.columns), *frame.astype(object).to_numpy().tolist()]
    run(capsys, "fit", sheet(tmp_path / "t.xlsx", rows), "--label", "fraud", *CHEAP, "-o", tmp_path / "m", "--quiet")
    later, truth = claims(seed=2)
    assert np.mean(load_model(tmp_path / "m").predict(later) == truth) > 0.85


def test_a_pipe_goes_in(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    frame, _ = claims()
    content = frame.to_csv(index=False).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    run(capsys, "fit", "-", "--label", "fraud", *CHEAP, "-o", tmp_path / "m", "--quiet")
    later, truth = claims(seed=2)
    assert np.mean(load_model(tmp_path / "m").predict(later) == truth) > 0.85


def test_a_list_of_positives_goes_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    folder = tmp_path / "scans"
    folder.mkdir()
    for k in range(60):
        pixels = rng.integers(0, 90, (8, 8), dtype=np.uint8) + np.uint8(120 * (k < 24))
        Image.fromarray(pixels).save(folder / f"{k:02d}.png")
    as_csv(pd.DataFrame({"file": [f"{k:02d}.png" for k in range(12)]}), tmp_path, "list.csv")
    how = [
        "--labels",
        tmp_path / "list.csv",
        "--label",
        "found",
        "--prior",
        "0.4",
        "--propensity",
        "none",
        "--epochs",
        2,
    ]
    _, err = run(capsys, "fit", folder, *how, "-o", tmp_path / "model")
    assert "note: 12 positives are listed; the other 48 images of scans are unlabeled." in err
    assert load_model(tmp_path / "model").summary["data"]["n_rows"] == 60


def test_later_rows_that_drift_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame, _ = claims()
    run(capsys, "fit", as_csv(frame, tmp_path), "--label", "fraud", *CHEAP, "-o", tmp_path / "m", "--quiet")
    later, _ = claims(seed=2)
    same = as_csv(later, tmp_path, "same.csv")
    assert "drifted" not in run(capsys, "predict", tmp_path / "m", same, "-o", tmp_path / "s.csv")[1]
    moved = as_csv(later.assign(age=later["age"] + 40), tmp_path, "moved.csv")
    _, err = run(capsys, "predict", tmp_path / "m", moved, "-o", tmp_path / "s.csv")
    assert "note: column 'age' has drifted: " in err
