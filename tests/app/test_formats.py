"""Files as people have them: semicolons and decimal commas, JSON lines, compressed ones, sheets, pipes, partitions."""

from __future__ import annotations

import bz2
import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal
from pyarrow import parquet

from pue.app.cli import main
from pue.app.model import load_model
from pue.app.sources.opening import open_source
from pue.app.sources.standard_input import spooled
from pue.errors import InvalidInput, MissingExtra, PueWarning

PLAIN = pd.DataFrame({"a": [1, 2, 3], "b": [1.5, -2.25, 1000.0], "c": ["x", "y, z", "ä"]})


def text(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def same(found: pd.DataFrame, wanted: pd.DataFrame = PLAIN) -> None:
    assert_frame_equal(found, wanted, check_dtype=False)


@pytest.mark.parametrize(
    ("suffix", "mark", "point", "said"),
    [
        (".csv", ";", ",", "separated by ';', and its numbers have decimal commas"),
        (".csv", ";", ".", "separated by ';'."),
        (".csv", "\t", ",", r"separated by '\t', and its numbers have decimal commas"),
        (".csv", "|", ".", "separated by '|'."),
        (".tsv", ";", ",", "separated by ';', and its numbers have decimal commas"),
        (".tsv", "\t", ",", r"separated by '\t', and its numbers have decimal commas"),
    ],
)
def test_separators_and_decimal_commas_are_seen_and_said(
    tmp_path: Path, suffix: str, mark: str, point: str, said: str
) -> None:
    PLAIN.to_csv(tmp_path / f"t{suffix}", sep=mark, decimal=point, index=False)
    with pytest.warns(PueWarning) as caught:
        source = open_source(tmp_path / f"t{suffix}")
    assert said in str(caught[0].message)
    same(source.read())


@pytest.mark.parametrize("content", ["a,b\n1,2\n", "name\nx;y\n", 'a,"b;c"\n1,2\n', "a\n1\n"])
def test_what_is_as_usual_is_read_in_silence(tmp_path: Path, content: str) -> None:
    same(open_source(text(tmp_path / "t.csv", content)).read(), pd.read_csv(io.StringIO(content)))


def test_commas_in_words_are_no_decimal_commas(tmp_path: Path) -> None:
    with pytest.warns(PueWarning, match=r"separated by ';'\.$"):
        found = open_source(text(tmp_path / "t.csv", "a;b\n1,5;x\nn,1;y\n")).read()
    assert found["a"].tolist() == ["1,5", "n,1"]


@pytest.mark.parametrize("suffix", [".csv.gz", ".csv.bz2", ".csv.zst", ".jsonl", ".ndjson.gz", ".jsonl.bz2"])
def test_compressed_files_and_json_lines(tmp_path: Path, suffix: str) -> None:
    plain = PLAIN.to_csv(index=False) if ".csv" in suffix else PLAIN.to_json(orient="records", lines=True)
    raw, path = plain.encode(), tmp_path / f"t{suffix}"
    packed = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": lambda raw: pa.compress(raw, "zstd", asbytes=True)}
    path.write_bytes(packed.get(path.suffix, bytes)(raw))
    same(open_source(path).read())


def test_json_lines_keep_gaps_and_refuse_what_is_none(tmp_path: Path) -> None:
    source = open_source(text(tmp_path / "t.jsonl", '{"a": 1, "b": "x"}\n{"a": null}\n{"b": "y", "a": 3}\n'))
    assert source.n_rows == 3
    assert source.read()["b"].isna().tolist() == [False, True, False]
    assert source.between(1, 3).read()["a"].tolist()[1] == 3
    with pytest.raises(InvalidInput, match=r"t\.jsonl does not parse as JSON lines"):
        open_source(text(tmp_path / "t.jsonl", '{"a": 1}\n{"a": [2'))


def sheet(path: Path, rows: list[list[object]], sheets: int = 1) -> Path:
    """A small xlsx file, written by hand."""

    def cell(value: object) -> str:
        if value is None:
            return "<c/>"
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
        return f"<c><v>{value}</v></c>"

    body = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
    name = "http://schemas.openxmlformats.org"
    main_name, relations = f"{name}/spreadsheetml/2006/main", f"{name}/officeDocument/2006/relationships"
    numbers = range(1, sheets + 1)
    with zipfile.ZipFile(path, "w") as book:
        types = "".join(
            f'<Override PartName="/xl/worksheets/sheet{k}.xml" ContentType="application/vnd.openxmlformats-office'
            'document.spreadsheetml.worksheet+xml"/>'
            for k in numbers
        )
        book.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{name}/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.'
            'openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="application/'
            f'vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>{types}</Types>',
        )
        book.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{name}/package/2006/relationships"><Relationship Id="r1" Type="{relations}/'
            'officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        listed = "".join(f'<sheet name="sheet {k}" sheetId="{k}" r:id="r{k}"/>' for k in numbers)
        book.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{main_name}" xmlns:r="{relations}"><sheets>{listed}</sheets></workbook>',
        )
        links = "".join(
            f'<Relationship Id="r{k}" Type="{relations}/worksheet" Target="worksheets/sheet{k}.xml"/>' for k in numbers
        )
        book.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{name}/package/2006/relationships">{links}</Relationships>',
        )
        for k in numbers:
            page = f'<worksheet xmlns="{main_name}"><sheetData>{body}</sheetData></worksheet>'
            book.writestr(f"xl/worksheets/sheet{k}.xml", page)
    return path


