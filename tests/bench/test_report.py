"""Reports: the paper's rows, grouping, comparison like with like, gains, renderers, pictures and the command."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fabricated import fabricated
from PIL import Image
from rich.console import Console

from pue.app.cli import main
from pue.bench.presets import LABELS
from pue.bench.record import MeanSd
from pue.bench.report import plots, render
from pue.bench.report.groups import group
from pue.bench.report.notes import NOTES
from pue.bench.report.overview import overview
from pue.bench.report.paper import PAPER, printed_name
from pue.bench.report.results import pictures, results_page, save_pictures
from pue.bench.report.rows import ResultRow, result_rows
from pue.bench.report.shortfalls import shortfalls
from pue.bench.report.tables import Column, ReportTable, suite_tables, wide_table
from pue.bench.report.wants import wants
from pue.bench.spec import digest
from pue.bench.store import as_text, read_records
from pue.bench.suites import SUITES, resolve, row_name
from pue.errors import InvalidInput
from pue.judging.truth import METRICS
from pue.persistence.sealed import opened

ROOT = Path(__file__).parents[2]
MNIST = list(LABELS["mnist"].mix or ())
METHODS = {"uPU": "upu", "nnPU": "nnpu", "Dist-PU": "distpu", "quantile": "quantile"}


def write(
    folder: Path, row: str, seed: int, accuracy: float, *, suite: str = "mnist", spec: Any = None, **body: Any
) -> Path:
    """A fabricated record of MNIST with the paper's labels; `spec` and `body` replace fields of the two levels."""
    source = "true" if row.endswith("'") else "auto" if row.endswith("e") else "none"
    full = {
        "schema": 1,
        "dataset": "mnist",
        "method": METHODS.get(row.rstrip("'").removesuffix("e") if source != "none" else row, "nnpu"),
        "labels": {"kind": "mix", "n_labeled": 2500, "mix": MNIST},
        "settings": {"epochs": 10},
        "propensity": source,
        "seed": seed,
        "preset": "fast",
        **(spec or {}),
    }
    record = fabricated(full, row, accuracy, **body)
    path = folder / suite / f"{digest(full)[:12]}-{seed}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_text(record))
    return path


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """uPU above the paper's, uPUe below it, Dist-PU, and a row of our own; all others are missing."""
    for seed, offset in enumerate((-0.4, 0.0, 0.4)):
        write(tmp_path / "runs", "uPU", seed, 86.0 + offset)
        write(tmp_path / "runs", "uPUe", seed, 91.0 + offset / 2)
        write(tmp_path / "runs", "Dist-PU", seed, 90.0 + offset)
        write(tmp_path / "runs", "quantile", seed, 90.8)
    return tmp_path / "runs"


def of_suite(runs: Path, suite: str = "mnist") -> Any:
    return {line.name: line for line in rows_of(runs, suite)}


def rows_of(runs: Path, suite: str = "mnist") -> list[ResultRow]:
    return result_rows(suite, read_records(runs)[suite])


def page_of(records: Any) -> str:
    return results_page(records, source="runs", images="pictures")


def groups_of(runs: Path) -> Any:
    return group("mnist", read_records(runs)["mnist"])


def run_report(*arguments: object) -> int:
    """The exit code of the command."""
    with pytest.raises(SystemExit) as exit_:
        main(["report", *map(str, arguments)])
    return int(exit_.value.code or 0)


# ------------------------------------------------------------------------------------------------ paper


def test_the_paper_has_its_rows():
    counts = {suite: sum(row.suite == suite for row in PAPER) for suite in {row.suite for row in PAPER}}
    assert counts == {"mnist": 12, "cifar10": 12, "alzheimer": 8, "mix-ablation": 12, "supplement": 5}
    keys = [(row.suite, row.name, row.mix, row.regularized) for row in PAPER]
    assert len(set(keys)) == len(keys) == 49
    assert all(set(row.metrics) == set(METRICS) for row in PAPER)
    assert all(
        spread.n == 6 and spread.sd is not None and 0 < spread.sd < 12 for r in PAPER for spread in r.metrics.values()
    )


@pytest.mark.parametrize("suite", SUITES)
def test_the_rows_of_a_suite_stand_in_the_papers_order_and_the_report_keeps_it(tmp_path, suite):
    for seed in (1, 0):
        for spec in reversed(resolve(suite, seeds=[seed])):
            write(tmp_path, row_name(spec), seed, 60.0, suite=suite, spec=spec.to_dict())
    names = [row_name(spec) for spec in resolve(suite)]
    assert [each.row for each in group(suite, read_records(tmp_path)[suite])] == names
    if suite not in ("mix-ablation", "alpha-ablation"):
        printed = [row.name for row in PAPER if row.suite == suite]
        assert list(dict.fromkeys(name for row in names if (name := printed_name(row)) in printed)) == printed


