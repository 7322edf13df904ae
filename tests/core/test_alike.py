"""Worlds with the same labels: the least biased one, and what a rule can win in one at a price in another."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from pue.core.theory import least_biased, within_reach
from pue.errors import InvalidInput


def world(seed: int, n: int = 60) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.beta(0.5, 0.8, n)), torch.from_numpy(rng.uniform(0.02, 0.9, n))


@pytest.mark.parametrize("seed", range(5))
def test_the_least_biased_world_has_the_same_labels_and_prior(seed: int) -> None:
    f, e = world(seed)
    other, propensity = least_biased(f * e, float(f.mean()))
    torch.testing.assert_close(other * propensity, f * e, rtol=1e-9, atol=1e-12)
    assert float(other.mean()) == pytest.approx(float(f.mean()), abs=1e-9)
    assert float(other.max()) <= 1
    assert float(propensity.max()) <= 1


@pytest.mark.parametrize("seed", range(5))
def test_no_world_with_these_labels_has_a_larger_smallest_propensity(seed: int) -> None:
    f, e = world(seed)
    prior = float(f.mean())
    least = float(least_biased(f * e, prior)[1].min())
    assert float(e.min()) <= least
    rng = np.random.default_rng(seed)
    for _ in range(50):  # any other f between the rate and one, moved to the mean π: e = rate / f
        rate = f * e
        tried = rate + (1 - rate) * torch.from_numpy(rng.random(len(f)))
        low, high = 0.0, 1.0
        for _ in range(60):
            k = (low + high) / 2
            mixed = rate + k * (tried - rate)
            low, high = (k, high) if float(mixed.mean()) < prior else (low, k)
        if float(mixed.mean()) == pytest.approx(prior, abs=1e-6):
            assert float((rate / mixed).min()) <= least + 1e-6


def test_scar_is_its_own_least_biased_world() -> None:
    f, _ = world(0)
    other, propensity = least_biased(0.3 * f, float(f.mean()))
    torch.testing.assert_close(other, f)
    torch.testing.assert_close(propensity, torch.full_like(f, 0.3))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("loss", [0.0, 0.01, 0.05, 0.5])
def test_what_is_within_reach_is_the_solution_of_its_linear_program(seed: int, loss: float) -> None:
    f, e = world(seed)
    other = least_biased(f * e, float(f.mean()))[0]
    n = len(f)

    def accuracy_slope(of: torch.Tensor) -> np.ndarray:  # in d, for accuracy = Σ d f + (1 − d)(1 − f), over n
        return ((2 * of - 1) / n).numpy()

    best = [(accuracy_slope(of) @ (of > 0.5).double().numpy()) for of in (f, other)]
    found = linprog(-accuracy_slope(f), A_ub=-accuracy_slope(other)[None], b_ub=[loss - best[1]], bounds=(0, 1))
    start = accuracy_slope(f) @ (other > 0.5).double().numpy()
    assert within_reach(f, other, loss) == pytest.approx((-found.fun - start) / (best[0] - start), abs=1e-6)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidInput, match="a rate of labels is a probability"):
        least_biased(torch.tensor([0.5, 1.5]), 0.5)
    with pytest.raises(InvalidInput, match=r"no class has the mean 0.9: .* at most the share of rows .* 0.5"):
        least_biased(torch.tensor([0.5, 0.0]), 0.9)
    with pytest.raises(InvalidInput, match="a loss is at least 0"):
        within_reach(torch.tensor([0.5]), torch.tensor([0.5]), -1.0)
    assert np.isnan(within_reach(torch.tensor([0.9]), torch.tensor([0.8]), 0.1))