def test_a_sheet_is_read(tmp_path: Path) -> None:
    rows: list[list[object]] = [["a", "b", "c"], *PLAIN.astype(object).to_numpy().tolist()]
    same(open_source(sheet(tmp_path / "t.xlsx", rows)).read())
    with pytest.warns(PueWarning, match=r"t\.xlsx has 2 sheets; the first, 'sheet 1', is read"):
        same(open_source(sheet(tmp_path / "t.xlsx", rows, sheets=2)).read())
    mixed = open_source(sheet(tmp_path / "m.xlsx", [["a", "b"], [1, "x"], ["y", None], [2.5, "z"]])).read()
    assert mixed["a"].tolist() == ["1", "y", "2.5"]
    assert mixed["b"].isna().tolist() == [False, True, False]
    with pytest.raises(InvalidInput, match=r"column 2 of .* has no name"):
        open_source(sheet(tmp_path / "n.xlsx", [["a", None], [1, 2]]))
    with pytest.raises(InvalidInput, match=r"broken\.xlsx cannot be read as a sheet .* or as CSV"):
        open_source(text(tmp_path / "broken.xlsx", "no sheet"))


def test_a_sheet_needs_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pue.errors.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r'pip install "pue\[excel\]"'):
        open_source(sheet(tmp_path / "t.xlsx", [["a"], [1]]))


def test_an_open_document_sheet_is_read(tmp_path: Path) -> None:
    kinds = {str: "string", int: "float", float: "float"}

    def cell(value: object) -> str:
        number = f' office:value="{value}"' if not isinstance(value, str) else ""
        text = f"<text:p>{value}</text:p>"
        return f'<table:table-cell office:value-type="{kinds[type(value)]}"{number}>{text}</table:table-cell>'

    rows: list[list[object]] = [["a", "b", "c"], *PLAIN.astype(object).to_numpy().tolist()]
    body = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
    name = "urn:oasis:names:tc:opendocument:xmlns"
    spaces = " ".join(f'xmlns:{kind}="{name}:{kind}:1.0"' for kind in ("office", "table", "text"))
    with zipfile.ZipFile(tmp_path / "t.ods", "w") as book:
        book.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        book.writestr("META-INF/manifest.xml", f'<manifest:manifest xmlns:manifest="{name}:manifest:1.0"/>')
        book.writestr(
            "content.xml",
            f"<office:document-content {spaces}><office:body><office:spreadsheet><table:table table:name='rows'>{body}"
            "</table:table></office:spreadsheet></office:body></office:document-content>",
        )
    same(open_source(tmp_path / "t.ods").read())


