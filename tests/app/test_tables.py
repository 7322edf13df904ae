"""What practitioners have: every format, every way it can be broken, labels, vectorizing and writing."""

from __future__ import annotations

import datetime
import decimal
import errno
import gzip
import itertools
import os
import resource
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import skrub
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from pandas.testing import assert_frame_equal
from PIL import Image
from pyarrow import feather, parquet
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline

from pue.app.sources import delimited
from pue.app.sources.labels import meanings, parse_labels
from pue.app.sources.opening import FORMATS, open_source
from pue.app.sources.problems import require_column
from pue.app.sources.write import SINKS, open_writer
from pue.errors import InvalidInput, MissingData, UnknownName
from pue.estimators.vectorizer import encoders, vectorize
from pue.estimators.vectorizer.vectorize import Vectorizer, fit_vectorizer
from pue.persistence.model import load, save

STR = pd.StringDtype(na_value=np.nan)


def example() -> pd.DataFrame:
    """Five rows with something of everything, in the types that `open_source` promises."""
    return pd.DataFrame(
        {
            "id": pd.array([1, 2, 3, 4, 2**60 + 1], dtype="Int64"),
            "count": pd.array([1, None, 3, 4, 5], dtype="Int64"),
            "size": [0.5, np.nan, 1e300, -2.25, 0.1],
            "flag": pd.array([True, None, False, True, True], dtype="boolean"),
            "name": pd.Series(["a", None, 'ä, "b"\nc', "d", "e"], dtype="str"),
            "day": np.array(["2024-02-29", "NaT", "1899-12-31", "2024-01-01T10:30:15", "2024-01-01"], "datetime64[us]"),
        }
    )


def written(path: Path, frame: pd.DataFrame) -> Path:
    with open_writer(path) as writer:
        writer.write(frame)
    return path


def saved_npz(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def saved_npy(path: Path, array: Any, **options: Any) -> Path:
    np.save(path, array, **options)
    return path


def saved_parquet(path: Path, columns: dict[str, Any]) -> Path:
    parquet.write_table(pa.table(columns), path)
    return path


def text(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# ------------------------------------------------------------------------------------------------------- formats


def as_tsv(path: Path, frame: pd.DataFrame) -> None:
    frame.to_csv(path, sep="\t", index=False)


def as_ipc(path: Path, frame: pd.DataFrame) -> None:
    feather.write_feather(frame, str(path))


def as_file(path: Path, frame: pd.DataFrame) -> None:
    written(path, frame)


TABLES: dict[str, Callable[[Path, pd.DataFrame], None]] = {
    ".csv": as_file,
    ".csv.gz": as_file,
    ".tsv": as_tsv,
    ".tsv.gz": as_tsv,
    ".parquet": as_file,
    ".arrow": as_file,
    ".feather": as_file,
    ".ipc": as_ipc,
}
tables = pytest.mark.parametrize("suffix", TABLES)


def saved(folder: Path, suffix: str, frame: pd.DataFrame) -> Path:
    path = folder / f"rows{suffix}"
    TABLES[suffix](path, frame)
    return path


def test_every_format_is_tested() -> None:
    """Sheets, JSON lines and compressed files have tests of their own, in test_formats."""
    assert set(FORMATS) >= {*TABLES, ".npy", ".npz"}
    assert set(SINKS) <= set(TABLES)


@tables
def test_a_table_comes_back_in_its_types(suffix: str, tmp_path: Path) -> None:
    source = open_source(saved(tmp_path, suffix, example()))
    assert source.kind == "table"
    assert source.columns == tuple(example().columns)
    assert source.n_rows == (5 if suffix in (".parquet", ".arrow", ".feather", ".ipc") else None)
    assert_frame_equal(source.read(), example())


@tables
@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_batches_are_the_rows_in_order(suffix: str, size: int, tmp_path: Path) -> None:
    source = open_source(saved(tmp_path, suffix, example()))
    batches = list(source.batches(size))
    assert [len(batch) for batch in batches] == {1: [1] * 5, 2: [2, 2, 1]}.get(size, [5])
    assert all((batch.dtypes == example().dtypes).all() for batch in batches)
    assert_frame_equal(pd.concat(batches, ignore_index=True), example())


@tables
def test_some_columns_and_the_first_rows(suffix: str, tmp_path: Path) -> None:
    source = open_source(saved(tmp_path, suffix, example()))
    assert_frame_equal(source.read(["name", "id"], rows=3), example()[["name", "id"]].head(3))
    assert_frame_equal(source.read(rows=100), example())
    assert_frame_equal(next(source.batches(2, ["size"])), example()[["size"]].head(2))
    with pytest.raises(UnknownName, match=r"unknown column 'nam'\. Did you mean 'name'\?"):
        source.read(["nam"])
    with pytest.raises(InvalidInput, match="at least one row; got size=0"):
        next(source.batches(0))


def test_suffixes_in_capitals(tmp_path: Path) -> None:
    assert open_source(text(tmp_path / "A.CSV", "a\n1\n")).read()["a"].tolist() == [1]


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_arrow_types_become_few(suffix: str, tmp_path: Path) -> None:
    table = pa.table(
        {
            "category": pa.array(["a", None]).dictionary_encode(),
            "decimal": pa.array([decimal.Decimal("1.5"), None]),
            "day": pa.array([datetime.date(2024, 1, 2), None]),
            "time": pa.array([datetime.time(1, 0, 1), None]),
            "half": pa.array([1.5, None], pa.float16()),
            "nothing": pa.nulls(2),
            "zone": pa.array([0, None], pa.timestamp("ms", "Europe/Paris")),
            "__index_level_0__": [7, 9],
        }
    )
    path = tmp_path / f"rows{suffix}"
    (parquet.write_table if suffix == ".parquet" else feather.write_feather)(table, path)
    frame = open_source(path).read()
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == {
        "category": "str",
        "decimal": "float64",
        "day": "datetime64[s]",
        "time": "timedelta64[us]",
        "half": "float32",
        "nothing": "str",
        "zone": "datetime64[ms, Europe/Paris]",
    }
    assert frame.loc[0, "time"] == pd.Timedelta("01:00:01")
    assert frame.loc[0, "decimal"] == 1.5
    assert frame.loc[0, "day"] == pd.Timestamp("2024-01-02")
    assert frame.loc[1].isna().all()


def test_row_groups_are_split_and_joined(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"a.b": range(100)}), path, row_group_size=30)
    batches = list(open_source(path).batches(40, ["a.b"]))
    assert [len(batch) for batch in batches] == [40, 40, 20]
    assert pd.concat(batches)["a.b"].tolist() == list(range(100))


