"""One place decides prior, propensities and weights: a word means the same to everyone who takes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import pue
from pue import basis as deciding
from pue.app.preparation import prepare
from pue.app.recipe import Recipe
from pue.app.roles import Roles
from pue.app.rows import read_rows
from pue.app.sources.opening import open_source
from pue.basis import Wishes, settle, settle_negative_propensity, settle_prior, settle_propensities, warn_of_doubts
from pue.core.data import PUData, Scenario, possible_prior
from pue.core.weights import normalized_inverse_propensity, uniform
from pue.errors import InvalidInput, PueWarning, UnknownName
from pue.priors import PriorEstimate
from pue.propensity import FLOOR, Constant


def table(n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.random(n) < 0.4
    return rng.normal(size=(n, 2)) + 3 * y[:, None], (y & (rng.random(n) < 0.5)).astype(int)


def by_classifier(X: np.ndarray, s: np.ndarray, folder: Path) -> None:
    pue.PUClassifier(epochs=1, random_state=0).fit(X, s)


def by_wrapper(X: np.ndarray, s: np.ndarray, folder: Path) -> None:
    pue.PUWrapper(LogisticRegression(), random_state=0).fit(X, s)


def by_diagnose(X: np.ndarray, s: np.ndarray, folder: Path) -> None:
    pue.diagnose(X, s, propensity=None)


def by_search(X: np.ndarray, s: np.ndarray, folder: Path) -> None:
    pue.search(lambda trial: pue.PUClassifier(prior=0.4, epochs=1), X, s, n_trials=1, reference=None)


def by_pue_fit(X: np.ndarray, s: np.ndarray, folder: Path) -> None:
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "s": s}).to_csv(folder / "rows.csv", index=False)
    prepare(read_rows(open_source(folder / "rows.csv"), Roles("s")), Recipe(propensity=None))


@pytest.mark.parametrize("ask", [by_classifier, by_wrapper, by_diagnose, by_search, by_pue_fit])
def test_an_estimated_prior_is_the_same_for_everyone(
    ask: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def estimate(data: Any, *, method: str, seed: int) -> PriorEstimate:
        asked.append(method)
        return PriorEstimate(0.5, 0.45, 0.55, 0.99, "clustered", "", 50)

    monkeypatch.setattr(deciding, "estimate_prior", estimate)
    ask(*table(), tmp_path)
    assert asked == ["estimate"]


def test_a_basis_is_prior_propensities_and_weights() -> None:
    X, s = table()
    data = PUData(torch.from_numpy(X), torch.from_numpy(s))
    plain = settle(data, Wishes(0.4))
    assert (plain.prior, plain.propensity, plain.e) == (PriorEstimate.given(0.4), None, None)
    assert torch.equal(plain.weights(data).positive, uniform(data.labels, prior=0.4).positive)
    known = torch.linspace(0, 1, data.n_labeled, dtype=torch.float64)
    weighted = settle(data, Wishes(0.4, "known"), known=known)
    assert weighted.propensity is not None
    assert weighted.propensity.model is None
    assert (float(weighted.propensity.e[0]), weighted.propensity.report.n_clipped) == (FLOOR, 1)
    expected = normalized_inverse_propensity(data.labels, known.clamp(min=FLOOR), prior=0.4)
    assert torch.equal(weighted.weights(data).positive, expected.positive)
    estimated = settle(data, Wishes(0.4, Constant()))
    assert estimated.propensity is not None
    assert estimated.propensity.report.source == "Constant"


def test_a_prior_that_was_estimated_is_taken_as_it_is() -> None:
    X, s = table()
    data = PUData(torch.from_numpy(X), torch.from_numpy(s))
    found = PriorEstimate(0.4, 0.3, 0.5, 0.9, "bbe", "SCAR", 50)
    assert settle_prior(data, found) is found
    assert settle_prior(data, "elkan_noto").method == "elkan_noto"
    with pytest.raises(UnknownName, match=r"unknown prior 'estimated'. Did you mean 'estimate'"):
        settle_prior(data, "estimated")
    with pytest.raises(InvalidInput, match="below the share of labeled rows"):
        settle_prior(data, 0.01)
    with pytest.raises(InvalidInput, match='propensity="known" needs the values'):
        settle_propensities(data, Wishes(propensity="known"), 0.4)


def test_labeled_negatives_get_propensities_of_their_own() -> None:
    X, s = table()
    s[np.flatnonzero(s == 0)[:20]] = -1
    data = PUData(torch.from_numpy(X), torch.from_numpy(s))
    assert settle_negative_propensity(data, Wishes(0.4), 0.4) is None
    found = settle_negative_propensity(data, Wishes(0.4, Constant()), 0.4)
    assert found is not None
    assert found.tolist() == pytest.approx([20 / (0.6 * len(s))] * 20)
    with pytest.raises(InvalidInput, match="pass their negative_propensity"):
        settle_negative_propensity(data, Wishes(0.4), 0.4, known=torch.full((len(s),), torch.nan))


def test_doubts_are_said() -> None:
    X, s = table()
    data = PUData(torch.from_numpy(X), torch.from_numpy(s))
    vague = settle(data, Wishes(PriorEstimate(0.5, 0.3, 0.8, 0.99, "bbe", "SCAR", 50)))
    with pytest.warns(PueWarning, match=r"anywhere between 0\.30 and 0\.80; between the two about 50%"):
        warn_of_doubts(vague, stacklevel=1)
    warn_of_doubts(settle(data, Wishes(0.4)), stacklevel=1)


def test_a_part_of_a_single_sample_may_hold_more_labels_than_the_prior_allows() -> None:
    labels = torch.tensor([1, 1, 0, 0])
    assert possible_prior(0.2, labels, Scenario.SINGLE_SAMPLE) == 0.5
    assert possible_prior(0.7, labels, Scenario.SINGLE_SAMPLE) == 0.7
    assert possible_prior(0.2, labels, Scenario.CASE_CONTROL) == 0.2  # labels there say nothing about the population
    assert possible_prior(0.2, labels, Scenario.SINGLE_SAMPLE, torch.tensor([3.0, 3, 1, 1])) == 0.75
