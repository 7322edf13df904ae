"""Malformed tables, options and models by the thousand: each ends in a named error or a result, never a traceback.

Reading, checking and writing are real; training is replaced by a logistic regression (`quick`), for most of what is
wrong must be found before.
"""

from __future__ import annotations

import gzip
import io
import random
import shutil
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import typer
from PIL import Image
from pyarrow import feather, parquet
from test_persistence import mutate, rewrite, tree_of

import pue
import pue.app.cli
from pue.app import compare as comparing
from pue.app import fit_source
from pue.app import preparation as preparing
from pue.app.classifiers import make_classifier
from pue.app.compare import Result
from pue.app.model import PUModel
from pue.app.preparation import Basis
from pue.app.recipe import Recipe
from pue.app.rows import Rows
from pue.core.machine import one_thread
from pue.errors import PueError
from pue.judging.calibration import Sigmoid

CASES = {
    "csv": 420,
    "parquet and feather": 240,
    "numpy": 120,
    "labels": 110,
    "images": 40,
    "options": 330,
    "models": 700,
    "manifests": 80,
}


def test_there_are_enough_cases() -> None:
    assert sum(CASES.values()) >= 2000


def base(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    y = np.arange(n) % 5 < 3
    return pd.DataFrame(
        {
            "id": [f"r{number}" for number in range(n)],
            "a": np.round(rng.normal(size=n) + 2 * y, 3),
            "b": np.where(np.arange(n) % 7 == 0, np.nan, np.arange(n) % 11),
            "c": np.where(np.arange(n) % 3 == 0, "red", "blue"),
            "d": [f"2024-01-{1 + number % 28:02}" for number in range(n)],
            "s": (np.arange(n) % 5 == 0).astype(int),
        }
    )


FEATURES = ["--label", "s", "--id", "id"]
PLAIN = ["--prior", "0.6", "--propensity", "none"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A true model of the table above."""
    folder = tmp_path_factory.mktemp("fuzz")
    base().to_csv(folder / "t.csv", index=False)
    with pytest.raises(SystemExit) as end:
        pue.app.cli.main(
            ["fit", str(folder / "t.csv"), *FEATURES, *PLAIN, "--method", "logistic", "-q", "-o", str(folder / "m")]
        )
    assert not end.value.code
    return folder / "m"


@pytest.fixture
def place(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to work in, with cheap training and a command line that is built once."""
    command = typer.main.get_command(pue.app.cli.app)
    monkeypatch.setattr(pue.app.cli, "app", lambda arguments, prog_name: command(arguments, prog_name=prog_name))
    template, prepared = pue.load(model), preparing.prepare

    def quick(rows: Rows, recipe: Recipe, *, facts: dict[str, Any], audit: Any, say: Any) -> PUModel:
        classifier = make_classifier("logistic", seed=0, prior=0.99, folds=1).fit(rows.data.x, rows.data.labels)
        shape = tuple(rows.data.x.shape[1:]) if rows.vectorizer is None else None
        return PUModel(
            *(classifier, Sigmoid(1.0, 0.0), 0.5, "given", template.held_out, rows.vectorizer, None, shape, facts),
            {**template.summary, "curve": [], "null": []},
        )

    def prepare(rows: Rows, recipe: Recipe, say: Any = None) -> Basis:
        return prepared(rows, replace(recipe, propensity=None, prior=0.99))

    monkeypatch.setattr(fit_source, "fit_model", quick)
    monkeypatch.setattr(preparing, "prepare", prepare)
    monkeypatch.setattr(comparing, "prepare", prepare)
    monkeypatch.setattr(comparing, "_judge", lambda candidate, *_: Result(str(candidate), 0.0, {}, failed="not tried"))
    folder = tmp_path / "deep" / "place"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    with one_thread():
        yield folder


def end(*arguments: object) -> int:
    """The exit code of a command that ends as it should: anything but a result or a named error fails the test."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stopped:
        pue.app.cli.main([str(argument) for argument in arguments])
    code = stopped.value.code or 0
    assert code in (0, 2), (arguments, err.getvalue())
    if code:
        said = err.getvalue().splitlines()
        assert any(line.startswith("pue: ") or "Usage: pue" in line for line in said), (arguments, err.getvalue())
    return int(code)


def try_table(rng: random.Random, path: Path, model: Path, place: Path) -> int:
    """One of the commands on one table; whatever it says, it leaves a whole result or none."""
    kind = rng.choice(["fit", "fit", "predict", "predict", "evaluate", "diagnose", "compare"])
    names = rng.choice([FEATURES, ["--label", "s"], ["--label", "s", "--ignore", "id"]])
    if kind == "fit":
        code = end("fit", path, *names, *PLAIN, "-o", place / "out")
        assert (place / "out").exists() == (code == 0)
    elif kind == "predict":
        more = rng.choice([[], ["--posterior"], ["--budget", 5], ["--id", "id"]])
        code = end("predict", model, path, "-o", place / "out.csv", *more)
        assert (place / "out.csv").exists() == (code == 0)
    elif kind == "evaluate":
        code = end("evaluate", model, path, *rng.choice([[], ["--truth", "s"], ["--label", "s", "--truth", "a"]]))
    elif kind == "diagnose":
        code = end("diagnose", path, *names, *PLAIN, "-o", place / "out.html")
        assert (place / "out.html").exists() == (code == 0)
    else:
        code = end("compare", path, *names, *PLAIN, "--candidates", "logistic", "--out", place / "out")
    for left in place.iterdir():
        if left.name in ("out", "out.csv", "out.html"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    assert not list(place.rglob(".*")), "something half-written is left"
    return code


# ------------------------------------------------------------------------------------------------ tables

CELLS = [
    *("", " ", "NA", "nan", "inf", "-inf", "1e400", "-0", "1e-320", "9" * 40, "0x1f", "1,5", "1_000", "TRUE", "maybe"),
    *("2024-02-30", "1/2/3", "12:30", "2024-01-01T00:00:00+25:00", "\x00", "\ufeff", "é", "💥", "\u202e", "a\nb"),
    *('"', '""', '"open', "'", ";", "\t", "=1+1", "<script>", "[bold]", "{0}", "%s", "x" * 5000, "\\", "-1", "0", "1"),
]


def spoilt(rng: random.Random, data: bytes) -> bytes:
    """Bytes flipped, cut, doubled, moved or put in between."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(data) + 1)
        to = min(len(data), at + rng.choice([1, 2, 10, 200]))
        match rng.choice(["flip", "cut", "end", "double", "insert"]):
            case "flip":
                data[at:to] = bytes(rng.randrange(256) for _ in range(to - at))
            case "cut":
                del data[at:to]
            case "end":
                del data[at:]
            case "double":
                data[at:at] = data[at:to]
            case "insert":
                data[at:at] = rng.choice([b"\x00", b"\xff\xfe", b"\r", b'"', b",", b"\n", b"\x1a", rng.randbytes(9)])
    return bytes(data)


def spoilt_cells(rng: random.Random, frame: pd.DataFrame) -> bytes:
    """A CSV in which cells, columns or names are not what they were."""
    rows = [list(frame.columns), *frame.astype(object).where(frame.notna(), "").to_numpy().tolist()]
    for _ in range(rng.choice([1, 2, 6])):
        column, junk = rng.randrange(len(rows[0])), rng.choice(CELLS)
        match rng.choice(["cell", "cell", "column", "name", "drop", "copy", "short", "long", "rows", "none"]):
            case "cell":
                rng.choice(rows[1:])[column % 4] = junk
            case "column":
                for row in rows[1:]:
                    row[min(column, len(row) - 1)] = rng.choice([junk, junk, row[0]])
            case "name":
                rows[0][column] = rng.choice([junk, rows[0][0]])
            case "drop" if len(rows[0]) > 1:
                rows = [row[:column] + row[column + 1 :] for row in rows]
            case "copy":
                rows = [[*row, row[min(column, len(row) - 1)]] for row in rows]
            case "short":
                rng.choice(rows)[1:] = []
            case "long":
                rng.choice(rows).append(junk)
            case "rows":
                rows = [rows[0], *rows[1:][: rng.choice([0, 1, 2, 3])]]
        if min(map(len, rows)) < len(rows[0]) or len(rows) == 1:
            break
    quoted = rng.random() < 0.7
    lines = [",".join(f'"{cell}"' if quoted and "," in str(cell) else str(cell) for cell in row) for row in rows]
    return rng.choice(["\n", "\n", "\r\n", "\r"]).join(lines).encode()


def test_csv(place: Path, model: Path) -> None:
    whole = base().to_csv(index=False).encode()
    codes = []
    for seed in range(CASES["csv"]):
        rng = random.Random(seed)
        data = spoilt_cells(rng, base()) if rng.random() < 0.6 else spoilt(rng, whole)
        path = place / rng.choice(["t.csv", "t.csv", "t.csv", "t.tsv", "t.csv.gz"])
        if path.suffix == ".gz":
            data = spoilt(rng, gzip.compress(whole)) if rng.random() < 0.5 else gzip.compress(data)
        path.write_bytes(data)
        codes.append(try_table(rng, path, model, place))
        path.unlink()
    assert 0.05 < np.mean([code == 0 for code in codes]) < 0.6, "some are harmless, most are not"


def arrays(rng: random.Random, n: int) -> Iterator[tuple[str, pa.Array]]:
    """Columns of any type with any name."""
    names = ["a", "b", "c", "d", "id", "s", "s", "", " ", "é\n", "x" * 300, "__index_level_0__", "row", "score"]
    makers: list[Any] = [
        lambda: pa.array([rng.choice([0, 1, None]) for _ in range(n)]),
        lambda: pa.array([rng.choice([0, 1]) for _ in range(n)], pa.int8()),
        lambda: pa.array([rng.choice([True, False, None]) for _ in range(n)]),
        lambda: pa.array([rng.gauss(0, 1) for _ in range(n)], rng.choice([pa.float32(), pa.float64()])),
        lambda: pa.array([rng.choice([1e308, -1e308, float("inf"), float("nan"), 0.0]) for _ in range(n)]),
        lambda: pa.array(np.array([rng.gauss(0, 1) for _ in range(n)], np.float16)),
        lambda: pa.array([rng.choice([2**63 - 1, -(2**63), 0]) for _ in range(n)], pa.int64()),
        lambda: pa.array([rng.choice([2**64 - 1, 0]) for _ in range(n)], pa.uint64()),
        lambda: pa.array([rng.choice(CELLS) for _ in range(n)]),
        lambda: pa.array([rng.choice(["red", "blue", None]) for _ in range(n)]).dictionary_encode(),
        lambda: pa.array([f"w{rng.random()}" for _ in range(n)], pa.large_string()),
        lambda: pa.array([rng.choice([[1], [], None]) for _ in range(n)], pa.list_(pa.int64())),
        lambda: pa.array([{"k": 1} for _ in range(n)]),
        lambda: pa.array([b"\xff" for _ in range(n)]),
        lambda: pa.array([None] * n),
        lambda: pa.array([rng.choice([Decimal("1.5"), None]) for _ in range(n)], pa.decimal128(9, 2)),
        lambda: pa.array([rng.choice([date(1, 1, 1), date(9999, 12, 31), None]) for _ in range(n)]),
        lambda: pa.array([datetime(2024, 1, rng.randrange(1, 28)) for _ in range(n)], pa.timestamp("ns", "UTC")),
        lambda: pa.array([rng.randrange(10**9) for _ in range(n)], pa.duration("us")),
        lambda: pa.array([rng.randrange(10**6) for _ in range(n)], pa.time32("ms")),
    ]
    for _ in range(rng.randrange(0, 6)):
        yield rng.choice(names), rng.choice(makers)()


def test_parquet_and_feather(place: Path, model: Path) -> None:
    codes = []
    for seed in range(CASES["parquet and feather"]):
        rng = random.Random(seed)
        path = place / rng.choice(["t.parquet", "t.feather"])
        fields = list(arrays(rng, rng.choice([0, 1, 2, 40, 40, 40])))
        if rng.random() < 0.6:  # one column of a good table is another
            good = pa.Table.from_pandas(base(), preserve_index=False)
            name, column = next(arrays(random.Random(seed + 10**6), 40), ("a", pa.array([1.0] * 40)))
            fields = [
                (field, column if field == name else good.column(field).combine_chunks()) for field in good.column_names
            ]
        names, columns = [name for name, _ in fields], [column for _, column in fields]
        table = pa.Table.from_arrays(columns, names=names)
        try:
            parquet.write_table(table, path) if path.suffix == ".parquet" else feather.write_feather(table, path)
        except (pa.ArrowException, ValueError):  # Feather and Parquet do not take everything
            parquet.write_table(pa.table({"a": [1.0]}), path)
        if rng.random() < 0.3:
            path.write_bytes(spoilt(rng, path.read_bytes()))
        codes.append(try_table(rng, path, model, place))
        path.unlink()
    assert 0.02 < np.mean([code == 0 for code in codes]) < 0.7


def array(rng: random.Random, generator: np.random.Generator) -> Any:
    """Zeros and ones of any type and shape."""
    shapes: list[tuple[int, ...]] = [(), (0,), (40,), (40, 2), (40, 2), (40, 1), (39, 2), (40, 4, 4), (40, 1, 4, 4)]
    kind = rng.choice(["f4", "f8", ">f8", "f2", "i1", "u1", "b1", "U3", "O", "c8", "M8[D]", "V4", "i8"])
    values = generator.integers(0, 2, rng.choice(shapes))
    return np.zeros(values.shape, kind) if kind == "V4" else values.astype(kind)


def test_numpy(place: Path, model: Path) -> None:
    for seed in range(CASES["numpy"]):
        rng = random.Random(seed)
        generator = np.random.default_rng(seed)
        path = place / rng.choice(["t.npz", "t.npz", "t.npy"])
        if path.suffix == ".npy":
            np.save(path, array(rng, generator), allow_pickle=True)
        else:
            parts = {name: array(rng, generator) for name in ("X", "s", "id") if rng.random() < 0.9}
            if rng.random() < 0.5:
                parts |= {"X": generator.normal(size=(40, 3)), "s": generator.integers(0, 2, 40)}
            np.savez(path, **parts)
        if rng.random() < 0.3:
            path.write_bytes(spoilt(rng, path.read_bytes()))
        try_table(rng, path, model, place)
        path.unlink()


def test_labels(place: Path, model: Path) -> None:
    values: list[Any] = [
        0,
        1,
        -1,
        2,
        0.5,
        True,
        False,
        None,
        "yes",
        "no",
        "Positive",
        "unlabeled",
        " 1 ",
        "1.0",
        "+1",
        "ja",
    ]
    codes = []
    for seed in range(CASES["labels"]):
        rng = random.Random(seed)
        some = (
            rng.sample(values, rng.choice([1, 2, 2, 3, 5])) if rng.random() < 0.7 else rng.sample([0, 1, -1, None], 3)
        )
        frame = base().assign(s=pd.Series([rng.choice(some) for _ in range(40)], dtype=object))
        path = place / "t.csv"
        frame.to_csv(path, index=False)
        how = rng.choice([FEATURES, [*FEATURES, "--scenario", "case_control"]])
        code = end("fit", path, *how, *PLAIN, "--force", "-o", place / "out")
        if code == 0:
            marks = frame["s"].map(lambda value: str(value).strip().casefold())
            assert marks.isin({"1", "1.0", "true", "yes", "positive", "+1"}).any()
            assert not marks.isin({"2", "0.5", "ja"}).any()
        codes.append(code)
        if rng.random() < 0.3:
            end("evaluate", model, path, "--truth", "s")
        shutil.rmtree(place / "out", ignore_errors=True)
    assert 0.1 < np.mean([code == 0 for code in codes]) < 0.9


def test_images(place: Path, model: Path) -> None:
    buffer = io.BytesIO()
    Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8)).save(buffer, "PNG")
    good = buffer.getvalue()
    for seed in range(CASES["images"]):
        rng = random.Random(seed)
        folder = place / "scans"
        folder.mkdir()
        names = [f"{number}.{rng.choice(['png', 'png', 'png', 'jpg', 'txt'])}" for number in range(6)]
        for name in names:
            (folder / name).write_bytes(spoilt(rng, good) if rng.random() < 0.1 else good)
        frame = pd.DataFrame({rng.choice(["file", "file", "name"]): names, "s": [1, 0, 1, 0, 0, 0]})
        table = frame.to_csv(index=False).encode()
        (folder / "labels.csv").write_bytes(spoilt(rng, table) if rng.random() < 0.3 else table)
        more = rng.choice([[], [], ["--image-size", 5], ["--labels", folder / "labels.csv"], ["--labels", folder]])
        code = end("fit", folder, "--label", "s", *PLAIN, *more, "-o", place / "out")
        if code == 0:
            end("predict", place / "out", folder, "-o", place / "scores.csv", *rng.choice([[], more]))
        end("predict", model, folder, "-o", place / "scores.csv")
        shutil.rmtree(folder)
        shutil.rmtree(place / "out", ignore_errors=True)