def test_a_folder_of_parquet_is_one_table_sorted_by_name(tmp_path: Path) -> None:
    letters = pa.array("xyz").dictionary_encode()
    for name, start in (("b", 3), ("a", 0)):
        saved_parquet(tmp_path / f"{name}.parquet", {"n": range(start, start + 3), "c": letters})
    saved_parquet(tmp_path / "c.parquet", {"c": ["z"], "n": [6]})
    text(tmp_path / "_SUCCESS", "")
    text(tmp_path / "._a.parquet", "what a Mac leaves")
    source = open_source(tmp_path)
    assert source.n_rows == 7
    assert source.read()["n"].tolist() == list(range(7))
    assert [len(batch) for batch in source.batches(4)] == [4, 3]


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".npy", ".npz"])
@pytest.mark.parametrize(("start", "stop"), [(0, 7), (3, 4), (5, 20), (19, 25), (0, 25)])
def test_rows_by_number(suffix: str, start: int, stop: int, tmp_path: Path) -> None:
    frame = pd.DataFrame({f"x{column}": np.arange(25.0) + 100 * column for column in range(3)})
    path = tmp_path / f"rows{suffix}"
    if suffix == ".parquet":
        path = tmp_path / "parts"
        path.mkdir()
        for part, rows in {"a": frame[:11], "b": frame[11:12], "c": frame[12:]}.items():
            parquet.write_table(
                pa.Table.from_pandas(rows, preserve_index=False), path / f"{part}.parquet", row_group_size=4
            )
    elif suffix == ".feather":
        feather.write_feather(frame, path, chunksize=4)
    elif suffix == ".npy":
        np.save(path, frame.to_numpy())
    else:
        np.savez(path, X=frame.to_numpy())
    part = open_source(path).between(start, stop)
    assert part.n_rows == stop - start
    wanted = frame[start:stop].reset_index(drop=True)
    pd.testing.assert_frame_equal(part.read(), wanted)
    pd.testing.assert_frame_equal(pd.concat(part.batches(4, ["x2"]), ignore_index=True), wanted[["x2"]])


def test_rows_by_number_need_a_format_that_finds_them(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="Write the table as Parquet"):
        open_source(text(tmp_path / "a.csv", "x\n1\n2\n")).between(0, 1)


def test_an_arrow_stream(tmp_path: Path) -> None:
    table = pa.table({"a": range(10)})
    with pa.ipc.new_stream(tmp_path / "s.arrow", table.schema) as stream:
        stream.write_table(table, max_chunksize=3)
    source = open_source(tmp_path / "s.arrow")
    assert source.n_rows is None
    assert source.read()["a"].tolist() == list(range(10))


# ----------------------------------------------------------------------------------------------------------- CSV


def test_cells_of_a_csv(tmp_path: Path) -> None:
    rows = ["\ufeffa,b,c,d", "1,x y,12:30:00,2024-01-01T00:00:00+02:00", ",,,", "", "3,NA,,", ""]
    path = text(tmp_path / "a.csv", "\r\n".join(rows))
    frame = open_source(path).read()
    assert [str(dtype) for dtype in frame.dtypes] == ["Int64", "str", "timedelta64[s]", "datetime64[us, UTC]"]
    assert frame["a"].tolist() == [1, pd.NA, 3]
    assert frame["b"].isna().tolist() == [False, True, True]
    assert frame.loc[0, "d"] == pd.Timestamp("2023-12-31 22:00", tz="UTC")


def test_fractions_of_seconds_in_a_csv(tmp_path: Path) -> None:
    for fraction, dtype in (
        ("", "datetime64[us]"),
        (".5", "datetime64[us]"),
        (".123456Z", "datetime64[us, UTC]"),
        (".123456789", "datetime64[ns]"),
        (".123456789Z", "datetime64[ns, UTC]"),
    ):
        column = open_source(text(tmp_path / "a.csv", f"a\n2024-01-01 00:00:00{fraction}\n\n")).read()["a"]
        assert column.dtype == dtype
        assert column.tolist() == [pd.Timestamp(f"2024-01-01 00:00:00{fraction}"), pd.NaT]


def test_empty_lines_of_one_column_are_missing_values(tmp_path: Path) -> None:
    assert open_source(text(tmp_path / "a.csv", "a\n1\n\n2\n")).read()["a"].tolist() == [1, pd.NA, 2]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "HEAD", 64)
    monkeypatch.setattr(delimited, "BLOCK", 64)