def test_suites_are_shown_in_their_order_and_others_last(tmp_path):
    for suite in ("zoo", "digits", "custom", "mnist"):
        write(tmp_path, "uPU", 0, 60.0, suite=suite)
    assert list(read_records(tmp_path)) == ["mnist", "digits", "custom", "zoo"]


PRIORS = {"mnist": 0.4926, "cifar10": 0.4, "alzheimer": 0.4996}


@pytest.mark.parametrize("row", PAPER, ids=lambda row: f"{row.suite}-{row.name}-{row.regularized}")
def test_flavors_and_notes_follow_from_the_printed_numbers(row):
    # AP of hard labels is P·R + (1 − R)·π: it holds for the rows called hard and fails by far for the others.
    p, r, f1 = (row.metrics[name].mean / 100 for name in ("precision", "recall", "f1"))
    hard = p * r + (1 - r) * PRIORS[row.dataset]
    assert (abs(hard - row.metrics["ap"].mean / 100) < 0.003) == (row.flavor == "hard")
    # A printed row whose F1 or accuracy cannot come from its precision and recall says so, and no other does.
    prior = PRIORS[row.dataset]
    accuracy = prior * r + (1 - prior) - prior * r * (1 - p) / p
    off = abs(2 * p * r / (p + r) - f1) > 0.0025 or abs(accuracy - row.metrics["accuracy"].mean / 100) > 0.005
    assert off == bool(row.note and "same numbers" not in row.note)


def test_rows_said_to_repeat_the_main_table_do():
    for row in PAPER:
        if "same numbers" in row.note:
            assert any(r.metrics == row.metrics and r.suite == r.dataset and r.name == row.name for r in PAPER)


# ------------------------------------------------------------------------------------- records and groups


def test_means_and_deviations_match_a_slow_twin(runs):
    for each in groups_of(runs):
        values = []
        for path in runs.rglob("*.json"):
            record = json.loads(path.read_text())
            if record["row"] == each.row:
                values.append(100 * record["metrics"]["accuracy"])
        mean = 0.0
        for value in values:
            mean += value / len(values)
        squares = 0.0
        for value in values:
            squares += (value - mean) ** 2
        spread = each.metric("accuracy")
        assert spread.n == len(values) == 3
        assert spread.mean == pytest.approx(mean, rel=1e-12)
        assert spread.sd == pytest.approx(math.sqrt(squares / (len(values) - 1)), abs=1e-9)


@pytest.mark.parametrize(
    "change",
    [
        {"settings": {"epochs": 20}},
        {"preset": "paper"},
        {"labels": {"kind": "scar", "n_labeled": 2500}},
        {"prior": 0.4},
    ],
)
def test_different_settings_are_never_averaged(runs, change):
    write(runs, "uPU", 7, 50.0, spec=change)
    found = [each for each in groups_of(runs) if each.row == "uPU"]
    assert sorted(len(each.records) for each in found) == [1, 3]
    assert all(each.setting for each in found)
    assert found[0].setting != found[1].setting
    note = " ".join(suite_tables(rows_of(runs))[0].notes)
    assert "uPU: several settings, never averaged together" in note


def test_the_setting_names_only_what_differs(runs):
    write(runs, "uPU", 7, 50.0, spec={"settings": {"epochs": 20}})
    names = {each.name for each in groups_of(runs)}
    assert {"uPU, epochs=10", "uPU, epochs=20", "uPUe", "quantile"} <= names


def test_the_same_run_twice_is_refused(runs):
    path = next((runs / "mnist").glob("*.json"))
    (path.parent / "copy.json").write_text(path.read_text())
    with pytest.raises(InvalidInput, match="are the same run"):
        read_records(runs)


def test_what_runs_share_is_not_a_run(runs):
    (runs / "propensities").mkdir()
    (runs / "propensities" / "a.json").write_text('{"values": [1.0]}')
    assert set(read_records(runs)) == {"mnist"}


def test_one_suite_can_be_read_alone(runs):
    assert read_records(runs / "mnist") == read_records(runs)


# ------------------------------------------------------------------------------------------- comparison


def test_rows_stand_beside_the_papers(runs):
    found = of_suite(runs)
    assert found["uPU"].difference == pytest.approx(0.83)
    assert found["uPU"].reaches is True
    assert found["uPUe"].difference == pytest.approx(-1.28)
    assert found["uPUe"].reaches is False
    assert found["quantile"].paper is None
    assert found["quantile"].reaches is None


