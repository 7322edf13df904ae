"""How often does each interval that `pue` prints hold the truth? Found beside nominal, cell by cell.

    python benchmarks/studies/coverage.py --seeds 0-19 --out docs/results/coverage.jsonl
    python benchmarks/studies/coverage.py --out docs/results/coverage.jsonl --write

Two Gaussian classes in five columns, 0 to 4 standard deviations apart in the first; 5 to 500 labels, drawn at random or
with a bias along the first column and another one. A record is one table: the interval of the share of positives, the
test of SCAR, and an audit of 100 answers; for the first `--fits` seeds also `pue fit` with nothing given and with the
true share of positives, and `pue evaluate` of both on as many new rows. The truth is that of 20,000 further rows (of an
audit, that of its rows). A second call computes what is missing; `--write` makes docs/lab/coverage.md and ends with an
error if a cell falls short.
"""

from __future__ import annotations

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # before any import

import argparse
import json
import sys
import tempfile
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.metrics import average_precision_score, roc_auc_score

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "tables"))
from coverage_page import page, short
from records import mend

from pue.app.evaluate import evaluate_source
from pue.app.fit_source import fit_source
from pue.app.model import PUModel
from pue.app.recipe import Recipe
from pue.app.roles import Roles
from pue.app.sources.opening import open_source
from pue.audit import plan, read
from pue.core.data import PUData
from pue.errors import InvalidInput
from pue.judging.estimates import ESTIMATED
from pue.priors import estimate_prior
from pue.propensity.scar import FEWEST_LABELED, scar_test

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

GAPS = (0, 1, 2, 3, 4)
LABELINGS = ("scar", "biased")
ANSWERS = 100
FRESH = 20_000
"""Rows that tell the truth about a model."""
PAGE = Path(__file__).parents[2] / "docs" / "lab" / "coverage.md"


@dataclass(frozen=True)
class Setting:
    """How many rows, positives and labels a table has."""

    labels: int
    rows: int = 600
    prior: float = 0.3

    def __str__(self) -> str:
        return f"{self.labels} of {round(self.rows * self.prior)}"


SETTINGS = (Setting(5), Setting(20), Setting(100), Setting(500, rows=3000), Setting(20, rows=2000, prior=0.03))


@dataclass(frozen=True)
class Cell:
    """One table of the study."""

    labeling: str
    gap: int
    setting: Setting
    seed: int

    @property
    def key(self) -> dict[str, Any]:
        named = {"labeling": self.labeling, "gap": self.gap, "seed": self.seed}
        return {**named, "labels": self.setting.labels, "rows": self.setting.rows, "prior": self.setting.prior}

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(zlib.crc32(json.dumps(self.key).encode()))


def rows(cell: Cell, n: int, rng: np.random.Generator, labels: int | None = None) -> tuple[pd.DataFrame, Bools]:
    """Columns a to e and labels s; so many of them, or as many as the labeling gives the share of the first table."""
    y = np.arange(n) < round(cell.setting.prior * n)
    x = rng.normal(size=(n, 5))
    x[y, 0] += cell.gap
    chance = expit(np.sqrt(2) * (x[:, 0] - cell.gap + x[:, 1])) if cell.labeling == "biased" else np.ones(n)
    chance[~y] = 0
    wanted = round(cell.setting.labels * n / cell.setting.rows) if labels is None else labels
    s = np.zeros(n, dtype=int)
    s[rng.choice(n, wanted, replace=False, p=chance / chance.sum())] = 1
    order = rng.permutation(n)
    return pd.DataFrame(x, columns=list("abcde")).assign(s=s).iloc[order].reset_index(drop=True), y[order]


def looked_at(cell: Cell) -> dict[str, Any]:
    """What is said of a table before anything is trained, and by an audit of probabilities that are right, or of random
    ones where the classes are the same."""
    rng, true = cell.rng, cell.setting.prior
    frame, y = rows(cell, cell.setting.rows, rng)
    x, s = frame[list("abcde")].to_numpy(), frame["s"].to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prior = estimate_prior(x, s, seed=cell.seed)
        data = PUData(torch.from_numpy(x), torch.from_numpy(s))
        scar = {}
        if cell.labeling == "scar" and cell.setting.labels >= FEWEST_LABELED:
            scar["share given"] = not scar_test(data, prior=true, seed=cell.seed).rejected
            tested = replace(scar_test(data, prior=prior.value, seed=cell.seed), lowest=prior.low)
            scar["share estimated"] = not tested.rejected
    p = expit(cell.gap * (x[:, 0] - cell.gap / 2) + np.log(true / (1 - true))) if cell.gap else rng.random(len(y))
    found = {"interval": [true, prior.low, prior.high], "scar": scar}
    return {**cell.key, "what": "look", **found, "audit": audited(p, s, y, 0.5, cell.seed)}