@pytest.mark.usefixtures("small_blocks")
def test_the_first_block_decides_the_types(tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv", "k,day,late\n" + "1,2024-01-01,\n" * 30 + "2,2024-01-01 10:00:00.5,word\n")
    frame = open_source(path).read()
    assert [str(dtype) for dtype in frame.dtypes] == ["Int64", "datetime64[us]", "str"]
    assert frame["late"].tolist()[-1] == "word"
    assert frame["day"].iloc[-1] == pd.Timestamp("2024-01-01 10:00:00.5")


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("columns", [None, ["price"]])
def test_a_late_value_that_does_not_fit_names_file_and_column(columns: list[str] | None, tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv", "k,price\n" + "1,2\n" * 100 + "1,n.k.\n")
    batches = open_source(path).batches(10, columns)
    assert len([next(batches) for _ in range(5)]) == 5, "rows before the bad one are given before it is read"
    with pytest.raises(InvalidInput, match=r"column 'price' of .*a\.csv .*'n\.k\.'.* or store the table as Parquet"):
        list(batches)


@pytest.mark.usefixtures("small_blocks")
def test_the_first_block_may_end_inside_a_cell(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": range(40), "b": pd.Series(["x\ny,z\n\n"] * 40, dtype="str")})
    found = open_source(written(tmp_path / "a.csv", frame)).read()
    assert found["a"].tolist() == list(range(40))
    assert found["b"].tolist() == frame["b"].tolist()


@pytest.mark.usefixtures("small_blocks")
def test_late_bytes_that_are_no_utf8(tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv", b"k,name\n" + b"1,x\n" * 100 + "1,é\n".encode("latin1"))
    with pytest.raises(InvalidInput, match=r"a\.csv is not UTF-8 text \(column 'name'\).*iconv -f latin1"):
        open_source(path).read()


# -------------------------------------------------------------------------------------------------------- arrays


def test_a_matrix_is_a_table(tmp_path: Path) -> None:
    values = np.arange(12, dtype=">f8").reshape(4, 3)
    source = open_source(saved_npy(tmp_path / "x.npy", values))
    assert (source.kind, source.columns, source.n_rows) == ("table", ("x0", "x1", "x2"), 4)
    assert_array_equal(source.read().to_numpy(), values)
    assert_array_equal(pd.concat(source.batches(3, ["x2", "x0"])).to_numpy(), values[:, [2, 0]])
    assert source.read(rows=2).index.tolist() == [0, 1]


def test_arrays_beside_a_matrix_are_columns(tmp_path: Path) -> None:
    days = np.array(["2024-01-01", "NaT", "2024-01-03"], "datetime64[D]")
    path = saved_npz(tmp_path / "x.npz", X=np.eye(3, dtype=np.float16), s=[1, 0, 0], id=["a", "b", "c"], day=days)
    source = open_source(path)
    assert source.columns == ("x0", "x1", "x2", "s", "id", "day")
    frame = source.read(["id", "x1", "s", "day"], rows=2)
    assert frame.to_dict("list")["id"] == ["a", "b"]
    assert [str(dtype) for dtype in frame.dtypes] == ["str", "float32", "int64", "datetime64[s]"]
    assert frame["x1"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((5, 8, 9), (1, 8, 9)), ((5, 3, 8, 9), (3, 8, 9)), ((5, 8, 9, 3), (3, 8, 9)), ((5, 8, 9, 1), (1, 8, 9))],
)
def test_bytes_of_more_dimensions_are_images(
    shape: tuple[int, ...], expected: tuple[int, int, int], tmp_path: Path
) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    first = pixels[:, None] if pixels.ndim == 3 else pixels if shape[1] == 3 else pixels.transpose(0, 3, 1, 2)
    for path in (saved_npy(tmp_path / "x.npy", pixels), saved_npz(tmp_path / "x.npz", X=pixels, s=np.arange(5))):
        source: Any = open_source(path)
        assert (source.kind, source.n_rows, source.image_shape) == ("images", 5, expected)
        assert_array_equal(source.images(1, 4), first[1:4])
        assert source.images(0, 5).flags.c_contiguous
    assert source.columns == ("s",)
    assert [batch["s"].tolist() for batch in source.batches(3)] == [[0, 1, 2], [3, 4]]
    assert [len(batch) for batch in source.batches(3, [])] == [3, 2]


# -------------------------------------------------------------------------------------------------------- images


def picture(path: Path, size: tuple[int, int] = (6, 4), mode: str = "RGB", value: int = 7) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    Image.new(mode, size, value if mode in ("L", "I;16") else (value, 0, 255)).save(path)
    return path


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "pictures"
    for number in range(5):
        picture(folder / "deep" / f"{number}.png", value=number)
    rows = "".join(f"deep/{number}.png,{int(number == 4)}\n" for number in (4, 2, 0))
    text(folder / "labels.csv", f"file,label\n{rows}")
    return folder


def test_a_folder_of_images_with_its_table(pictures: Path) -> None:
    source: Any = open_source(pictures)
    assert (source.kind, source.n_rows, source.columns) == ("images", 3, ("file", "label"))
    assert source.image_shape == (3, 4, 6)
    pixels = source.images(0, 3)
    assert pixels.dtype == np.uint8
    assert pixels[:, 0, 0, 0].tolist() == [4, 2, 0]
    assert pixels[:, 2].min() == 255
    assert_array_equal(source.images(1, 2), pixels[1:2])
    assert source.read(["label"])["label"].tolist() == [1, 0, 0]
    assert [batch.index.tolist() for batch in source.batches(2)] == [[0, 1], [0]]


def test_some_images_by_number(pictures: Path) -> None:
    source = open_source(pictures)
    part = source.between(1, 2)
    assert part.n_rows == 1
    pd.testing.assert_frame_equal(part.read(), source.read()[1:2].reset_index(drop=True))
    assert (part.images(0, 1) == source.images(1, 2)).all()


def test_the_table_of_images_may_lie_elsewhere(pictures: Path, tmp_path: Path) -> None:
    other = text(tmp_path / "other.tsv", "label\timage\nyes\tdeep/1.png\n")
    source: Any = open_source(pictures, labels=other)
    assert source.read().to_dict("list") == {"label": ["yes"], "image": ["deep/1.png"]}
    assert source.images(0, 1)[0, 0, 0, 0] == 1


def test_images_without_a_table_are_sorted_by_name(pictures: Path) -> None:
    (pictures / "labels.csv").unlink()
    source: Any = open_source(pictures)
    assert source.read()["file"].tolist() == [f"deep/{number}.png" for number in range(5)]
    assert source.images(0, 5)[:, 0, 0, 0].tolist() == list(range(5))


def test_images_of_other_sizes_are_refused_or_resized(pictures: Path) -> None:
    picture(pictures / "deep" / "2.png", (3, 3))
    source: Any = open_source(pictures)
    with pytest.raises(InvalidInput, match=r"2\.png is 3 × 3 pixels, but 4\.png is 4 × 6.*image_size=\(4, 6\)"):
        source.images(0, 3)
    for size, shape in ((8, (3, 8, 8)), ((2, 5), (3, 2, 5))):
        source = open_source(pictures, image_size=size)
        assert source.images(0, 3).shape == (3, *shape)
        assert source.images(0, 3)[:, 2].min() == 255
    with pytest.raises(InvalidInput, match="a height and a width in pixels"):
        open_source(pictures, image_size=0)


def test_gray_images_have_one_channel_and_may_stand_among_colored_ones(pictures: Path) -> None:
    picture(pictures / "deep" / "2.png", mode="L", value=9)
    source: Any = open_source(pictures)
    assert source.images(1, 2)[0, :, 0, 0].tolist() == [9, 9, 9]
    picture(pictures / "deep" / "4.png", mode="L", value=8)
    source = open_source(pictures)
    assert source.images(0, 2)[:, :, 0, 0].tolist() == [[8], [9]]
    with pytest.raises(InvalidInput, match=r"0\.png is in color, but 4\.png, which decides, is gray. Convert"):
        source.images(0, 3)


def test_palettes_with_transparent_colors(pictures: Path) -> None:
    image = Image.new("P", (6, 4), 1)
    image.putpalette([0, 0, 0, 10, 20, 30])
    image.save(pictures / "deep" / "2.png", transparency=bytes([0, 128]))
    source: Any = open_source(pictures)
    assert source.images(1, 2)[0, :, 0, 0].tolist() == [10, 20, 30]


def broken_folder(change: str, pictures: Path) -> Path:
    if change == "damaged":
        text(pictures / "deep" / "4.png", (pictures / "deep" / "4.png").read_bytes()[:45])
    elif change == "no image":
        text(pictures / "deep" / "4.png", b"hello")
    elif change == "absent":
        (pictures / "deep" / "2.png").unlink()
    elif change == "16 bits":
        picture(pictures / "deep" / "4.png", mode="I;16")
    elif change == "two tables":
        text(pictures / "more.csv", "file\na\n")
    elif change == "no names":
        text(pictures / "labels.csv", "what,label\na,1\n")
    elif change == "empty name":
        text(pictures / "labels.csv", "file,label\ndeep/1.png,1\n,0\n")
    return pictures


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("damaged", r"4\.png is damaged or no image \(.*\)\. Replace it"),
        ("no image", r"4\.png is damaged or no image"),
        ("absent", r"1 of 3 images are not in .*pictures, the first is '2\.png'\. Did you mean '.*png'\?"),
        ("16 bits", r"4\.png has more than 8 bits a pixel \(I;16\)\. Convert"),
        ("two tables", r"several CSV files: 'labels\.csv', 'more\.csv'\. Say with labels= which"),
        ("no names", r"no column that names them, only 'what', 'label'\. Call that column file"),
        ("empty name", r"row 2 of the table .* names no file\. Fill or remove it"),
    ],
)
def test_folders_of_images_that_cannot_be_used(change: str, message: str, pictures: Path) -> None:
    with pytest.raises((InvalidInput, MissingData), match=message):
        open_source(broken_folder(change, pictures)).images(0, 3)  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------------------------ what can be wrong

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


def cut(path: Path, keep: int) -> Path:
    return text(path, path.read_bytes()[:keep])


def parts_that_disagree(folder: Path) -> Path:
    saved_parquet(folder / "a.parquet", {"n": [1], "m": [1]})
    saved_parquet(folder / "b.parquet", {"n": ["x"], "m": [1]})
    return folder


def parts_that_lack(folder: Path) -> Path:
    saved_parquet(folder / "a.parquet", {"n": [1]})
    saved_parquet(folder / "b.parquet", {"n": [1], "m": [1]})
    return folder


def objects(path: Path) -> Path:
    return saved_npy(path, np.array([[{}]]), allow_pickle=True)


PROBLEMS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "no file": (lambda f: f / "rows.csv", r"there is no .*rows\.csv\. Check the name and the folder"),
    "no folder": (lambda f: f / "no" / "rows.csv", r"there is no .*rows\.csv\. Check the name"),
    "a typing error": (lambda f: text(f / "rows.csv", "a\n1").with_name("row.csv"), r"Did you mean 'rows\.csv'\?"),
    "an empty folder": (lambda f: f, "holds no data: no Parquet files and no images"),
    "an unknown suffix": (
        lambda f: text(f / "a.sas", "x"),
        r"a\.sas: unknown suffix '\.sas'\. Known are \.csv, .*npz",
    ),
    "a PNG as .parquet": (lambda f: text(f / "a.parquet", PNG), r"a\.parquet is damaged or not a Parquet file"),
    "a PNG as .feather": (lambda f: text(f / "a.feather", PNG), r"a\.feather is damaged or not an Arrow file"),
    "a PNG as .csv": (lambda f: text(f / "a.csv", PNG), r"a\.csv holds binary data.*suffix of what it is"),
    "a PNG as .npy": (lambda f: text(f / "a.npy", PNG), r"a\.npy is damaged or not a \.npy array"),
    "a PNG as .npz": (lambda f: text(f / "a.npz", PNG), r"a\.npz is damaged or not an \.npz archive"),
    "text as .csv.gz": (lambda f: text(f / "a.csv.gz", "a\n1\n"), r"a\.csv\.gz is damaged or not a text table"),
    "truncated Parquet": (lambda f: cut(saved_parquet(f / "a.parquet", {"n": [1]}), 200), r"a\.parquet is damaged"),
    "truncated Arrow": (lambda f: cut(written(f / "a.arrow", example()), 900), r"a\.arrow is damaged"),
    "truncated gzip": (lambda f: cut(written(f / "a.csv.gz", example()), 60), r"a\.csv\.gz is damaged .*[Tt]runcated"),
    "truncated .npy": (lambda f: cut(saved_npy(f / "a.npy", np.ones((9, 9))), 200), r"a\.npy is damaged"),
    "truncated .npz": (lambda f: cut(saved_npz(f / "a.npz", X=np.ones((9, 9))), 200), r"a\.npz is damaged"),
    "zero bytes": (lambda f: text(f / "a.csv", b""), r"a\.csv is empty \(zero bytes\)\. Pass a table"),
    "zero zipped bytes": (lambda f: text(f / "a.csv.gz", gzip.compress(b"")), r"a\.csv\.gz is empty \(zero bytes\)"),
    "empty lines": (lambda f: text(f / "a.csv", "\n\n"), r"a\.csv is empty \(no header\)"),
    "only a header": (lambda f: text(f / "a.csv", "a,b\n"), r"a\.csv is empty \(a header, but no rows\)"),
    "Parquet without rows": (
        lambda f: saved_parquet(f / "a.parquet", {"a": pa.array([], pa.int8())}),
        r"a\.parquet is empty \(no rows\)",
    ),
    "Arrow without rows": (lambda f: written(f / "a.arrow", example().head(0)), r"a\.arrow is empty \(no rows\)"),
    "no columns": (lambda f: saved_parquet(f / "a.parquet", {}), r"a\.parquet is empty \(no columns\)"),
    "no values": (lambda f: saved_npy(f / "a.npy", np.ones((0, 3))), r"a\.npy is empty \(shape \(0, 3\)\)"),
    "names twice": (
        lambda f: text(f / "a.csv", "a,b,a,b,c\n1,2,3,4,5\n"),
        r"a\.csv has more than one column called 'a', 'b'\. Rename",
    ),
    "no name": (lambda f: text(f / "a.csv", ",b\n1,2\n"), r"column 1 of .*a\.csv has no name.*index=False"),
    "Latin-1 cells": (
        lambda f: text(f / "a.csv", "a\né\n".encode("latin1")),
        r"a\.csv is not UTF-8 text \(column 'a'\)",
    ),
    "a Latin-1 header": (
        lambda f: text(f / "a.csv", "é\n1\n".encode("latin1")),
        r"UTF-8 text \(the header\).*iconv -f lat",
    ),
    "UTF-16": (lambda f: text(f / "a.csv", "a\n1\n".encode("utf-16")), r"a\.csv holds binary data.*iconv -f utf-16"),
    "semicolons": (
        lambda f: text(f / "a.csv", "a;b\n1;2\n3\n"),
        r"a\.csv does not parse",
    ),
    "a cell too many": (
        lambda f: text(f / "a.csv", "a,b\n1,2,3\n"),
        r"a\.csv does not parse .*got 3.* in double quotes",
    ),
    "lists": (
        lambda f: saved_parquet(f / "a.parquet", {"n": [1], "tags": [["x"]]}),
        r"column 'tags' of .*a\.parquet holds list<.*Flatten it .* --ignore tags",
    ),
    "structs": (lambda f: saved_parquet(f / "a.parquet", {"n": [{"a": 1}]}), r"column 'n' .* holds struct<a"),
    "bytes": (lambda f: saved_parquet(f / "a.parquet", {"n": [b"x"]}), r"column 'n' of .*a\.parquet holds binary"),
    "parts that disagree": (parts_that_disagree, r"b\.parquet .* disagree: column 'n' is int64 in .* and large_string"),
    "parts that lack a column": (parts_that_lack, r"disagree: column 'm' is absent in the first and int64"),
    "objects in .npy": (lambda f: objects(f / "a.npy"), r"a\.npy holds Python objects, which are never unpickled"),
    "objects as X": (lambda f: saved_npz(f / "a.npz", X=np.array([[{}]])), r"a\.npz holds Python objects"),
    "objects beside X": (
        lambda f: saved_npz(f / "a.npz", X=np.ones((1, 2)), s=np.array([{}])),
        r"a\.npz holds Python objects, which are never unpickled",
    ),
    "no X": (lambda f: saved_npz(f / "a.npz", x=[1], s=[1]), r"a\.npz has no array X but 'x', 's'"),
    "a vector": (lambda f: saved_npy(f / "a.npy", np.ones(3)), r"a\.npy: the array has shape \(3,\).*Reshape"),
    "images of floats": (lambda f: saved_npy(f / "a.npy", np.ones((2, 3, 4))), r"type float64.*images are uint8"),
    "five channels": (lambda f: saved_npy(f / "a.npy", np.ones((2, 5, 5, 5), np.uint8)), r"with 1, 3 or 4 channels"),
    "a matrix beside X": (
        lambda f: saved_npz(f / "a.npz", X=np.ones((3, 2)), s=np.ones((3, 1))),
        r"array 's' of .*a\.npz has shape \(3, 1\).*vectors of that length",
    ),
    "an array called x0": (
        lambda f: saved_npz(f / "a.npz", X=np.ones((3, 2)), x0=np.ones(3)),
        r"more than one column called 'x0'",
    ),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_problems_are_named_with_their_remedy(problem: str, tmp_path: Path) -> None:
    make, message = PROBLEMS[problem]
    with pytest.raises((InvalidInput, MissingData), match=message):
        open_source(make(tmp_path)).read()


def test_a_column_that_fits_no_type_may_stand_beside_those_read(tmp_path: Path) -> None:
    source = open_source(saved_parquet(tmp_path / "a.parquet", {"n": [1], "tags": [["x"]]}))
    assert source.columns == ("n", "tags")
    assert source.read(["n"])["n"].tolist() == [1]


def test_damage_inside_parquet(tmp_path: Path) -> None:
    path = saved_parquet(tmp_path / "a.parquet", {"n": range(1000)})
    content = bytearray(path.read_bytes())
    content[4:80] = b"\xff" * 76
    source = open_source(text(path, bytes(content)))
    with pytest.raises(InvalidInput, match=r"a\.parquet is damaged"):
        source.read()


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_a_file_that_may_not_be_read(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / name, example())

    def refuse(self: Path, *_: Any, **__: Any) -> Any:  # root may read everything, so chmod would not do
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InvalidInput, match=rf"{name} may not be read. .*chmod u\+r"):
        open_source(path)