def test_reaching_is_judged_at_the_papers_two_decimals(tmp_path):
    write(tmp_path, "uPU", 0, 85.166)
    assert of_suite(tmp_path)["uPU"].reaches is True
    write(tmp_path / "below", "uPU", 0, 85.164)
    assert of_suite(tmp_path / "below")["uPU"].reaches is False


def test_missing_rows_are_shown(runs):
    names = list(of_suite(runs))
    assert names[:12] == [row.name for row in PAPER if row.suite == "mnist"]
    table = suite_tables(rows_of(runs))[0]
    row = dict(zip((column.key for column in table.columns), table.texts()[names.index("nnPU")], strict=True))
    assert (row["n"], row["accuracy"], row["accuracy_paper"], row["reaches"]) == ("0", "no run", "87.81 ± 1.65", "–")


@pytest.mark.parametrize(
    "change",
    [
        {"labels": {"kind": "mix", "n_labeled": 2500, "mix": [0.2] * 5}},
        {"labels": {"kind": "mix", "n_labeled": 100, "mix": MNIST}},
        {"labels": {"kind": "scar", "n_labeled": 2500}},
        {"settings": {"epochs": 10, "rows": 600}},
        {"dataset": "digits"},
    ],
)
def test_another_problem_is_not_compared_with_the_papers_row(tmp_path, change):
    write(tmp_path, "uPU", 0, 90.0, spec=change)
    found = rows_of(tmp_path)
    assert [line.paper is None for line in found if line.ours] == [True]
    assert any(line.row_name == "uPU" and line.ours is None for line in found)
    assert "uPU: other data, labels or regularizer than the paper's row; not compared." in suite_tables(found)[0].notes


def test_what_a_preset_implies_goes_by_its_name(tmp_path):
    for preset, epochs in {"fast": 10, "best": 20}.items():
        write(tmp_path, "nnPU", 0, 90.0, spec={"preset": preset, "settings": {"epochs": epochs}})
    assert sorted(row.setting for row in rows_of(tmp_path) if row.ours) == ["preset=best", "preset=fast"]
    write(tmp_path, "nnPU", 0, 90.0, spec={"preset": "fast", "settings": {"epochs": 11}})
    assert "epochs=11, preset=fast" in {row.setting for row in rows_of(tmp_path)}


def test_auc_is_compared_in_the_flavor_that_was_printed(runs):
    cells = {row[0]: row for row in wide_rows(runs)}
    hard, score = cells["uPU"][1], cells["Dist-PU"][1]
    assert hard["flavor"] == "hard"
    assert hard["auc_like"].mean == pytest.approx(86.2)
    assert hard["auc_other"].mean == pytest.approx(90.0)
    assert hard["auc_difference"] == pytest.approx(86.2 - 85.34)
    assert hard["ap_difference"] == pytest.approx(82.0 - 77.41)
    assert score["flavor"] == "scores"
    assert score["auc_like"].mean == pytest.approx(94.0)
    assert score["auc_other"].mean == pytest.approx(90.2)
    assert score["auc_difference"] == pytest.approx(94.0 - 96.60)


def wide_rows(runs: Path) -> list[tuple[str, dict[str, Any]]]:
    table = wide_table({suite: result_rows(suite, found) for suite, found in read_records(runs).items()})
    keys = [column.key for column in table.columns]
    assert len(set(keys)) == len(keys)
    return [(str(row[keys.index("row")]), dict(zip(keys, row, strict=True))) for row in table.rows]


@pytest.mark.parametrize(("alpha", "regularized"), [(15, True), (0, False)])
def test_the_mix_ablation_goes_by_mix_and_regularizer(tmp_path, alpha, regularized):
    mix = [0.08, 0.86, 0.02, 0.04]
    spec = {"dataset": "cifar10", "labels": {"kind": "mix", "n_labeled": 1000, "mix": mix}, "method": "distpu"}
    network = {"propensity": "network", "propensity_options": {"alpha": alpha}}
    write(tmp_path, f"Dist-PUe (α={alpha})", 0, 90.0, suite="mix-ablation", spec={**spec, **network})
    write(tmp_path, "Dist-PU", 0, 88.0, suite="mix-ablation", spec=spec)
    ours = [line for line in of_suite(tmp_path, "mix-ablation").values() if line.ours]
    assert [line.paper.mix for line in ours] == [tuple(mix)] * 2
    weighted = next(line for line in ours if line.row_name != "Dist-PU")
    assert weighted.paper.regularized is regularized
    assert weighted.gain.gain.mean == pytest.approx(2.0)
    assert weighted.paper_gain == pytest.approx((1.41, 2.80) if regularized else (-0.35, 3.69))


def test_names_of_the_supplement(tmp_path):
    write(tmp_path, "nnPU w/o normalisation", 0, 91.0, suite="supplement", spec={"method": "nnipw"})
    line = of_suite(tmp_path, "supplement")["nnPU w/o normalisation"]
    assert line.paper.name == "nnPU without normalize"
    assert line.gain is None