# ----------------------------------------------------------------------------------------------- options

STRINGS = [
    *("", " ", "nan", "inf", "-1", "0", "1", "0.5", "1e999", "9" * 25, "é", "\n", "--", "-o", "none", "auto", "f1"),
    *("half", "prior", "column:", "column:a", "column:s", "a", "b", "s", "id", "zzz", "[bold]", "%s", "💥", "true"),
    *(
        "t.csv",
        "m",
        "out",
        "out.html",
        "out.csv",
        "../out.csv",
        "no/out.csv",
        "\udce9",
        "estimate",
        "elkan_noto",
        "x" * 300,
    ),
    *("single_sample", "case_control", "logistic", "nnpu+auto", "logistic,naive", "auc", "1,2", "None", "~", "*"),
]
OPTIONS = {
    "fit": ["--prior", "--method", "--propensity", "--id", "--ignore", "--truth", "--scenario", "--threshold", "--jobs",
            "--target-precision", "--calibration", "--epochs", "--labels", "--image-size", "--seed", "--label", "-o"],
    "diagnose": ["--prior", "--propensity", "--id", "--ignore", "--truth", "--scenario", "--seed", "--label", "-o"],
    "compare": ["--candidates", "--by", "--out", "--fit", "--prior", "--propensity", "--folds", "--jobs", "--label"],
    "predict": ["--id", "--threshold", "--target-precision", "--budget", "--labels", "--image-size", "-o"],
    "evaluate": ["--label", "--truth", "--level", "--seed", "--labels", "--image-size"],
    "inspect": ["--json"],
    "report": ["-o", "--images"],
}  # fmt: skip