def test_options_of_images_need_images(tmp_path: Path) -> None:
    table = written(tmp_path / "a.csv", example())
    with pytest.raises(InvalidInput, match=r"labels= goes with a folder of images, and .*a\.csv is none"):
        open_source(table, labels="labels.csv")
    for path in (table, saved_npy(tmp_path / "a.npy", np.ones((2, 3)))):
        with pytest.raises(InvalidInput, match=rf"image_size= goes with images, and .*{path.name} is a table"):
            open_source(path, image_size=3)


def test_images_in_an_array_have_their_size(tmp_path: Path) -> None:
    path = saved_npy(tmp_path / "a.npy", np.ones((5, 8, 9, 3), np.uint8))
    assert open_source(path, image_size=(8, 9)).n_rows == 5
    with pytest.raises(InvalidInput, match=r"a\.npy are 8 × 9 pixels, not 8 × 8\. Resize them before"):
        open_source(path, image_size=8)


# -------------------------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ([1, 0, 0], [1, 0, 0]),
        ([1.0, 0.0, np.nan], [1, 0, 0]),
        ([1, 0, -1], [1, 0, -1]),
        ([True, False, True], [1, 0, 1]),
        (pd.array([True, None, False], dtype="boolean"), [1, 0, 0]),
        (pd.array([1, None, -1], dtype="Int64"), [1, 0, -1]),
        (["TRUE", "false", " True "], [1, 0, 1]),
        (["yes", "no", ""], [1, 0, 0]),
        (["Y", "n", None], [1, 0, 0]),
        (["positive", "unlabeled", "Negative"], [1, 0, -1]),
        (["positive", "unlabelled", "NA"], [1, 0, 0]),
        (["1", "0", "-1.0"], [1, 0, -1]),
        (["1.0", None, None], [1, 0, 0]),
        (pd.Categorical(["yes", None, "no"]), [1, 0, 0]),
        (pd.Series([1, None, True], dtype=object), [1, 0, 1]),
    ],
)
def test_labels_in_every_spelling(column: Any, expected: list[int]) -> None:
    labels = parse_labels(pd.Series(column), "s")
    assert labels.dtype == np.int8
    assert labels.tolist() == expected


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([0, 0], "'s' labels no row positive. Mark the known positives with 1"),
        ([None, None], "labels no row positive"),
        ([1, 1], "labels every row positive. PU learning needs unlabeled rows"),
        ([1, -1], "only positives and negatives, which is ambiguous.* Write 0"),
        (["positive", "negative"], "which is ambiguous"),
        (["yes", "maybe", "", "never"], "'s' holds 'maybe', 'never'. Write 1, yes"),
        ([1, 0, 2], "'s' holds '2'"),
        ([1.0, 0.0, 0.5], "'s' holds '0.5'"),
        (list("abcdefg1"), "'a', 'b', 'c', 'd', 'e' and 2 more"),
        ([1, 0, np.inf], "'s' holds 'inf'"),
    ],
)
def test_labels_that_cannot_be_used(column: list[Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        parse_labels(pd.Series(column), "s")


def test_labels_of_some_rows_need_not_be_of_every_kind() -> None:
    assert meanings(pd.Series(["yes", "Yes"]), "s").tolist() == [1, 1]
    with pytest.raises(InvalidInput, match="'s' holds 'maybe'"):
        meanings(pd.Series(["maybe"]), "s")


def test_a_label_column_that_is_not_there() -> None:
    require_column("label", ("age", "label"))
    with pytest.raises(UnknownName, match=r"unknown column 'lable'\. Did you mean 'label'\?"):
        require_column("lable", ("age", "label"))
    many = [f"feature {number}" for number in range(1000)]
    with pytest.raises(UnknownName, match=r"Did you mean 'feature 7'\?") as caught:
        require_column("feature7", many)
    assert len(str(caught.value)) < 400


# ----------------------------------------------------------------------------------------------------- vectorizing


def mixed(n: int = 400) -> pd.DataFrame:
    """Every kind of column, with missing values."""
    rng = np.random.default_rng(0)
    when = pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 10**8, n), unit="s"))
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "count": pd.array(rng.integers(0, 9, n), dtype="Int64"),
            "spelt": pd.Series(rng.integers(0, 99, n).astype(str), dtype="str"),
            "flag": pd.array(rng.random(n) < 0.5, dtype="boolean"),
            "color": pd.Series(rng.choice(["red", "green", "blue"], n), dtype="str"),
            "town": pd.Series([f"town{number}" for number in rng.integers(0, 90, n)], dtype="str"),
            "story": pd.Series([f"the {a} met {b}" for a, b in rng.integers(0, 90, (n, 2))], dtype="str"),
            "when": when,
            "zone": when.dt.tz_localize("UTC").dt.tz_convert("Europe/Paris"),
            "day": when.dt.strftime("%d/%m/%Y").astype("str"),
            "lasted": pd.to_timedelta(rng.integers(0, 9999, n), unit="s"),
        }
    )
    for number, name in enumerate(frame.columns):
        frame.loc[np.arange(n) % 20 == number, name] = None
    return frame


