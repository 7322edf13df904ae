"""Reasons: what sampling gives beside the exact values, what columns own, files, the command, the page."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from pue.app.cli import main
from pue.app.explain import Telling, explain, explain_features, owners, permutation_importance
from pue.app.fit_source import fit_source
from pue.app.model import PUModel, load_model
from pue.app.page import render_page
from pue.app.recipe import Recipe
from pue.app.reference import make_reference
from pue.app.roles import Roles
from pue.app.rows import Rows
from pue.app.sources.opening import open_source
from pue.core.data import PUData
from pue.errors import InvalidInput
from pue.judging.sampled_shapley import sampled_shapley


def claims(n: int = 400, seed: int = 0) -> pd.DataFrame:
    """The amount tells frauds apart, the region a little, the rest not at all."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    return pd.DataFrame(
        {
            "claim": [f"C-{k:04d}" for k in range(n)],
            "noise": rng.normal(size=n),
            "amount": np.where(rng.random(n) < 0.05, np.nan, rng.normal(size=n) + 3 * y),
            "region": np.where(rng.random(n) < 0.3 + 0.4 * y, "north", rng.choice(["south", "east"], n)),
            "s": (y & (rng.random(n) < 0.5)).astype(int),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("explain")
    claims().to_csv(place / "claims.csv", index=False)
    for method in ("forest", "logistic"):
        source, recipe = open_source(place / "claims.csv"), Recipe(method=method, prior=0.4, propensity=None)
        fit_source(source, Roles("s", id="claim"), recipe).save(place / method)
    return place


@pytest.fixture
def forest(folder: Path) -> PUModel:
    return load_model(folder / "forest")


def test_columns_own_their_features(forest: PUModel) -> None:
    assert forest.vectorizer is not None
    assert forest.vectorizer.feature_names == [
        "noise", "amount", "amount is missing", "region=east", "region=north", "region=south",
    ]  # fmt: skip
    assert owners(forest.vectorizer).tolist() == [0, 1, 1, 2, 2, 2]


def test_a_forest_is_explained_exactly_and_adds_up(forest: PUModel) -> None:
    found = explain(forest, claims())
    assert (found.exact, found.scale, found.columns) == (
        True,
        "share of the trees' votes",
        ("noise", "amount", "region"),
    )
    votes = forest.classifier.trees_.probability(forest.features(claims()))
    np.testing.assert_allclose(found.values.sum(1) + found.base, votes, atol=1e-12)
    assert next(iter(found.importance)) == "amount"
    assert found.top(0, 2)[0][0] == "amount"
    alone = explain(forest, claims()[7:8])
    np.testing.assert_allclose(alone.values[0], found.values[7], atol=1e-12)


def test_another_model_is_explained_by_sampling(folder: Path) -> None:
    model = load_model(folder / "logistic")
    found = explain(model, claims())
    assert (found.exact, found.scale) == (False, "the model's score")
    assert next(iter(found.importance)) == "amount"
    assert np.corrcoef(found.values.sum(1), model.classifier.decision_function(model.features(claims())))[0, 1] > 0.999
    alone = explain(model, claims()[7:8]).values[0]  # scores are sums in float32, which the size of a batch may round
    np.testing.assert_allclose(alone, found.values[7], rtol=0, atol=1e-5 * np.abs(found.values[7]).max())


def test_sampled_values_come_near_those_of_all_subsets() -> None:
    rng = np.random.default_rng(0)
    players, background = np.array([0, 1, 1, 2]), rng.normal(size=(6, 4))
    row = rng.normal(size=4)

    def score(rows: np.ndarray) -> np.ndarray:
        return rows[:, 0] * rows[:, 1] + np.abs(rows[:, 2]) * (rows[:, 3] > 0)

    def known(chosen: set[int]) -> float:
        mixed = background.copy()
        inside = np.isin(players, list(chosen))
        mixed[:, inside] = row[inside]
        return float(score(mixed).mean())

    wanted = np.zeros(3)
    for player in range(3):
        others = [other for other in range(3) if other != player]
        for size in range(3):
            weight = factorial(size) * factorial(2 - size) / 6
            gains = [known({*chosen, player}) - known(set(chosen)) for chosen in combinations(others, size)]
            wanted[player] += weight * sum(gains)
    found, base = sampled_shapley(score, row[None], background, players, orders=6000)
    assert base == pytest.approx(known(set()))
    np.testing.assert_allclose(found[0], wanted, atol=0.05)
    assert np.abs(wanted).max() > 0.5


def test_importance_by_shuffling_knows_what_matters(forest: PUModel) -> None:
    later = claims(seed=1)
    found = permutation_importance(forest, forest.features(later), later["s"].to_numpy(np.int8))
    assert next(iter(found)) == "amount"
    assert found["amount"] > 0.2 > abs(found["noise"])
    with pytest.raises(InvalidInput, match="needs labeled and unlabeled rows"):
        permutation_importance(forest, forest.features(later), np.zeros(400, np.int8))


def run(*arguments: Any) -> None:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    assert not end.value.code


def test_predict_writes_reasons_for_positive_rows(folder: Path, tmp_path: Path, forest: PUModel) -> None:
    how = ["predict", folder / "forest", folder / "claims.csv", "-o", tmp_path / "s.csv", "--explain", 2, "--quiet"]
    run(*how)
    found = pd.read_csv(tmp_path / "s.csv")
    names = ["claim", "probability", "positive", "reason_1", "effect_1", "reason_2", "effect_2"]
    assert list(found.columns) == names
    positive = found["positive"] == 1
    assert found.loc[positive, "reason_1"].notna().all()
    assert found.loc[~positive, "reason_1"].isna().all()
    first = int(np.flatnonzero(positive & claims()["amount"].notna())[0])
    values = explain(forest, claims()).top(first, 2)
    assert found["reason_1"][first] == f"{values[0][0]} = {claims()[values[0][0]][first]:.6g}"
    np.testing.assert_allclose(found[["effect_1", "effect_2"]].iloc[first], [size for _, size in values])
    run(*how, "--threshold", "1")
    assert list(pd.read_csv(tmp_path / "s.csv").columns) == names


def test_only_so_many_rows_are_told(forest: PUModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pue.app.explain.MOST", 3)
    telling, wanted = Telling(forest, 1), np.ones(400, dtype=bool)
    assert telling(claims(), wanted)["reason_1"].notna().sum() == 3
    assert telling(claims(), wanted)["reason_1"].notna().sum() == 0
    assert telling.told == 3


def test_the_command_explains_a_row_and_all_rows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("explain", folder / "forest", folder / "claims.csv", "--row", "C-0003", "--top", 2)
    out = capsys.readouterr().out
    assert "Row C-0003: P(positive) " in out
    assert "1 others" in out
    assert "Exact Shapley values: what the model looks at, not what causes what" in out
    run("explain", folder / "forest", folder / "claims.csv", "--row", "C-0003", "--json")
    found = json.loads(capsys.readouterr().out)
    model = load_model(folder / "forest")
    votes = model.classifier.trees_.probability(model.features(claims()[3:4]))[0]
    assert found["base"] + sum(part["effect"] for part in found["reasons"]) == pytest.approx(votes)
    run("explain", folder / "forest", folder / "claims.csv", "--json")
    found = json.loads(capsys.readouterr().out)
    assert next(iter(found["mean_effect"])) == next(iter(found["fall_of_auc"])) == "amount"
    run("explain", folder / "forest", folder / "claims.csv")
    assert "fall of AUC if shuffled" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--row", "C-9"], "there is no row 'C-9' in column 'claim' of claims.csv"),
        (["--row", "x", "--id", "clam"], "unknown column 'clam'. Did you mean 'claim'?"),
    ],
)
def test_a_row_that_is_not_there(
    folder: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["explain", str(folder / "forest"), str(folder / "claims.csv"), *options])
    assert end.value.code == 2
    assert message in capsys.readouterr().err


