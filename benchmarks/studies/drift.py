"""How often is a column called drifted that is not, and how often is one missed that is?

    python benchmarks/studies/drift.py --seeds 0-4 --out docs/results/drift.jsonl

The clean tables of `leaks.py` (text columns left out), split at random: one half is what a model was trained on, the
other comes later. Then one column of the later half is changed: numbers moved by half a standard deviation, words of
three tenths of the rows replaced by the most frequent one.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from leaks import CLEAN

from pue.app.drift import drifted, profiles_of
from pue.estimators.vectorizer.vectorize import fit_vectorizer
from pue.files import write_text


def changed(column: pd.Series, rng: np.random.Generator) -> pd.Series:
    if pd.api.types.is_bool_dtype(column) or not pd.api.types.is_numeric_dtype(column):
        return column.where(rng.random(len(column)) > 0.3, column.mode().iloc[0])
    return column + 0.5 * float(column.std())


def measured(name: str, seed: int) -> dict[str, Any]:
    frame, _ = CLEAN[name]()
    frame = frame.drop(columns=["note", "product", "when"], errors="ignore")
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(frame))
    before, later = (frame.iloc[part].reset_index(drop=True) for part in np.array_split(order, 2))
    vectorizer = fit_vectorizer(before)
    profiles = profiles_of(vectorizer, vectorizer.transform(before))
    alarms = len(drifted(profiles, vectorizer, vectorizer.transform(later)))
    chosen = str(rng.choice(list(vectorizer.columns)))
    moved = drifted(profiles, vectorizer, vectorizer.transform(later.assign(**{chosen: changed(later[chosen], rng)})))
    found = any(drift.column == chosen for drift in moved)
    about = {"table": name, "seed": seed, "rows": len(frame), "columns": len(profiles), "alarms": alarms}
    return {**about, "changed": chosen, "found": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0-4", help="first-last")
    parser.add_argument("--out", type=Path, default=Path("drift.jsonl"))
    given = parser.parse_args()
    first, _, last = given.seeds.partition("-")
    warnings.simplefilter("ignore")
    found = [measured(name, seed) for seed in range(int(first), int(last or first) + 1) for name in CLEAN]
    write_text(given.out, "".join(json.dumps(record) + "\n" for record in found))
    alarms, columns = sum(record["alarms"] for record in found), sum(record["columns"] for record in found)
    with_any = sum(record["alarms"] > 0 for record in found)
    seen = sum(record["found"] for record in found)
    print(f"{alarms} alarms in {columns} columns that did not change ({alarms / columns:.2%})")
    print(f"{with_any} of {len(found)} splits with any; {seen} of {len(found)} changed columns found")


if __name__ == "__main__":
    main()
