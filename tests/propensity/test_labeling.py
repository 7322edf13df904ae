"""The members of `Joint`."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier

from pue.core.data import PUData
from pue.propensity import Auto, auto
from pue.propensity.auto import Chosen
from pue.propensity.joint import Joint, JointModel
from pue.propensity.labeling import read_histogram_boosting


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_the_nodes_of_histogram_boosting_give_its_scores_to_the_last_bit(gaps: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 9, (400, 3)).astype(np.float32)
    x[rng.random(x.shape) < gaps] = np.nan
    x[:, 2] = np.where(rng.random(400) < gaps, np.nan, 1)  # can only be split into gaps and the rest
    s = rng.random(400) < np.where(np.isnan(x[:, 2]), 0.8, np.nan_to_num(x[:, 0]) / 20)
    fitted = HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=4).fit(x, s)
    trees = read_histogram_boosting(fitted)
    assert trees.n_trees == 31
    np.testing.assert_array_equal(trees.log_odds(x), fitted.decision_function(x))


def test_large_tables_get_the_sparing_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(120, 2)))
    data = PUData(x, torch.from_numpy((x[:, 0].numpy() > 0.8).astype(np.int8)))
    monkeypatch.setattr(auto, "SPARING", Joint(rounds=1, trees=2, members=("logistic",)))
    monkeypatch.setattr(auto, "MANY", 119)
    found = Auto(columns=(1,)).fit(data, prior=0.5)
    assert isinstance(found, Chosen)
    assert isinstance(found.model, JointModel)
    assert (list(found.model.shares), found.model.looks_at) == (["logistic"], (1,))