GOOD = {
    "--prior": ["0.6", "estimate"],
    "--method": ["upu", "boosting"],
    "--propensity": ["auto", "none", "lbe"],
    "--id": ["id"],
    "--ignore": ["b"],
    "--truth": ["s", "b"],
    "--threshold": ["half", "0.2"],
    "--seed": ["3"],
    "--jobs": ["2"],
    "--epochs": ["7"],
    "--target-precision": ["0.3"],
    "--calibration": ["isotonic"],
    "--candidates": ["upu,nnpu+auto"],
    "--by": ["f1"],
    "--out": ["out"],
    "--folds": ["3"],
    "--budget": ["3"],
    "--level": ["0.8"],
    "-o": ["out.html", "out.csv"],
}


def test_options(place: Path, model: Path) -> None:
    codes = []
    for seed in range(CASES["options"]):
        rng = random.Random(seed)
        base().to_csv(place / "t.csv", index=False)
        if not (place / "m").exists():
            shutil.copytree(model, place / "m")
        command = rng.choice([name for name in OPTIONS for _ in OPTIONS[name]])
        arguments: list[str] = [command]
        if command in ("predict", "evaluate", "inspect", "report"):
            arguments.append(rng.choice(["m"] * 20 + STRINGS[:8] + ["t.csv"]))
        if command not in ("inspect", "report"):
            arguments.append(rng.choice(["t.csv"] * 60 + STRINGS))
        if command in ("fit", "diagnose", "compare"):
            arguments += ["--label", "s"]
        if command in ("fit", "predict"):
            arguments += ["-o", {"fit": "out", "predict": "out.csv"}[command]]
        for option in rng.sample(OPTIONS[command], min(len(OPTIONS[command]), rng.choice([1, 1, 2, 4]))):
            arguments += [option, rng.choice(GOOD[option] if option in GOOD and rng.random() < 0.6 else STRINGS)]
        codes.append(
            end(*arguments, *rng.choice([[], ["--quiet"], ["--json"]])) if command != "report" else end(*arguments)
        )
        for left in place.iterdir():
            if left.name != "m":
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        if rng.random() < 0.1:
            shutil.rmtree(place / "m", ignore_errors=True)
    assert 0.05 < np.mean([code == 0 for code in codes]) < 0.6


