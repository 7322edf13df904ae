"""Plain input that once ended in a traceback, a hang or a signal: each ends in words that say what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from PIL import Image
from pyarrow import feather
from sklearn.linear_model import LogisticRegression

import pue
from pue.app.cli import main
from pue.app.cli.bench import parse_seeds
from pue.app.sources import folders
from pue.app.sources.opening import open_source
from pue.bench.record import Record
from pue.core.machine import parse_bytes
from pue.errors import InvalidInput, MissingData
from pue.estimators.vectorizer.columns import cell_text
from pue.estimators.vectorizer.vectorize import fit_vectorizer

X = np.random.default_rng(0).normal(size=(60, 2))
S = (np.arange(60) < 20).astype(int)


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What a command that must fail says; anything but an end with 2 fails the test."""
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    assert end.value.code == 2
    return capsys.readouterr().err


# ---------------------------------------------------------------------------------------------- tables


def mixed(n: int = 12) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "number": np.arange(n) / 2,
            "word": ["a", "b", "c"] * (n // 3),
            "day": pd.date_range("2020-01-01", periods=n),
            "flag": [True, False] * (n // 2),
        }
    )


@pytest.mark.parametrize("name", ["number", "word", "day", "flag"])
@pytest.mark.parametrize(
    "empty",
    [np.nan, None, pd.NaT, pd.NA],
    ids=["NaN", "None", "NaT", "NA"],
)
@pytest.mark.parametrize("kind", ["float64", "object", "datetime64[ns]", "boolean", "Int64", "str"])
def test_a_column_that_is_all_missing_has_any_type(name: str, empty: object, kind: str) -> None:
    """As the one row that is scored, or a file of few rows: its reader cannot know what an empty column held."""
    vectorizer = fit_vectorizer(mixed())
    row = mixed().iloc[:1].copy()
    try:
        row[name] = pd.Series([empty], dtype=kind)
    except (TypeError, ValueError):
        pytest.skip("pandas has no such column")
    assert np.isfinite(vectorizer.transform(row)).all()


@pytest.mark.parametrize(("unit", "value"), [("s", 10**12), ("s", -(10**12)), ("ms", 10**16), ("us", 10**17)])
def test_dates_far_away_are_dates(unit: str, value: int, tmp_path: Path) -> None:
    table = pa.table({"d": pa.array([0, value, 86_400], pa.timestamp(unit)), "x": [1, 2, 3]})
    feather.write_feather(table, tmp_path / "far.feather")
    frame = open_source(tmp_path / "far.feather").read()
    per_second = {"s": 1, "ms": 10**3, "us": 10**6}[unit]
    vectorizer = fit_vectorizer(frame)
    seconds = vectorizer.feature_names.index("d total seconds")
    assert vectorizer.transform(frame)[1, seconds] == np.float32(value / per_second)
    near = fit_vectorizer(mixed()[["day"]].rename(columns={"day": "d"}).assign(x=range(12)))
    assert np.isfinite(near.transform(frame)).all()


def test_dates_beyond_all_calendars_are_refused(tmp_path: Path) -> None:
    table = pa.table({"d": pa.array([0, 2**62, 86_400], pa.timestamp("s")), "x": [1, 2, 3]})
    feather.write_feather(table, tmp_path / "far.feather")
    with pytest.raises(InvalidInput, match="column 'd' holds dates too far away to compute with"):
        fit_vectorizer(open_source(tmp_path / "far.feather").read())


def test_links_in_a_circle_are_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").symlink_to(tmp_path / "b.csv")
    (tmp_path / "b.csv").symlink_to(tmp_path / "a.csv")
    message = said(capsys, "fit", tmp_path / "a.csv", "--label", "s", "-o", tmp_path / "m")
    assert "a.csv. It is a link that leads nowhere" in message
    (tmp_path / "m").symlink_to(tmp_path / "m")
    mixed().assign(s=[1, 0] * 6).to_csv(tmp_path / "t.csv", index=False)
    assert "pue: " in said(capsys, "fit", tmp_path / "t.csv", "--label", "s", "-o", tmp_path / "m" / "deeper")
    assert "pue: " in said(capsys, "inspect", tmp_path / "m")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather", ".npy"])