@pytest.fixture(scope="module")
def fitted() -> Vectorizer:
    return fit_vectorizer(mixed())


def test_kinds_of_columns(fitted: Vectorizer) -> None:
    assert fitted.columns == {
        "size": "number",
        "count": "number",
        "spelt": "number",
        "flag": "boolean",
        "color": "category",
        "town": "text",
        "story": "text",
        "when": "date",
        "zone": "date",
        "day": "date",
        "lasted": "number",
    }
    assert fitted.dropped == {}
    assert len(set(fitted.feature_names)) == len(fitted.feature_names)


def test_features_are_finite_float32_and_named(fitted: Vectorizer) -> None:
    features = fitted.transform(mixed())
    assert features.dtype == np.float32
    assert features.shape == (400, len(fitted.feature_names))
    assert np.isfinite(features).all()


def feature(vectorizer: Vectorizer, frame: pd.DataFrame, name: str) -> list[float]:
    values: list[float] = vectorizer.transform(frame)[:, vectorizer.feature_names.index(name)].tolist()
    return values


def test_a_row_means_the_same_in_every_batch(fitted: Vectorizer) -> None:
    frame = mixed()
    whole = fitted.transform(frame)
    for start, stop in ((0, 100), (100, 101), (101, 400)):
        assert_array_equal(fitted.transform(frame.iloc[start:stop]), whole[start:stop])
    for row in range(12):
        assert_array_equal(fitted.transform(frame.iloc[row : row + 1]), whole[row : row + 1])


