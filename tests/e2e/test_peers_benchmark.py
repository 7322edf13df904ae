"""benchmarks/peers without any peer: the data, one measurement, what is kept of a run that is cut, and the table."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

FOLDER = Path(__file__).parents[2] / "benchmarks" / "peers"
MODULES = ("problems", "one", "run", "show", "with_sklearn", "same")


@pytest.fixture
def peers(monkeypatch):
    """Its modules, which go by short names, and only as long as a test needs them."""
    monkeypatch.syspath_prepend(str(FOLDER))
    before = {name: sys.modules.pop(name, None) for name in MODULES}
    yield SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
    for name, module in before.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module


def line(job, accuracy=90.0, seconds=2.0):
    cost = {"cpu": seconds, "wall": seconds}
    return {**job, "accuracy": accuracy, "auc": 95.0, "called": 30.0, "fit": cost, "predict": cost, "peak_gb": 0.5}


def test_the_table_is_the_same_for_every_tool_and_a_single_sample_becomes_case_control(peers):
    problem, truth = peers.problems.table(3, 400)
    again, _ = peers.problems.table(3, 400)
    np.testing.assert_array_equal(problem.x, again.x)
    np.testing.assert_array_equal(problem.s, again.s)
    assert problem.x.shape == (400, 20)
    assert len(problem.new) == len(truth) == 200
    assert 0 < problem.s.mean() < problem.prior < 0.5
    beside = problem.case_control()
    labeled = int(problem.s.sum())
    assert beside.s.tolist() == [1] * labeled + [0] * 400
    np.testing.assert_array_equal(beside.x[:labeled], problem.x[problem.s == 1])
    np.testing.assert_array_equal(beside.x[labeled:], problem.x)
    assert beside.prior == problem.prior


def test_images_become_a_matrix_unless_a_method_takes_bytes(peers):
    images = np.full((4, 1, 2, 2), 51, dtype=np.uint8)
    problem = peers.problems.Problem(images, np.array([1, 0, 0, 0]), 0.5, "case_control", images)
    plain = peers.problems.Method(lambda problem, seed: None).prepare(problem)
    assert plain.x.dtype == np.float32
    np.testing.assert_allclose(plain.new, np.full((4, 4), 0.2))
    assert peers.problems.Method(lambda problem, seed: None, images=True).prepare(problem).x is images


def test_one_measurement(peers):
    problem, truth = peers.problems.table(0, 400)
    found = peers.one.measure(peers.with_sklearn.METHODS["unlabeled as negative"], problem, truth, 0)
    plain = LogisticRegression().fit(problem.x, problem.s)
    assert found["accuracy"] == pytest.approx(100 * np.mean((plain.predict(problem.new) == 1) == (truth == 1)))
    assert found["auc"] > 70
    assert found["peak_gb"] > 0
    assert min(found["fit"].values()) >= 0


def test_every_method_of_the_plan_is_there(peers):
    planned = {(tool, method) for problem in peers.run.OWN for tool, method in pairs(peers.run.jobs([problem], 1))}
    assert {tool for tool, _ in planned} == set(peers.one.MODULES)
    ours = {method for tool, method in planned if tool == "scikit-learn"}
    assert ours == set(peers.with_sklearn.METHODS)
    named = {(tool, theirs) for _, _, tool, theirs in peers.show.PAIRS}
    assert named | {("pue", ours) for _, ours, _, _ in peers.show.PAIRS} <= planned


def pairs(jobs):
    return [(job.tool, job.method) for job in jobs]


def test_a_run_that_was_cut_goes_on_and_measures_nothing_twice(peers, tmp_path):
    out, seen = tmp_path / "peers.jsonl", []
    wanted = [peers.run.Job("table", "pue", name, 0) for name in "abc"]

    def measure(job):
        if job.method == "c" and len(seen) < 3:
            seen.append("cut")
            raise KeyboardInterrupt
        seen.append(job.method)
        return {"error": "ValueError: no"} if job.method == "b" else line({})

    with pytest.raises(KeyboardInterrupt):
        peers.run.complete(wanted, out, measure)
    records = peers.run.complete(wanted, out, measure)
    assert seen == ["a", "b", "cut", "c"]
    assert [record["method"] for record in records] == ["a", "b", "c"]
    assert [json.loads(text) for text in out.read_text().splitlines()] == records


def test_a_process_that_fails_is_a_record_with_the_reason(peers, tmp_path):
    failure = peers.run.failure
    assert failure(-24, "", 900) == "no result after 900 s"
    assert failure(-9, "", 900) == "killed (SIGKILL)"
    assert failure(1, "Traceback\nValueError: no rows", 900) == "ValueError: no rows"
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'KeyError: nowhere' >&2\nexit 1\n")
    python.chmod(0o755)
    ended = peers.run.in_a_process(python, 60)(peers.run.Job("nowhere", "pue", "?", 0))
    assert ended == {"error": "KeyError: nowhere"}


def test_the_table_shows_spreads_failures_and_ratios(peers):
    job = {"problem": "table", "tool": "pue", "method": "nnPU, linear", "rows": None}
    records = [
        line({**job, "seed": 0}, 90, 1.0),
        line({**job, "seed": 1}, 92, 3.0),
        line({**job, "tool": "pulearn", "seed": 0}, 80, 2.0),
        line({**job, "tool": "pulearn", "seed": 1}, 80, 2.0),
        {**job, "tool": "pulearn", "method": "bagging", "seed": 0, "error": "MemoryError: a|b"},
    ]
    shown = peers.show.markdown(records)
    assert "| pue | nnPU, linear | 91.00 ± 1.41 | 95.00 ± 0.00 | 2 | 2.0 ± 1.4 | 2.00 | 0.50 |" in shown
    assert "| pulearn | bagging | fails: MemoryError: a/b | | 1 | | | |" in shown
    assert "| table | nnPU, linear | pulearn | 1.00 ± 0.71 | 1.00 ± 0.71 | 2 |" in shown
    page = peers.show.insert("a\n<!-- results -->\nold\n<!-- end -->\nb", shown)
    assert page == f"a\n<!-- results -->\n{shown}<!-- end -->\nb"
    assert peers.show.insert(page, shown) == page
    assert peers.show.insert((FOLDER / "README.md").read_text(), shown).count(shown) == 1
