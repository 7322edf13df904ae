"""Numbers on a page are those of the records beside it."""

from __future__ import annotations

import importlib
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).parents[2] / "docs"
LAB = DOCS / "lab"


def records(name: str) -> list[dict]:
    return [json.loads(line) for line in (DOCS / "results" / f"{name}.jsonl").read_text().splitlines()]


def test_the_page_on_tables_shows_its_records() -> None:
    by_table: dict[str, list[dict]] = defaultdict(list)
    for record in records("tables_study"):
        by_table[record["table"]].append(record["found"])
    page = (LAB / "tables.md").read_text().split("\n")
    shown = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in page if line.startswith("| ")][1:]
    assert {len(runs) for runs in by_table.values()} == {10}
    wanted = []
    for table, runs in by_table.items():
        for place, method in enumerate(name for name in runs[0] if name != "prior"):
            values = 100 * np.array([run[method] for run in runs])
            cells = [f"{m:.1f} ± {s:.1f}" for m, s in zip(values.mean(0), values.std(0, ddof=1), strict=True)]
            gap = 100 * np.array([run["pue fit"][0] - run[method][0] for run in runs])
            paired = f"{gap.mean():+.1f} ± {gap.std(ddof=1):.1f}".replace("-", "−") if place else ""
            wanted.append([table if place == 0 else "", method, *cells, paired])
    assert [[row[0].partition(" (")[0], *row[1:]] for row in shown] == wanted


@pytest.mark.parametrize("kind", ["corrected", "own", "true", "scar"])
def test_the_page_on_evaluation_shows_its_records(kind: str) -> None:
    found = records("without_negatives")
    assert [record["seed"] for record in found] == list(range(6))
    cells = []
    for metric in ("accuracy", "precision", "recall", "f1", "auc", "ap"):
        estimates = [(*record["estimates"][kind][metric], record["truth"][metric]) for record in found]
        error = 100 * np.mean([abs(value - truth) for value, _, _, truth in estimates])
        covered = sum(low <= truth <= high for _, low, high, truth in estimates)
        cells.append(f"{error:.1f} ({covered}/6)")
    assert " | ".join(cells) in (LAB / "evaluation.md").read_text()


@pytest.mark.parametrize("kind", ["corrected", "unbiased"])
def test_the_page_on_evaluation_shows_how_digits_are_calibrated(kind: str) -> None:
    found = records("digits_calibration")
    assert sorted(record["seed"] for record in found) == list(range(6))
    cells = []
    for name in ("calibrated", "sigmoid of the score", "accuracy"):
        values = 100 * np.array([record["found"][f"{kind}, {name}"] for record in found])
        cells.append(f"{values.mean():.1f} ± {values.std(ddof=1):.1f}")
    assert " | ".join(cells) in (LAB / "evaluation.md").read_text()


def test_the_page_on_scaling_shows_what_was_streamed() -> None:
    page = (LAB / "scaling.md").read_text()
    for found in records("streaming"):
        cells = [f"{100 * found['accuracy']:.2f}", f"{100 * found['auc']:.2f}", f"{found['peak_gb']:.2f}"]
        cells.append(f"{found['cpu_seconds']:.0f}")
        assert f"{found['rows']:,}" in page
        assert " | ".join(cells) in page
    small, _, large = records("streaming")
    assert large["accuracy"] >= small["accuracy"]
    assert large["peak_gb"] < 2


def test_the_page_on_scaling_shows_what_the_cost_model_predicts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS.parent / "benchmarks"))
    predicted = importlib.import_module("cost_model").predicted
    found = json.loads((DOCS / "results" / "cost_model.json").read_text())
    page = (LAB / "scaling.md").read_text()
    for power in (8, 10):
        for workers in (1, 8, 64, 512):
            for batch in (256, 4096):
                cost = predicted(found, 10.0**power, workers, batch)
                cells = [f"{cost[name]:.2g}" for name in ("prepare", "epoch", "communication", "score")]
                assert f"| 10^{power} | {workers} | {batch} | {' | '.join(cells)} |" in page
