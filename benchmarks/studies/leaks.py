"""Does `pue` see columns that give the label away or name rows, and does it leave honest columns alone?

    python benchmarks/studies/leaks.py --seeds 0-1 --out docs/results/leaks.jsonl

Clean tables: the development tables of `benchmarks/studies/tables` (never its report tables), scikit-learn's and
generated ones with text, dates, gaps, codes and counts, each labeled in several ways, also with nine in ten positives
labeled. An alarm is a column that is left out or named. Planted: into the same tables, one column (or the copies of
labeled rows) at a time; found means that this column is left out, or that an order and copies are named.
"""

from __future__ import annotations

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # before any import

import argparse
import json
import sys
import warnings
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, load_digits, load_iris

sys.path.insert(0, str(Path(__file__).parent / "tables"))
from encoding import encode
from labelings import LABELINGS, Rows
from tables import DEVELOPMENT

from pue.app.screening.screen import screen_columns
from pue.files import write_text

Bools = NDArray[np.bool_]
Clean = tuple[pd.DataFrame, Bools]
ROWS = 2_000
FREQUENCIES = {"scar": 0.9, "logistic": 0.25, "kinds": 0.25, "easy": 0.5}
"""Mean chance of a label under each labeling."""
MADE = 16
WORDS = [
    *("late", "broken", "engine", "paid", "friend", "street", "night", "water"),
    *("early", "lost", "card", "phone", "bank", "house", "call", "letter"),
]


def records(seed: int) -> Clean:
    """A firm's table: every kind of honest column, some of which look odd."""
    rng = np.random.default_rng([11, seed])
    n = int(rng.choice([400, 1_000, 2_000]))
    y = rng.random(n) < rng.choice([0.05, 0.2, 0.4])
    day = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D")
    frame = pd.DataFrame(
        {
            "amount": np.round(np.exp(rng.normal(5, 1, n) + 1.5 * y), 2),
            "income": np.round(np.exp(rng.normal(10.5, 0.7, n) - 0.4 * y)).astype(int),
            "balance_cents": rng.integers(-(10**9), 10**9, n),
            "age": np.clip(rng.normal(45, 15, n) - 6 * y, 18, 95).astype(int),
            "visits": rng.poisson(1 + 2 * y),
            "region": rng.choice(list("NESW"), n),
            "region_id": rng.integers(1, 40, n),
            "postcode": rng.integers(10_000, 99_999, n),
            "when": day.strftime("%Y-%m-%d"),
            "seen_at": 1_700_000_000 + rng.integers(0, 10**7, n),
            "note": [" ".join(rng.choice(WORDS, int(rng.integers(3, 8)))) for _ in range(n)],
            "product": rng.choice([f"item {k}" for k in range(60)], n),
            "online": rng.random(n) < 0.3 + 0.3 * y,
            "strong": rng.normal(size=n) + 3.5 * y,
            "ratio": rng.random(n),
        }
    )
    frame["gaps"] = np.where(rng.random(n) < 0.5, np.nan, rng.normal(size=n))
    frame["gaps_by_class"] = np.where(rng.random(n) < np.where(y, 0.3, 0.7), np.nan, rng.normal(size=n))
    frame["mostly_empty"] = np.where(rng.random(n) < 0.97, np.nan, rng.normal(size=n))
    return frame, y


def _packaged(load: Callable[..., Any], positive: Callable[[pd.Series], pd.Series]) -> Clean:
    frame = load(as_frame=True).frame
    return frame.drop(columns="target"), positive(frame["target"]).to_numpy()


CLEAN: dict[str, Callable[[], Clean]] = {
    **{name: (lambda table=table: table.read(ROWS)) for name, table in DEVELOPMENT.items()},
    "iris": lambda: _packaged(load_iris, lambda kind: kind == 1),
    "digits": lambda: _packaged(load_digits, lambda digit: digit % 2 == 0),
    "diabetes": lambda: _packaged(load_diabetes, lambda worse: worse > 200),
    **{f"records {seed}": (lambda seed=seed: records(seed)) for seed in range(MADE)},
}


def labeled(name: str, labeling: str, seed: int) -> tuple[pd.DataFrame, Bools, np.random.Generator]:
    """A clean table and PU labels of it."""
    rng = np.random.default_rng([seed, zlib.crc32(f"{name} {labeling}".encode())])
    frame, y = CLEAN[name]()
    y = np.asarray(y, dtype=bool)
    x, names = encode(frame)
    e, _ = LABELINGS[labeling](Rows(x.astype(np.float64), y, names, seed), rng)
    e = np.clip(e * FREQUENCIES[labeling] / e[y].mean(), 0, 0.97)
    return frame, y & (rng.random(len(y)) < e), rng


Plant = Callable[[Bools, np.random.Generator], Any]


def _filled(values: Any, s: Bools, rng: np.random.Generator, labeled: float, others: float) -> pd.Series:
    return pd.Series(values).where(rng.random(len(s)) < np.where(s, labeled, others))


def _days(n: int, rng: np.random.Generator) -> NDArray[Any]:
    return np.array("2024-01-01", "datetime64[D]") + rng.integers(0, 300, n)