def test_order_and_index_of_the_frame_do_not_matter(fitted: Vectorizer) -> None:
    frame = mixed()
    other = frame[frame.columns[::-1]].set_index(np.arange(400) * 7 % 401)
    assert_array_equal(fitted.transform(other), fitted.transform(frame))


def test_the_seed_decides() -> None:
    frame = mixed()[["town"]]
    first, again, other = (fit_vectorizer(frame, seed=seed).transform(frame) for seed in (0, 0, 1))
    assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_missing_numbers_are_the_median_and_say_so() -> None:
    vectorizer = fit_vectorizer(pd.DataFrame({"a": [1.0, 2.0, 9.0, None], "b": [1, 2, 3, 4]}))
    assert vectorizer.feature_names == ["a", "a is missing", "b"]
    assert vectorizer.transform(pd.DataFrame({"a": [None, 5.0], "b": [1.0, None]})).tolist() == [[2, 1, 1], [5, 0, 2.5]]


def test_categories_one_feature_each_and_unknown_ones_none() -> None:
    vectorizer = fit_vectorizer(pd.DataFrame({"c": ["red", "blue", None, "red"]}))
    assert vectorizer.feature_names == ["c=blue", "c=red", "c is missing"]
    features = vectorizer.transform(pd.DataFrame({"c": ["red", "green", None, " ? "]}))
    assert features.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 1], [0, 0, 1]]
    without = fit_vectorizer(pd.DataFrame({"c": ["red", "blue"]}))
    assert without.transform(pd.DataFrame({"c": pd.Series([None], dtype="str")})).tolist() == [[0, 0]]


def test_categories_that_are_numbers_in_another_file() -> None:
    vectorizer = fit_vectorizer(pd.DataFrame({"c": ["1", "2", "x"]}))
    assert vectorizer.columns == {"c": "category"}
    for values in ([2, 1], [2.0, 1.0], pd.array([2, 1], dtype="Int64")):
        assert vectorizer.transform(pd.DataFrame({"c": values})).tolist() == [[0, 1, 0], [1, 0, 0]]


def test_dates_become_their_parts() -> None:
    frame = pd.DataFrame({"d": pd.to_datetime(["2024-05-13 12:05", "2024-05-15 13:00", None])})
    vectorizer = fit_vectorizer(frame)
    names = ["year", "month", "day", "hour", "total seconds", "weekday", "is missing"]
    assert vectorizer.feature_names == [f"d {name}" for name in names]
    seconds = np.float32(pd.Timestamp("2024-05-13 12:05").timestamp())
    features = vectorizer.transform(frame)
    assert features[0].tolist() == [2024, 5, 13, 12, seconds, 1, 0]
    assert features[2, [0, 1, 2, 3, 5, 6]].tolist() == [2024, 5, 14, 12.5, 2, 1]


def test_dates_are_the_same_as_text_in_any_zone_and_of_any_unit() -> None:
    days = pd.to_datetime(["2024-05-13", "2024-05-25"])
    as_text = fit_vectorizer(pd.DataFrame({"d": pd.Series(["13/05/2024", "25/05/2024"], dtype="str")}))
    as_dates = fit_vectorizer(pd.DataFrame({"d": days}))
    expected = as_dates.transform(pd.DataFrame({"d": days}))
    assert_array_equal(as_text.transform(pd.DataFrame({"d": ["13/05/2024", "25/05/2024"]})), expected)
    for same in (
        days.astype("datetime64[s]"),
        days.tz_localize("UTC").tz_convert("Asia/Tokyo"),
        pd.Series(["2024-05-13", "2024-05-25T00:00:00"], dtype="str"),
    ):
        assert_array_equal(as_dates.transform(pd.DataFrame({"d": same})), expected)
    assert_array_equal(as_text.transform(pd.DataFrame({"d": days})), expected)


def test_similar_texts_are_near(fitted: Vectorizer) -> None:
    towns = [name for name in fitted.feature_names if name.startswith("town")]
    assert len(towns) == encoders.TEXT_FEATURES
    rows = pd.concat([mixed().iloc[[0] * 4]], ignore_index=True)
    rows["town"] = pd.Series(["town11", "town12", "zebra", None], dtype="str")
    features = fitted.transform(rows)[:, [fitted.feature_names.index(name) for name in towns]]
    near, far = (float(np.linalg.norm(features[0] - features[row])) for row in (1, 2))
    assert near < far
    assert not features[3].any()


def test_texts_of_few_words_have_as_many_features_as_directions() -> None:
    words = np.array(list("abcdefg"))
    notes = pd.Series([" ".join(words[list(bits)]) for bits in itertools.product([False, True], repeat=7) if any(bits)])
    vectorizer = fit_vectorizer(pd.DataFrame({"note": notes}))
    assert vectorizer.feature_names == [f"note text {number}" for number in range(1, 8)]
    features = vectorizer.transform(pd.DataFrame({"note": notes}))
    assert features.std(0).min() > 0.01, "rounding errors are no feature: a standardised column would magnify them"


def test_processors_agree_on_texts_to_the_last_bit() -> None:
    """Folds are drawn by content, so that one bit can move a row; an older processor sums in another order."""
    show = "from test_tables import *; print(text_bytes().hex())"
    older = {
        **os.environ,
        "OPENBLAS_CORETYPE": "Prescott",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
    }
    done = subprocess.run([sys.executable, "-c", show], env=older, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == text_bytes().hex()


def text_bytes() -> bytes:
    notes = mixed()[["story"]]
    return fit_vectorizer(notes).transform(notes).tobytes()


def test_texts_that_differ_only_in_their_case() -> None:
    cases = ["".join(letters) for letters in itertools.product("aA", "bB", "cC", "dD", "eE", "fF")]
    vectorizer = fit_vectorizer(pd.DataFrame({"t": cases}))
    assert vectorizer.columns == {"t": "text"}
    features = vectorizer.transform(pd.DataFrame({"t": [*cases, "other"]}))
    assert np.isfinite(features).all()
    assert (features[:-1] == features[0]).all()


def test_transform_needs_little_more_than_its_result() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"n{number}": rng.random(20_000) for number in range(40)})
    frame["c"] = pd.Series(rng.choice(list("abcdefgh"), len(frame)), dtype="str")
    vectorizer = fit_vectorizer(frame)
    tracemalloc.start()
    features = vectorizer.transform(frame)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.5 * features.nbytes


