"""What a risk wants with given labels: against a search over all classifiers, and against training."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from pue import PUClassifier
from pue.core.losses import sigmoid
from pue.core.risks import dist_pu, nnpu, upu
from pue.core.theory import population_minimizer
from pue.core.weights import RowWeights
from pue.errors import InvalidInput, UnknownName

SHARES = (0.15, 0.12, 0.13, 0.1, 0.28, 0.22)
MIX = (0.66, 0.2, 0.1, 0.04, 0.0, 0.0)
POSITIVE = np.array([True] * 4 + [False] * 2)
PI = 0.5


def at_the_minimum(risk: str, mix: tuple[float, ...]) -> tuple[float, ...]:
    return population_minimizer(risk, shares=SHARES, mix=mix).called


@pytest.mark.parametrize("mix", [MIX, (0.3, 0.24, 0.26, 0.2, 0, 0), (0.1, 0.2, 0.5, 0.2, 0, 0), (0.9, 0.1, 0, 0, 0, 0)])
@pytest.mark.parametrize("risk", ["upu", "nnpu", "distpu"])
def test_nothing_on_a_grid_has_a_lower_risk(risk: str, mix: tuple[float, ...]) -> None:
    # s_k, the share of class k that is called positive, is a bounded score: sigmoid loss of s = sigmoid(g).
    pi = sum(share for share, part in zip(SHARES, mix, strict=True) if part > 0)
    positive = pi * torch.tensor(mix, dtype=torch.float64)
    weights = RowWeights(positive, torch.tensor(SHARES, dtype=torch.float64) - positive)
    value = {"upu": upu(sigmoid), "nnpu": nnpu(sigmoid), "distpu": dist_pu(pi)}[risk]

    def of(called: tuple[float, ...]) -> float:
        s = torch.tensor(called, dtype=torch.float64).clamp(1e-12, 1 - 1e-12)
        found = value.sums(torch.logit(s), weights)
        return max(0.0, float(found[1])) + float(found[0]) if risk == "nnpu" else float(value.combine(found))

    least = min(of(called) for called in product((0.0, 0.5, 1.0), repeat=6))
    assert of(at_the_minimum(risk, mix)) <= least + 1e-9


def one_hot(n: int = 1000, n_labeled: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    kind = np.repeat(np.arange(6), np.round(np.array(SHARES) * n).astype(int))
    labeled = np.repeat(np.arange(6), np.round(np.array(MIX) * n_labeled).astype(int))
    rows = np.concatenate([labeled, kind])
    return np.eye(6, dtype=np.float32)[rows], np.repeat([1, 0], [len(labeled), len(kind)]), rows


@pytest.mark.parametrize("method", ["upu", "nnpu", "pubn", "distpu"])
def test_training_ends_where_the_minimum_is(method: str) -> None:
    x, s, rows = one_hot()
    network = PUClassifier(
        method, prior=PI, scenario="case_control", backbone="linear", epochs=60, lr=0.1, batch_size=8192,
        weight_decay=0, random_state=0, loss="logistic" if method == "nnpu" else None,  # a bounded one gets stuck
    )  # fmt: skip
    called = [network.fit(x, s).predict(x)[rows == k].mean() for k in range(6)]
    wanted = population_minimizer(method, shares=SHARES, mix=MIX)
    clear = [k for k in range(6) if k not in wanted.draws and wanted.called[k] in (0, 1)]
    assert [round(called[k]) for k in clear] == [wanted.called[k] for k in clear]
    assert len(clear) >= 5


def test_only_upu_loses_classes_with_few_labels() -> None:
    found = {risk: population_minimizer(risk, shares=SHARES, mix=MIX) for risk in ("upu", "nnpu", "pubn", "distpu")}
    assert found["upu"].called == (1, 1, 0, 0, 0, 0)
    assert found["upu"].accuracy == pytest.approx(0.77)
    assert found["nnpu"].accuracy == pytest.approx(1)
    assert found["pubn"].accuracy == found["distpu"].accuracy == pytest.approx(1)
    even = population_minimizer("upu", shares=SHARES, mix=(0.3, 0.24, 0.26, 0.2, 0, 0))
    assert even.accuracy == pytest.approx(1)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InvalidInput, match="one entry for each class"):
        population_minimizer("upu", shares=[0.5, 0.5], mix=[1.0])
    with pytest.raises(InvalidInput, match="sum to 1"):
        population_minimizer("upu", shares=[0.5, 0.4], mix=[1.0, 0.0])
    with pytest.raises(InvalidInput, match="prior must lie"):
        population_minimizer("upu", shares=[0.5, 0.5], mix=[1.0, 0.0], prior=1.0)
    with pytest.raises(UnknownName, match="unknown risk 'upuu'"):
        population_minimizer("upuu", shares=[0.5, 0.5], mix=[1.0, 0.0])
