"""Commands that meet tables of every type and options that make no sense."""

from __future__ import annotations

import random
import shutil
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from alterations import NUMBERS, spoilt
from ground import MODELS, Ground, command, table
from pyarrow import csv, feather, parquet

KINDS: list[Callable[[random.Random, int], pa.Array]] = [
    lambda rng, n: pa.array(np.array([rng.choice(NUMBERS) for _ in range(n)], dtype=float)),
    lambda rng, n: pa.array(np.array([rng.choice(NUMBERS) for _ in range(n)]).astype("f4")),
    lambda rng, n: pa.array([None] * n, rng.choice([pa.null(), pa.float32(), pa.string(), pa.timestamp("us")])),
    lambda rng, n: pa.array([None] * n, pa.bool_()),
    lambda rng, n: pa.array([rng.choice([None, -(2**63), 2**63 - 1, 0, 7]) for _ in range(n)], pa.int64()),
    lambda rng, n: pa.array([rng.randrange(2**64) for _ in range(n)], pa.uint64()),
    lambda rng, n: pa.array([rng.choice([None, True, False]) for _ in range(n)], pa.bool_()),
    lambda rng, n: pa.array(["".join(rng.choices(string.printable + "ß€😀", k=rng.randrange(9))) for _ in range(n)]),
    lambda rng, n: pa.array([rng.choice(["red", "blue", "", None, "NA", "1", "-9999", "1e999"]) for _ in range(n)]),
    lambda rng, n: pa.array([rng.randrange(-(2**61), 2**61) for _ in range(n)],
                            pa.timestamp(rng.choice(["s", "ms", "us", "ns"]), rng.choice([None, "UTC", "+05:30"]))),
    lambda rng, n: pa.array([rng.randrange(-(2**30), 2**30) for _ in range(n)], pa.date32()),
    lambda rng, n: pa.array([rng.randrange(-(2**50), 2**50) for _ in range(n)], pa.duration(rng.choice(["s", "ns"]))),
    lambda rng, n: pa.array([rng.randrange(86_400) for _ in range(n)], pa.time32("s")),
    lambda rng, n: pa.array([b"\xff\x00"] * n, pa.binary()),
    lambda rng, n: pa.array([[1, 2]] * n, pa.list_(pa.int8())),
    lambda rng, n: pa.array([{"x": 1}] * n),
    lambda rng, n: pa.array(["a", "b"] * n).slice(0, n).dictionary_encode(),
    lambda rng, n: pa.array([rng.choice([1, None]) for _ in range(n)], pa.decimal128(38, 5)),
    lambda rng, n: pa.array(np.arange(n).astype("f2")),
    lambda rng, n: pa.array([rng.choice([0, 1, 100]) for _ in range(n)], rng.choice(
        [pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32(), pa.decimal256(50, 3)])),
    lambda rng, n: pa.array([rng.choice(["red", "blue", None]) for _ in range(n)],
                            rng.choice([pa.large_string(), pa.string_view()])),
    lambda rng, n: pa.array([rng.randrange(2**40) for _ in range(n)], rng.choice([pa.time64("us"), pa.date64()])),
    lambda rng, n: pa.array([b"1234"] * n, rng.choice([pa.binary(4), pa.large_binary(), pa.binary_view()])),
    lambda rng, n: pa.array([[("k", 1)]] * n, pa.map_(pa.string(), pa.int8())),
    lambda rng, n: pa.array([[1.0, 2.0]] * n, rng.choice([pa.large_list(pa.float64()), pa.list_(pa.float32(), 2)])),
    lambda rng, n: pa.array([(1, 2, 3)] * n, pa.month_day_nano_interval()),
    lambda rng, n: pa.UnionArray.from_sparse(pa.array([0] * n, pa.int8()), [pa.array([1] * n), pa.array(["x"] * n)]),
    lambda rng, n: pa.RunEndEncodedArray.from_arrays(pa.array([n], pa.int32()), pa.array([rng.choice([1.5, None])])),
    lambda rng, n: pa.array([rng.choice([3, 5, None]) for _ in range(n)]).dictionary_encode(),
]  # fmt: skip


