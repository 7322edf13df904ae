"""Numbers on a page are those of the records beside it."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

DOCS = Path(__file__).parents[2] / "docs"
LAB = DOCS / "lab"


def records(name: str) -> list[dict]:
    return [json.loads(line) for line in (DOCS / "results" / f"{name}.jsonl").read_text().splitlines()]


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


def test_the_page_on_leaks_shows_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS.parent / "benchmarks" / "studies"))
    found = records("leaks")
    study = importlib.import_module("leaks")
    page = (LAB / "leaks.md").read_text()
    rows = {
        "planted leaks, ten kinds": study.LEAKS,
        "planted identifiers, nine kinds": study.IDS,
        "dates in order, copies of labeled rows": study.OTHERS,
    }
    for title, kinds in rows.items():
        told = [record["found"] for record in found if record["plant"] in kinds]
        assert f"| {title} | {sum(told)} | {len(told)} | {np.mean(told):.1%} |".replace("% |", " % |") in page
        assert np.mean(told) >= 0.95
    clean = [record for record in found if record["plant"] is None]
    alarms, columns = sum(len(record["alarms"]) for record in clean), sum(record["columns"] for record in clean)
    assert f"| alarms in clean columns | {alarms} | {columns} | {alarms / columns:.2%} |".replace("% |", " % |") in page
    assert alarms / columns <= 0.02
    assert len({record["table"] for record in clean}) >= 30


def test_the_page_on_evaluation_shows_hits_and_drift() -> None:
    page = (DOCS / "evaluation.md").read_text()
    hits, drift = records("budget_hits"), records("drift")
    ratio = np.median([record["true"] / max(record["value"], 1) for record in hits])
    inside = sum(record["inside"] for record in hits)
    assert f"{inside} of {len(hits)} intervals held the true number of hits" in page
    assert inside >= 0.9 * len(hits)
    assert len({record["seed"] for record in hits}) >= 3
    assert f"the median of true over expected hits was {ratio:.2f}" in page
    alarms, columns = sum(record["alarms"] for record in drift), sum(record["columns"] for record in drift)
    assert f"{alarms} of {columns:,} columns that had not" in page
    assert f"({alarms / columns:.2%})".replace("%", " %") in page
    assert f"of {len(drift)} columns moved" in page
    assert f"{sum(record['found'] for record in drift)} were found" in page


def test_the_page_on_fuzzing_shows_its_counts_and_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS.parent / "tests" / "fuzz"))
    found = json.loads((DOCS / "results" / "fuzz.json").read_text())
    assert (LAB / "fuzz.md").read_text() == importlib.import_module("page").page(found)
    for what in ("fuzz", "crash"):
        assert found[what]["failed"] == 0
        assert sum(n for _, _, n in found[what]["ends"]) == found[what]["cases"]


# ------------------------------------------------------------------------------------------------ coverage


@pytest.fixture
def coverage(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The study and its page."""
    monkeypatch.syspath_prepend(str(DOCS.parent / "benchmarks" / "studies"))
    return SimpleNamespace(study=importlib.import_module("coverage"), page=importlib.import_module("coverage_page"))


def test_no_interval_falls_short_and_the_page_shows_it(coverage: SimpleNamespace) -> None:
    found = records("coverage")
    assert coverage.page.short(found) == []
    assert (LAB / "coverage.md").read_text() == coverage.page.page(found)
    assert {each.table for each in coverage.page.intervals(found)} == set(coverage.page.TITLES)


def test_a_cell_that_falls_short_is_named(coverage: SimpleNamespace) -> None:
    found = [record for record in records("coverage") if record["what"] == "look"]
    for record in found:
        record["interval"][1:] = [0.9, 0.95]
    assert "prior, share of positives, scar" in "; ".join(coverage.page.short(found))


@pytest.mark.slow
def test_intervals_hold_on_tables_that_are_drawn_now(coverage: SimpleNamespace) -> None:
    """Seeds of their own: of 12 intervals of the share of positives at most two miss, of 28 of metrics at most four."""
    study = coverage.study
    looks = [
        study.looked_at(study.Cell(labeling, gap, setting, 500))
        for labeling in study.LABELINGS
        for gap in (0, 2, 4)
        for setting in (study.SETTINGS[1], study.SETTINGS[4])
    ]
    held = [each.held for each in coverage.page.intervals(looks) if each.table == "prior"]
    assert len(held) == 12
    assert sum(held) >= 10
    fits = [study.fits(study.Cell(labeling, 2, study.Setting(20), 500)) for labeling in study.LABELINGS]
    told = [each.held for each in coverage.page.intervals(fits) if each.table.endswith("fit")]
    assert len(told) == 28
    assert sum(told) >= 24