def test_a_file_of_missing_values_is_fine(fitted: Vectorizer) -> None:
    frame = pd.DataFrame({name: [None, None] for name in fitted.columns})
    features = fitted.transform(frame)
    assert np.isfinite(features).all()
    gaps = [name for name in fitted.feature_names if name.endswith("is missing")]
    assert len(gaps) == 9
    assert all(feature(fitted, frame, name) == [1, 1] for name in gaps)
    assert fitted.transform(frame.head(0)).shape == (0, features.shape[1])


def test_columns_that_say_nothing_are_dropped_by_name() -> None:
    frame = pd.DataFrame({"a": [1, 2], "one": ["x", "x"], "none": [None, None], "na": ["NA", ""], "n": [3.0, 3.0]})
    vectorizer = fit_vectorizer(frame)
    same, missing = "all values are the same", "all values are missing"
    assert vectorizer.dropped == {"one": same, "none": missing, "na": missing, "n": same}
    assert vectorizer.feature_names == ["a"]
    assert vectorizer.unknown(frame.assign(new=1)) == ["new"]
    assert vectorizer.transform(frame[["a"]]).tolist() == [[1], [2]]
    with pytest.raises(InvalidInput, match=r"no column says anything about the rows.*'one': 'all values are the same'"):
        fit_vectorizer(frame[["one"]])


def test_large_tables_are_fitted_on_some_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectorize, "FIT_ROWS", 50)
    frame = pd.DataFrame({"a": np.arange(1000.0), "rare": [1] + [0] * 999, "c": ["x"] + ["y", "z", "z"] * 333})
    vectorizer = fit_vectorizer(frame)
    assert vectorizer.dropped == {"rare": "all values are the same in 50 rows drawn at random"}
    assert vectorizer.feature_names == ["a", "c=y", "c=z"]
    assert vectorizer.transform(frame).shape == (1000, 3)
    assert vectorizer.encoders[0].median == fit_vectorizer(frame).encoders[0].median  # type: ignore[attr-defined]
    assert vectorizer.encoders[0].median != fit_vectorizer(frame, seed=1).encoders[0].median  # type: ignore[attr-defined]


def test_columns_that_are_missing_are_named(fitted: Vectorizer) -> None:
    frame = mixed().rename(columns={"color": "colour"})
    assert fitted.unknown(frame) == ["colour"]
    with pytest.raises(
        InvalidInput, match=r"trained on column\(s\) 'color', which .* Did you mean 'colour'\? Rename it"
    ):
        fitted.transform(frame)
    with pytest.raises(InvalidInput, match=r"'size', 'count', 'spelt', 'flag', 'color' and 6 more.* Add it, empty"):
        fitted.transform(pd.DataFrame({"zzz": [1]}))


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("size", ["1.5", "n.k."], "'size' held numbers when .* holds text now, for example 'n.k.'"),
        ("size", pd.to_datetime(["2024-01-01"] * 2), "'size' held numbers .* holds dates now, for example '2024-01-01"),
        ("spelt", ["12", "twelve"], "'spelt' held numbers .* holds text now, for example 'twelve'"),
        ("flag", ["a", "b"], "'flag' held numbers .* text now"),
        ("color", pd.to_datetime(["2024-01-01"] * 2), "'color' held text .* holds dates now"),
        ("color", [True, False], "'color' held text .* holds true/false now, for example 'True'"),
        ("story", [True, False], "'story' held text .* true/false now"),
        ("when", [1.0, 2.0], "'when' held dates .* holds numbers now, for example '1.0'"),
        ("when", ["2024-01-01", "yesterday"], r"'when' held dates \(ISO 8601\) .* text now, for example 'yesterday'"),
        ("day", ["01/02/2024", "2024-02-01"], r"'day' held dates \(%d/%m/%Y\) .* for example '2024-02-01'"),
        ("size", [1.0, np.inf], "'size' holds infinite numbers, or some beyond 1e.30, in row.s. 1 "),
        ("size", [1.0, -1e300], "'size' holds infinite numbers"),
        ("spelt", ["1", "inf"], "'spelt' holds infinite numbers"),
        ("size", [[1], {}], "'size' holds mixed values, .* --ignore size"),
        ("color", [1 + 2j, 1j], "'color' holds complex values"),
    ],
)
def test_columns_of_another_type_are_refused(fitted: Vectorizer, name: str, values: Any, message: str) -> None:
    frame = mixed().head(2).drop(columns=name)
    frame[name] = values
    with pytest.raises(InvalidInput, match=message):
        fitted.transform(frame)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("size", [1, 2]),
        ("size", pd.array([1, 2], dtype="Int8")),
        ("size", ["1", "2"]),
        ("size", [decimal.Decimal(1), decimal.Decimal(2)]),
        ("flag", [1, 0]),
        ("flag", [True, None]),
        ("flag", [1.0, np.nan]),
        ("spelt", [1.0, 2.0]),
    ],
)
def test_the_same_type_stored_otherwise_is_fine(fitted: Vectorizer, name: str, values: Any) -> None:
    frame = mixed().head(2).drop(columns=name)
    frame[name] = values
    expected = [np.float32(fitted.encoders[list(fitted.columns).index(name)].median)] * 2  # type: ignore[attr-defined]
    for row, value in enumerate(values):
        expected[row] = expected[row] if pd.isna(value) else np.float32(value)
    assert feature(fitted, frame, name) == expected


def test_infinite_numbers_are_refused_at_training() -> None:
    with pytest.raises(InvalidInput, match="column 'a' holds infinite numbers"):
        fit_vectorizer(pd.DataFrame({"a": [1.0, np.inf]}))


def test_a_stored_vectorizer_is_numbers_alone_and_gives_the_same_features(fitted: Vectorizer, tmp_path: Path) -> None:
    save(fitted, tmp_path / "vectorizer")
    assert not list(tmp_path.glob("**/*.pkl"))
    assert sum(file.stat().st_size for file in tmp_path.glob("**/*.*")) < 9e6
    again = load(tmp_path / "vectorizer")
    assert (again.columns, again.feature_names) == (fitted.columns, fitted.feature_names)
    assert_array_equal(again.transform(mixed()), fitted.transform(mixed()))


@pytest.mark.parametrize("hours", [0, 1])
def test_dates_have_the_features_of_skrub(hours: int) -> None:
    times = pd.Series(pd.date_range("1931-02-26", periods=99, freq="311D") + pd.to_timedelta(hours, "h"))
    times[7] = pd.NaT
    encoder = encoders.Dates.fit("at", times, None)
    skrubs = skrub.DatetimeEncoder(add_weekday=True)
    expected = skrubs.fit_transform(times.rename("at")).to_numpy(np.float32)
    found = np.zeros((99, len(encoder.names)), np.float32)
    encoder.encode(times, found)
    assert encoder.names == [*(name.replace("_", " ") for name in skrubs.all_outputs_), "at is missing"]
    assert_array_equal(np.delete(found[:, :-1], 7, axis=0), np.delete(expected, 7, axis=0))
    assert_array_equal(found[7], [*np.nanmedian(expected, axis=0), 1])


