"""Numbers that no model can use are refused before they are used, with the rows and columns that hold them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

import pue
from pue.core.decisions import decide
from pue.core.finite import LARGEST, large_cells, non_finite_rows, require_finite_scores
from pue.core.weights import uniform
from pue.errors import InvalidInput, ScoreIsNoNumber
from pue.judging.curves import reliability


def slow_large(x: np.ndarray) -> tuple[list[int], list[int]]:
    cells = [(i, j) for i, row in enumerate(x) for j, v in enumerate(row) if np.isfinite(v) and abs(v) > LARGEST]
    return sorted({i for i, _ in cells}), sorted({j for _, j in cells})


def test_large_cells_against_plain_loops():
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = rng.choice([0.0, 1.0, -1e29, 1e31, -3.4e38, np.nan, np.inf], p=[0.4, 0.4, *[0.04] * 5], size=(5, 4))
        assert large_cells(torch.from_numpy(x)) == large_cells(sparse.csr_matrix(x)) == slow_large(x)
        rows = [i for i, row in enumerate(x) if not np.isfinite(row).all()]
        assert non_finite_rows(torch.from_numpy(x)) == non_finite_rows(sparse.csr_matrix(x)) == rows
        infinite = [i for i, row in enumerate(x) if np.isinf(row).any()]
        assert non_finite_rows(torch.from_numpy(x), missing=True) == infinite
    assert large_cells(torch.ones(2, 2, dtype=torch.uint8)) == large_cells(torch.ones(0, 2)) == ([], [])


def rows(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 3)), (np.arange(n) < n // 3).astype(int)


@pytest.mark.parametrize("value", [1e200, -3.4e38, 1e31])
@pytest.mark.parametrize("backbone", ["tabular", "forest"])
def test_numbers_beyond_reason_are_refused_at_fit_and_predict(value, backbone):
    X, s = rows()
    model = pue.PUClassifier(backbone=backbone, prior=0.5, epochs=1, random_state=0).fit(X, s)
    X[7, 1] = value
    for use in (lambda: model.predict(X), lambda: model.fit(X, s)):
        with pytest.raises(InvalidInput, match=r"beyond 1e\+30 in column\(s\) 1 \(row\(s\) 7\).*code these as NaN"):
            use()


def test_nan_and_infinity_are_named_by_row_and_column():
    X, s = rows()
    X[3, 0] = X[8, 2] = np.nan
    with pytest.raises(InvalidInput, match=r"NaN or infinity in column\(s\) 0, 2 \(row\(s\) 3, 8\)\. Impute"):
        pue.PUClassifier(prior=0.5).fit(X, s)


def test_a_score_that_is_no_number_is_an_error_and_never_a_decision():
    X, s = rows()
    model = pue.PUClassifier(prior=0.5, epochs=1, random_state=0).fit(X, s)
    with torch.no_grad():
        next(model.network_.parameters()).fill_(torch.nan)
    for use in (model.decision_function, model.predict, model.predict_proba):
        with pytest.raises(
            ScoreIsNoNumber, match=r"row\(s\) 0, 1, 2, 3, 4 and 55 more is no number.*fit the model again"
        ):
            use(X)
    with pytest.raises(ScoreIsNoNumber, match=r"row\(s\) 2 is"):
        decide(torch.tensor([0.0, 1.0, torch.nan]))
    with pytest.raises(ScoreIsNoNumber) as error:
        require_finite_scores(torch.tensor([0.0, torch.inf]), first=10)
    assert error.value.rows == [11]


def test_a_threshold_that_is_no_number_and_no_draws_are_refused():
    with pytest.raises(InvalidInput, match="the threshold is NaN"):
        decide(torch.zeros(2), float("nan"))
    labels = torch.tensor([1, 1, 0, 0])
    with pytest.raises(InvalidInput, match="draws must be at least 1; got 0"):
        reliability(torch.tensor([0.9, 0.8, 0.2, 0.1]), uniform(labels, prior=0.5), draws=0)
