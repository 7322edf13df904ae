"""The members of `Joint`."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

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
