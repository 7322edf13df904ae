"""`pue` as a practitioner uses it, and as one who does everything wrong: results, options, errors, interruptions."""

from __future__ import annotations

import gzip
import importlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import feather, parquet

import pue
from pue.app import compare as comparing
from pue.app import fit, learn, rows, summary, survey, top_rows
from pue.app import preparation as preparing
from pue.app.cli import COMMANDS, main
from pue.app.model import PUModel
from pue.app.sources.opening import open_source
from pue.app.sources.write import Writer
from pue.persistence import folder as model_folder

writing = importlib.import_module("pue.files.writing")  # `pue.files.writing` is the function

WORDS = ("late", "broken", "engine", "paid", "friend", "street", "night", "water")
COLUMNS = ["--label", "fraud", "--id", "claim", "--truth", "truth", "--ignore", "e"]
PLAIN = ["--prior", "0.4", "--propensity", "none"]
CHEAP = [*PLAIN, "--method", "logistic"]


def claims(n: int = 300, seed: int = 0) -> pd.DataFrame:
    """A table of every kind of column; large claims are labeled more often."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    amount = np.round(rng.normal(size=n) + 3 * y, 3)
    e = np.round(0.3 + 0.6 / (1 + np.exp(2 - amount)), 3)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, n), unit="D")
    return pd.DataFrame(
        {
            "claim": [f"c{number}" for number in range(n)],
            "amount": amount,
            "age": np.where(rng.random(n) < 0.1, np.nan, np.round(rng.normal(40, 10, n) - 8 * y)),
            "region": np.where(rng.random(n) < 0.1, None, np.where(rng.random(n) < 0.3 + 0.4 * y, "north", "south")),
            "when": day.strftime("%Y-%m-%d"),
            "note": [" ".join(rng.choice(WORDS, 4)) for _ in range(n)],
            "truth": y.astype(int),
            "e": e,
            "fraud": (y & (rng.random(n) < e)).astype(int),
        }
    )


def small(n: int = 60, labeled: int = 15, seed: int = 0) -> pd.DataFrame:
    """Two numbers and a label: what costs little."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) < 2 * labeled
    return pd.DataFrame(
        {"a": rng.normal(size=n) + 3 * y, "b": rng.normal(size=n), "s": (np.arange(n) < labeled).astype(int)}
    ).sample(frac=1, random_state=0)


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """A command in this process: exit code, stdout, stderr."""

    def command(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return int(end.value.code or 0), printed.out, printed.err

    return command


def given(run: Run, *arguments: object) -> dict[str, Any]:
    """What a command gives to scripts: one object and nothing else."""
    code, out, err = run(*arguments, "--json", "--quiet")
    assert (code, err) == (0, ""), err
    found = json.loads(out)
    assert isinstance(found, dict)
    return found


def said(run: Run, *arguments: object) -> str:
    """The one line of a command that refuses."""
    code, out, err = run(*arguments, "--quiet")
    assert (code, out) == (2, ""), (code, out, err)
    assert err.startswith("pue: "), err
    assert err.count("\n") == 1, err
    return err


def contents(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder, hidden ones too."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "claims.csv"
    claims().to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def model(data: Path) -> Path:
    """Fitted with estimated propensities; read by many tests, changed by none."""
    target = data.parent / "model"
    with pytest.raises(SystemExit) as end:
        main(
            [
                *("fit", str(data), *COLUMNS, "--prior", "0.4", "--propensity", "logistic", "--method", "logistic"),
                *("-o", str(target), "--quiet"),
            ]
        )
    assert not end.value.code
    return target


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.csv"
    small().to_csv(path, index=False)
    return path


# --------------------------------------------------------------------------------------------- the story


class Clock(datetime):
    @classmethod
    def now(cls, tz: Any = None) -> Clock:
        return cls(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def story(folder: Path, run: Run) -> dict[str, Any]:
    """diagnose, compare, fit, evaluate, predict, report; everything that must be the same the second time."""
    folder.mkdir()
    table, later = folder / "claims.csv", folder / "later.csv"
    claims().to_csv(table, index=False)
    claims(200, seed=1).to_csv(later, index=False)
    how = [*COLUMNS, "--propensity", "logistic", "--seed", "3"]
    found = {"diagnosis": given(run, "diagnose", table, *how, "--prior", "elkan_noto", "-o", folder / "d.html")}
    how += ["--prior", "0.4", "--epochs", "10"]  # after three, held-out rows rank worse than chance
    found["comparison"] = given(
        run, "compare", table, *how, "--candidates", "logistic+logistic,naive", "--out", folder / "comparison"
    )
    found["model"] = given(run, "fit", table, *how, "-o", folder / "model")
    found["evaluation"] = given(run, "evaluate", folder / "model", later, "--truth", "truth")
    for name in ("scores.csv", "scores.parquet"):
        found[name] = given(run, "predict", folder / "model", later, "-o", folder / name, "--posterior")
    os.utime(folder / "model", (0, 0))  # the page dates a model by its folder
    assert run("report", folder / "model", "-o", folder / "page.html")[0] == 0
    return found


def timeless(value: Any) -> Any:
    """The same without seconds, and without the folder it was made in."""
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k not in ("seconds", "output", "model") or k != k.lower()}
    return [timeless(inner) for inner in value] if isinstance(value, list) else value


def test_the_story_told_twice_is_the_same(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "datetime", Clock)
    monkeypatch.setattr(fit, "time", SimpleNamespace(perf_counter=lambda: 0.0))
    one, two = tmp_path / "one", tmp_path / "two"
    first, second = story(one, run), story(two, run)
    assert timeless(first) == timeless(second)
    for name in ("scores.csv", "scores.parquet", "page.html", "d.html", "model/tensors.safetensors"):
        assert (one / name).read_bytes() == (two / name).read_bytes(), name
    trees = [timeless(json.loads((folder / "model" / "model.json").read_text())) for folder in (one, two)]
    assert trees[0] == trees[1]
    assert [path.name for path in sorted(one.iterdir())] == [
        *("claims.csv", "comparison", "d.html", "later.csv", "model", "page.html", "scores.csv", "scores.parquet")
    ]
    results = first["comparison"]["results"]
    assert {result["candidate"] for result in results} == {"logistic+logistic", "naive"}
    assert first["comparison"]["best"] == results[0]["candidate"]
    assert first["model"]["data"]["n_rows"] == 300
    assert first["evaluation"]["truth"]["auc"] > 0.7
    assert first["evaluation"]["trained_on"] is False
    scores = pd.read_csv(one / "scores.csv")
    assert scores["claim"].tolist() == claims(200, seed=1)["claim"].tolist()
    assert first["scores.csv"]["rows"] == 200
    assert first["scores.csv"]["positive"] == scores["positive"].sum()
    page = (one / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "claims.csv" in page


def test_another_seed_is_another_result(run: Run, tiny: Path) -> None:
    how = ["--label", "s", *PLAIN, "--prior", "0.5", "--epochs", "1"]
    one, two = (given(run, "fit", tiny, *how, "--seed", k, "-o", tiny.parent / str(k)) for k in (1, 2))
    assert one["metrics"] != two["metrics"]


# ------------------------------------------------------------------------------------------- how it speaks


def test_commands_speak_to_people_or_to_scripts_or_not_at_all(
    run: Run, data: Path, model: Path, tmp_path: Path
) -> None:
    silent = [
        ["diagnose", data, *COLUMNS, *PLAIN],
        ["fit", data, *COLUMNS, *CHEAP, "-o", tmp_path / "model"],
        ["compare", data, *COLUMNS, *PLAIN, "--candidates", "logistic", "--out", tmp_path / "comparison"],
        ["evaluate", model, data],
        ["predict", model, data, "-o", tmp_path / "scores.csv"],
        ["inspect", model],
    ]
    for arguments in silent:
        assert run(*arguments, "--quiet") == (0, "", ""), arguments
        code, out, err = run(*arguments, "--json", *(["--force"] if arguments[0] == "fit" else []))
        assert (code, err) == (0, ""), arguments
        assert isinstance(json.loads(out), dict)
    code, out, err = run("evaluate", model, data)
    assert code == 0
    assert "300 rows; estimates without negatives, 95% intervals, if the chances of a label are right" in " ".join(
        out.split()
    )
    assert "These are the rows the model was trained on" in out
    assert err == ""
    code, out, err = run("inspect", model)
    assert "claims.csv: 300 rows, 81 labeled positive in 'fraud'" in out
    assert "Method: logistic, weighted by the chance of a label" in out
    assert "amount (number), age (number), region (category), when (date), note (text)" in out
    said = given(run, "inspect", model)
    assert said.pop("created")  # the folder's date
    assert said == json.loads(json.dumps(pue.load(model).summary))
    code, out, err = run("compare", *silent[2][1:])
    assert "… logistic: found" in err
    assert "Best: logistic. Fit it with --fit MODEL." in out


def test_notes_go_to_stderr_and_not_into_json(run: Run, data: Path, model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    pd.read_csv(data).assign(new=1, newer=2).to_csv(other, index=False)
    code, out, err = run("predict", model, other, "-o", tmp_path / "scores.csv", "--json")
    assert code == 0
    assert err == "note: columns the model never saw are not used: new, newer.\n"
    assert json.loads(out)["unknown"] == ["new", "newer"]


def test_what_the_library_warns_of_is_a_note_and_stays_with_the_model(run: Run, tmp_path: Path) -> None:
    table = small().assign(row_id=range(60))
    table.to_csv(tmp_path / "t.csv", index=False)
    code, _, err = run("fit", tmp_path / "t.csv", "--label", "s", *CHEAP, "--prior", "0.5", "-o", tmp_path / "model")
    assert code == 0
    assert "note: column 'row_id' is left out, for it names rows: whole numbers that count the 60 rows" in err
    assert "all the same: --keep row_id." in pue.load(tmp_path / "model").summary["warnings"][-1]


@pytest.mark.parametrize("command", ["diagnose", "fit", "compare", "predict", "evaluate", "report", "inspect", "demo"])
def test_help_shows_examples(run: Run, command: str) -> None:
    assert command in COMMANDS
    code, out, _ = run(command, "--help")
    assert code == 0
    assert "Examples" in out
    assert re.search(rf"^ +pue {command}", out, re.MULTILINE)


def test_a_strange_name_is_shown_and_does_no_harm(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "[red]café\n\x1b[31m.csv"
    small().to_csv(path, index=False)
    found = given(run, "fit", path, "--label", "s", *CHEAP, "--prior", "0.5", "-o", tmp_path / "model")
    assert found["data"]["source"] == path.name
    code, out, _ = run("inspect", tmp_path / "model")
    assert (code, "[red]café" in out) == (0, True)
    path = path.rename(tmp_path / os.fsdecode(b"caf\xe9.csv"))
    message = said(run, "fit", path, "--label", "s", *CHEAP, "-o", tmp_path / "no")
    assert "caf\\udce9.csv is not UTF-8 text, so Arrow cannot open it. Rename it." in message


# ------------------------------------------------------------------------------------------------ options


@pytest.mark.parametrize(
    ("prior", "low", "high"), [("0.45", 0.45, 0.45), ("estimate", 0.25, 1), ("elkan_noto", 0.25, 1)]
)
def test_priors(run: Run, tmp_path: Path, prior: str, low: float, high: float) -> None:
    small(120, 30).to_csv(tmp_path / "t.csv", index=False)
    how = ["--label", "s", "--method", "logistic", "--propensity", "none", "--prior", prior]
    found = given(run, "fit", tmp_path / "t.csv", *how, "-o", tmp_path / "model")["prior"]
    assert low <= found["value"] <= high
    assert found["method"] != "estimate"
    assert (found["method"] == "given") == (prior == "0.45")


@pytest.mark.parametrize("method", ["boosting", "wrapped_boosting", "forest", "logistic", "distpu", "upu", "naive"])
def test_methods(run: Run, tiny: Path, method: str) -> None:
    how = ["--label", "s", *PLAIN, "--prior", "0.5", "--epochs", "30", "--method", method]
    found = given(run, "fit", tiny, *how, "-o", tiny.parent / "model")
    assert found["method"]["name"] == method
    again = given(run, "predict", tiny.parent / "model", tiny, "-o", tiny.parent / "scores.csv")
    assert again["rows"] == 60
    scores = pd.read_csv(tiny.parent / "scores.csv")
    assert scores["row"].tolist() == list(range(60))
    assert scores["probability"].between(0, 1).all()


def test_propensities_by_name_and_by_column(run: Run, data: Path, model: Path, tmp_path: Path) -> None:
    estimated = pue.load(model)
    assert estimated.propensity_model is not None
    how = ["--label", "fraud", "--id", "claim", "--truth", "truth", "--prior", "0.4", "--method", "logistic"]
    found = given(run, "fit", data, *how, "--propensity", "column:e", "-o", tmp_path / "known")
    assert found["method"]["propensity"] == "known"
    assert found["metrics"]["assumption"] == "the chances of a label are right"
    assert "e" not in [column["name"] for column in found["data"]["columns"]]
    none = given(run, "fit", data, *how, "--propensity", "none", "--ignore", "e", "-o", tmp_path / "none")
    assert none["metrics"]["assumption"] == "labels are a random sample of the positives"
    assert none["scar_metrics"] is None
    assert none["metrics"]["values"] != found["metrics"]["values"]
    # Rows judged later are weighted by the same column; it is no stranger to the model.
    code, out, err = run("evaluate", tmp_path / "known", data, "--json")
    assert (code, err) == (0, "")
    judged = json.loads(out)
    assert judged["estimated"]["assumption"] == "the chances of a label are right"
    table = pd.read_csv(data)
    mine = pue.load(tmp_path / "known")
    expected = pue.estimate_metrics(
        mine.probability(open_source(data).read()),
        table["fraud"].to_numpy(copy=True),
        prior=0.4,
        propensity=table["e"][table["fraud"] == 1].to_numpy(copy=True),
        threshold=mine.threshold,
    )
    assert judged["estimated"]["recall"] == vars(expected.recall)
    for column, message in (
        ("amount", "column 'amount': propensity must lie in (0, 1]"),
        ("note", "column 'note' must hold propensities"),
        ("ee", "unknown column 'ee'. Did you mean 'e'?"),
        ("", "--propensity column:COL needs the name of the column"),
        ("fraud", "column 'fraud' is named twice"),
    ):
        assert message in said(run, "fit", data, *how, "--propensity", f"column:{column}", "-o", tmp_path / "no")


def test_posterior_of_unlabeled_rows(run: Run, data: Path, model: Path, tmp_path: Path) -> None:
    given(run, "predict", model, data, "-o", tmp_path / "s.parquet", "--posterior")
    scores = pd.read_parquet(tmp_path / "s.parquet")
    fitted = pue.load(model)
    features = fitted.features(open_source(data).read())
    f, e = fitted.probabilities(features), fitted.propensity(features)
    assert e.std() > 0.01
    assert np.array_equal(scores["probability"], f)
    np.testing.assert_allclose(scores["probability_if_unlabeled"], f * (1 - e) / (1 - f * e), rtol=1e-12)
    how = ["--label", "fraud", "--prior", "0.4", "--method", "logistic", "--ignore", "truth"]
    # Labels taken as unbiased: one propensity for all, labeled positives over positives.
    given(run, "fit", data, *how, "--propensity", "none", "--id", "claim", "-o", tmp_path / "none")
    given(run, "predict", tmp_path / "none", data, "-o", tmp_path / "s.parquet", "--posterior")
    scores, c = pd.read_parquet(tmp_path / "s.parquet"), 81 / (0.4 * 300)
    f = scores["probability"]
    np.testing.assert_allclose(scores["probability_if_unlabeled"], f * (1 - c) / (1 - f * c), rtol=1e-12)
    # Known ones come from their column, which must be there.
    given(run, "fit", data, *how, "--propensity", "column:e", "--id", "claim", "-o", tmp_path / "known")
    given(run, "predict", tmp_path / "known", data, "-o", tmp_path / "s.parquet", "--posterior")
    scores, c = pd.read_parquet(tmp_path / "s.parquet"), pd.read_csv(data)["e"]
    f = scores["probability"]
    np.testing.assert_allclose(scores["probability_if_unlabeled"], f * (1 - c) / (1 - f * c), rtol=1e-12)
    before = contents(tmp_path)
    pd.read_csv(data).drop(columns="e").to_csv(tmp_path / "without.csv", index=False)
    pd.read_csv(data).assign(e=None).to_csv(tmp_path / "empty.csv", index=False)
    for name, message in (("without", "propensities from column 'e'"), ("empty", "column 'e' must hold propensities")):
        arguments = ["predict", tmp_path / "known", tmp_path / f"{name}.csv", "-o", tmp_path / "no.csv"]
        assert message in said(run, *arguments, "--posterior")
        (tmp_path / f"{name}.csv").unlink()
    assert contents(tmp_path) == before


def test_only_features_are_features(run: Run, data: Path, model: Path, tmp_path: Path) -> None:
    """Label, id, truth and what is ignored do not change a score, and their absence is no error."""
    features = ["amount", "age", "region", "when", "note"]
    assert list(pue.load(model).vectorizer.columns) == features
    table = pd.read_csv(data)
    table[features].to_csv(tmp_path / "bare.csv", index=False)
    table.assign(truth="x", fraud=7, e="y", claim=0).to_csv(tmp_path / "odd.csv", index=False)
    scores = {}
    for path in (data, tmp_path / "bare.csv", tmp_path / "odd.csv"):
        code, _, err = run("predict", model, path, "-o", tmp_path / "s.parquet")
        assert (code, err) == (0, "")
        scores[path.name] = pd.read_parquet(tmp_path / "s.parquet")
    assert scores["claims.csv"]["probability"].equals(scores["bare.csv"]["probability"])
    assert scores["claims.csv"]["probability"].equals(scores["odd.csv"]["probability"])
    assert list(scores["bare.csv"].columns) == ["row", "probability", "positive"]


def test_ids_and_the_order_of_rows_are_kept(run: Run, data: Path, model: Path, tmp_path: Path) -> None:
    table = pd.read_csv(data)
    given(run, "predict", model, data, "-o", tmp_path / "a.csv")
    scores = pd.read_csv(tmp_path / "a.csv").set_index("claim")["probability"]
    assert scores.index.tolist() == table["claim"].tolist()
    shuffled = table.sample(frac=1, random_state=1)
    shuffled.assign(
        number=np.arange(300), when2=pd.to_datetime(table["when"]), gap=shuffled["age"].astype("Int64")
    ).to_parquet(tmp_path / "b.parquet", index=False)
    given(run, "predict", model, tmp_path / "b.parquet", "-o", tmp_path / "b.csv")
    again = pd.read_csv(tmp_path / "b.csv").set_index("claim")["probability"]
    assert again.index.tolist() == shuffled["claim"].tolist()
    np.testing.assert_allclose(again[scores.index], scores, rtol=1e-12)
    for name in ("number", "when2", "gap"):
        given(run, "predict", model, tmp_path / "b.parquet", "-o", tmp_path / "c.parquet", "--id", name)
        old, new = (parquet.read_table(tmp_path / f"{file}.parquet").column(name) for file in "bc")
        assert (old.type, old.to_pylist()) == (new.type, new.to_pylist())
    shuffled.rename(columns={"claim": "probability"}).to_csv(tmp_path / "d.csv", index=False)
    message = said(run, "predict", model, tmp_path / "d.csv", "-o", tmp_path / "e.csv", "--id", "probability")
    assert "the id column is called 'probability'" in message
    assert "Did you mean 'claim'" in said(run, "predict", model, data, "-o", tmp_path / "e.csv", "--id", "clam")


@pytest.mark.parametrize(
    ("option", "rule"),
    [
        (["--threshold", "f1"], "the highest estimated F1"),
        (["--threshold", "half"], "probability one half: the highest accuracy"),
        (["--threshold", "prior"], "as many rows called positive as there should be positives"),
        (["--threshold", "0.3"], "given"),
        (["--target-precision", "0.7"], "the lowest with an estimated precision of 0.7"),
    ],
)
def test_thresholds_of_fit_and_predict_agree(
    run: Run, data: Path, model: Path, tmp_path: Path, option: list[str], rule: str
) -> None:
    how = [*COLUMNS, "--prior", "0.4", "--propensity", "logistic", "--method", "logistic", *option]
    found = given(run, "fit", data, *how, "-o", tmp_path / "model")["threshold"]
    assert found["rule"] == rule
    done = given(run, "predict", model, data, "-o", tmp_path / "s.csv", *option)
    assert done["threshold"] == found["value"]
    scores = pd.read_csv(tmp_path / "s.csv")
    assert (scores["positive"] == (scores["probability"] >= found["value"])).all()
    assert done["positive"] == scores["positive"].sum() > 0
    if option[0] == "--target-precision":
        _, out, _ = run("predict", model, data, "-o", tmp_path / "s.csv", *option)
        assert re.search(r"Precision at 0\.\d+: [\d.]+% \[[\d.]+%, [\d.]+%\], from \d+ labeled rows above it", out)
        assert "share of positives being 0.400, and on this: the chances of a label are as estimated" in out
    expected = {"half": 0.5, "0.3": 0.3}
    assert found["value"] == expected.get(option[1], found["value"])


def test_a_budget_is_kept_exactly(run: Run, tiny: Path) -> None:
    folder = tiny.parent
    given(run, "fit", tiny, "--label", "s", *CHEAP, "--prior", "0.5", "-o", folder / "model")
    table = pd.read_csv(tiny)
    five = pd.concat([table] * 5, ignore_index=True)  # every probability five times
    five.to_csv(folder / "ties.csv", index=False)
    free = int((five["s"] == 0).sum())
    for budget in (1, 7, free - 1, free, 10**6):
        done = given(
            run, "predict", folder / "model", folder / "ties.csv", "-o", folder / "s.parquet", "--budget", budget
        )
        scores = pd.read_parquet(folder / "s.parquet")
        chosen = scores["positive"] == 1
        assert chosen.sum() == done["positive"] == min(budget, free)
        assert not chosen[five["s"] == 1].any(), "rows with a label are known already"
        assert done["known"] == 300 - free
        assert done["threshold"] == scores["probability"][chosen].min()
        others = scores["probability"][~chosen & (five["s"] == 0)]
        assert others.empty or others.max() <= done["threshold"]
        hits = done["expected_hits"]
        assert 0 <= hits["low"] <= hits["value"] <= hits["high"] <= done["positive"]
    how = ["predict", folder / "model", folder / "ties.csv", "-o", folder / "s.csv", "--budget", 7]
    chosen = []
    for seed in (0, 0, 1, 2, 3, 4):
        code, out, _ = run(*how, "--seed", seed)
        assert code == 0
        chosen.append(tuple(np.flatnonzero(pd.read_csv(folder / "s.csv")["positive"])))
    assert chosen[0] == chosen[1], "the same seed, the same rows"
    assert len(set(chosen)) > 2, "equal rows are drawn, not taken in the order of the file"
    assert "Expected hits: " in out
    assert f"Passed over: {300 - free} rows that have a label already" in out
    assert "The lot decided between 5 rows of the lowest probability" in out
    five.assign(a=0.0, b=0.0).to_csv(folder / "same.csv", index=False)
    assert "a budget would be a lottery" in said(
        run, "predict", folder / "model", folder / "same.csv", "-o", folder / "no.csv", "--budget", 7
    )
    arguments = ["predict", folder / "model", tiny, "-o", folder / "no.csv", "--budget"]
    code, _, err = run(*arguments, 0)
    assert code == 2
    assert "Invalid value for '--budget'" in err
    assert "three ways to decide" in said(run, *arguments, 3, "--threshold", "half")
    assert not (folder / "no.csv").exists()


@pytest.mark.parametrize(
    "spelling",
    [
        {1: 1, 0: 0},
        {1: True, 0: False},
        {1: "yes", 0: None},
        {1: "Positive", 0: "unlabeled"},
        {1: 1.0, 0: np.nan},
    ],
    ids=str,
)
def test_labels_however_they_are_spelt(run: Run, tiny: Path, spelling: dict[int, Any]) -> None:
    table = pd.read_csv(tiny)
    how = ["--label", "s", *CHEAP, "--prior", "0.5"]
    expected = given(run, "fit", tiny, *how, "-o", tiny.parent / "one")
    table.assign(s=[spelling[label] for label in table["s"]]).to_csv(tiny, index=False)
    found = given(run, "fit", tiny, *how, "-o", tiny.parent / "two")
    assert found["data"]["n_labeled"] == 15
    assert found["metrics"] == expected["metrics"]


def test_labeled_negatives(run: Run, tiny: Path) -> None:
    table = pd.read_csv(tiny)
    table.loc[table.index[table["a"] < 0][:8], "s"] = -1
    table.to_csv(tiny, index=False)
    how = ["--label", "s", *PLAIN, "--prior", "0.5", "--epochs", "1"]
    found = given(run, "fit", tiny, *how, "-o", tiny.parent / "model")["data"]
    assert (found["n_labeled"], found["n_negative"], found["n_unlabeled"]) == (15, 8, 37)
    message = said(run, "fit", tiny, *how, "--method", "pubn", "-o", tiny.parent / "no")
    assert "PUbN with labeled negatives needs their share of the population" in message


def test_case_control(run: Run, tiny: Path) -> None:
    how = ["--label", "s", *CHEAP, "--scenario", "case_control"]
    found = given(run, "fit", tiny, *how, "--prior", "0.2", "-o", tiny.parent / "model")
    assert found["data"]["scenario"] == "case_control"
    assert found["metrics"]["n_population"] == 45
    message = said(run, "fit", tiny, *CHEAP, "--label", "s", "--scenario", "case_kontrol", "-o", tiny.parent / "no")
    assert "unknown scenario 'case_kontrol'. Did you mean 'case_control'?" in message


# ------------------------------------------------------------------------------------------------ formats


def test_every_format_gives_the_same_model(run: Run, tmp_path: Path) -> None:
    table = small().astype({"a": "float64", "b": "float64"}).reset_index(drop=True)
    table.to_csv(tmp_path / "t.csv", index=False, float_format="%.17g")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    feather.write_feather(table, tmp_path / "t.feather")
    (tmp_path / "parts").mkdir()
    for part in range(3):
        table.iloc[20 * part : 20 * part + 20].to_parquet(tmp_path / "parts" / f"{part}.parquet", index=False)
    np.savez(tmp_path / "t.npz", X=table[["a", "b"]].to_numpy(), s=table["s"].to_numpy())
    scores = []
    for number, name in enumerate(["t.csv", "t.csv.gz", "t.feather", "parts", "t.npz"]):
        given(run, "fit", tmp_path / name, "--label", "s", *CHEAP, "--prior", "0.5", "-o", tmp_path / f"m{number}")
        output = tmp_path / f"s{number}.feather"
        given(run, "predict", tmp_path / f"m{number}", tmp_path / name, "-o", output)
        scores.append(feather.read_table(output).column("probability").to_pylist())
    assert all(other == scores[0] for other in scores)


@pytest.fixture(scope="module")
def scans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of gray images, bright ones positive, and a model of it."""
    folder = tmp_path_factory.mktemp("images") / "scans"
    folder.mkdir()
    rng = np.random.default_rng(0)
    positive = np.arange(40) < 16
    for number, bright in enumerate(positive):
        pixels = rng.integers(0, 120, (9, 8)) + 120 * bright
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{number:02}.png")
    names = [f"{number:02}.png" for number in range(40)]
    labels = pd.DataFrame({"file": names, "s": (np.arange(40) < 10).astype(int), "y": positive.astype(int)})
    labels.to_csv(folder.parent / "labels.csv", index=False)
    how = ["--label", "s", *PLAIN, "--epochs", "2", "--method", "upu", "--quiet", "-o", folder.parent / "model"]
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in ("fit", folder, "--labels", folder.parent / "labels.csv", *how)])
    assert not end.value.code
    return folder


def test_images(run: Run, scans: Path, tmp_path: Path) -> None:
    model, labels = scans.parent / "model", scans.parent / "labels.csv"
    assert pue.load(model).image_shape == (1, 9, 8)
    done = given(run, "predict", model, scans, "--labels", labels, "-o", tmp_path / "s.csv", "--id", "file")
    assert done["rows"] == 40
    scores = pd.read_csv(tmp_path / "s.csv")
    assert scores["file"].tolist() == [f"{number:02}.png" for number in range(40)]
    judged = given(run, "evaluate", model, scans, "--labels", labels, "--truth", "y")
    assert 0 <= judged["truth"]["auc"] <= 1
    code, out, _ = run("inspect", model)
    assert (code, "images" in out) == (0, True)
    # Images of another size get the model's; arrays cannot, and are refused.
    other = tmp_path / "other"
    other.mkdir()
    for file in scans.iterdir():
        with Image.open(file) as image:
            image.resize((16, 18), Image.Resampling.NEAREST).save(other / file.name)
    assert given(run, "predict", model, other, "-o", tmp_path / "o.csv")["rows"] == 40
    pixels = np.stack([np.asarray(Image.open(scans / name)) for name in scores["file"]])
    np.savez(tmp_path / "x.npz", X=pixels)
    given(run, "predict", model, tmp_path / "x.npz", "-o", tmp_path / "x.csv")
    assert pd.read_csv(tmp_path / "x.csv")["probability"].tolist() == scores["probability"].tolist()
    np.savez(tmp_path / "wide.npz", X=pixels.repeat(2, axis=2))
    message = said(run, "predict", model, tmp_path / "wide.npz", "-o", tmp_path / "no.csv")
    assert "trained on images of shape (1, 9, 8); these have (1, 9, 16). Resize or convert them." in message
    small().to_csv(tmp_path / "t.csv", index=False)
    message = said(run, "predict", model, tmp_path / "t.csv", "-o", tmp_path / "no.csv")
    assert "trained on images, but t.csv is a table" in message
    message = said(run, "evaluate", model, tmp_path / "wide.npz", "--label", "y")
    assert "unknown column 'y'" in message
    assert not (tmp_path / "no.csv").exists()


def test_a_table_has_no_image_size(run: Run, tiny: Path) -> None:
    how = ["--label", "s", *CHEAP, "-o", tiny.parent / "model", "--image-size", "9"]
    assert "is a table. Leave it out." in said(run, "fit", tiny, *how)


# ----------------------------------------------------------------------------------------------- predict


def test_batches_give_the_same_bits_as_the_whole(
    run: Run, data: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(run, "predict", model, data, "-o", tmp_path / "whole.parquet", "--posterior")
    monkeypatch.setattr(rows.feature_batches, "__defaults__", ((), 17))
    given(run, "predict", model, data, "-o", tmp_path / "parts.parquet", "--posterior")
    whole, parts = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("whole", "parts"))
    pd.testing.assert_frame_equal(whole, parts, check_exact=True)
    given(run, "predict", model, data, "-o", tmp_path / "best.parquet", "--budget", "9")
    assert pd.read_parquet(tmp_path / "best.parquet")["positive"].sum() == 9


def test_columns_that_are_missing_or_of_another_type_are_named(
    run: Run, data: Path, model: Path, tmp_path: Path
) -> None:
    table = pd.read_csv(data)
    for change, message in (
        (table.drop(columns="age"), "trained on column(s) 'age', which the table does not have"),
        (table.rename(columns={"amount": "amounts"}), "Did you mean 'amounts'? Rename it."),
        (table.assign(amount="much"), "column 'amount' held numbers when the model was trained and holds text now"),
        (table.assign(when="soon"), "column 'when' held dates"),
        (table.assign(amount=np.inf), "column 'amount' holds infinite numbers"),
    ):
        change.to_csv(tmp_path / "t.csv", index=False)
        for arguments in (
            ["predict", model, tmp_path / "t.csv", "-o", tmp_path / "no.csv"],
            ["evaluate", model, tmp_path / "t.csv"],
        ):
            assert message in said(run, *arguments)
    assert list(tmp_path.iterdir()) == [tmp_path / "t.csv"]


def test_results_never_replace_what_they_came_from(run: Run, data: Path, model: Path, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / "model")
    (tmp_path / "parts").mkdir()
    pd.read_csv(data).to_parquet(tmp_path / "parts" / "0.parquet")
    shutil.copy(data, tmp_path / "t.csv")
    before = contents(tmp_path)
    for arguments in (
        ["predict", tmp_path / "model", tmp_path / "t.csv", "-o", tmp_path / "t.csv"],
        ["predict", tmp_path / "model", tmp_path / "t.csv", "-o", tmp_path / "model" / "s.csv"],
        ["predict", tmp_path / "model", tmp_path / "parts", "-o", tmp_path / "parts" / "1.parquet"],
    ):
        assert "would replace" in said(run, *arguments)
    code, _, err = run("report", tmp_path / "model", "-o", tmp_path / "model" / "page.html")
    assert (code, "become a part of it" in err) == (2, True)
    assert contents(tmp_path) == before


# ---------------------------------------------------------------------------------------------- evaluate


def test_evaluation_with_truth_with_labels_and_with_neither(run: Run, data: Path, model: Path, tmp_path: Path) -> None:
    both = given(run, "evaluate", model, data, "--truth", "truth")
    assert both["trained_on"] is True
    assert both["estimated"]["assumption"] == "the chances of a label are right"
    assert both["scar"]["assumption"] == "labels are a random sample of the positives"
    table = pd.read_csv(data)
    table.drop(columns="fraud").to_csv(tmp_path / "audited.csv", index=False)
    exact = given(run, "evaluate", model, tmp_path / "audited.csv", "--truth", "truth")
    assert (exact["truth"], exact["estimated"]) == (both["truth"], None)
    # Later the label column may hold the truth.
    table.assign(fraud=table["truth"]).to_csv(tmp_path / "checked.csv", index=False)
    assert given(run, "evaluate", model, tmp_path / "checked.csv", "--truth", "fraud")["truth"] == both["truth"]
    same = ["evaluate", model, data, "--truth", "truth"]
    assert "cannot hold both" in said(run, *same, "--label", "truth")
    assert "Did you mean 'fraud'" in said(run, *same, "--label", "frauds")
    assert "unknown column 'fraud'" in said(run, "evaluate", model, tmp_path / "audited.csv")
    assert "level must lie in (0, 1)" in said(run, *same, "--level", "2")
    table.assign(truth=table["truth"].where(table.index > 0)).to_csv(tmp_path / "holes.csv", index=False)
    assert "1 empty cells; true classes must be complete" in said(
        run, "evaluate", model, tmp_path / "holes.csv", "--truth", "truth"
    )
    table.assign(truth=1).to_csv(tmp_path / "one.csv", index=False)
    assert "need rows of both classes" in said(run, "evaluate", model, tmp_path / "one.csv", "--truth", "truth")


def test_evaluation_needs_some_labels(run: Run, data: Path, model: Path, tmp_path: Path) -> None:
    table = pd.read_csv(data)
    for labeled in (0, 1, 2, 5):
        table.assign(fraud=(table.index < labeled).astype(int)).to_csv(tmp_path / "t.csv", index=False)
        message = "labels no row positive" if labeled == 0 else f"{labeled} labeled rows are too few"
        assert message in said(run, "evaluate", model, tmp_path / "t.csv")


# --------------------------------------------------------------------------------------------- bad input


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def framed(path: Path, frame: pd.DataFrame) -> Path:
    frame.to_csv(path, index=False)
    return path


def listy(path: Path) -> Path:
    parquet.write_table(pa.table({"a": [1.0, 2.0], "l": [[1], [2, 3]], "s": [1, 0]}), path)
    return path


BAD_TABLES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "missing": (lambda d: d / "tinny.csv", "there is no"),
    "no table": (lambda d: written(d / "t.docx", "PK"), "unknown suffix '.docx'"),
    "a lie": (lambda d: written(d / "t.parquet", "a,s\n1,1\n"), "is damaged or not a Parquet file"),
    "zero bytes": (lambda d: written(d / "t.csv", ""), "is empty (zero bytes)"),
    "header only": (lambda d: written(d / "t.csv", "a,s\n"), "is empty (a header, but no rows)"),
    "no label": (lambda d: framed(d / "t.csv", small().rename(columns={"s": "S"})), "Did you mean 'S'?"),
    "no positive": (lambda d: framed(d / "t.csv", small().assign(s=0)), "labels no row positive"),
    "no unlabeled": (lambda d: framed(d / "t.csv", small().assign(s=1)), "labels every row positive"),
    "only negatives": (lambda d: framed(d / "t.csv", small().assign(s=lambda t: 2 * t.s - 1)), "which is ambiguous"),
    "strange labels": (lambda d: framed(d / "t.csv", small().assign(s=range(60))), "label column 's' holds"),
    "lists": (lambda d: listy(d / "t.parquet"), "column 'l' of"),
    "identifiers": (
        lambda d: framed(d / "t.csv", pd.DataFrame({"w": [f"w{k}" for k in range(5000)], "s": [1, 0] * 2500})),
        "no column is left to learn from. 'w': it names rows: 5,000 different values",
    ),
    "one row": (lambda d: framed(d / "t.csv", small()[:1].assign(s=1)), "labels every row positive"),
    "twice": (lambda d: written(d / "t.csv", "a,a,s\n1,2,1\n3,4,0\n"), "more than one column called 'a'"),
    "latin1": (lambda d: written(d / "t.csv", "a,s\ncaf\xe9,1\nx,0\n".encode("latin1")), "is not UTF-8 text"),
    "constant": (lambda d: framed(d / "t.csv", small().assign(a=1, b=2)), "no column says anything"),
    "all missing": (lambda d: framed(d / "t.csv", small().assign(a=None, b=None)), "no column says anything"),
    "label only": (lambda d: framed(d / "t.csv", small()[["s"]]), "no column left to learn from"),
    "infinite": (lambda d: framed(d / "t.csv", small().assign(a=[np.inf, *range(59)])), "infinite numbers"),
    "broken rows": (lambda d: written(d / "t.csv", "a,s\n1,1\n1,2,3\n"), "does not parse"),
    "objects": (
        lambda d: (np.savez(d / "t.npz", X=np.array([[{}], [1]], dtype=object)), d / "t.npz")[1],
        "holds Python objects, which are never unpickled",
    ),
    "a broken header": (
        lambda d: written(d / "t.npy", b"\x93NUMPY\x01\x00\x46\x00" + b"{'descr': '<i8', ((".ljust(70)),
        "is damaged or not a .npy array",
    ),
    "an empty folder": (lambda d: ((d / "folder").mkdir(), d / "folder")[1], "holds no data"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_bad_table_is_refused_and_nothing_is_written(run: Run, tmp_path: Path, name: str) -> None:
    make, message = BAD_TABLES[name]
    (tmp_path / "in").mkdir()
    path = make(tmp_path / "in")
    for arguments in (
        ["fit", path, *CHEAP, "-o", tmp_path / "out" / "model"],
        ["diagnose", path, *PLAIN, "-o", tmp_path / "out" / "d.html"],
        [
            "compare",
            path,
            *PLAIN,
            "--candidates",
            "logistic",
            "--out",
            tmp_path / "out",
            "--fit",
            tmp_path / "out" / "m",
        ],
    ):
        assert message in said(run, *arguments, "--label", "s"), arguments[0]
    assert not (tmp_path / "out").exists()


def test_a_column_without_values_is_left_out_and_named(run: Run, tmp_path: Path) -> None:
    path = framed(tmp_path / "t.csv", small().assign(empty=None, same=3))
    found = given(run, "fit", path, "--label", "s", *CHEAP, "--prior", "0.5", "-o", tmp_path / "model")
    assert {each["name"]: each["reason"] for each in found["data"]["dropped"]} == {
        "empty": "all values are missing",
        "same": "all values are the same",
    }


@pytest.mark.parametrize("labeled", [1, 2, 5])
@pytest.mark.parametrize("prior", ["0.5", "estimate"])
def test_few_labels_give_a_result_or_an_error(run: Run, tmp_path: Path, labeled: int, prior: str) -> None:
    path = framed(tmp_path / "t.csv", small(40, labeled))
    for number, arguments in enumerate(
        (
            ["fit", path, "--method", "logistic", "-o", tmp_path / "m1"],
            ["fit", path, "--method", "nnpu", "--epochs", "1", "-o", tmp_path / "m2"],
            ["diagnose", path],
            ["compare", path, "--candidates", "logistic,upu", "--epochs", "1", "--out", tmp_path / "comparison"],
        )
    ):
        for propensity in ("none", "logistic"):
            how = ["--label", "s", "--prior", prior, "--propensity", propensity, "--quiet"]
            code, out, err = run(*arguments, *how)
            assert out == ""
            if labeled == 1 and number < 2:
                assert (code, "rows cannot be held out" in err) == (2, True)
            else:
                assert (code, err) == (0, ""), (arguments, propensity, err)
            shutil.rmtree(tmp_path / f"m{number + 1}", ignore_errors=True)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_tiny_tables(run: Run, tmp_path: Path, n: int) -> None:
    path = framed(tmp_path / "t.csv", small(n, 1))
    message = said(run, "fit", path, "--label", "s", *CHEAP, "--prior", "0.6", "-o", tmp_path / "model")
    assert "rows cannot be held out: there are not 2 distinct labeled" in message
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--method", "nnpuu"], "unknown method 'nnpuu'. Did you mean 'nnpu'?"),
        (["--method", "supervised"], "unknown method 'supervised'"),
        (["--propensity", "lgistic"], "unknown propensity 'lgistic'. Did you mean 'logistic'?"),
        (["--prior", "estmate"], "unknown prior 'estmate'. Did you mean 'estimate'?"),
        (["--threshold", "f2"], "unknown threshold rule 'f2'. Did you mean 'f1'?"),
        (["--threshold", "1.5"], "a threshold is a probability between 0 and 1; got 1.5"),
        (["--threshold", "nan"], "a threshold is a probability"),
        (["--target-precision", "1.2"], "the target precision must lie in (0, 1]; got 1.2"),
        (["--calibration", "plat"], "unknown calibration 'plat'. Did you mean 'platt'?"),
        (["--prior", "0.1"], "prior=0.1 is below the share of labeled rows, 0.25"),
        (["--prior", "1"], "must lie in (0, 1)"),
        (["--prior", "nan"], "must lie in (0, 1)"),
        (["--ignore", "aa"], "unknown column 'aa'. Did you mean 'a'?"),
        (["--ignore", "s"], "column 's' is named twice"),
        (["--truth", "nope"], "unknown column 'nope'"),
        (["--id", "nope"], "unknown column 'nope'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_option_that_cannot_be_is_refused_before_any_work(
    run: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch, option: list[str], message: str
) -> None:
    def worked(*_: object, **__: object) -> None:
        raise AssertionError("this takes long")

    monkeypatch.setattr(preparing, "diagnose", worked)
    how = {"--method": "logistic", "--prior": "0.5", "--propensity": "none", option[0]: option[1]}
    options = [part for pair in how.items() for part in pair]
    assert message in said(run, "fit", tiny, "--label", "s", *options, "-o", tiny.parent / "model")
    assert list(tiny.parent.iterdir()) == [tiny]


@pytest.mark.parametrize(
    "option",
    [["--jobs", "0"], ["--seed", "-1"], ["--seed", 2**32], ["--epochs", "0"], ["--image-size", "0"], ["--epochs", "x"]],
    ids=str,
)
def test_numbers_out_of_range_are_wrong_use(run: Run, tiny: Path, option: list[Any]) -> None:
    code, out, err = run("fit", tiny, "--label", "s", *CHEAP, "-o", tiny.parent / "model", *option)
    assert (code, out) == (2, "")
    assert f"Invalid value for '{option[0]}'" in err
    code, _, err = run("compare", tiny, "--label", "s", "--folds", "1")
    assert (code, "Invalid value for '--folds'" in err) == (2, True)


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_jobs_are_of_the_local_engine(run: Run, tiny: Path, command: str) -> None:
    place = {"fit": "-o", "compare": "--out"}[command]
    message = said(run, command, tiny, "--label", "s", "--engine", "ray", "--jobs", "2", place, tiny.parent / "out")
    assert "With --engine ray say --workers" in message
    assert list(tiny.parent.iterdir()) == [tiny]


def test_compare_refuses_names_it_does_not_know(run: Run, tiny: Path) -> None:
    how = ["compare", tiny, "--label", "s", *PLAIN, "--out", tiny.parent / "out"]
    assert "unknown method 'logistik'. Did you mean 'logistic'?" in said(run, *how, "--candidates", "logistik")
    assert "unknown propensity 'atuo'. Did you mean 'auto'?" in said(run, *how, "--candidates", "nnpu+atuo")
    assert "unknown criterion 'acu'. Did you mean 'auc'?" in said(run, *how, "--by", "acu")
    assert "there are no known propensities" in said(run, *how, "--candidates", "logistic+known")
    assert list(tiny.parent.iterdir()) == [tiny]


# ------------------------------------------------------------------------------- where results are to go


def test_places_that_cannot_be_written_to_are_refused_before_any_work(
    run: Run, data: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path / "file", "x")
    (tmp_path / "folder").mkdir()
    written(tmp_path / "folder" / "mine", "x")
    before = contents(tmp_path)
    monkeypatch.setattr(preparing, "diagnose", None)
    how = [data, *COLUMNS, *CHEAP]
    plain = [data, *COLUMNS, *PLAIN]
    for arguments, message in (
        (["fit", *how, "-o", file], "is there already. Choose another name, or pass --force"),
        (["fit", *how, "-o", file, "--force"], "exists and is no model of pue's: it is a file. Choose"),
        (["fit", *how, "-o", tmp_path / "folder", "--force"], "exists and is no model of pue's"),
        (["fit", *how, "-o", file / "model"], "is no folder that you may write to"),
        (["compare", *plain, "--out", file], "is no folder that you may write to"),
        (["compare", *plain, "--fit", tmp_path / "folder"], "is there already"),
        (["diagnose", *plain, "-o", tmp_path / "page.txt"], "such as page.html"),
        (["diagnose", *plain, "-o", file / "page.html"], "is no folder that you may write to"),
        (["predict", model, data, "-o", tmp_path / "nowhere" / "s.csv"], "there is no folder"),
        (["predict", model, data, "-o", tmp_path / "folder"], "unknown suffix ''"),
        (["predict", model, data, "-o", tmp_path / "s.xlsx"], "unknown suffix '.xlsx'"),
    ):
        assert message in said(run, *arguments), arguments
    (tmp_path / "s.csv").mkdir()
    assert "is a folder. Name a file in it." in said(run, "predict", model, data, "-o", tmp_path / "s.csv")
    code, _, err = run("report", model, "-o", tmp_path / "page.pdf")
    assert (code, err) == (2, "pue: cannot write 'page.pdf': it must be the name of a page, such as page.html.\n")
    (tmp_path / "s.csv").rmdir()
    assert contents(tmp_path) == before


def test_a_model_is_replaced_only_if_asked(run: Run, tiny: Path) -> None:
    target = tiny.parent / "deep" / "er" / "model"
    how = ["fit", tiny, "--label", "s", *CHEAP, "--prior", "0.5", "-o", target]
    given(run, *how)
    first = contents(target)
    assert "is there already" in said(run, *how)
    assert contents(target) == first
    given(run, *how, "--threshold", "0.25", "--force")
    assert pue.load(target).threshold == 0.25
    assert [path.name for path in target.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("command", ["predict", "evaluate", "inspect", "report"])
def test_what_is_no_model_is_refused(run: Run, data: Path, model: Path, tmp_path: Path, command: str) -> None:
    pue.PUClassifier(prior=0.5, epochs=1).fit(small()[["a", "b"]], small()["s"]).save(tmp_path / "classifier")
    newer = tmp_path / "newer"
    shutil.copytree(model, newer)
    manifest = json.loads((newer / "manifest.json").read_text())
    written(newer / "manifest.json", json.dumps({**manifest, "schema": 99, "versions": {"pue": "9.0"}}))
    (tmp_path / "empty").mkdir()
    before = contents(tmp_path)
    rest = {"predict": [data, "-o", tmp_path / "no.csv"], "evaluate": [data], "report": ["-o", tmp_path / "no.html"]}
    for name, message in (
        ("classifier", "holds a PUClassifier, not a model of pue fit"),
        ("newer", "was written by a newer version '9.0' of pue; upgrade pue"),
        ("empty", "is no model of pue's"),
        ("nowhere", "there is no"),
    ):
        code, out, err = run(command, tmp_path / name, *rest.get(command, []))
        assert (code, out) == (2, ""), name
        assert err.startswith("pue: ")
        assert message in err
    assert contents(tmp_path) == before


def test_a_summary_that_was_altered_is_a_damaged_model(run: Run, model: Path, tmp_path: Path) -> None:
    fitted = pue.load(model)
    for change in ({"metrics": 3}, {"data": None}, {"drivers": "x", "scar": {}}):
        altered = PUModel(**{**vars(fitted), "summary": {**fitted.summary, **change}})
        altered.save(tmp_path / "model")
        code, _, err = run("inspect", tmp_path / "model")
        assert (code, "cannot be shown" in err and "Fit the model again" in err) == (2, True)
    code, _, err = run("report", tmp_path / "model", "-o", tmp_path / "page.html")
    assert (code, "cannot be shown" in err) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


# ------------------------------------------------------------------------------------------ a full disk


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes, as if the disk were full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_fills_leaves_nothing_behind(run: Run, data: Path, model: Path, tmp_path: Path) -> None:
    written(tmp_path / "s.parquet", "old")
    written(tmp_path / "page.html", "old")
    before = contents(tmp_path)
    plain = [data, *COLUMNS, *PLAIN]
    for arguments in (
        ["fit", *plain, "--method", "logistic", "-o", tmp_path / "model"],
        ["predict", model, data, "-o", tmp_path / "s.parquet"],
        ["predict", model, data, "-o", tmp_path / "s.csv"],
        ["predict", model, data, "-o", tmp_path / "s.csv.gz"],
        ["diagnose", *plain, "-o", tmp_path / "page.html"],
        ["compare", *plain, "--candidates", "logistic", "--out", tmp_path / "comparison"],
    ):
        with largest_file(100):
            code, out, err = run(*arguments, "--quiet")
        assert (code, out) == (2, ""), arguments
        assert err.startswith("pue: "), err
        assert "File too large" in err
        assert contents(tmp_path) == before, arguments
    with largest_file(100):
        assert run("report", model, "-o", tmp_path / "page.html")[0] == 2
    assert contents(tmp_path) == before


# --------------------------------------------------------------------------------------- interruptions


def interrupt(monkeypatch: pytest.MonkeyPatch, place: Any, name: str, call: int = 1) -> None:
    """Ctrl-C at the n-th call of a function."""
    real, calls = getattr(place, name), [0]

    def pressed(*arguments: Any, **options: Any) -> Any:
        calls[0] += 1
        if calls[0] == call:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(place, name, pressed)


@pytest.mark.parametrize(
    ("place", "name", "call"),
    [
        (survey, "screen", 1),
        (fit, "prepare", 1),
        (learn, "score_held_out", 1),
        (top_rows, "score_batches", 1),
        (model_folder, "writing_folder", 1),
        (writing, "_flush", 1),
        (writing, "_flush", 3),
        (writing.os, "replace", 1),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_interrupted_fit_leaves_nothing_and_a_rerun_works(
    run: Run, tiny: Path, place: Any, name: str, call: int
) -> None:
    how = ["fit", tiny, "--label", "s", *CHEAP, "--prior", "0.5", "-o", tiny.parent / "model"]
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, place, name, call)
        code, out, err = run(*how)
    assert (code, out) == (130, "")
    assert "Traceback" not in err
    assert list(tiny.parent.iterdir()) == [tiny]
    given(run, *how)
    assert pue.load(tiny.parent / "model").facts["source"] == "tiny.csv"


def test_an_interrupted_comparison_goes_on_where_it_was(run: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[str] = []
    real = comparing._judge

    def judge(candidate: comparing.Candidate, *rest: Any) -> comparing.Result:
        if str(candidate) == "naive" and judged.count("naive") == 0:
            judged.append("naive")
            raise KeyboardInterrupt
        judged.append(str(candidate))
        return real(candidate, *rest)

    monkeypatch.setattr(comparing, "_judge", judge)
    out = tiny.parent / "comparison"
    how = ["compare", tiny, "--label", "s", *PLAIN, "--prior", "0.5", "--epochs", "1", "--out", out]
    how += ["--candidates", "logistic,upu,naive"]
    assert run(*how, "--quiet") == (130, "", "")
    assert judged == ["logistic", "upu", "naive"]
    assert sorted(path.name.split("-")[0] for path in out.iterdir()) == ["logistic", "upu"]
    kept = contents(out)
    first = given(run, *how)
    assert judged == ["logistic", "upu", "naive", "naive"], "finished candidates are not computed again"
    assert {name: contents(out)[name] for name in kept} == kept
    # A file that was cut short is computed again, and only that one; other rows or settings are other files.
    broken = next(out.glob("upu-*.json"))
    broken.write_bytes(broken.read_bytes()[:50])
    again = given(run, *how)
    assert judged[4:] == ["upu"]
    strip = [{k: v for k, v in result.items() if k != "seconds"} for result in first["results"]]
    assert [{k: v for k, v in result.items() if k != "seconds"} for result in again["results"]] == strip
    given(run, *how, "--seed", "1")
    assert len(judged) == 8
    given(run, *how, "--jobs", "2")
    assert len(judged) == 8


def test_known_propensities_are_part_of_what_was_compared(run: Run, tmp_path: Path) -> None:
    table = small().assign(e=0.5)
    how = ["compare", framed(tmp_path / "t.csv", table), "--label", "s", "--prior", "0.5", "--out", tmp_path / "out"]
    how += ["--candidates", "logistic+known,logistic"]
    one = given(run, *how, "--propensity", "column:e")["results"]
    framed(tmp_path / "t.csv", table.assign(e=np.linspace(0.1, 1, 60)))
    two = given(run, *how, "--propensity", "column:e", "--fit", tmp_path / "model")
    assert [result["metrics"] for result in one] != [result["metrics"] for result in two["results"]]
    assert len(list((tmp_path / "out").iterdir())) == 4
    fitted = pue.load(tmp_path / "model")
    assert fitted.summary["method"]["propensity"] == (
        "known" if two["best"] == "logistic+known" else "labels taken as unbiased"
    )
    assert len(fitted.summary["top_rows"]["rows"]) == 20


def test_a_comparison_without_a_winner_still_shows_its_results(run: Run, tmp_path: Path) -> None:
    noise = np.random.default_rng(2).normal(size=40)
    path = framed(tmp_path / "t.csv", pd.DataFrame({"a": noise, "s": [1, 0, 0, 0] * 10}))
    how = ["compare", path, "--label", "s", *PLAIN, "--candidates", "logistic", "--out", tmp_path / "out"]
    code, out, err = run(*how)
    assert code == 0, err
    assert "logistic (gives every row" in out
    assert "No candidate tells rows apart." in out
    assert given(run, *how)["best"] is None
    code, out, err = run(*how, "--fit", tmp_path / "model")
    assert code == 2
    assert "there is nothing worth fitting" in err
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("options", [[], ["--budget", "5"], ["--posterior"]], ids=str)
def test_an_interrupted_prediction_leaves_the_old_one(
    run: Run, data: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.setattr(rows.feature_batches, "__defaults__", ((), 100))
    for name in ("s.csv", "s.parquet"):
        written(tmp_path / name, "old")
    before = contents(tmp_path)
    for name in before:
        places: list[tuple[Any, str, int]] = [(PUModel, "probabilities", call) for call in (1, 2, 3)]
        for place, function, call in [*places, (Writer, "write", 3), (Writer, "finish", 1)]:
            with pytest.MonkeyPatch.context() as patch:
                interrupt(patch, place, function, call)
                assert run("predict", model, data, "-o", tmp_path / name, *options)[0] == 130
            assert contents(tmp_path) == before
    given(run, "predict", model, data, "-o", tmp_path / "s.csv", *options)
    assert len(pd.read_csv(tmp_path / "s.csv")) == 300


# ------------------------------------------------------------------------------------- other processes


def process(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pue", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_exit_codes_of_a_process(tmp_path: Path) -> None:
    done = [process("--help"), process("fit", "nowhere.csv", "--label", "s", "-o", tmp_path / "m"), process("fit")]
    printed = [each.communicate(timeout=300) for each in done]
    assert [each.returncode for each in done] == [0, 2, 2]
    assert printed[1] == ("", "pue: there is no nowhere.csv. Check the name and the folder.\n")
    assert "Missing argument" in printed[2][1]


def test_ctrl_c_ends_a_fit_with_130_and_leaves_nothing(tmp_path: Path) -> None:
    table = framed(tmp_path / "t.csv", small())
    how = ["--label", "s", *PLAIN, "--method", "nnpu", "--prior", "0.5", "--epochs", 10**8, "-o", tmp_path / "model"]
    fitting = process("fit", table, *how)
    assert fitting.stderr is not None
    seen = ""
    while fitting.poll() is None and "training" not in seen:
        seen += fitting.stderr.readline()
    time.sleep(0.3)
    fitting.send_signal(signal.SIGINT)
    out, err = fitting.communicate(timeout=300)
    # To a shell both are 130. Python ends by the signal itself where it arrived inside an exec, such as a dataclass's.
    assert fitting.returncode in (130, -signal.SIGINT)
    assert "Traceback" not in out + seen + err
    assert list(tmp_path.iterdir()) == [table]
