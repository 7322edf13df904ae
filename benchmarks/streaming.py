"""`pue fit --memory` on a table that does not fit: accuracy, peak memory, rows a second, against memory.

    python benchmarks/streaming.py --rows 50000000 --memory 1GB --out streaming.jsonl

Generated Parquet of 20 float columns in row groups of 500,000: a tenth of the rows is positive, ten columns are shifted
and one interaction differs; a positive is labeled likelier where the first column is large. Fitted by streaming all
rows, and in memory on the first million of them; both are judged on 500,000 further rows with their true classes. The
prior is given. Rows a second are those of training alone (an epoch's rows over its seconds); peak memory is what the
system reports of the process. A line in the output is not measured again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from measure import command
from pyarrow import parquet

import pue
from pue.app.stream import held_share

GROUP, SAMPLE, TEST, PRIOR = 500_000, 1_000_000, 500_000, 0.1


def block(n: int, seed: list[int], *, truth: bool) -> pa.Table:
    rng = np.random.default_rng(seed)
    y = rng.random(n) < PRIOR
    x = rng.normal(size=(n, 20)).astype(np.float32)
    x[:, :10] += np.float32(0.7) * y[:, None]
    x[:, 10] += np.float32(0.5) * y * x[:, 11] * x[:, 12]
    e = 1 / (1 + np.exp(1.2 - 1.5 * x[:, 0]))
    columns = {f"x{k}": x[:, k] for k in range(20)}
    columns["label"] = (y & (rng.random(n) < e)).astype(np.int8)
    return pa.table({**columns, "y": y.astype(np.int8)} if truth else columns)


def generate(path: Path, rows: int, seed: int, *, truth: bool = False) -> None:
    """Written under another name first: a file that is there is whole."""
    if path.exists():
        return
    unfinished, writer = path.with_suffix(".unfinished"), None
    for number, start in enumerate(range(0, rows, GROUP)):
        table = block(min(GROUP, rows - start), [seed, number], truth=truth)
        writer = writer or parquet.ParquetWriter(unfinished, table.schema)
        writer.write_table(table, row_group_size=GROUP)
    assert writer is not None
    writer.close()
    unfinished.rename(path)


def fit(table: Path, model: Path, *options: str) -> dict[str, float]:
    return command(
        "fit", str(table), "--label", "label", "--prior", str(PRIOR), "-o", str(model), "--force", "--quiet", *options
    )


def judged(model: Path, test: Path) -> dict[str, float]:
    given = [sys.executable, "-m", "pue", "evaluate", str(model), str(test), "--truth", "y", "--json"]
    found = json.loads(subprocess.run(given, check=True, capture_output=True, text=True).stdout)
    return {name: found["truth"][name] for name in ("accuracy", "auc", "f1")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--folder", type=Path, default=Path("streaming"), help="tables and models; about 5 GB")
    parser.add_argument("--out", type=Path, default=Path("streaming.jsonl"))
    arguments = parser.parse_args()
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    done = [json.loads(line) for line in arguments.out.read_text().splitlines()] if arguments.out.exists() else []
    generate(folder / "test.parquet", TEST, 2, truth=True)
    for what, rows, options in (
        ("in memory", SAMPLE, ()),
        ("streamed", SAMPLE, ("--memory", "150MB")),
        ("streamed", arguments.rows, ("--memory", arguments.memory)),
    ):
        if any((line["what"], line["rows"]) == (what, rows) for line in done):
            continue
        table, model = folder / f"{rows}.parquet", folder / f"model-{what.replace(' ', '-')}-{rows}"
        generate(table, rows, 1)
        line = {"what": what, "rows": rows, "bytes": table.stat().st_size, **fit(table, model, *options)}
        fitted = pue.load(model)
        history, labeled = fitted.classifier.history_, fitted.summary["data"]["n_labeled"]
        held = held_share(labeled, rows - labeled) if options else 0.0
        line |= {"epochs": len(history), "training_seconds": sum(epoch.seconds for epoch in history)}
        line |= {"trained_rows": round(rows * (1 - held)) * len(history)}
        line |= judged(model, folder / "test.parquet")
        with arguments.out.open("a") as file:
            file.write(json.dumps(line) + "\n")
        done.append(line)
    print(f"{'':10} {'rows':>12} {'accuracy':>9} {'AUC':>6} {'peak GB':>8} {'seconds':>8} {'training rows/s':>16}")
    for line in done:
        speed = line["trained_rows"] / line["training_seconds"]
        print(
            f"{line['what']:10} {line['rows']:>12,} {100 * line['accuracy']:>9.2f} {100 * line['auc']:>6.2f} "
            f"{line['peak_gb']:>8.2f} {line['seconds']:>8.0f} {speed:>16,.0f}"
        )


if __name__ == "__main__":
    main()