# ------------------------------------------------------------------------------------------------ gains


def test_gains_are_paired_by_seed(tmp_path):
    for seed, (plain, e) in enumerate([(80.0, 85.0), (82.0, 86.0), (84.0, 90.0)]):
        write(tmp_path, "uPU", seed, plain)
        write(tmp_path, "uPUe", seed, e)
    write(tmp_path, "uPUe", 9, 10.0)  # no plain run with this seed: it must not count
    gain = of_suite(tmp_path)["uPUe"].gain
    assert (gain.gain.n, gain.gain.mean, gain.gain.sd) == (3, pytest.approx(5.0), pytest.approx(1.0))
    assert gain.spreads == pytest.approx(2.0 + math.sqrt(7))
    assert gain.exceeds is True
    notes = [note for table in suite_tables(rows_of(tmp_path)) for note in table.notes]
    assert "uPUe: over the 3 seeds that it shares with uPU." in notes


def test_a_gain_within_the_spreads_does_not_exceed_them(tmp_path):
    for seed, offset in enumerate((-2.0, 0.0, 2.0)):
        write(tmp_path, "uPU", seed, 80.0 + offset)
        write(tmp_path, "uPUe", seed, 83.9 + offset)
    gain = of_suite(tmp_path)["uPUe"].gain
    assert gain.spreads == pytest.approx(4.0)
    assert gain.exceeds is False
    assert any("uPUe +3.90 against 4.00 (n = 3)" in text for text in shortfalls(rows_of(tmp_path)))


def test_a_single_seed_decides_nothing(tmp_path):
    write(tmp_path, "uPU", 0, 80.0)
    write(tmp_path, "uPUe", 0, 90.0)
    gain = of_suite(tmp_path)["uPUe"].gain
    assert (gain.spreads, gain.exceeds) == (None, None)
    assert "Gains from one common seed, so without a spread: uPUe +10.00." in shortfalls(rows_of(tmp_path))


def test_the_plain_row_is_the_one_with_the_same_settings(tmp_path):
    longer = {"settings": {"epochs": 20}}
    write(tmp_path, "uPU", 0, 80.0)
    write(tmp_path, "uPU", 0, 70.0, spec=longer)
    write(tmp_path, "uPUe", 0, 90.0, spec=longer)
    assert of_suite(tmp_path)["uPUe"].gain.gain.mean == pytest.approx(20.0)


def test_other_settings_that_differ_in_a_gain_are_named(tmp_path):
    write(tmp_path, "uPU", 0, 80.0)
    write(tmp_path, "uPUe", 0, 90.0, spec={"settings": {"epochs": 20}})
    notes = [note for table in suite_tables(rows_of(tmp_path)) for note in table.notes]
    assert "uPUe and its plain row also differ in settings.epochs." in notes


@pytest.mark.parametrize("change", [{"preset": "paper"}, {"labels": {"kind": "scar", "n_labeled": 2500}}])
def test_no_gain_over_a_row_of_another_problem(tmp_path, change):
    write(tmp_path, "uPU", 0, 80.0, spec=change)
    write(tmp_path, "uPUe", 0, 90.0)
    assert of_suite(tmp_path)["uPUe"].gain is None


# ------------------------------------------------------------------------------------------ shortfalls


def test_a_row_whose_risk_wants_something_else_is_explained(runs):
    assert wants(rows_of(runs)) == []  # uPU is above the paper's, uPUe corrects the labels
    for seed in range(3):
        write(runs, "uPU", seed, 69.0)
    (told,) = wants(rows_of(runs))
    assert "0, 2 positive; 6, 8 negative; 4 a draw; so 70.6 to 80.4 % accuracy" in told
    assert told.endswith("The paper prints 85.17. A training that stops early can be above it; a lower risk cannot.")


def test_shortfalls_are_computed(runs):
    assert shortfalls(rows_of(runs)) == [
        "The accuracy of 1 of 3 rows is below the paper's: uPUe by 1.28 (n = 3).",
        "The AUC of 2 of 3 rows is below the paper's: Dist-PU by 2.60 (n = 3); uPUe by 1.13 (n = 3).",
        "The AP of 2 of 3 rows is below the paper's: Dist-PU by 3.92 (n = 3); uPUe by 0.69 (n = 3).",
        "All 1 e-rows are above their plain row by more than sd plain + sd e.",
        "No run for 9 of the paper's rows: nnPU; PUbN; nnPUe; PUbNe; Dist-PUe; uPUe'; nnPUe'; PUbNe'; Dist-PUe'.",
        "Fewer seeds than the paper's 6: n = 3 for all rows.",
    ]


def test_warnings_and_the_best_alpha_are_told(tmp_path):
    for alpha, accuracy in ((0, 90.0), (10, 92.0), (15, 91.0)):
        network = {"propensity": "network", "propensity_options": {"alpha": alpha}, "method": "distpu"}
        path = write(tmp_path, f"Dist-PUe (α={alpha})", 0, accuracy, suite="alpha-ablation", spec=network)
    path.write_text(as_text({**opened(path.read_bytes(), "x"), "warnings": ["look twice"]}))
    rows = rows_of(tmp_path, "alpha-ablation")
    told = shortfalls(rows)
    assert "Runs that ended with a warning, kept in their records: Dist-PUe (α=15) (1 of 1)." in told
    assert "Best α_e: 10, 92.00 (n = 1); at the paper's best, 15, 91.00 (n = 1)." in told
    assert [row.row_name for row in rows] == [f"Dist-PUe (α={alpha})" for alpha in (0, 10, 15)]


# -------------------------------------------------------------------------------------------- renderers


def odd_table() -> ReportTable:
    columns = (
        Column("row", "a|b_c", lambda line: None, is_text=True),
        Column("value", "50% & up", lambda line: None),
        Column("ok", "ok", lambda line: None),
    )
    rows = (("x|y*z_1 <b>", MeanSd(92.283, 1.319, 6), True), ("$\\{~^}#", None, False))
    return ReportTable("ours & theirs", columns, rows, ("n_eff < 5 %",))


def test_markdown_is_escaped():
    assert render.markdown(odd_table()).splitlines() == [
        "**ours & theirs**",
        "",
        r"| a\|b\_c | 50% & up | ok |",
        "|:--|--:|--:|",
        r"| x\|y\*z\_1 \<b\> | 92.28 ± 1.32 | yes |",
        r"| $\\{~^}\# | – | no |",
        "",
        r"- n\_eff \< 5 %",
    ]


def test_latex_is_escaped():
    text = render.latex(odd_table(), "mnist")
    assert r"\caption{mnist: ours \& theirs}" in text
    assert r"a\textbar{}b\_c & 50\% \& up & ok \\" in text
    assert r"x\textbar{}y*z\_1 $<$b$>$ & 92.28 $\pm$ 1.32 & yes \\" in text
    assert r"\$\textbackslash{}\{\textasciitilde{}\textasciicircum{}\}\# & -- & no \\" in text
    assert text.count(r"\toprule") == text.count(r"\midrule") == text.count(r"\bottomrule") == 1
    assert r"\begin{tabular}{lrr}" in text


def test_csv_and_json_hold_numbers_in_full():
    rows = list(csv.DictReader(io.StringIO(render.comma_separated(odd_table()))))
    assert rows[0] == {"row": "x|y*z_1 <b>", "value": "92.283", "value_sd": "1.319", "value_n": "6", "ok": "True"}
    assert rows[1]["value"] == rows[1]["value_sd"] == ""
    found = json.loads(render.as_json(odd_table()))
    assert found[0]["value"] == {"mean": 92.283, "sd": 1.319, "n": 6}
    assert found[1] == {"row": "$\\{~^}#", "value": None, "ok": False}


def test_the_terminal_shows_markup_as_it_is():
    table = ReportTable("t", (Column("row", "row", lambda line: None, is_text=True),), (("[red]uPU[/red]",),))
    console = Console(file=io.StringIO(), width=80)
    console.print(render.terminal(table))
    assert "[red]uPU[/red]" in console.file.getvalue()  # type: ignore[attr-defined]


GOLDEN = """\
## MNIST

{note}

    pue bench mnist --preset fast --seeds 3 --methods "uPU,Dist-PU,uPUe,quantile"

- data: mnist, 2500 labeled, 60000 unlabeled, checksum 0123456789ab
- preset: fast
- seeds: 0, 1, 2
- runs: 12 in 4 rows, n = 3 each; 12 with other settings than this version's preset
- versions: python 3.12.1, torch 2.6.0
- cost in all: 0.03 CPU hours (0.04 on the clock), 0.01 more for propensities, 1.80e+13 FLOPs, at most 512 MiB

**Accuracy, %**

| row | n | ours | paper | difference | reaches the paper's |
|:--|--:|--:|--:|--:|--:|
| uPU | 3 | 86.00 ± 0.40 | 85.17 ± 1.90 | +0.83 | yes |
| nnPU | 0 | no run | 87.81 ± 1.65 | – | – |
| PUbN | 0 | no run | 87.07 ± 1.73 | – | – |
| Dist-PU | 3 | 90.00 ± 0.40 | 89.79 ± 0.59 | +0.21 | yes |
| uPUe | 3 | 91.00 ± 0.20 | 92.28 ± 1.32 | -1.28 | no |
| nnPUe | 0 | no run | 92.45 ± 1.61 | – | – |
| PUbNe | 0 | no run | 94.70 ± 0.63 | – | – |
| Dist-PUe | 0 | no run | 92.57 ± 0.78 | – | – |
| uPUe' | 0 | no run | 92.39 ± 1.36 | – | – |
| nnPUe' | 0 | no run | 92.94 ± 1.27 | – | – |
| PUbNe' | 0 | no run | 94.48 ± 0.93 | – | – |
| Dist-PUe' | 0 | no run | 91.73 ± 0.95 | – | – |
| quantile | 3 | 90.80 ± 0.00 | – | – | – |

- The paper's Dist-PU: printed precision and recall imply an accuracy of 90.8, not 89.79.
"""


def test_the_page_is_as_it_should_be(runs):
    page = page_of(read_records(runs))
    assert page.startswith("# Results\n\nTest accuracy in %, mean ± standard deviation.")
    assert "\nGenerated by `pue report runs -o RESULTS.md` from the records in `runs/`;" in page
    assert GOLDEN.replace("{note}", NOTES["mnist"]) in page
    assert "| uPUe | 3 | +5.00 ± 0.20 | 0.60 | yes | +7.11 | 3.22 | yes |" in page
    assert "| uPUe | 3 | 10.0 ± 0.0 | 20.0 ± 0.0 | 11.0 ± 0.0 | 1.50e+12 | 512 | 0.030 ± 0.000 | 901 ± 1 |" in page
    assert "![MNIST, accuracy](pictures/mnist_accuracy.png)" in page
    assert "- Fewer seeds than the paper's 6: n = 3 for all rows.\n" in page


def test_the_page_depends_on_nothing_but_the_records(runs, tmp_path):
    other = tmp_path / "other"
    for path in sorted(runs.rglob("*.json"), reverse=True):
        (other / "mnist").mkdir(parents=True, exist_ok=True)
        (other / "mnist" / f"z{path.name[::-1]}.json").write_text(path.read_text())
    assert page_of(read_records(runs)) == page_of(read_records(other))


def test_rows_with_other_seeds_get_a_command_of_their_own(runs):
    write(runs, "nnPU", 4, 88.0)
    page = page_of(read_records(runs))
    assert '    pue bench mnist --preset fast --seeds 3 --methods "uPU,Dist-PU,uPUe,quantile"\n' in page
    assert '    pue bench mnist --preset fast --seeds 4, --methods "nnPU"\n' in page


def test_a_whole_suite_needs_no_list_of_rows(tmp_path):
    for spec in resolve("digits", preset="smoke", seeds=(0, 1)):
        write(tmp_path, row_name(spec), spec.seed, 60.0, suite="digits", spec=spec.to_dict())
    page = page_of(read_records(tmp_path))
    assert "\n    pue bench digits --preset smoke --seeds 2\n" in page
    assert "other settings" not in page


def test_another_data_set_than_the_suites_name_is_in_the_command(tmp_path):
    write(tmp_path, "Dist-PU", 0, 90.0, suite="mix-ablation")
    page = page_of(read_records(tmp_path))
    assert "    pue bench mix-ablation --dataset mnist --preset fast --seeds 1 " in page


# --------------------------------------------------------------------------------------------- the opening


def test_the_page_opens_with_one_table_and_a_picture(runs):
    write(runs, "supervised", 0, 94.0)
    opening = page_of(read_records(runs)).split("Generated by")[0]
    head = "| data | method | plain | estimated | true | paper: plain | paper: estimated | paper: true |"
    assert f"{head} all classes known |" in opening
    upu = "| MNIST | uPU | 86.0 ± 0.4 | 91.0 ± 0.2 | – | 85.2 ± 1.9 | 92.3 ± 1.3 | 92.4 ± 1.4 | 94.0 |"
    assert upu in opening
    assert "|  | Dist-PU | 90.0 ± 0.4 | – | – | 89.8 ± 0.6 |" in opening
    assert "nnPU" not in opening  # no run of it
    assert "2 of these 3 rows are at or above the paper's accuracy; below it: uPUe on MNIST" in opening
    assert "6 seeds a number; fewer: uPU on MNIST 3, uPUe on MNIST 3, Dist-PU on MNIST 3." in opening
    assert "![Accuracy in a picture](pictures/overview.svg)" in opening
    assert "Alzheimer" not in opening


def test_a_preset_is_shown_by_its_name_and_not_by_what_came_out(tmp_path):
    for preset, accuracy in (("fast", 90.0), ("best", 80.0)):
        (spec,) = resolve("cifar10", preset=preset, methods=["nnPU"])
        write(tmp_path, "nnPU", 0, accuracy, suite="cifar10", spec=spec.to_dict())
    (line,) = overview(read_records(tmp_path))
    assert line.ours["plain"].mean == pytest.approx(80)
    assert line.short == ["nnPU"]
    assert line.ceiling is None