def test_texts_have_the_features_of_scikit_learn() -> None:
    words = pd.Series([f"one {k} two {k % 7} three {k % 5}" for k in range(90)], dtype="str")
    encoder = encoders.Texts.fit("said", words, 0)
    steps = encoders._hasher(encoder.pieces), TfidfTransformer(), TruncatedSVD(30, random_state=0)
    expected = make_pipeline(*steps).fit(words).transform(words).astype(np.float32)
    found = np.zeros((90, len(encoder.names)), np.float32)
    encoder.encode(words, found)
    assert_array_equal(found, expected[:, : len(encoder.names)])


@pytest.mark.parametrize(
    ("damaged", "said"),
    [
        (lambda: encoders.Dates("at", None, True, [0.0] * 5, False), "the medians of column 'at' do not fit its parts"),
        (lambda: encoders.Texts("said", True, np.ones(3), np.ones((2, 3))), "column 'said' do not fit its buckets"),
    ],
)
def test_encoders_that_cannot_be_are_refused(damaged: Callable[[], object], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        damaged()


def test_a_csv_in_other_batches_gives_the_same_features(tmp_path: Path, fitted: Vectorizer) -> None:
    frame = mixed().drop(columns="lasted")
    source = open_source(written(tmp_path / "a.csv", frame))
    vectorizer = fit_vectorizer(source.read())
    assert vectorizer.columns == {name: kind for name, kind in fitted.columns.items() if name != "lasted"}
    features = np.concatenate([vectorizer.transform(batch) for batch in source.batches(77)])
    assert_array_equal(features, vectorizer.transform(source.read()))


# -------------------------------------------------------------------------------------------------------- writing

missing = st.none()
COLUMNS = {
    "Int64": st.lists(missing | st.integers(-(2**63), 2**63 - 1), min_size=4, max_size=4),
    "float64": st.lists(missing | st.floats(allow_nan=False, allow_infinity=False), min_size=4, max_size=4),
    "boolean": st.lists(missing | st.booleans(), min_size=4, max_size=4),
    "str": st.lists(missing | st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=4, max_size=4),
    "datetime64[us]": st.lists(
        missing | st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)), min_size=4, max_size=4
    ),
}


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    kinds = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=4))
    return pd.DataFrame({f"c{number}": pd.Series(draw(COLUMNS[kind]), dtype=kind) for number, kind in enumerate(kinds)})


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".arrow"])
@settings(max_examples=20)
@given(frame=frames())
def test_what_is_written_is_read(suffix: str, frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("f") / f"a{suffix}"
    with open_writer(path) as writer:
        writer.write(frame.head(1))
        writer.write(frame.tail(3))
    assert_frame_equal(open_source(path).read(), frame)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
@settings(max_examples=30)
@given(frame=frames())
def test_what_is_written_as_csv_is_read(
    suffix: str, frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for name in frame.columns[frame.dtypes == STR]:  # text that spells something else is read as what it spells
        frame[name] = "→ " + frame[name]
    path = tmp_path_factory.mktemp("f") / f"a{suffix}"
    with open_writer(path) as writer:
        writer.write(frame.head(1))
        writer.write(frame.tail(3))
    if frame.isna().all(axis=None) and len(frame.columns) == 1:
        with pytest.raises(InvalidInput, match="a header, but no rows"):
            open_source(path)
        return
    found = open_source(path).read()
    for name in frame:
        if frame[name].isna().all():
            assert found[name].isna().all()
            assert found[name].dtype == STR
        elif frame[name].dtype == np.float64:
            assert found[name].dtype in (np.float64, pd.Int64Dtype())
            assert_array_equal(found[name].to_numpy(np.float64, na_value=np.nan), frame[name].to_numpy())
        else:
            assert_frame_equal(found[[name]], frame[[name]])


writers = pytest.mark.parametrize("suffix", SINKS)


@writers
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_interrupted_writer_leaves_the_old_file(suffix: str, error: type[BaseException], tmp_path: Path) -> None:
    path = text(tmp_path / f"a{suffix}", "old")

    def work() -> None:
        with open_writer(path) as writer:
            writer.write(example())
            assert len(os.listdir(tmp_path)) == 2
            raise error

    with pytest.raises(error):
        work()
    assert os.listdir(tmp_path) == [path.name]
    assert path.read_text() == "old"


@writers
def test_a_finished_writer_replaces_the_old_file(suffix: str, tmp_path: Path) -> None:
    path = text(tmp_path / f"a{suffix}", "old")
    with open_writer(path) as writer:
        writer.write(example())
        assert path.read_text() == "old"
    assert os.listdir(tmp_path) == [path.name]
    assert_frame_equal(open_source(path).read(), example())


@pytest.fixture
def little_space() -> Iterator[None]:
    """No file may grow beyond 4 KB, which the system reports as it does a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@writers
@pytest.mark.usefixtures("little_space")
def test_no_space(suffix: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": np.random.default_rng(0).random(20_000)})
    with (
        pytest.raises(InvalidInput, match=rf"a\{suffix} could not be written \(File too large\). Free some space"),
        open_writer(tmp_path / f"a{suffix}") as writer,
    ):
        writer.write(frame)
    assert os.listdir(tmp_path) == []


@writers
def test_a_full_disk_at_the_end(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidInput, match=rf"a\{suffix} could not be written \(No space left on device\)"):
        written(tmp_path / f"a{suffix}", example())
    assert os.listdir(tmp_path) == []


def test_errors_of_others_are_left_alone(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="not about the file") as caught, open_writer(tmp_path / "a.csv"):
        raise OSError("not about the file")
    assert caught.type is OSError


def test_writers_refuse_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"a\.sas: unknown suffix '\.sas'\. Known are \.csv, \.csv\.gz, \.parquet"):
        open_writer(tmp_path / "a.sas")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InvalidInput, match=r"folder\.csv is a folder. Name a file in it"):
        open_writer(tmp_path / "folder.csv")
    with pytest.raises(MissingData, match=r"there is no folder .*nowhere to write a\.csv to. Create it"):
        open_writer(tmp_path / "nowhere" / "a.csv")
    assert os.listdir(tmp_path) == ["folder.csv"]


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([], r"a\.csv was not written: it was given no rows"),
        ([{"a": [1]}, {"b": [1]}], r"begun with columns \['a'\] but goes on with \['b'\]"),
        ([{"a": [1]}, {"a": ["x"]}], r"a\.csv cannot hold these rows"),
        ([{"a": [[1, 2]]}], r"a\.csv cannot hold these rows"),
    ],
)
def test_writers_refuse_what_does_not_fit(frames: list[dict[str, Any]], message: str, tmp_path: Path) -> None:
    def work() -> None:
        with open_writer(tmp_path / "a.csv") as writer:
            for frame in frames:
                writer.write(pd.DataFrame(frame))

    with pytest.raises(InvalidInput, match=message):
        work()
    assert os.listdir(tmp_path) == []


def test_the_same_rows_give_the_same_zipped_bytes(tmp_path: Path) -> None:
    first, second = (written(tmp_path / f"{name}.csv.gz", example()).read_bytes() for name in "ab")
    assert first == second