LEAKS: dict[str, Plant] = {
    "date of labeled rows alone": lambda s, rng: _filled(_days(len(s), rng), s, rng, 1.0, 0.0),
    "name in hardly any other row": lambda s, rng: _filled(rng.choice(list("ABCDEFG"), len(s)), s, rng, 1.0, 0.02),
    "amount of two in five labeled rows": lambda s, rng: _filled(rng.gamma(2, 100, len(s)), s, rng, 0.4, 0.0),
    "amount, 0 elsewhere": lambda s, rng: np.where(s & (rng.random(len(s)) < 0.8), rng.gamma(2, 100, len(s)), 0.0),
    "status": lambda s, rng: np.where(
        s ^ (rng.random(len(s)) < 0.01),
        rng.choice(["confirmed", "closed"], len(s)),
        rng.choice(["new", "open"], len(s)),
    ),
    "copy of the label": lambda s, rng: (s ^ (rng.random(len(s)) < 0.005)).astype(int),
    "time of the last change": lambda s, rng: _days(len(s), rng) + np.where(s, 400, 0),
    "remark": lambda s, rng: _filled([" ".join(rng.choice(WORDS, 4)) for _ in s], s, rng, 0.9, 0.0),
    "emptied for labeled rows": lambda s, rng: _filled(rng.normal(size=len(s)), s, rng, 0.03, 0.97),
    "score of an investigation": lambda s, rng: rng.normal(size=len(s)) + 6 * s,
}
IDS: dict[str, Plant] = {
    "AP-152795": lambda s, rng: [f"AP-{k}" for k in rng.choice(900_000, len(s), replace=False) + 100_000],
    "uuid": lambda s, rng: [rng.bytes(16).hex() for _ in s],
    "mail address": lambda s, rng: [f"{rng.choice(WORDS)}{k}@mail.org" for k in rng.permutation(len(s))],
    "row number": lambda s, rng: np.arange(len(s)) + 1,
    "shuffled number": lambda s, rng: rng.permutation(len(s)),
    "rising number with gaps": lambda s, rng: 10_000 + np.cumsum(rng.integers(1, 8, len(s))),
    "account of nine digits": lambda s, rng: rng.choice(9 * 10**8, len(s), replace=False) + 10**8,
    "customer_id": lambda s, rng: rng.choice(50 * len(s), len(s), replace=False),
    "two rows a customer_id": lambda s, rng: rng.choice(10**6, len(s))[rng.integers(0, len(s), len(s))],
}
OTHERS = ("dates in order", "copies of labeled rows")
PLANTS = {**LEAKS, **IDS}


def column_of(kind: str) -> str:
    return "customer_id" if kind.endswith("customer_id") else "planted"


def planted(kind: str, frame: pd.DataFrame, s: Bools, rng: np.random.Generator) -> tuple[pd.DataFrame, Bools]:
    if kind == "dates in order":
        return frame.assign(planted=np.sort(_days(len(s), rng))), s
    if kind == "copies of labeled rows":
        return pd.concat([frame, frame[s]], ignore_index=True), np.concatenate([s, np.zeros(int(s.sum()), bool)])
    return frame.assign(**{column_of(kind): PLANTS[kind](s, rng)}), s


def measured(name: str, seed: int) -> Iterator[dict[str, Any]]:
    """Alarms in a table under every labeling; then one plant after the other, under a labeling in turn."""
    for number, labeling in enumerate(FREQUENCIES):
        frame, s, rng = labeled(name, labeling, seed)
        about = {"table": name, "labeling": labeling, "seed": seed, "labeled": int(s.sum()), "rows": len(s)}
        if s.sum() < 20:
            continue
        alarms = [[found.column, found.kind, found.evidence] for found in screen_columns(frame, s.astype(int))]
        yield {**about, "plant": None, "columns": frame.shape[1], "alarms": alarms}
        for kind in [*PLANTS, *OTHERS][(number + seed) % 2 :: 2]:
            some, labels = planted(kind, frame, s, rng)
            findings = screen_columns(some, labels.astype(int))
            wanted = "" if kind == "copies of labeled rows" else column_of(kind)
            found = any(each.column == wanted and (each.left_out or kind in OTHERS) for each in findings)
            yield {**about, "plant": kind, "found": found}


def report(records: list[dict[str, Any]]) -> Iterator[str]:
    clean = [record for record in records if record["plant"] is None]
    columns, alarms = sum(record["columns"] for record in clean), sum(len(record["alarms"]) for record in clean)
    tables = len({record["table"] for record in clean})
    yield f"{tables} clean tables, {len(clean)} labelings: {alarms} alarms, {columns} columns ({alarms / columns:.2%})"
    for record in clean:
        for alarm in record["alarms"]:
            yield f"  {record['table']}, {record['labeling']}, seed {record['seed']}: {alarm}"
    by_kind: dict[str, list[bool]] = defaultdict(list)
    for record in records:
        if record["plant"] is not None:
            by_kind[record["plant"]].append(record["found"])
    for title, kinds in {"leaks": LEAKS, "identifiers": IDS, "named": OTHERS}.items():
        all_found = [found for kind in kinds for found in by_kind[kind]]
        yield f"{title}: {sum(all_found)} of {len(all_found)} found ({np.mean(all_found):.1%})"
        for kind in kinds:
            yield f"  {kind}: {sum(by_kind[kind])} of {len(by_kind[kind])}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0-1", help="first-last")
    parser.add_argument("--out", type=Path, default=Path("leaks.jsonl"))
    given = parser.parse_args()
    first, _, last = given.seeds.partition("-")
    warnings.simplefilter("ignore")
    found = [
        record
        for seed in range(int(first), int(last or first) + 1)
        for name in CLEAN
        for record in measured(name, seed)
    ]
    write_text(given.out, "".join(json.dumps(record) + "\n" for record in found))
    print("\n".join(report(found)))


if __name__ == "__main__":
    main()