def table_case(ground: Ground, rng: random.Random) -> str:
    """Columns of every type under the names a model knows, in every format: refused in words, or finite scores."""
    n = rng.choice([1, 1, 2, 9])
    names = ["a", "b", "c", "d", *rng.choice([[], [], ["e"], ["s"]])]
    path, output = written(ground, strange(table(n).iloc[:, :4], names, 0.4, rng), rng), ground.now / "scores.csv"
    if path is None:
        return "Arrow does not write it"
    output.unlink(missing_ok=True)
    code, said = command(["predict", ground.folder / rng.choice(list(MODELS)), path, "-o", output, "-q"])
    require_words(code, said)
    if code == 2:
        assert not output.exists()
        return "refused"
    scores = pd.read_csv(output)["probability"]
    assert np.isfinite(scores).all(), "scores that are no numbers"
    return "scored"


def training_case(ground: Ground, rng: random.Random) -> str:
    """The same with labels, for commands that learn: refused in words, or a whole model with finite scores."""
    rows = table(rng.choice([3, 30, 60, 60]))
    made = strange(rows, [*rows.columns, *rng.choice([[], ["e"]])], 0.12, rng, spared="s" if rng.random() < 0.8 else "")
    path, model = written(ground, made, rng), ground.now / "fitted"
    if path is None:
        return "Arrow does not write it"
    verb = rng.choice(["fit", "diagnose", "diagnose", "evaluate", "explain", "plan"])
    shutil.rmtree(model, ignore_errors=True)
    known: list[Any] = ["--label", "s", "--prior", "0.5", "--propensity", "none", "-q"]
    given: list[Any] = {
        "fit": ["fit", path, *known, "--method", rng.choice(["logistic", "forest", "blend"]), "-o", model],
        "diagnose": ["diagnose", path, *known],
        "evaluate": ["evaluate", ground.folder / "linear", path, "-q"],
        "explain": ["explain", ground.folder / "linear", path, "-q"],
        "plan": ["audit", "plan", ground.folder / "linear", path, "-n", "9", "-o", ground.now / "new.csv", "-q"],
    }[verb]
    for old in ("new.csv", "new.plan.json"):
        (ground.now / old).unlink(missing_ok=True)
    code, said = command(given)
    require_words(code, said)
    assert verb != "fit" or model.exists() == (code == 0), "a model that is there only in part"
    return f"{verb}, {'refused' if code else 'done'}"


def require_words(code: int, said: str) -> None:
    """A command ends well, or says in words why not."""
    assert code in (0, 2), f"exit {code}: {said[-300:]}"
    assert "Traceback" not in said, said[-300:]
    assert code == 0 or "pue: " in said, said[-300:]


def strange(good: pd.DataFrame, names: list[str], chance: float, rng: random.Random, *, spared: str = "") -> pa.Table:
    """Some columns as they are, and others of any type and content."""
    whole = pa.Table.from_pandas(good, preserve_index=False)
    return pa.table(
        {
            name: rng.choice(KINDS)(rng, len(good))
            if name not in whole.column_names or (name != spared and rng.random() < chance)
            else whole[name].combine_chunks()
            for name in names
        }
    )


def written(ground: Ground, made: pa.Table, rng: random.Random) -> Path | None:
    """The table in a file of some format, one in four spoilt; None where Arrow has no way to write it."""
    suffix = rng.choice([".parquet", ".feather", ".arrow", ".csv", ".tsv", ".jsonl"])
    path = ground.now / f"rows{suffix}"
    try:
        if suffix == ".parquet":
            parquet.write_table(made, path)
        elif suffix in (".csv", ".tsv"):
            csv.write_csv(made, path, csv.WriteOptions(delimiter="," if suffix == ".csv" else "\t"))
            recode(path, rng)
        elif suffix == ".jsonl":
            path.write_text(made.to_pandas().to_json(orient="records", lines=True, date_format="iso"))
            recode(path, rng)
        else:
            feather.write_feather(made, path, compression=rng.choice(["zstd", "lz4", "uncompressed"]))
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError, AttributeError):
        return None
    if rng.random() < 0.25:
        path.write_bytes(spoilt(path.read_bytes(), rng))
    return path


ENCODINGS = ["utf-8"] * 6 + ["utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1252", "latin-1", "shift_jis", "cp037"]


def recode(path: Path, rng: random.Random) -> None:
    """The same text in some encoding, with some ending of its lines."""
    text = path.read_bytes().decode("utf-8", errors="surrogateescape")
    text = text.replace("\n", rng.choice(["\n", "\n", "\r\n", "\r"]))
    path.write_bytes(text.encode(rng.choice(ENCODINGS), errors="replace"))


OPTIONS = ["--label", "--prior", "--method", "--propensity", "--threshold", "--target-precision", "--calibration",
           "--epochs", "--jobs", "--memory", "--engine", "--address", "--workers", "--image-size", "--seed", "--id",
           "--ignore", "--truth", "--scenario", "--nodata", "--labels", "--budget", "--level", "--folds", "--by",
           "--until", "--answers", "--for", "--design", "--after", "--show", "--row", "--top", "--rows", "--images",
           "--audit", "--explain", "--candidates", "--labeling-columns",
           "--ignore-for-labeling", "--seeds", "--preset", "--set"]  # fmt: skip
WORDS = ["", "0", "-1", "1", "nan", "inf", "-inf", "1e400", "9" * 400, "0.5", "s", "a", "a,b", "auto", "none",
         "x" * 3000, "../..", "/", "/dev/null", "column:", "column:a", "\x00", "é", "0-99999999999", "1-", ",",
         "estimate", "logistic", "local", "f1", "prior"]  # fmt: skip


def options_case(ground: Ground, rng: random.Random) -> str:
    """Commands with options that make no sense; those that would train are stopped by an option that is wrong too."""
    folder = ground.folder
    verb = rng.choice(["fit", "diagnose", "evaluate", "predict", "inspect", "report", "bench", "compare", "explain",
                       "plan", "read", "page", "data"])  # fmt: skip
    given: list[Any] = {
        "fit": ["fit", folder / "t.parquet", "-o", folder / "now" / "m", "--method", "no such method"],
        "diagnose": ["diagnose", folder / "t.parquet", "--propensity", "no such estimator"],
        "evaluate": ["evaluate", folder / "linear", folder / "t.parquet"],
        "predict": ["predict", folder / "linear", folder / "t.parquet", "-o", folder / "now" / "scores.csv"],
        "inspect": ["inspect", folder / "linear"],
        "report": ["report", folder / "linear", "-o", folder / "now" / "page.html"],
        "bench": ["bench", "digits", "--dry-run", "--out", folder / "now" / "runs"],
        "compare": ["compare", folder / "t.parquet", "--out", folder / "now" / "c", "--candidates", "no such method"],
        "explain": ["explain", folder / "linear", folder / "t.parquet"],
        "plan": ["audit", "plan", folder / "linear", folder / "t.parquet", "-o", folder / "now" / "plan.csv"],
        "read": ["audit", "read", folder / "linear", folder / "sheet.csv"],
        "page": ["audit", "page", folder / "sheet.csv", "-o", folder / "now" / "sheet.html"],
        "data": ["data", "list"],
    }[verb]
    for _ in range(rng.choice([1, 1, 2, 3])):
        given += [rng.choice(OPTIONS), rng.choice(WORDS)]
    if rng.random() < 0.2:
        given[1] = rng.choice(WORDS)
    given = [str(part).replace("\x00", "\\0") for part in given]
    if "ray" in given:
        return "not asked"
    code, said = command(given)
    assert code in (0, 1, 2), f"exit {code}"
    assert "Traceback" not in said
    return f"exit {code}"