# ------------------------------------------------------------------------------------------------ models


def loads(folder: Path) -> bool:
    """Whether `pue.load` takes it; anything but an error of ours fails the test."""
    try:
        pue.load(folder)
    except PueError:
        return False
    return True


def test_models(place: Path, model: Path) -> None:
    """Their manifests vouch for every change, so that what is read is what was changed."""
    folder = place / "m"
    small = pue.load(model)
    small.summary.update(curve=small.summary["curve"][:3], scores=None, calibration=None)
    small.save(folder)
    tree = tree_of(folder)
    fields = tree["value"]
    data = {path.name: path.read_bytes() for path in folder.iterdir()}
    taken = shown = 0
    for seed in range(CASES["models"]):
        rng = random.Random(seed)
        match rng.choice(["field", "field", "summary", "summary", "tree", "tensors", "text"]):
            case "field":
                name = rng.choice(list(fields))
                rewrite(folder, tree={**tree, "value": {**fields, name: mutate(fields[name], rng)}})
            case "summary":
                part = rng.choice(["metrics", "data", "prior", "method", "drivers", "threshold", "warnings", "scar"])
                inner = fields["summary"]["value"]
                change = {**fields["summary"], "value": {**inner, part: mutate(inner[part], rng)}}
                rewrite(folder, tree={**tree, "value": {**fields, "summary": change}})
            case "tree":
                rewrite(folder, tree=mutate(tree, rng))
            case "tensors":
                rewrite(folder, tensors=spoilt(rng, data["tensors.safetensors"]))
            case "text":
                rewrite(folder, tree=spoilt(rng, data["model.json"]))
        if seed % 2:
            taken += loads(folder)
        else:
            code = end("inspect", folder, *rng.choice([[], [], ["--json"]]))
            shown += code == 0
            if code == 0 and rng.random() < 0.5:
                end("report", folder, "-o", place / "page.html")
        for name, content in data.items():
            (folder / name).write_bytes(content)
    assert 0.02 < shown / CASES["models"] < taken / CASES["models"] < 0.4


def test_manifests_and_folders(place: Path, model: Path) -> None:
    """What nobody vouches for is refused whatever it is."""
    for seed in range(CASES["manifests"]):
        rng = random.Random(seed)
        folder = place / "m"
        shutil.copytree(model, folder)
        file = rng.choice(sorted(folder.iterdir()))
        match rng.choice(["spoil", "spoil", "remove", "empty", "link", "more", "folder"]):
            case "spoil":
                before = file.read_bytes()
                while (after := spoilt(rng, before)) == before:
                    pass
                file.write_bytes(after)
            case "remove":
                file.unlink()
            case "empty":
                file.write_bytes(b"")
            case "link":
                file.unlink()
                file.symlink_to(model / file.name)
            case "more":
                (folder / rng.choice(["x", ".x", "more.json"])).write_bytes(b"x")
            case "folder":
                file.unlink()
                file.mkdir()
        taken = loads(folder)
        assert not taken or file.name == "manifest.json"
        assert (end("inspect", folder) == 0) == taken
        shutil.rmtree(folder)
