"""A column of vectors is as many columns of numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from typer.testing import CliRunner

from pue.app.cli import app
from pue.app.model import load_model
from pue.app.preparation import _estimator
from pue.app.recipe import Recipe
from pue.app.roles import Roles
from pue.app.rows import read_rows
from pue.app.sources.opening import open_source
from pue.errors import InvalidInput
from pue.propensity import Auto

ROWS = 300
KINDS = {
    "fixed": pa.list_(pa.float32(), 4), "list": pa.list_(pa.float64()), "large": pa.large_list(pa.float32()),
    "whole": pa.list_(pa.int16()), "half": pa.list_(pa.float16(), 4),
}  # fmt: skip


def vectors(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-9, 9, (ROWS, 4)).astype(np.float64)


def arrow(rows: Any, kind: pa.DataType) -> pa.Array:
    whole = kind.value_type == pa.int16()
    half = kind.value_type == pa.float16()
    cast = (lambda v: int(v)) if whole else (np.float16 if half else float)
    return pa.array([None if row is None else [cast(v) for v in row] for row in rows], kind)


def table(kind: str, rows: Any = None) -> pa.Table:
    values = vectors() if rows is None else rows
    return pa.table({"s": pa.array(np.arange(ROWS) % 7 == 0), "v": arrow(values, KINDS[kind]), "x": np.arange(ROWS)})


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_place_is_a_column(tmp_path: Path, kind: str, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    write = parquet.write_table if suffix == ".parquet" else feather.write_feather
    write(table(kind), path)
    source = open_source(path)
    assert source.columns == ("s", "v[0]", "v[1]", "v[2]", "v[3]", "x")
    found = source.read()
    np.testing.assert_array_equal(found[["v[0]", "v[1]", "v[2]", "v[3]"]].to_numpy(), vectors())
    some = next(source.batches(100, columns=["x", "v[2]", "v[0]"]))
    assert list(some.columns) == ["x", "v[2]", "v[0]"]
    np.testing.assert_array_equal(some[["v[2]", "v[0]"]].to_numpy(), vectors()[:100, [2, 0]])
    part = source.between(40, 60).read(["v[1]"])
    np.testing.assert_array_equal(part["v[1]"].to_numpy(), vectors()[40:60, 1])
    pieces = [frame for piece in source.pieces for frame in source.batches(50, ["v[3]"], piece)]  # type: ignore[attr-defined]
    np.testing.assert_array_equal(np.concatenate([frame["v[3]"] for frame in pieces]), vectors()[:, 3])


@pytest.mark.parametrize("kind", ["fixed", "list"])
def test_a_cell_without_a_vector_misses_all_places_and_a_gap_one(tmp_path: Path, kind: str) -> None:
    rows: list[Any] = [list(row) for row in vectors()]
    rows[0] = None
    values = arrow(rows, KINDS[kind]).to_pylist()
    values[2][1] = None
    parquet.write_table(pa.table({"v": pa.array(values, KINDS[kind])}), tmp_path / "t.parquet")
    found = open_source(tmp_path / "t.parquet").read().to_numpy()
    assert np.isnan(found[0]).all()
    assert np.isnan(found[2]).tolist() == [False, True, False, False]
    np.testing.assert_array_equal(found[3:], vectors()[3:])


def test_json_lines_hold_vectors_too(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"v": [1, 2.5], "x": 3}\n{"v": [4, 5], "x": 6}\n')
    assert open_source(tmp_path / "t.jsonl").read().to_numpy().tolist() == [[1, 2.5, 3], [4, 5, 6]]


def test_vectors_of_different_lengths_are_refused_unless_they_are_ignored(tmp_path: Path) -> None:
    rows: list[Any] = [list(row) for row in vectors()]
    rows[200] = [1.0]
    parquet.write_table(table("list", rows), tmp_path / "t.parquet")
    source = open_source(tmp_path / "t.parquet")
    with pytest.raises(InvalidInput, match=r"column 'v' of .* holds vectors of 4 numbers, and one of 1\. Make all"):
        source.read()
    assert source.read(["x"]).shape == (ROWS, 1)


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    parquet.write_table(table("fixed").append_column("v[1]", pa.array(np.zeros(ROWS))), tmp_path / "t.parquet")
    with pytest.raises(InvalidInput, match=r"has a column 'v\[1\]' beside a vector of that name"):
        open_source(tmp_path / "t.parquet")


@pytest.mark.parametrize("values", [[["a"]], [[[1.0]]], [[]], [None]])
def test_lists_of_anything_else_are_no_vectors(tmp_path: Path, values: list[Any]) -> None:
    kind = pa.list_(pa.float32()) if values in ([[]], [None]) else None
    parquet.write_table(pa.table({"v": pa.array(values, kind), "x": [1]}), tmp_path / "t.parquet")
    source = open_source(tmp_path / "t.parquet")
    assert source.columns == ("v", "x")
    with pytest.raises(InvalidInput, match=r"column 'v' .* is no number, text, date or true/false"):
        source.read()
    assert source.read(["x"])["x"].tolist() == [1]


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.output


@pytest.mark.filterwarnings("ignore::pue.errors.PueWarning")
def test_the_command_line_learns_from_vectors_and_leaves_them_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    positive = np.arange(ROWS) % 2 == 0
    v = rng.normal(size=(ROWS, 3)) + 2 * positive[:, None]
    columns = {
        "s": (positive & (rng.random(ROWS) < 0.4)).astype(int),
        "v": list(v),
        "x": rng.normal(size=ROWS) + 2 * positive,
    }
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    common = ("fit", tmp_path / "t.parquet", "--label", "s", "--prior", 0.5, "--quiet")
    assert run(*common, "-o", tmp_path / "m")[0] == 0
    model = load_model(tmp_path / "m")
    scores = model.probability(open_source(tmp_path / "t.parquet").read())
    assert ((scores >= 0.5) == positive).mean() > 0.85
    assert run(*common, "--ignore", "v", "-o", tmp_path / "without")[0] == 0
    assert load_model(tmp_path / "without").vectorizer.feature_names == ["x"]


@pytest.mark.parametrize(("option", "places"), [("labeling_columns", (0, 1, 2)), ("ignore_for_labeling", (3,))])
def test_a_vector_drives_the_labeling_by_its_name(tmp_path: Path, option: str, places: tuple[int, ...]) -> None:
    """By all of its places but those that were left out; here the second is constant."""
    values = vectors()
    values[:, 1] = 0
    parquet.write_table(table("fixed", values), tmp_path / "t.parquet")
    rows = read_rows(open_source(tmp_path / "t.parquet"), Roles(label="s", keep=("x",)))
    assert rows.vectorizer.feature_names == ["v[0]", "v[2]", "v[3]", "x"]
    found = _estimator(Recipe(**{option: ("v",)}), rows)  # type: ignore[arg-type]
    assert isinstance(found, Auto)
    assert found.columns == places