def test_partitions_become_columns(tmp_path: Path) -> None:
    for year, region in ((2023, "north"), (2024, "north"), (2024, "south")):
        folder = tmp_path / "rows" / f"year={year}" / f"region={region}"
        folder.mkdir(parents=True)
        parquet.write_table(pa.table({"x": [year + 0.5, 1.0], "s": [1, 0]}), folder / "part.parquet")
    source = open_source(tmp_path / "rows")
    assert source.columns == ("x", "s", "year", "region")
    assert source.n_rows == 6
    found = source.read()
    assert found["year"].tolist() == [2023, 2023, 2024, 2024, 2024, 2024]
    assert found["region"].tolist() == ["north"] * 4 + ["south"] * 2
    assert [len(frame) for frame in source.batches(4, columns=["region"])] == [4, 2]
    assert [piece.n_rows for piece in source.pieces] == [2, 2, 2]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("content", "suffix"), [(b"a,b\n1,2\n", ".csv"), (b'{"a": 1}\n', ".jsonl"), (b"PAR1", ".parquet")]
)
def test_standard_input_becomes_a_file_of_its_kind(content: bytes, suffix: str) -> None:
    path = spooled(io.BytesIO(content))
    assert (path.name, path.read_bytes()) == (f"stdin{suffix}", content)
    with pytest.raises(InvalidInput, match="nothing came in on standard input"):
        spooled(io.BytesIO(b""))


def test_rows_come_and_go_through_pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.4
    frame = pd.DataFrame({"a": rng.normal(size=200) + 2 * y, "s": (y & (rng.random(200) < 0.5)).astype(int)})
    content = frame.to_csv(index=False, sep=";", decimal=",").encode()

    def run(*arguments: object) -> tuple[bytes, bytes]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        printed = capfdbinary.readouterr()
        assert not end.value.code, printed.err
        return printed.out, printed.err

    how = ["--label", "s", "--prior", "0.4", "--propensity", "none", "--method", "logistic"]
    _, err = run("fit", "-", *how, "-o", tmp_path / "model", "--quiet")
    assert b"decimal commas" not in err, "quiet is quiet"
    out, err = run("predict", tmp_path / "model", "-", "-o", "-")
    assert list(pd.read_csv(io.BytesIO(out)).columns) == ["row", "probability", "positive"]
    assert b"200 rows scored" in err
    assert b"note: cells of stdin.csv are separated by ';', and its numbers have decimal commas" in err
    with pytest.raises(SystemExit):
        main(["predict", str(tmp_path / "model"), "-", "-o", "-", "--json"])
    assert b"cannot both go to standard output" in capfdbinary.readouterr().err


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_labels_may_be_words(tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.4
    s = y & (rng.random(200) < 0.5)
    words = np.where(s, " fraud", np.where(rng.random(200) < 0.5, "open", None))
    frame = pd.DataFrame({"a": rng.normal(size=200) + 2 * y, "state": words})
    path = tmp_path / f"t{suffix}"
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    how = ["--prior", "0.4", "--propensity", "none", "--method", "logistic", "-o", str(tmp_path / "model"), "--quiet"]
    for extra, code in (([], 2), (["--positive", "fraud"], 0)):
        with pytest.raises(SystemExit) as end:
            main(["fit", str(path), "--label", "state", *how, *extra])
        assert (end.value.code or 0) == code
    assert "label column 'state' holds" in capsys.readouterr().err
    assert load_model(tmp_path / "model").summary["data"]["n_labeled"] == s.sum()
    with pytest.raises(SystemExit) as end:
        main(["predict", str(tmp_path / "model"), str(path), "-o", str(tmp_path / "s.csv"), "--budget", "9", "--quiet"])
    assert not end.value.code
    assert not pd.read_csv(tmp_path / "s.csv")["positive"][s].any()