def test_communities_stand_beside_the_paper_with_its_labels_alone(tmp_path):
    for number, spec in enumerate(resolve("structure", dataset="mnist", methods=["communities"])):
        write(tmp_path, row_name(spec), 0, 94.0 - number, suite="structure", spec=spec.to_dict())
    for suite, accuracy in (("alzheimer", 81.0), ("alzheimer-subjects", 64.0)):
        (spec,) = resolve(suite, methods=["communities"])
        write(tmp_path, row_name(spec), 0, accuracy, suite=suite, spec=spec.to_dict())
    lines = {line.dataset: line for line in overview(read_records(tmp_path))}
    assert {name: round(line.ours["plain"].mean) for name, line in lines.items()} == {"mnist": 94, "alzheimer": 81}
    assert all(line.compared == 0 and not line.paper for line in lines.values())
    opening = page_of(read_records(tmp_path)).split("Generated by")[0]
    assert "of these" not in opening
    assert "the same 200 people" in opening


def test_a_page_without_the_papers_data_has_no_opening(tmp_path):
    for spec in resolve("digits", preset="smoke", methods=["nnPU"]):
        write(tmp_path, row_name(spec), 0, 60.0, suite="digits", spec=spec.to_dict())
    assert page_of(read_records(tmp_path)).startswith("# Results\n\nGenerated by")
    assert "overview.svg" not in pictures(read_records(tmp_path))


def test_the_opening_picture_has_a_panel_for_each_data_set(runs):
    write(runs, "supervised", 0, 94.0)
    figure = pictures(read_records(runs))["overview.svg"]
    (axes,) = figure.axes
    assert axes.get_title(loc="left") == "MNIST"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["uPU", "Dist-PU"]
    marks = {(line.get_marker(), round(float(line.get_xdata()[0]), 2)) for line in axes.lines if line.get_marker()}
    assert {("o", 86.0), ("o", 91.0), ("D", 85.17), ("D", 92.28), ("D", 92.39)} <= marks
    assert 94.0 in [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"]


# --------------------------------------------------------------------------------------------- pictures


def ablations(folder: Path) -> Any:
    for seed in (0, 1):
        for mix in ([0.25] * 4, [0.72, 0.15, 0.10, 0.03]):
            labels = {"kind": "mix", "n_labeled": 1000, "mix": mix}
            spec = {"dataset": "cifar10", "method": "distpu", "labels": labels}
            write(folder, "Dist-PU", seed, 85.0 + seed, suite="mix-ablation", spec=spec)
            for alpha in (0, 15):
                network = {**spec, "propensity": "network", "propensity_options": {"alpha": alpha}}
                write(folder, f"Dist-PUe (α={alpha})", seed, 86.0 + alpha / 10, suite="mix-ablation", spec=network)
        for alpha in (0, 5, 15):
            network = {"method": "distpu", "propensity": "network", "propensity_options": {"alpha": alpha}}
            accuracy = 90 + alpha / 10 + seed
            write(folder, f"Dist-PUe (α={alpha})", seed, accuracy, suite="alpha-ablation", spec=network)
    return read_records(folder)


def test_pictures_of_every_suite(runs):
    names = list(pictures(ablations(runs)))
    assert names == [
        "overview.svg",
        "mnist_accuracy.png",
        "mix-ablation_accuracy.png",
        "mix-ablation_gain.png",
        "alpha-ablation_alpha.png",
    ]


def test_the_gain_is_drawn_against_the_bias_of_the_mix(tmp_path):
    figure = pictures(ablations(tmp_path))["mix-ablation_gain.png"]
    drawn = {c.get_label(): c.lines[0].get_xydata() for c in figure.axes[0].containers}
    assert drawn["Dist-PUe (α=15)"][:, 0] == pytest.approx([0.0, 0.47], abs=0.01)
    assert drawn["Dist-PUe (α=15)"][:, 1] == pytest.approx([2.0, 2.0])
    assert drawn["Dist-PUe (α=0)"][:, 1] == pytest.approx([0.5, 0.5])


def test_the_alpha_curve_shows_means_and_share_distances(tmp_path):
    top, bottom = pictures(ablations(tmp_path))["alpha-ablation_alpha.png"].axes
    assert top.containers[0].lines[0].get_xydata()[:, 0].tolist() == [0, 5, 15]
    assert top.containers[0].lines[0].get_xydata()[:, 1] == pytest.approx([90.5, 91.0, 92.0])
    assert bottom.containers[0].lines[0].get_xydata()[:, 1] == pytest.approx([0.03] * 3)


def test_pictures_have_the_same_bytes_every_time(runs, tmp_path):
    one, two = (plots.save(plots.accuracy_dots(rows_of(runs), "MNIST"), tmp_path / f"{name}.png") for name in "ab")
    assert one.read_bytes() == two.read_bytes()
    assert one.read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.glob("*.*")) == ["a.png", "b.png"]


