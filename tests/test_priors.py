"""Elkan and Noto's prior: right under SCAR, too low under biased labeling by a known factor."""

import numpy as np
import pytest
import torch

from pue.data import PUData, Scenario
from pue.errors import PueWarning
from pue.labeling import class_mix, scar
from pue.priors import PRIORS, elkan_noto

PI = 0.4


def clusters(n: int, shares: list[float], seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Well separated Gaussian clusters in a plane; cluster 0 is the negative class."""
    rng = np.random.default_rng(seed)
    centers = np.array([[-4.0, -4.0], [4.0, 0.0], [0.0, 4.0]])
    classes = rng.choice(len(shares), size=n, p=shares)
    return torch.from_numpy(centers[classes] + 0.7 * rng.normal(size=(n, 2))), torch.from_numpy(classes)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("frequency", [0.2, 0.6])
@pytest.mark.parametrize("scenario", list(Scenario))
def test_the_prior_is_recovered_under_scar(scenario: Scenario, frequency: float, seed: int) -> None:
    x, classes = clusters(6000, [1 - PI, PI], seed)
    y = (classes > 0).long()
    rng = np.random.default_rng(seed)
    data, _ = scar(x, y, n_labeled=int(frequency * y.sum()), scenario=scenario, rng=rng)
    assert elkan_noto(data) == pytest.approx(PI, abs=0.03)


def biased(scenario: Scenario) -> PUData:
    """Two positive clusters of the same size, labeled with propensity 0.6 and 0.1."""
    x, classes = clusters(12_000, [1 - PI, PI / 2, PI / 2])
    n_labeled = round(12_000 * PI / 2 * 0.7)
    mix = {1: 6 / 7, 2: 1 / 7}
    return class_mix(x, classes, mix=mix, n_labeled=n_labeled, scenario=scenario, rng=np.random.default_rng(0))[0]


def test_under_biased_labeling_the_prior_is_too_low_as_the_formula_says() -> None:
    # METHODS 9: π ē² / E[e²] in the separable case; ē = 0.35 and E[e²] = 0.185.
    found = elkan_noto(biased(Scenario.SINGLE_SAMPLE))
    assert found == pytest.approx(PI * 0.35**2 / 0.185, abs=0.02)
    assert found < 0.75 * PI


def test_in_case_control_biased_labeling_does_the_same_to_the_pooled_scores() -> None:
    # There q = e / (1 + e): mean_U q = π E[q], and among the labeled rows E[e q] / ē.
    e = np.array([0.6, 0.1])
    q = e / (1 + e)
    found = elkan_noto(biased(Scenario.CASE_CONTROL))
    assert found == pytest.approx(PI * q.mean() * e.mean() / (e * q).mean(), abs=0.02)
    assert found < 0.75 * PI


@pytest.mark.parametrize("scenario", list(Scenario))
def test_a_weight_of_two_is_the_row_twice(scenario: Scenario) -> None:
    x, classes = clusters(300, [1 - PI, PI])
    data, _ = scar(x, (classes > 0).long(), n_labeled=40, scenario=scenario, rng=np.random.default_rng(0))
    weight = torch.arange(data.n_rows).double() % 2 + 1
    times = weight.long()
    repeated = PUData(data.x.repeat_interleave(times, 0), data.labels.repeat_interleave(times), scenario)
    weighted = PUData(data.x, data.labels, scenario, weight)
    assert elkan_noto(weighted) == pytest.approx(elkan_noto(repeated), rel=1e-6)


def test_the_order_of_the_rows_does_not_matter() -> None:
    x, classes = clusters(300, [1 - PI, PI])
    data, _ = scar(x, (classes > 0).long(), n_labeled=40, rng=np.random.default_rng(0))
    order = torch.randperm(300, generator=torch.Generator().manual_seed(0))
    assert elkan_noto(PUData(data.x[order], data.labels[order])) == pytest.approx(elkan_noto(data), rel=1e-9)


def test_an_estimate_outside_its_range_is_held_inside_and_told() -> None:
    # Labels without any relation to the features: held-out labeled rows are not recognised, π̂ would be about one.
    g = torch.Generator().manual_seed(1)
    data = PUData(torch.randn(60, 30, generator=g), (torch.arange(60) < 8).int())
    with pytest.warns(PueWarning, match=r"prior came out as .* Labeled rows are hard to recognise .* pass the prior"):
        assert elkan_noto(data) == 0.99


def test_too_few_rows_to_hold_out_are_told() -> None:
    data = PUData(torch.tensor([[3.0], [-3.0], [-2.5]]), torch.tensor([1, 0, 0]))
    with pytest.warns(PueWarning, match=r"too few distinct rows to hold any out.*Pass the prior if you know it"):
        found = elkan_noto(data)
    assert 1 / 3 < found < 1


@pytest.mark.parametrize("scenario", list(Scenario))
@pytest.mark.parametrize("name", sorted(PRIORS))
def test_every_estimator_gives_a_prior_that_the_data_allow(name: str, scenario: Scenario) -> None:
    x, classes = clusters(500, [1 - PI, PI])
    data, _ = scar(x, (classes > 0).long(), n_labeled=60, scenario=scenario, rng=np.random.default_rng(0))
    found = PRIORS[name](data)
    assert isinstance(found, float)
    assert (60 / 500 if scenario is Scenario.SINGLE_SAMPLE else 0) < found < 1
