"""Screening: planted leaks, identifiers, orders and copies are found with their evidence, honest columns are not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pue
from pue.app.cli import main
from pue.app.screening.leaks import separation
from pue.app.screening.screen import screen, screen_columns
from pue.errors import InvalidInput
from pue.estimators.vectorizer.vectorize import fit_vectorizer

N = 600
WORDS = ("late", "broken", "engine", "paid", "friend", "street", "night", "water")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def s(rng: np.random.Generator) -> np.ndarray:
    return (rng.random(N) < 0.15).astype(int)


def honest(rng: np.random.Generator, n: int = N) -> pd.DataFrame:
    """Columns that look odd and are not."""
    return pd.DataFrame(
        {
            "amount": rng.gamma(2, 100, n),
            "cents": rng.integers(0, 10**9, n),
            "postcode": rng.integers(10_000, 99_999, n),
            "region_id": rng.integers(0, 30, n),
            "seen_at": 1_700_000_000 + rng.choice(10**7, n, replace=False),
            "note": [" ".join(rng.choice(WORDS, 5)) for _ in range(n)],
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, n), unit="D"),
            "gaps": np.where(rng.random(n) < 0.9, np.nan, 1.0 * rng.integers(0, 5, n)),
            "sorted": np.sort(rng.normal(size=n)),
        }
    )


def filled(values: Any, s: np.ndarray, rng: np.random.Generator, labeled: float, others: float) -> pd.Series:
    return pd.Series(values).where(rng.random(len(s)) < np.where(s == 1, labeled, others))


Plant = Callable[[np.ndarray, np.random.Generator], Any]
LEAKS: dict[str, tuple[Plant, str]] = {
    "filled alone": (
        lambda s, rng: filled(rng.normal(size=N), s, rng, 1, 0),
        "filled in 100 % of the labeled rows and",
    ),
    "filled hardly": (lambda s, rng: filled(rng.choice(list("AB"), N), s, rng, 1, 0.03), "filled in 100 % of the"),
    "some": (lambda s, rng: filled(rng.normal(size=N), s, rng, 0.4, 0), "and in 0 % of the others"),
    "emptied": (lambda s, rng: filled(rng.normal(size=N), s, rng, 0, 0.97), "filled in 0 % of the labeled rows"),
    "zeros": (
        lambda s, rng: np.where(s == 1, rng.gamma(2, 9, N), 0),
        "it finds 100 % of the labeled rows and takes 0 %",
    ),
    "zeros of some": (
        lambda s, rng: np.where((s == 1) & (rng.random(N) < 0.5), 7.5, 0),
        "100 % of all rows are labeled",
    ),
    "status": (
        lambda s, rng: np.where(s == 1, rng.choice(["ok", "done"], N), "open"),
        "alone, on rows not seen before",
    ),
    "text": (lambda s, rng: filled([" ".join(rng.choice(WORDS, 3)) for _ in s], s, rng, 1, 0), "filled in 100 %"),
}
IDS: dict[str, tuple[Plant, str]] = {
    "claim": (lambda s, rng: [f"AP-{k}" for k in rng.permutation(N)], "600 different values in 600 rows, such as 'AP-"),
    "mail": (lambda s, rng: [f"{rng.choice(WORDS)}.{k}@mail.org" for k in range(N)], "hardly a word twice"),
    "number": (lambda s, rng: np.arange(N) + 1000, "count the 600 rows from the first to the last"),
    "shuffled": (lambda s, rng: rng.permutation(N), "have the numbers of a list, each of them once"),
    "spelt": (lambda s, rng: [f"{k}" for k in rng.permutation(N)], "have the numbers of a list"),
    "patient_id": (lambda s, rng: rng.choice(10**6, N, replace=False), "under the name of an identifier"),
    "userId": (
        lambda s, rng: rng.choice(10**6, N)[rng.integers(0, N, N)],
        "different whole numbers in 600 rows, under",
    ),
    "account": (lambda s, rng: rng.choice(9 * 10**8, N, replace=False) + 10**8, "whole numbers of 9 digits"),
}


def test_honest_columns_are_left_alone(rng: np.random.Generator, s: np.ndarray) -> None:
    assert screen_columns(honest(rng), s) == ()


@pytest.mark.parametrize(("name", "plant", "evidence"), [(k, *v) for k, v in LEAKS.items()], ids=list(LEAKS))
def test_a_leak_is_left_out_with_its_evidence(
    name: str, plant: Plant, evidence: str, rng: np.random.Generator, s: np.ndarray
) -> None:
    frame = honest(rng)[["amount", "postcode", "gaps"]].assign(**{name: plant(s, rng)})
    (found,) = screen_columns(frame, s)
    assert (found.column, found.kind, found.left_out) == (name, "leak", True)
    assert evidence in found.evidence
    assert str(found).startswith(f"column {name!r} is left out, for it gives the label away: ")
    assert str(found).endswith(f"To learn from it all the same: --keep {name}.")
    assert screen_columns(frame, s, keep=[name]) == ()


@pytest.mark.parametrize(("name", "plant", "evidence"), [(k, *v) for k, v in IDS.items()], ids=list(IDS))
def test_an_identifier_is_left_out_with_its_evidence(
    name: str, plant: Plant, evidence: str, rng: np.random.Generator, s: np.ndarray
) -> None:
    frame = honest(rng)[["amount", "postcode", "gaps"]].assign(**{name: plant(s, rng)})
    (found,) = screen_columns(frame, s)
    assert (found.column, found.kind, found.left_out) == (name, "identifier", True)
    assert evidence in found.evidence
    assert f"--id {name}. To learn from it all the same: --keep {name}." in str(found)


@pytest.mark.parametrize("text", [False, True])
def test_dates_that_order_the_table_are_named_and_used(text: bool, rng: np.random.Generator, s: np.ndarray) -> None:
    frame = honest(rng)
    when = frame["when"].sort_values(ignore_index=True)
    frame["when"] = when.dt.strftime("%d.%m.%Y") if text else when
    (found,) = screen_columns(frame, s)
    assert (found.column, found.kind, found.left_out) == ("when", "order", False)
    assert "column 'when' is used, but it orders the table: its dates rise or fall" in str(found)
    assert "--ignore when" in str(found)


def test_copies_of_labeled_rows_among_the_others_are_named(rng: np.random.Generator, s: np.ndarray) -> None:
    frame = honest(rng).drop(columns="sorted")
    twice = pd.concat([frame, frame[s == 1]], ignore_index=True)
    (found,) = screen_columns(twice, np.concatenate([s, np.zeros(s.sum(), int)]))
    assert found.kind == "copies"
    assert "100% of the labeled rows have an exact copy among the others, of which only 0.0%" in str(found)
    small = pd.DataFrame({"a": rng.integers(0, 3, N), "b": rng.integers(0, 3, N)})
    assert screen_columns(small, s) == (), "where all rows repeat one another, copies say nothing"


def test_a_strong_but_honest_column_is_no_leak(rng: np.random.Generator) -> None:
    y = rng.random(2000) < 0.3
    frame = pd.DataFrame({"strong": rng.normal(size=2000) + 6 * y, "noise": rng.normal(size=2000)})
    s = (y & (rng.random(2000) < 0.5)).astype(int)
    assert screen_columns(frame, s) == ()


def test_few_rows_say_nothing() -> None:
    frame = pd.DataFrame({"id": range(25), "flag": [1] * 10 + [0] * 15, "x": np.arange(25) % 4})
    assert screen_columns(frame, [1] * 10 + [0] * 15) == ()


def test_nothing_left_is_an_error(s: np.ndarray) -> None:
    with pytest.raises(InvalidInput, match=r"no column is left to learn from. 'copy': it gives the label away: alone"):
        screen_columns(pd.DataFrame({"copy": s}), s)
    with pytest.raises(InvalidInput, match="the frame has 600 rows but s has 3"):
        screen_columns(pd.DataFrame({"copy": s}), [1, 0, 0])


def test_the_separation_is_that_of_a_plain_count(rng: np.random.Generator) -> None:
    """A flag, one in ten turned round: the tree can but repeat it, and the shares are counted by hand."""
    target = rng.random(4000) < 0.25
    flag = target ^ (rng.random(4000) < 0.1)
    told = separation(flag[:, None].astype(np.float32), target, rng.permutation(4000) % 3, 0.25)
    assert told.found == (flag & target).sum() / target.sum()
    assert told.wrong == (flag & ~target).sum() / (~target).sum()
    # Of a tenth of the labeled rows: a label is rarer in the table than among the rows that were looked at.
    rare = separation(flag[:, None].astype(np.float32), target, rng.permutation(4000) % 3, 0.025)
    assert rare.some == 0.0
    sure = separation(target[:, None].astype(np.float32), target, rng.permutation(4000) % 3, 0.025)
    assert (sure.pure, sure.some, sure.rows) == (1.0, 1.0, target.sum())


def test_the_vectorizer_knows_what_was_left_out(rng: np.random.Generator, s: np.ndarray) -> None:
    frame = honest(rng).assign(claim=[f"AP-{k}" for k in rng.permutation(N)], copy=s, same=1)
    found = screen(frame, s.astype(np.int8), np.arange(N))
    assert list(found.vectorizer.columns) == list(honest(rng).columns)
    assert list(found.vectorizer.dropped) == ["same", "claim", "copy"]
    clean = fit_vectorizer(frame[["amount"]])
    assert np.array_equal(found.vectorizer.transform(frame)[:, 0], clean.transform(frame)[:, 0])


def test_commands_leave_out_leaks_and_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    y = rng.random(400) < 0.4
    s = y & (rng.random(400) < 0.5)
    frame = pd.DataFrame({"a": rng.normal(size=400) + 2 * y, "b": rng.normal(size=400), "s": s.astype(int)})
    frame["loss"] = np.where(s, rng.gamma(2, 100, 400), np.nan)
    frame.to_csv(tmp_path / "t.csv", index=False)
    common = [str(tmp_path / "t.csv"), "--label", "s", "--prior", "0.4", "--propensity", "none"]
    fit = ["fit", *common, "--method", "logistic", "-o"]

    def run(*arguments: str) -> tuple[str, str]:
        with pytest.raises(SystemExit) as end:
            main(arguments)
        printed = capsys.readouterr()
        assert not end.value.code, printed.err
        return printed.out, printed.err

    out, err = run(*fit, str(tmp_path / "model"))
    assert "note: column 'loss' is left out, for it gives the label away: it is filled in 100 %" in err
    assert "Left out: loss (it gives the label away" in out
    kept = json.loads(run(*fit, str(tmp_path / "kept"), "--keep", "loss", "--json")[0])
    assert [column["name"] for column in kept["data"]["columns"]] == ["a", "b", "loss"]
    out, err = run("diagnose", *common)
    assert "Left out: loss (it gives the label away" in out
    candidates = ["--candidates", "logistic", "--folds", "2", "--out", str(tmp_path / "found")]
    assert "note: column 'loss' is left out" in run("compare", *common, *candidates)[1]
    model = pue.load(tmp_path / "model")
    assert list(model.vectorizer.columns) == ["a", "b"]
    with pytest.raises(SystemExit):
        main([*fit, str(tmp_path / "no"), "--keep", "s"])
    assert "column 's' cannot be kept as a feature" in capsys.readouterr().err
