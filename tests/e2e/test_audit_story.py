"""The whole story through the command line: biased labels, an audit in two rounds, a better model, its page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pue.app.cli import main

N = 1000
OPTIONS = ["--label", "known", "--id", "claim", "--method", "logistic", "--propensity", "logistic"]


def make(folder: Path) -> np.ndarray:
    """Frauds of two kinds, one of which is hardly found; the truth is kept out of the table."""
    rng = np.random.default_rng(3)
    kind = rng.choice(3, 2 * N, p=[0.65, 0.15, 0.2])
    x = rng.normal(size=(2 * N, 2)) + np.array([[0, 0], [2.5, 0], [0, 2.5]])[kind]
    known = (rng.random(2 * N) < np.array([0, 0.7, 0.1])[kind]).astype(int)
    frame = pd.DataFrame({"claim": [f"c{k}" for k in range(2 * N)], "amount": x[:, 0], "age": x[:, 1], "known": known})
    frame[:N].to_parquet(folder / "claims.parquet")
    frame[N:].assign(truth=(kind[N:] > 0).astype(int)).to_parquet(folder / "later.parquet")
    return kind > 0


def pue(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    assert ended.value.code in (0, None), said.err
    return json.loads(said.out) if "--json" in arguments else {}


def answer(sheet: Path, truth: np.ndarray) -> None:
    table = pd.read_csv(sheet)
    table["answer"] = np.where(truth[table["claim"].str[1:].astype(int)], "Yes", "No")
    table.to_csv(sheet, index=False, sep=";")


def test_a_hundred_answers_settle_the_prior_and_make_a_better_model(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    truth = make(tmp_path)
    first = pue(capsys, "fit", "claims.parquet", *OPTIONS, "-o", "model", "--json")
    assert first["prior"]["high"] - first["prior"]["low"] > 0.15
    assert "pue audit plan" in first["advice"][0]

    pue(capsys, "audit", "plan", "model", "claims.parquet", "-n", 60, "-o", "to_check.csv")
    pue(capsys, "audit", "page", "to_check.csv", "-o", "audit.html")
    assert "c" in Path("audit.html").read_text()
    answer(Path("to_check.csv"), truth)
    one = pue(capsys, "audit", "read", "model", "to_check.csv", "--until", "prior ±0.02", "--json")
    assert not one["until"]["reached"]

    pue(capsys, "audit", "plan", "model", "claims.parquet", "-n", 40, "--after", "to_check.csv", "-o", "more.csv")
    answer(Path("more.csv"), truth)
    both = pue(capsys, "audit", "read", "model", "to_check.csv", "more.csv", "--json")
    share = truth[:N].mean()
    assert both["prior"]["low"] < share < both["prior"]["high"]
    assert both["prior"]["high"] - both["prior"]["low"] < 0.5 * (first["prior"]["high"] - first["prior"]["low"])

    sheets = ["--audit", "to_check.csv", "--audit", "more.csv"]
    better = pue(capsys, "fit", "claims.parquet", *OPTIONS, *sheets, "-o", "better", "--json")
    assert better["prior"]["method"] == "audit"
    assert abs(better["prior"]["value"] - share) < 0.08
    exact = [
        pue(capsys, "evaluate", model, "later.parquet", "--truth", "truth", "--json")["truth"]
        for model in ("model", "better")
    ]
    assert exact[1]["f1"] > exact[0]["f1"] - 0.02
    pue(capsys, "report", "model", *sheets, "-o", "page.html")
    assert "Promised and found" in Path("page.html").read_text()
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []
