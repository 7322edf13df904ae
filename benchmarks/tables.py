"""`pue fit` and `pue predict` on generated Parquet of 30 columns: CPU seconds, rows a second, peak memory.

    OMP_NUM_THREADS=1 python benchmarks/tables.py --rows 100000 1000000 --out tables.jsonl

30 columns: 16 numbers (two with gaps), 4 whole numbers, 5 categories (one of 500 values), 2 booleans, 2 dates, 1 text.
A tenth of the rows is positive, a third of these labeled, likelier where the first number is large. Every command is a
process of its own; its CPU time and peak memory are what the system reports of it. `start` is a prediction of 100 rows:
the time before the first. A line in the output is not measured again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from measure import command

BLOCK = 250_000
WORDS = np.array(["late", "night", "broken", "lost", "stolen", "water", "fire", "tree",
                  "rear", "minor", "scratch", "parking", "glass", "mirror", "hail", "door"])  # fmt: skip


def block(n: int, rng: np.random.Generator) -> pd.DataFrame:
    y = rng.random(n) < 0.1
    columns: dict[str, object] = {}
    for k in range(16):
        columns[f"number_{k}"] = rng.normal(size=n).astype(np.float32) + (0.9 * y if k < 8 else 0.0)
    for k in (3, 9):
        columns[f"number_{k}"] = np.where(rng.random(n) < 0.05, np.nan, columns[f"number_{k}"])
    for k in range(4):
        columns[f"count_{k}"] = rng.poisson(3 + 2 * y if k == 0 else 3, n)
    for k, size in enumerate((3, 5, 12, 30, 500)):
        shift = y * (rng.random(n) < 0.3)
        columns[f"category_{k}"] = pd.Categorical.from_codes(
            np.where(shift, 0, rng.integers(0, size, n)), [f"kind {value}" for value in range(size)]
        )
    columns["flag_0"], columns["flag_1"] = rng.random(n) < 0.3 + 0.3 * y, rng.random(n) < 0.5
    for k in range(2):
        columns[f"day_{k}"] = np.datetime64("2024-01-01", "us") + rng.integers(0, 700, n).astype("timedelta64[D]")
    words = WORDS[rng.integers(0, 8, (n, 3)) + np.where(y & (rng.random(n) < 0.5), 0, 8)[:, None]]
    columns["note"] = [" ".join(row) for row in words]
    e = 1 / (1 + np.exp(1.2 - 1.2 * np.asarray(columns["number_0"])))
    columns["label"] = (y & (rng.random(n) < e)).astype(np.int8)
    return pd.DataFrame(columns)


def blocks(rows: int) -> Iterator[pd.DataFrame]:
    for number, start in enumerate(range(0, rows, BLOCK)):
        yield block(min(BLOCK, rows - start), np.random.default_rng([7, number]))


def generate(path: Path, rows: int) -> None:
    writer = None
    for frame in blocks(rows):
        for name in frame.columns[frame.dtypes == "category"]:
            frame[name] = frame[name].astype("str")
        table = pa.Table.from_pandas(frame, preserve_index=False)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--methods", nargs="+", default=["auto"], help="of pue fit")
    parser.add_argument("--prior", help="given to pue fit; default: it is estimated")
    parser.add_argument("--out", type=Path, default=Path("tables.jsonl"))
    parser.add_argument("--folder", type=Path, help="where the tables lie; default: a temporary folder")
    args = parser.parse_args()
    done = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        few, given = folder / "few.parquet", ["--prior", args.prior] if args.prior else []
        generate(few, 100)
        for rows in args.rows:
            table = folder / f"{rows}.parquet"
            for method in args.methods:
                if any((line["rows"], line["method"], line["prior"]) == (rows, method, args.prior) for line in done):
                    continue
                if not table.exists():
                    generate(table, rows)
                model = folder / f"model-{rows}-{method}"
                asked = ["--label", "label", "--method", method, *given, "-o", str(model), "--force", "--quiet"]
                fit = command("fit", str(table), *asked)
                predict, start = (
                    command("predict", str(model), str(new), "-o", str(folder / "scores.parquet"), "--quiet")
                    for new in (table, few)
                )
                line = {"rows": rows, "method": method, "prior": args.prior}
                line |= {"fit": fit, "predict": predict, "start": start}
                with args.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                done.append(line)
    print(f"{'rows':>12} {'method':10} {'prior':9} {'':8} {'CPU s':>9} {'rows/s':>11} {'peak GB':>8}")
    for line in done:
        for what in ("fit", "predict", "start"):
            seconds, memory = line[what]["cpu_seconds"], line[what]["peak_gb"]
            speed, prior = line["rows"] / seconds, line["prior"] or "estimated"
            shown = f"{line['rows']:>12,} {line['method']:10} {prior:9} {what:8} {seconds:>9.1f}"
            print(shown + ("" if what == "start" else f" {speed:>11,.0f} {memory:>8.2f}"))


if __name__ == "__main__":
    main()
