"""Rows that are not on this disk: object stores through fsspec, and SQL through DuckDB."""

from __future__ import annotations

from pathlib import Path

import duckdb
import fsspec
import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from pue.app.cli import main
from pue.app.model import load_model
from pue.app.sources.addresses import fetched
from pue.app.sources.opening import open_source
from pue.app.sources.queries import parts, rows_of_query
from pue.errors import InvalidInput, MissingData, MissingExtra

PLAIN = pd.DataFrame({"a": [1, 2, 3], "b": [1.5, -2.25, 1000.0], "c": ["x", "y, z", "ä"]})


def same(found: pd.DataFrame, wanted: pd.DataFrame = PLAIN) -> None:
    assert_frame_equal(found, wanted, check_dtype=False)


def stored(address: str, content: bytes) -> str:
    with fsspec.open(address, "wb") as file:
        file.write(content)
    return address


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.csv.gz", "rows.jsonl"])
def test_a_file_in_a_store(tmp_path: Path, name: str) -> None:
    local = tmp_path / name
    if "csv" in name:
        PLAIN.to_csv(local, index=False)
    else:
        PLAIN.to_parquet(local) if ".parquet" in name else PLAIN.to_json(local, orient="records", lines=True)
    source = open_source(stored(f"memory://bucket/{name}", local.read_bytes()))
    same(source.read())
    assert source.path.name == name, "pages and messages show the name"
    same(open_source(f"file://{local}").read())


def test_a_folder_in_a_store(tmp_path: Path) -> None:
    for year in (2024, 2025):
        PLAIN.to_parquet(tmp_path / "part.parquet")
        stored(f"memory://lake/rows/year={year}/part.parquet", (tmp_path / "part.parquet").read_bytes())
        stored(f"memory://lake/flat/part{year}.parquet", (tmp_path / "part.parquet").read_bytes())
    for end in ("", "/"):
        found = open_source(f"memory://lake/rows{end}").read()
        assert found["year"].tolist() == [2024] * 3 + [2025] * 3
        same(open_source(f"memory://lake/flat{end}").read(), pd.concat([PLAIN, PLAIN], ignore_index=True))


def test_what_a_store_does_not_give_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingData, match=r"there is nothing at memory://bucket/absent\.csv"):
        open_source("memory://bucket/absent.csv")
    with pytest.raises(InvalidInput, match=r"nostore://a/b could not be read \(ValueError: .*Check the address"):
        open_source("nostore://a/b")
    monkeypatch.setattr("pue.errors.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r'pip install "pue\[remote\]"'):
        fetched("s3://bucket/rows.csv")


def base(path: Path, frame: pd.DataFrame) -> str:
    with duckdb.connect(str(path)) as connection:
        connection.register("given", frame)
        connection.execute("CREATE TABLE rows AS SELECT * FROM given")
    return f"duckdb:///{path}"


def test_rows_of_a_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = base(tmp_path / "claims.db", PLAIN)
    source = open_source(f"{address}?query=SELECT a, b, c FROM rows ORDER BY a")
    same(source.read())
    assert source.path.name == "claims.parquet"
    encoded = open_source(f"{address}?query=SELECT%20a%20FROM%20rows%20WHERE%20c%20LIKE%20'%25z'")
    assert encoded.read()["a"].tolist() == [2]
    same(
        open_source(f"{address}?query=SELECT a FROM rows WHERE c LIKE '%z'").read(),
        PLAIN[["a"]].iloc[[1]].reset_index(drop=True),
    )
    monkeypatch.chdir(tmp_path)
    assert open_source("duckdb:///claims.db?query=SELECT count(*) AS n FROM rows").read()["n"].tolist() == [3]
    PLAIN.to_csv("t.csv", index=False)
    same(open_source("duckdb://?query=FROM 't.csv'").read())


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("duckdb:///claims.db", "is no address of a query"),
        ("duckdb:///claims.db?query=", "is no address of a query"),
        ("duckdb:///claims.db?query=SELECT x FROM rows", r"DuckDB could not do 'SELECT x FROM rows' \(Binder Error"),
        ("duckdb:///claims.db?query=DROP TABLE rows", "DuckDB could not do 'DROP TABLE rows'"),
        ("duckdb://?query=SET threads = 1", "could not do|is empty"),
        ("duckdb:///claims.db?query=SELECT a FROM rows WHERE a > 9", "is empty"),
        ("duckdb:///broken.db?query=SELECT 1", "DuckDB could not do 'SELECT 1'"),
    ],
)
def test_what_is_no_query_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, problem: str
) -> None:
    base(tmp_path / "claims.db", PLAIN)
    (tmp_path / "broken.db").write_text("no data base " * 1000)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=problem):
        open_source(address)
    same(open_source("duckdb:///claims.db?query=FROM rows").read())  # what was there is there still


def test_a_query_needs_its_base_and_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base(tmp_path / "claims.db", PLAIN)
    with pytest.raises(MissingData, match=r"there is no .*claim\.db\. Did you mean 'claims\.db'"):
        open_source(f"duckdb:///{tmp_path}/claim.db?query=FROM rows")
    monkeypatch.setattr("pue.errors.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r'pip install "pue\[sql\]"'):
        rows_of_query("duckdb:///claims.db?query=FROM rows")
    assert parts("duckdb:////data/claims.db?query=FROM rows")[0] == "/data/claims.db"


def test_commands_take_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.4
    frame = pd.DataFrame({"a": rng.normal(size=200) + 2 * y, "s": (y & (rng.random(200) < 0.5)).astype(int)})
    address = base(tmp_path / "claims.db", frame) + "?query=SELECT a, s FROM rows"
    stored("memory://bucket/claims.csv", frame.to_csv(index=False).encode())
    how = ["--label", "s", "--prior", "0.4", "--propensity", "none", "--method", "logistic", "--quiet"]
    for number, data in enumerate((address, "memory://bucket/claims.csv")):
        model = tmp_path / f"model{number}"
        with pytest.raises(SystemExit) as end:
            main(["fit", data, *how, "-o", str(model)])
        assert not end.value.code
        assert load_model(model).facts["source"] == ("claims.parquet", "claims.csv")[number]
        scores = tmp_path / f"scores{number}.csv"
        with pytest.raises(SystemExit) as end:
            main(["predict", str(model), data, "-o", str(scores), "--quiet", "--budget", "5"])
        assert not end.value.code
    assert (tmp_path / "scores0.csv").read_text() == (tmp_path / "scores1.csv").read_text()
    for data in (address, "-"):
        with pytest.raises(SystemExit):
            main(["predict", str(tmp_path / "model0"), data, "-o", str(tmp_path / "x.csv"), "--engine", "ray"])
        assert "the rows lie where every worker finds them" in capsys.readouterr().err