def test_a_pipe_is_refused_at_once(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / f"pipe{suffix}"
    os.mkfifo(pipe)
    message = said(capsys, "fit", pipe, "--label", "s", "-o", tmp_path / "m")
    assert "is no regular file. Save what it gives to a file" in message


CUT = """
import sys
from pathlib import Path
from pue.app.sources import folders
from pue.app.sources.opening import open_source
from pue.bench.record import Record
from pue.errors import PueError
path = Path(sys.argv[1])
batches = open_source(path).batches(1000)
next(batches)
with path.open("r+b") as file:
    file.truncate(5000)
try:
    for _ in batches:
        pass
except PueError as error:
    print(error)
"""


@pytest.mark.parametrize("name", ["t.feather", "t.arrow"])
def test_a_file_that_is_cut_off_while_it_is_read_is_an_error_and_no_signal(name: str, tmp_path: Path) -> None:
    table = pa.table({"a": np.arange(200_000.0), "b": np.arange(200_000)})
    with pa.OSFile(str(tmp_path / name), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=10_000)
    ended = subprocess.run(
        [sys.executable, "-c", CUT, str(tmp_path / name)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "damaged" in ended.stdout or "changed" in ended.stdout


# ---------------------------------------------------------------------------------------------- options


def test_images_that_would_not_fit_are_refused_before_memory_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(12):
        Image.new("L", (4, 4), number).save(tmp_path / f"{number}.png")
    table = pd.DataFrame({"file": [f"{number}.png" for number in range(12)], "s": [1, 0] * 6})
    table.to_csv(tmp_path / "t.csv", index=False)
    message = said(capsys, "fit", tmp_path, "--label", "s", "--image-size", "50000", "-o", tmp_path / "out" / "m")
    assert "12 images of 50000 × 50000 pixels would take 30 GB" in message
    assert "--image-size" in message


@pytest.mark.parametrize(
    "error", [MemoryError("Unable to allocate 9 TB"), MemoryError(), RuntimeError("can't allocate memory")]
)
def test_a_lack_of_memory_is_said(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr("pue.app.cli.app", fail)
    message = said(capsys, "inspect", "m")
    assert "pue: not enough memory" in message
    assert "--memory to stream" in message


def test_an_amount_of_memory_with_400_digits_is_none() -> None:
    with pytest.raises(InvalidInput, match=r"'9{40}…' is no amount of memory"):
        parse_bytes("9" * 400)
    assert parse_bytes("1.5g") == 1_500_000_000


def test_more_seeds_than_anybody_runs_are_refused() -> None:
    for text in ("0-99999999999", "99999999999"):
        with pytest.raises(InvalidInput, match="more than 10,000 seeds"):
            parse_seeds(text)


@pytest.mark.parametrize("name", ["RANK", "WORLD_SIZE"])
def test_a_rank_that_is_no_number_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, "x")
    message = said(capsys, "fit", tmp_path / "t.csv", "--label", "s", "-o", tmp_path / "m")
    assert f"the environment variable {name} is 'x', no number" in message


# ---------------------------------------------------------------------------------------------- Python


@pytest.mark.parametrize("prior", [None, [0.5], np.array([0.5]), {"a": 1}], ids=str)
def test_a_prior_that_is_no_number(prior: object) -> None:
    for make in (lambda: pue.PUClassifier(prior=prior), lambda: pue.PUWrapper(LogisticRegression(), prior=prior)):  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="prior must be one number in"):
            make().fit(X, S)
    with pytest.raises(InvalidInput, match="prior must be one number in"):
        pue.diagnose(X, S, prior=prior)  # type: ignore[arg-type]


@pytest.mark.parametrize("state", [-1, 2**32, "a", 0.5])
def test_a_random_state_that_is_none(state: object) -> None:
    with pytest.raises(InvalidInput, match=r"random_state must be a whole number from 0 to 2\*\*32 - 1"):
        pue.PUClassifier(prior=0.5, random_state=state).fit(X, S)  # type: ignore[arg-type]


def test_bfloat16_is_widened() -> None:
    rows = torch.tensor(X).bfloat16()
    model = pue.PUClassifier(prior=0.5, epochs=1, random_state=0).fit(rows, torch.tensor(S).bfloat16())
    assert np.array_equal(model.predict_proba(rows), model.predict_proba(rows.float()))


def test_a_report_that_fails_leaves_no_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    from pue.bench.report import results

    class Broken(Figure):
        def savefig(self, *arguments: object, **options: object) -> None:
            raise ValueError("no font")

    monkeypatch.setattr(results, "pictures", lambda suites: {"a.png": Figure(), "b.png": Broken()})
    with pytest.raises(ValueError, match="no font"):
        results.save_pictures({}, tmp_path / "images")
    assert list((tmp_path / "images").iterdir()) == []
    monkeypatch.setattr(results, "pictures", lambda suites: {"a.png": Figure(), "b.png": Figure()})
    assert [path.name for path in results.save_pictures({}, tmp_path / "images")] == ["a.png", "b.png"]


# ---------------------------------------------------------------------------------------------- found by `make fuzz`


def test_text_that_is_no_utf8_in_json_lines_is_refused(tmp_path: Path) -> None:
    for content in (b'{"a": "\xff\x92"}\n', b'{"\x92\xff": 1}\n'):
        (tmp_path / "t.jsonl").write_bytes(content)
        with pytest.raises(InvalidInput, match=r"t\.jsonl"):
            open_source(tmp_path / "t.jsonl")


def test_a_column_whose_name_is_no_text_is_refused(tmp_path: Path) -> None:
    feather.write_feather(pa.table({"name": [1]}), tmp_path / "t.feather", compression="uncompressed")
    data = (tmp_path / "t.feather").read_bytes()
    (tmp_path / "t.feather").write_bytes(data.replace(b"name", b"\xff\x92me"))
    with pytest.raises(InvalidInput, match="not UTF-8 text"):
        open_source(tmp_path / "t.feather")


def test_a_stream_without_rows_is_refused_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = open_source(_stream(tmp_path / "t.arrow", rows=1))
    _stream(tmp_path / "t.arrow", rows=0)
    with pytest.raises(InvalidInput, match="no rows"):
        source.read(rows=5)


def _stream(path: Path, rows: int) -> Path:
    table = pa.table({"a": pa.array([1.0] * rows, pa.float64())})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    return path


def test_a_disk_is_no_folder_of_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "LOOKED_AT", 20)
    for number in range(40):
        (tmp_path / f"{number}.txt").touch()
    with pytest.raises(MissingData, match="0 images among the first 20 files"):
        open_source(tmp_path)


def test_a_far_date_with_a_zone_has_words() -> None:
    days = pd.Series(pa.array([-(2**60)], pa.timestamp("s", "+05:30")).to_pandas())
    assert cell_text(days.iloc[0]).startswith("-365346")
    column = pd.Series([1.0, 2.0], name="a")
    vectorizer = fit_vectorizer(pd.DataFrame({"a": column}))
    with pytest.raises(InvalidInput, match="held numbers when the model was trained and holds dates now"):
        vectorizer.transform(pd.DataFrame({"a": days}))


def test_a_record_of_metrics_that_are_no_shares_is_refused() -> None:
    metrics = dict.fromkeys(("accuracy", "precision", "recall", "f1", "auc", "ap", "auc_hard", "ap_hard"), 0.5)
    cost = dict.fromkeys(("wall_seconds", "cpu_seconds", "flops", "peak_memory_bytes"), 1)
    body = {"key": "k", "spec": {"seed": 0, "dataset": "d"}, "row": "x", "metrics": metrics, "history": [],
            "propensity": None, "prior": 0.4, "n_labeled": 9, "n_unlabeled": 9, "data": {"name": "d", "checksum": "0"},
            "warnings": [], "versions": {}, "cost": cost, "finished": "2025-01-01"}  # fmt: skip
    assert Record.from_dict(body).seed == 0
    with pytest.raises(InvalidInput, match="no shares"):
        Record.from_dict({**body, "metrics": {**metrics, "accuracy": 1e308}})


def test_a_sheet_without_a_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "the plan of" in said(capsys, "audit", "page", "", "-o", "a.html")


def test_links_that_lead_to_themselves_are_refused_wherever_a_path_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mixed().assign(s=[1, 0] * 6).to_parquet("t.parquet")
    for name in ("loop.csv", "loop", "loop.html", "loop.py"):
        Path(name).symlink_to(name)
    for command in (
        ["fit", "loop.csv", "--label", "s", "-o", "m"],
        ["fit", "t.parquet", "--label", "s", "-o", "loop"],
        ["predict", "loop", "t.parquet", "-o", "o.csv"],
        ["predict", "m", "loop.csv", "-o", "o.csv"],
        ["predict", "m", "t.parquet", "-o", "loop.csv"],
        ["audit", "read", "m", "loop.csv"],
        ["audit", "read", "m", "loop.csv", "loop.csv"],
        ["report", "loop", "-o", "page.html"],
        ["bench", "--plugin", "loop.py", "--dry-run"],
    ):
        assert said(capsys, *command).strip().splitlines()[-1]