def test_rows_without_ids_have_numbers(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claims().drop(columns="claim").to_csv(tmp_path / "t.csv", index=False)
    found = []
    for data, row in ((tmp_path / "t.csv", "3"), (folder / "claims.csv", "C-0003")):
        run("explain", folder / "forest", data, "--row", row, "--json")
        found.append(json.loads(capsys.readouterr().out)["reasons"])
    assert found[0] == found[1]
    for row, message in (("400", "no row '400' among 400 rows, counted from 0"), ("x", "row 'x' is no number")):
        with pytest.raises(SystemExit):
            main(["explain", str(folder / "forest"), str(tmp_path / "t.csv"), "--row", row])
        assert message in capsys.readouterr().err


def test_the_page_says_what_moved_the_top_rows(forest: PUModel) -> None:
    why = forest.summary["top_rows"]["why"]
    assert len(why) == len(forest.summary["top_rows"]["rows"]) == 20
    assert why[0].startswith("amount +")
    page = render_page(forest.summary)
    assert "moved most by" in page
    assert why[0] in page


def test_images_are_not_explained_by_columns(folder: Path) -> None:
    rng = np.random.default_rng(0)
    data = PUData(torch.from_numpy(rng.random((30, 1, 4, 4), dtype=np.float32)), torch.arange(30) % 3 == 0)
    assert make_reference(None, Rows(data, None, None), seed=0) is None
    with pytest.raises(InvalidInput, match="this model was trained on images"):
        explain_features(replace(load_model(folder / "forest"), vectorizer=None), data.x.numpy())