def fits(cell: Cell) -> dict[str, Any]:
    """What both fits and their evaluations say, each beside the truth; why not, where they refuse."""
    rng = cell.rng
    (train, _), (test, _), (fresh, fresh_y) = (rows(cell, n, rng) for n in (cell.setting.rows,) * 2 + (FRESH,))
    found: dict[str, Any] = {**cell.key, "what": "fit"}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, prior in (("estimated", "estimate"), ("given", cell.setting.prior)):
            try:
                model = _fitted(train, Path(folder), Recipe(prior=prior, seed=cell.seed, progress=False))
            except InvalidInput as refusal:
                found[name] = {"refused": str(refusal)}
                continue
            truth = judged(model, fresh, fresh_y)
            found[name] = dict(_said(model, truth, _written(test, Path(folder)), cell.seed))
    return found


def _fitted(train: pd.DataFrame, folder: Path, recipe: Recipe) -> PUModel:
    return fit_source(open_source(_written(train, folder)), Roles(label="s"), recipe)


def _written(frame: pd.DataFrame, folder: Path) -> Path:
    path = folder / "rows.parquet"
    frame.to_parquet(path)
    return path


def judged(model: PUModel, frame: pd.DataFrame, y: Bools) -> dict[str, float]:
    """The metrics by true classes, at the model's threshold."""
    p = np.asarray(model.probability(frame), dtype=np.float64)
    called = p >= model.threshold
    hits = float((called & y).sum())
    return {
        "accuracy": float((called == y).mean()),
        "precision": hits / max(float(called.sum()), 1.0),
        "recall": hits / float(y.sum()),
        "f1": 2 * hits / float(called.sum() + y.sum()),
        "auc": float(roc_auc_score(y, p)),
        "ap": float(average_precision_score(y, p)),
        "flagged": float(called.mean()),
    }


def _said(model: PUModel, truth: dict[str, float], test: Path, seed: int) -> Iterator[tuple[str, Any]]:
    values = model.summary["metrics"]["values"]
    yield "fit", {name: [truth[name], values[name]["low"], values[name]["high"]] for name in ESTIMATED}
    try:
        m = evaluate_source(model, open_source(test), seed=seed).estimated
    except InvalidInput:  # too few labels among the new rows
        return
    assert m is not None
    yield "evaluate", {name: [truth[name], vars(m)[name].low, vars(m)[name].high] for name in ESTIMATED}


def audited(p: Any, s: Any, y: Bools, threshold: float, seed: int) -> dict[str, Any]:
    """An audit of the rows, answered by the truth."""
    p, s = np.asarray(p, dtype=np.float64), np.asarray(s)
    drawn = plan(p, s, n=ANSWERS, threshold=threshold, seed=seed)
    findings, called = read(drawn, y[drawn.rows].astype(float)).quantities(), p >= threshold
    hits = float((called & y).sum())
    truth = {
        "prior": float(y.mean()),
        "precision": hits / max(float(called.sum()), 1.0),
        "recall": hits / float(y.sum()),
        "accuracy": float((called == y).mean()),
        "f1": 2 * hits / float(called.sum() + y.sum()),
    }
    return {name: [truth[name], estimate.low, estimate.high] for name, estimate in findings.items()}


def cells(seeds: range) -> Iterator[Cell]:
    for seed in seeds:
        for setting in SETTINGS:
            for gap in GAPS:
                for labeling in LABELINGS:
                    yield Cell(labeling, gap, setting, seed)


RECORDS = {"look": looked_at, "fit": fits}


def key_of(found: dict[str, Any]) -> str:
    return json.dumps([found[name] for name in ("what", "labeling", "gap", "labels", "rows", "prior", "seed")])


def plain(value: Any) -> Any:
    """Four digits are enough."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def read_records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0-19")
    parser.add_argument("--fits", type=int, default=10, help="seeds for which models are fitted too")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--write", action="store_true", help="make the page from what is there")
    args = parser.parse_args()
    torch.set_num_threads(1)
    mend(args.out)
    found = read_records(args.out)
    if args.write:
        PAGE.write_text(page(found))
        for line in short(found):
            print(line)
        return int(bool(short(found)))
    first, _, last = args.seeds.partition("-")
    there = {key_of(known) for known in found}
    for what, stop in (("look", int(last or first) + 1), ("fit", int(first) + args.fits)):
        for cell in cells(range(int(first), stop)):
            if key_of({**cell.key, "what": what}) not in there:
                with args.out.open("a") as file:
                    file.write(json.dumps(plain(RECORDS[what](cell))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
