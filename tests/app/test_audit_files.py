"""Audits through files: the sheet, the plan beside it, spreadsheets that save it anew, everything that can go wrong."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch

from pue.app.audit.cells import plain_id, safe, verdict
from pue.app.audit.learning import taught
from pue.app.audit.reading import read_sheets
from pue.app.audit.record import plan_path, read_record
from pue.app.audit.sheet import ANSWER, PROBABILITY, read_table
from pue.app.cli import main
from pue.app.fit_source import open_rows
from pue.app.recipe import Recipe
from pue.app.roles import Roles
from pue.app.sources.opening import open_source
from pue.core.lesson import combine

N = 900
HOSTILE = (
    "=HYPERLINK(1)",
    "+1+cmd",
    "-2+3",
    "@SUM(A1)",
    "\tx",
    "<script>alert(1)</script>",
    'a "quoted", cell',
    "naïve ✓",
)


def claims() -> pd.DataFrame:
    """Two kinds of positives, one of which is hardly labeled."""
    rng = np.random.default_rng(0)
    kind = rng.choice(3, N, p=[0.6, 0.2, 0.2])
    x = rng.normal(size=(N, 2)) + np.array([[0, 0], [2.5, 0], [0, 2.5]])[kind]
    return pd.DataFrame(
        {
            "claim": [f"c{row}" for row in range(N)],
            "amount": x[:, 0].round(3),
            "age": x[:, 1].round(3),
            "note": np.array(HOSTILE)[rng.integers(0, len(HOSTILE), N)],
            "fraud": (rng.random(N) < np.array([0, 0.6, 0.15])[kind]).astype(int),
            "truth": (kind > 0).astype(int),
        }
    )


def pue(*arguments: object) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audit")
    claims().to_csv(folder / "claims.csv", index=False)
    options = [
        "--label",
        "fraud",
        "--id",
        "claim",
        "--truth",
        "truth",
        "--ignore",
        "note",
        "--method",
        "logistic",
        "-q",
    ]
    given = ["--prior", "0.4", "--propensity", "none"]
    for name in ("model", "other"):
        extra = ["--seed", "1", "--calibration", "isotonic"] if name == "other" else []
        assert pue("fit", folder / "claims.csv", *options, *given, *extra, "-o", folder / name) == 0
    assert (
        pue("audit", "plan", folder / "model", folder / "claims.csv", "-n", 60, "-o", folder / "to_check.csv", "-q")
        == 0
    )
    return folder


@pytest.fixture
def sheet(home: Path, tmp_path: Path) -> Path:
    """A fresh copy of the sheet, answered by the truth."""
    for name in ("to_check.csv", "to_check.plan.json"):
        (tmp_path / name).write_bytes((home / name).read_bytes())
    return answer(tmp_path / "to_check.csv")


Row = dict[str, str]


def answer(path: Path, change: Callable[[list[Row]], list[Row]] = lambda rows: rows) -> Path:
    """Fill a sheet in by the truth, then change its rows."""
    truth = dict(zip(claims().claim, claims().truth, strict=True))
    header, rows = read_table(path)
    filled = [dict(zip(header, row, strict=True)) for row in rows]
    for row in filled:
        row[ANSWER] = "yes" if truth[row["claim"]] else "no"
    return save(path, change(filled))


def save(path: Path, rows: list[Row], separator: str = ",", encoding: str = "utf-8") -> Path:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), delimiter=separator)
    writer.writeheader()
    writer.writerows(rows)
    path.write_bytes(text.getvalue().encode(encoding, errors="replace"))
    return path


def rows_of(path: Path) -> list[Row]:
    header, rows = read_table(path)
    return [dict(zip(header, row, strict=True)) for row in rows]


def found(home: Path, capsys: pytest.CaptureFixture[str], *sheets: Path, **options: object) -> dict[str, Any]:
    extra = [part for name, value in options.items() for part in (f"--{name}", value)]
    assert pue("audit", "read", home / "model", *sheets, "--json", *extra) == 0
    read: dict[str, Any] = json.loads(capsys.readouterr().out)
    return read


def refusal(home: Path, capsys: pytest.CaptureFixture[str], *sheets: Path, model: str = "model") -> str:
    assert pue("audit", "read", home / model, *sheets) == 2
    return " ".join(capsys.readouterr().err.split())


# ------------------------------------------------------------------------------------------------ the sheet


def test_the_sheet_holds_what_a_person_needs_and_no_more(home):
    rows, record = rows_of(home / "to_check.csv"), read_record(home / "to_check.csv")
    table = claims().set_index("claim")
    assert list(rows[0]) == ["claim", "amount", "age", "note", ANSWER, PROBABILITY]
    assert [row["claim"] for row in rows] == list(record.ids)
    for row, chance in zip(rows, record.plan.probability, strict=True):
        assert table.fraud[row["claim"]] == 0
        assert float(row["amount"]) == table.amount[row["claim"]]
        assert row[ANSWER] == ""
        assert float(row[PROBABILITY]) == pytest.approx(chance, rel=1e-5)


def test_no_cell_is_a_formula(home):
    notes = [row["note"] for row in rows_of(home / "to_check.csv")]
    assert any(note.startswith("'=") for note in notes)
    assert not [note for note in notes if note.startswith(("=", "+", "-", "@", "\t"))]


@pytest.mark.parametrize(("value", "cell"), [
    ("=1", "'=1"), (" =1", "' =1"), ("@x", "'@x"), ("-1", "-1"), ("-1+2", "'-1+2"), (-2.5, "-2.5"), (np.nan, ""),
    (np.float64(3.5), "3.5"), ("plain", "plain"), (True, "True"),
])  # fmt: skip
def test_cells_are_made_safe(value, cell):
    assert safe(value) == cell


@pytest.mark.parametrize(("text", "said"), [
    ("yes", 1), ("Y", 1), (" TRUE ", 1), ("1", 1), ("1.0", 1), ("positive", 1), ("Ja", 1), ("no", 0), ("N", 0),
    ("0", 0), ("FALSE", 0), ("0,0", 0), ("-1", 0), ("?", None), ("", None), ("unknown", None), ("N/A", None),
])  # fmt: skip
def test_answers_are_read_however_they_are_spelt(text, said):
    assert verdict(text) == (True, said)


def test_ids_survive_spreadsheets():
    assert [plain_id(text) for text in ("0012", "12.0", " 12 ", "'-x")] == ["12", "12", "12", "-x"]


def test_a_plan_is_read_again_as_it_was_written(home):
    record = read_record(home / "to_check.csv")
    assert record.digest == json.loads(plan_path(home / "to_check.csv").read_text())["digest"]
    assert sum(s.drawn for s in record.plan.strata) == 60
    assert record.trained_on


def test_a_sheet_with_answers_is_never_replaced(home, sheet, capsys):
    before = sheet.read_bytes()
    assert pue("audit", "plan", home / "model", home / "claims.csv", "-o", sheet) == 2
    assert "may hold answers" in capsys.readouterr().err
    assert sheet.read_bytes() == before


# ------------------------------------------------------------------------------------------------ reading


def test_what_was_found_stands_beside_what_was_promised(home, sheet, capsys):
    read = found(home, capsys, sheet)
    for name in ("prior", "precision", "recall", "accuracy", "f1", "calibration"):
        assert read[name]["low"] <= read[name]["value"] <= read[name]["high"]
    assert set(read["promised"]) == set(read["agrees"]) == {"prior", "precision", "recall", "accuracy", "f1"}
    assert read["prior"]["low"] < claims().truth.mean() < read["prior"]["high"]
    assert (read["answered"], read["unanswered"], read["bounds"]) == (60, 0, {})
    assert pue("audit", "read", home / "model", sheet) == 0
    shown = capsys.readouterr().out
    assert "promised by the model" in shown
    assert "trained on" in shown


@pytest.mark.parametrize(
    ("separator", "encoding"), [(";", "utf-8"), ("\t", "utf-16"), (",", "cp1252"), (",", "utf-8-sig")]
)
def test_a_sheet_saved_by_a_spreadsheet_gives_the_same(home, sheet, capsys, separator, encoding):
    read = found(home, capsys, sheet)
    rows = rows_of(sheet)[::-1]
    for row in rows:
        row[PROBABILITY] = f"{float(row[PROBABILITY]):.4f}".replace(".", ",")
        row[ANSWER] = {"yes": "TRUE", "no": "0"}[row[ANSWER]]
    assert found(home, capsys, save(sheet, rows, separator, encoding)) == read


def test_a_half_filled_sheet_is_fine_and_bounded(home, sheet, capsys):
    def half(rows: list[Row]) -> list[Row]:
        return [row | {ANSWER: row[ANSWER] if k % 3 else ("?" if k % 2 else "")} for k, row in enumerate(rows)]

    read = found(home, capsys, answer(sheet, half))
    assert (read["answered"], read["unanswered"]) == (40, 20)
    assert read["bounds"]["prior"]["low"] < read["prior"]["low"]
    assert read["prior"]["high"] < read["bounds"]["prior"]["high"]
    pue("audit", "read", home / "model", sheet)
    assert "20 rows have no answer" in " ".join(capsys.readouterr().out.split())


def test_rows_that_are_gone_count_as_not_answered(home, sheet, capsys):
    assert found(home, capsys, answer(sheet, lambda rows: rows[:50]))["unanswered"] == 10
    pue("audit", "read", home / "model", sheet)
    assert "10 rows of the plan are gone" in capsys.readouterr().out


def test_a_row_that_stands_twice_counts_once(home, sheet, capsys):
    read = found(home, capsys, sheet)
    assert found(home, capsys, answer(sheet, lambda rows: [*rows, rows[0], rows[1] | {ANSWER: ""}])) == read


@pytest.mark.parametrize("verdict", ["yes", "no"])
def test_one_verdict_for_all_is_no_reason_to_fail(home, sheet, capsys, verdict):
    read = found(home, capsys, answer(sheet, lambda rows: [row | {ANSWER: verdict} for row in rows]))
    assert read["prior"]["low"] < read["prior"]["high"]


@pytest.mark.parametrize(("change", "text"), [
    (lambda rows: [*rows, rows[0] | {"claim": "c99999"}], "not in its plan: 'c99999'. Remove them"),
    (lambda rows: [*rows, rows[0] | {ANSWER: "no" if rows[0][ANSWER] == "yes" else "yes"}], "answers both yes and no"),
    (lambda rows: [rows[0] | {PROBABILITY: "0.5"}, *rows[1:]], "is not the plan's. Restore the column"),
    (lambda rows: [rows[0] | {ANSWER: "perhaps"}, *rows[1:]], "cannot be read: 'perhaps'. Write yes, no or ?"),
    (lambda rows: [row | {ANSWER: "?"} for row in rows], "no row is answered"),
    (lambda rows: [row | {ANSWER: ""} for row in rows], "no row is answered"),
    (lambda rows: [{k: v for k, v in row.items() if k != ANSWER} for row in rows], "no column 'answer'"),
    (lambda rows: [{k: v for k, v in row.items() if k != "claim"} for row in rows], "no column 'claim'"),
])  # fmt: skip
def test_what_contradicts_the_plan_is_refused_with_the_remedy(home, sheet, capsys, change, text):
    assert text in refusal(home, capsys, answer(sheet, change))


def test_a_workbook_is_named_as_one(home, sheet, capsys):
    sheet.write_bytes(b"PK\x03\x04" + bytes(range(256)))
    assert "Save it as CSV" in refusal(home, capsys, sheet)


def test_a_sheet_without_probabilities_is_read_by_its_plan(home, sheet, capsys):
    read = found(home, capsys, sheet)
    without = [{k: v for k, v in row.items() if k != PROBABILITY} for row in rows_of(sheet)]
    assert found(home, capsys, save(sheet, without)) == read


def test_a_plan_of_another_model_is_refused(home, sheet, capsys):
    assert "planned for another model" in refusal(home, capsys, sheet, model="other")


def test_a_plan_that_is_missing_edited_or_damaged_is_refused(home, sheet, capsys):
    path = plan_path(sheet)
    text = path.read_text()
    path.write_text(text.replace('"drawn": ', '"drawn": 1', 1))
    assert "was changed after it was written" in refusal(home, capsys, sheet)
    path.write_text("{}")
    assert "no plan of this version" in refusal(home, capsys, sheet)
    path.unlink()
    assert "the plan of to_check.csv is missing" in refusal(home, capsys, sheet)


FORGED = {
    "an id that is no text": lambda plan: plan["rows"][0].__setitem__(0, {}),
    "two rows of one id": lambda plan: plan["rows"][0].__setitem__(0, plan["rows"][1][0]),
    "a stratum that is not there": lambda plan: plan["rows"][0].__setitem__(2, 2**31),
    "a row before the first": lambda plan: plan["rows"][0].__setitem__(1, -1),
    "a size as text": lambda plan: plan["plan"]["strata"][0].__setitem__("size", "9"),
    "fewer rows than were drawn": lambda plan: plan["plan"]["strata"][0].__setitem__("drawn", 0),
    "other sums": lambda plan: plan["plan"]["known"].__setitem__("rows", 1),
    "a purpose of its own": lambda plan: plan["plan"].__setitem__("purpose", []),
    "a number for what it tops up": lambda plan: plan.__setitem__("after", 7),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
def test_a_forged_plan_with_a_right_digest_is_refused(home, sheet, capsys, forge: Callable[[Any], None]):
    path = plan_path(sheet)
    plan = json.loads(path.read_text())
    del plan["digest"]
    forge(plan)
    digest = hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps({**plan, "digest": digest}))
    assert "no plan of this version of pue, or damaged" in refusal(home, capsys, sheet)


def test_a_plan_that_a_killed_command_left_is_no_obstacle(home, sheet, tmp_path, capsys):
    alone = tmp_path / "again.csv"
    plan_path(alone).write_text(plan_path(sheet).read_text())
    command = ["audit", "plan", home / "model", home / "claims.csv", "-o", alone, "-q"]
    assert pue(*command, "-n", 50) == 2
    assert "the plan of another sheet" in " ".join(capsys.readouterr().err.split())
    assert pue(*command, "-n", 60) == 0
    assert read_record(alone).digest == read_record(sheet).digest
    assert len(read_table(alone)[1]) == 60


def test_ids_that_are_not_unique_are_refused(home, tmp_path, capsys):
    table = claims()
    table.loc[1, "claim"] = "c0"
    table.to_csv(tmp_path / "claims.csv", index=False)
    assert pue("audit", "plan", home / "model", tmp_path / "claims.csv", "-o", tmp_path / "x.csv") == 2
    assert "'c0' more than once" in " ".join(capsys.readouterr().err.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["claims.csv"]


# ------------------------------------------------------------------------------------------------ rounds


def test_a_second_sheet_tops_up_the_first(home, sheet, capsys):
    more = sheet.with_name("more.csv")
    assert pue("audit", "plan", home / "model", home / "claims.csv", "-n", 40, "--after", sheet, "-o", more, "-q") == 0
    answer(more)
    one, both = found(home, capsys, sheet), found(home, capsys, more, sheet)
    assert both["answered"] == 100
    assert both["rounds"] == 2
    assert both["prior"]["high"] - both["prior"]["low"] < one["prior"]["high"] - one["prior"]["low"]
    assert "tops up another one" in refusal(home, capsys, more)
    assert pue("audit", "read", home / "model", sheet, more) == 0
    assert "pass --until" in " ".join(capsys.readouterr().err.split())


def test_sheets_planned_apart_are_not_read_together(home, sheet, capsys):
    apart = sheet.with_name("apart.csv")
    assert pue("audit", "plan", home / "model", home / "claims.csv", "-n", 40, "-o", apart, "-q", "--seed", 5) == 0
    assert "planned apart" in refusal(home, capsys, sheet, answer(apart))
    assert "named twice" in refusal(home, capsys, sheet, sheet)


def test_until_says_whether_it_is_enough(home, sheet, capsys):
    plain, wide, narrow = (
        found(home, capsys, sheet, **given) for given in ({}, {"until": "prior ±0.3"}, {"until": "prior ±1%"})
    )
    assert wide["until"] == {"quantity": "prior", "half_width": 0.3, "reached": True, "missing": 0}
    assert not narrow["until"]["reached"]
    assert narrow["until"]["missing"] > 500
    assert wide["prior"]["low"] < plain["prior"]["low"], "looking again and again has its price"


@pytest.mark.parametrize(
    ("until", "text"),
    [("precision", "such as"), ("precison ±0.1", "Did you mean"), ("recall ±0.9", "between 0 and 0.5")],
)
def test_until_is_checked(home, sheet, capsys, until, text):
    assert pue("audit", "read", home / "model", sheet, "--until", until) == 2
    assert text in " ".join(capsys.readouterr().err.split())


# ------------------------------------------------------------------------------------------------ planning


def test_plan_says_what_answers_buy(home, tmp_path, capsys):
    assert (
        pue("audit", "plan", home / "model", home / "claims.csv", "-o", tmp_path / "x.csv", "--json", "--show", "age")
        == 0
    )
    said = json.loads(capsys.readouterr().out)
    halves = said["expected_half_widths"]
    assert list(halves) == ["50", "100", "200", "500"]
    assert halves["500"]["prior"] < halves["50"]["prior"]
    assert list(rows_of(tmp_path / "x.csv")[0]) == ["claim", "age", ANSWER, PROBABILITY]


@pytest.mark.parametrize(("given", "text"), [
    (["--for", "precison"], "Did you mean 'precision'?"),
    (["--design", "rndom"], "Did you mean 'random'?"),
    (["--after", "nothing.csv"], "the plan of nothing.csv is missing"),
])  # fmt: skip
def test_what_is_asked_of_a_plan_is_checked_before_rows_are_scored(home, tmp_path, capsys, given, text):
    with mock.patch("pue.app.audit.planning.score_batches", side_effect=AssertionError):
        assert pue("audit", "plan", home / "model", home / "claims.csv", *given, "-o", tmp_path / "x.csv") == 2
    assert text in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


def test_rows_without_ids_are_known_by_their_number(home, tmp_path, capsys):
    claims().drop(columns=["claim", "fraud"]).to_csv(tmp_path / "rows.csv", index=False)
    assert pue("audit", "plan", home / "model", tmp_path / "rows.csv", "-n", 30, "-o", tmp_path / "x.csv", "-q") == 0
    rows, truth = rows_of(tmp_path / "x.csv"), claims().truth
    save(tmp_path / "x.csv", [row | {ANSWER: str(truth[int(row["row"])])} for row in rows])
    read = found(home, capsys, tmp_path / "x.csv")
    assert read["answered"] == 30
    assert not read["trained_on"]


# ------------------------------------------------------------------------------------------------ learning


OPTIONS = ["--label", "fraud", "--id", "claim", "--truth", "truth", "--ignore", "note", "--method", "logistic", "-q"]


@pytest.mark.parametrize("propensity", ["none", "logistic"])
def test_a_fit_takes_the_prior_and_the_answers(home, sheet, capsys, propensity):
    read = found(home, capsys, sheet)
    given = ["--propensity", propensity, "--audit", sheet, "--json", "-o", sheet.with_name("better")]
    assert pue("fit", home / "claims.csv", *OPTIONS, *given) == 0
    prior = json.loads(capsys.readouterr().out)["prior"]
    assert prior["method"] == "audit"
    assert [prior[end] for end in ("value", "low", "high")] == pytest.approx(
        [read["prior"][end] for end in ("value", "low", "high")]
    )


@pytest.mark.parametrize("method", ["forest", "auto"])
def test_the_default_learns_from_answers_and_tries_the_ends_of_their_interval(home, sheet, capsys, method):
    options = [option if option != "logistic" else method for option in OPTIONS]
    given = ["--audit", sheet, "--json", "-o", sheet.with_name("better")]
    assert pue("fit", home / "claims.csv", *options, *given) == 0
    prior = json.loads(capsys.readouterr().out)["prior"]
    low, own, high = prior["range"]
    assert (low["prior"], own["prior"], high["prior"]) == (prior["low"], prior["value"], prior["high"])
    assert low["called"] <= own["called"] <= high["called"]


def test_answers_change_what_is_learnt_as_their_weights_say(home, sheet):
    source, roles = open_source(home / "claims.csv"), Roles("fraud", "claim", ("note",), None, "truth")
    rows = open_rows(source, roles, Recipe(method="logistic", propensity=None))
    told = taught(read_sheets([sheet]), source, rows)
    truth = claims().truth.to_numpy()
    assert (told.lesson.yes == truth[told.lesson.rows]).all()
    assert told.lesson.positives(rows.data.labels.numpy()) / N == pytest.approx(told.prior.value)
    e = torch.ones(rows.counts[1], dtype=torch.float64)
    prepared = SimpleNamespace(e=e, judging=e, readings=None, propensity_model=None, audited=False)
    with mock.patch("pue.app.audit.learning.replace", lambda value, **new: SimpleNamespace(**{**vars(value), **new})):
        learnt, ready = told.teach(rows, prepared)
    expected = combine(rows.data.labels.numpy(), None, told.lesson)
    assert learnt.data.labels.tolist() == expected.labels.tolist()
    np.testing.assert_allclose(learnt.data.sample_weight, expected.mass)
    np.testing.assert_allclose(ready.e, expected.propensity)
    assert ready.audited


@pytest.mark.parametrize(("change", "text"), [
    (lambda table: table[:-1], "planned on 900 rows"),
    (lambda table: table.assign(claim="x" + table.claim), "does not hold"),
    (lambda table: table.assign(fraud=table.truth), "planned on 900 rows with"),
    (lambda table: table.drop(columns="claim"), "column"),
])  # fmt: skip
def test_a_fit_on_another_table_is_refused(sheet, capsys, change, text):
    change(claims()).to_csv(sheet.with_name("other.csv"), index=False)
    options = [part for part in OPTIONS if part not in ("--id", "claim")]
    given = ["--propensity", "none", "--ignore", "claim"] if "claim" in change(claims()) else ["--propensity", "none"]
    assert pue("fit", sheet.with_name("other.csv"), *options, *given, "--audit", sheet, "-o", sheet.with_name("m")) == 2
    assert text in " ".join(capsys.readouterr().err.split())
    assert not sheet.with_name("m").exists()


@pytest.mark.parametrize("given", [["--prior", "0.3"], ["--engine", "ray"]])
def test_what_contradicts_an_audit_is_refused(home, sheet, capsys, given):
    assert pue("fit", home / "claims.csv", *OPTIONS, *given, "--audit", sheet, "-o", sheet.with_name("m")) == 2
    assert "leave out --prior" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(("given", "text"), [
    (["--scenario", "case_control"], "goes with a single sample"),
    (["--memory", "6KB", "--method", "nnpu"], "would be streamed. Allow as much with --memory"),
])  # fmt: skip
def test_where_answers_cannot_be_learnt_from_the_prior_can(home, sheet, capsys, given, text):
    options = [part for part in OPTIONS if part not in ("--method", "logistic")]
    assert pue("fit", home / "claims.csv", *options, *given, "--audit", sheet, "-o", sheet.with_name("m")) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert text in said
    assert "the prior that pue audit read finds" in said


def test_the_page_shows_promised_against_found(home, sheet, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert pue("report", home / "model", "--audit", sheet, "-o", page) == 0
    text = page.read_text()
    assert "Promised and found" in text
    assert "A person looked at 60 rows" in text
    assert pue("report", home / "model", "-o", page) == 0
    assert "Promised and found" not in page.read_text()
    assert pue("report", home / "other", "--audit", sheet, "-o", page) == 2
    assert "planned for another model" in capsys.readouterr().err
    assert pue("report", home, "--audit", sheet) == 2
    assert "goes with the page of a model" in " ".join(capsys.readouterr().err.split())