# ------------------------------------------------------------------------------------------ the command


def test_the_command_prints_tables(runs, capsys):
    assert run_report(runs) == 0
    printed = capsys.readouterr().out
    assert "86.00 ± 0.40" in printed
    assert "no run" in printed


@pytest.mark.parametrize("suffix", [".md", ".tex", ".csv", ".json"])
def test_the_command_writes_every_format(runs, tmp_path, suffix):
    output = tmp_path / "out" / f"RESULTS{suffix}"
    assert run_report(runs, "-o", output) == 0
    assert "Dist-PU" in output.read_text()
    assert (tmp_path / "out" / "docs/images/results/mnist_accuracy.png").exists() == (suffix == ".md")
    assert [path.name for path in output.parent.iterdir() if path.is_file()] == [output.name]


def test_pictures_go_where_they_are_told(runs, tmp_path):
    assert run_report(runs, "-o", tmp_path / "a" / "x.md", "--images", tmp_path / "b") == 0
    assert "](../b/mnist_accuracy.png)" in (tmp_path / "a" / "x.md").read_text()
    assert (tmp_path / "b" / "mnist_accuracy.png").exists()


def damage(runs: Path, text: str) -> None:
    next((runs / "mnist").glob("*.json")).write_text(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": 1, "key"', "is damaged"),
        ("[1, 2]", "carries no digest of its content"),
        (json.dumps({"schema": 1, "key": digest({"seed": 0}), "spec": {"seed": 0}}), "carries no digest"),
        (as_text({"schema": 2}), "is not a record of schema 1"),
        (as_text({"schema": 1, "key": "a", "spec": {"seed": 0}, "row": "uPU"}), "its key is not that of its spec"),
        (as_text({"schema": 1, "key": digest({"seed": 0}), "spec": {"seed": 0}}), "a record needs the field 'row'"),
        (as_text({"schema": 1, "key": digest({"seed": 0}), "spec": {"seed": 0}, "rwo": 1}), "Did you mean 'row'"),
        (as_text({"schema": 1, "key": digest(3), "spec": 3}), "its key is not that of its spec"),  # type: ignore[arg-type]
    ],
)
def test_damaged_records_are_named_and_the_code_is_2(runs, capsys, text, message):
    damage(runs, text)
    assert run_report(runs) == 2
    said = capsys.readouterr().err
    assert message in said
    assert ".json" in said
    assert "Delete it" in said


def test_an_empty_folder_says_what_to_do(tmp_path, capsys):
    assert run_report(tmp_path) == 2
    assert "no run records (*.json)" in capsys.readouterr().err
    assert run_report(tmp_path / "nowhere") == 2
    assert "is not a folder" in capsys.readouterr().err


def test_other_formats_are_refused_before_anything_is_read(tmp_path, capsys):
    assert run_report(tmp_path / "nowhere", "-o", "page.pdf") == 2
    assert "cannot write 'page.pdf': the formats are .md, .tex, .csv, .json." in capsys.readouterr().err


# --------------------------------------------------------------------------------- what is in the repository


def test_the_committed_page_is_what_the_committed_records_give(tmp_path):
    records = ROOT / "results"
    if not any(records.rglob("*.json")):
        pytest.skip("no committed records yet")
    page = results_page(read_records(records), source="results", images="docs/images/results")
    assert (ROOT / "RESULTS.md").read_text(encoding="utf-8") == page, "run: pue report results -o RESULTS.md"
    drawn = {path.name: path for path in save_pictures(read_records(records), tmp_path)}
    assert set(drawn) == {path.name for path in (ROOT / "docs/images/results").iterdir()}
    places = (tmp_path, ROOT / "docs/images/results")
    opening = [re.findall(r"<text[^>]*>([^<]*)", (place / "overview.svg").read_text()) for place in places]
    assert opening[0] == opening[1], "run: pue report results -o RESULTS.md"
    assert "MNIST" in opening[0]
    for name, path in drawn.items():
        if path.suffix == ".svg":
            continue
        here, there = (np.asarray(Image.open(each), float) for each in (path, ROOT / "docs/images/results" / name))
        assert here.shape == there.shape, f"{name}: run pue report results -o RESULTS.md"
        assert np.abs(here - there).mean() < 1, f"{name}: run pue report results -o RESULTS.md"
