"""Labeling mechanisms: who gets a label, with what chance, and that the truth stays apart."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
import torch

from pue.bench.labeling import class_mix, feature_sar, scar
from pue.core.data import PUData, Scenario
from pue.errors import InvalidInput

MNIST_SIZES = {0: 5923, 2: 5958, 4: 5842, 6: 5918, 8: 5851, 1: 30508}  # all odd digits as one class
MNIST_CLASSES = torch.repeat_interleave(torch.tensor(list(MNIST_SIZES)), torch.tensor(list(MNIST_SIZES.values())))
MNIST_MIX = {0: 0.65, 2: 0.15, 4: 0.10, 6: 0.07, 8: 0.03}

X = torch.arange(40.0)[:, None] + torch.tensor([0.0, 0.5])
"""Every row is different, so that one can see where it went."""
Y = (torch.arange(40) % 2 == 0).long()
CLASSES = torch.arange(40) % 4
MIX = {0: 0.75, 2: 0.25}

MECHANISMS = {
    "class_mix": lambda scenario, seed=0: class_mix(
        X, CLASSES, mix=MIX, n_labeled=8, scenario=scenario, rng=np.random.default_rng(seed)
    ),
    "feature_sar": lambda scenario, seed=0: feature_sar(
        X, Y, features=[0], strength=2.0, frequency=0.4, scenario=scenario, rng=np.random.default_rng(seed)
    ),
    "scar": lambda scenario, seed=0: scar(X, Y, n_labeled=8, scenario=scenario, rng=np.random.default_rng(seed)),
}
every_mechanism = pytest.mark.parametrize("name", MECHANISMS)
both_scenarios = pytest.mark.parametrize("scenario", list(Scenario))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# --------------------------------------------------------------------------------- what all have in common


@every_mechanism
@both_scenarios
def test_only_positives_are_labeled_and_only_they_have_a_propensity(name, scenario):
    data, truth = MECHANISMS[name](scenario)
    assert bool((truth.y[data.labeled] == 1).all())
    assert torch.equal(torch.isnan(truth.propensity), truth.y == 0)
    assert bool((truth.labeled_propensity(data) > 0).all())
    assert data.scenario is scenario
    assert set(data.labels.tolist()) == {0, 1}


@every_mechanism
def test_in_a_single_sample_rows_stay_where_they_are(name):
    data, truth = MECHANISMS[name](Scenario.SINGLE_SAMPLE)
    assert torch.equal(data.x, X)
    assert torch.equal(truth.y, Y)


@every_mechanism
def test_in_case_control_the_labeled_rows_are_copies_in_front_of_the_whole_set(name):
    data, truth = MECHANISMS[name](Scenario.CASE_CONTROL)
    n = data.n_labeled
    assert data.n_rows == 40 + n
    assert bool(data.labeled[:n].all())
    assert not bool(data.labeled[n:].any())
    assert torch.equal(data.x[n:], X)
    assert torch.equal(truth.y[n:], Y)
    for row in range(n):
        (original,) = torch.nonzero((data.x[n:] == data.x[row]).all(dim=1))[:, 0].tolist()
        assert truth.y[row] == truth.y[n + original]
        assert truth.propensity[row] == truth.propensity[n + original]
    # No row is copied twice.
    assert len(torch.unique(data.x[:n], dim=0)) == n


@every_mechanism
@both_scenarios
def test_the_same_seed_gives_the_same_labels_and_another_seed_others(name, scenario):
    first, again, other = (MECHANISMS[name](scenario, seed)[0] for seed in (3, 3, 4))
    assert torch.equal(first.labels, again.labels)
    assert torch.equal(first.x, again.x)
    assert first.n_labeled != other.n_labeled or not torch.equal(first.x[first.labeled], other.x[other.labeled])


@every_mechanism
def test_inputs_are_left_alone(name):
    x, y, classes = X.clone(), Y.clone(), CLASSES.clone()
    MECHANISMS[name](Scenario.SINGLE_SAMPLE)
    assert torch.equal(X, x)
    assert torch.equal(Y, y)
    assert torch.equal(CLASSES, classes)


def test_the_truth_has_no_place_in_the_training_data():
    assert {field.name for field in fields(PUData)} == {"x", "labels", "scenario", "sample_weight"}


@both_scenarios
@pytest.mark.parametrize("name", ["class_mix", "scar"])
def test_the_number_of_labels_is_the_one_asked_for(name, scenario):
    data, _ = MECHANISMS[name](scenario)
    assert data.n_labeled == 8


# ------------------------------------------------------------------------------------------------- SCAR


def test_scar_gives_every_positive_the_same_chance():
    draws = torch.stack([MECHANISMS["scar"](Scenario.SINGLE_SAMPLE, seed)[0].labeled for seed in range(1000)])
    _, truth = MECHANISMS["scar"](Scenario.SINGLE_SAMPLE)
    assert truth.propensity[Y == 1].unique().tolist() == [8 / 20]
    frequency = draws.double().mean(0)
    assert bool((frequency[Y == 0] == 0).all())
    # Four standard errors of a share of .4 in 1,000 draws.
    assert bool(((frequency[Y == 1] - 0.4).abs() < 4 * (0.4 * 0.6 / 1000) ** 0.5).all())


@pytest.mark.parametrize("n_labeled", [0, -1, 21])
def test_scar_refuses_an_impossible_number_of_labels(n_labeled):
    with pytest.raises(InvalidInput, match="n_labeled must lie between 1 and the number of positives, 20; got"):
        scar(X, Y, n_labeled=n_labeled, rng=rng())


def test_refuses_a_set_without_positives():
    with pytest.raises(InvalidInput, match=r"y holds no positive row \(1\)\. There is nothing to label"):
        scar(X, torch.zeros(40), n_labeled=1, rng=rng())


def test_refuses_a_column_of_classes():
    with pytest.raises(InvalidInput, match=r"y must be one-dimensional; got shape \(40, 1\)"):
        scar(X, Y[:, None], n_labeled=1, rng=rng())
    with pytest.raises(InvalidInput, match=r"classes must be one-dimensional; got shape \(40, 1\)"):
        class_mix(X, CLASSES[:, None], mix=MIX, n_labeled=4, rng=rng())


def test_refuses_rows_without_a_class():
    with pytest.raises(
        InvalidInput, match=r"x has 41 rows but there are classes for 40\. Pass one class for every row"
    ):
        scar(torch.zeros(41, 1), Y, n_labeled=4, rng=rng())


# -------------------------------------------------------------------------------------------- class mix


def test_exact_counts_are_those_of_the_paper():
    data, truth = class_mix(
        torch.zeros(60_000, 1), MNIST_CLASSES, mix=MNIST_MIX, n_labeled=2500, counts="exact", rng=rng()
    )
    counts = torch.bincount(truth.classes[data.labeled], minlength=9)
    assert counts[[0, 2, 4, 6, 8]].tolist() == [1625, 375, 250, 175, 75]
    assert data.n_rows == 62_500
    for digit, share in MNIST_MIX.items():
        e = truth.propensity[truth.classes == digit].unique()
        assert e.tolist() == pytest.approx([2500 * share / MNIST_SIZES[digit]])


def test_exact_counts_always_add_up():
    # 10 labels in three equal shares: the largest remainders take the odd one out.
    classes = torch.tensor([0] * 10 + [1] * 10 + [2] * 10 + [3] * 10)
    data, truth = class_mix(
        X, classes, mix={0: 0.28, 1: 0.34, 2: 0.38}, n_labeled=10, counts="exact", rng=rng(), scenario="single_sample"
    )
    assert torch.bincount(truth.classes[data.labeled]).tolist() == [3, 3, 4]


def test_multinomial_counts_have_the_mix_as_their_mean():
    counts = []
    for seed in range(400):
        data, truth = class_mix(X, CLASSES, mix=MIX, n_labeled=8, rng=rng(seed))
        counts.append(torch.bincount(truth.classes[data.labeled], minlength=3)[[0, 2]].tolist())
    counts = np.array(counts)
    assert (counts.sum(axis=1) == 8).all()
    error = np.sqrt(8 * 0.75 * 0.25 / 400)
    assert counts.mean(axis=0) == pytest.approx([6, 2], abs=4 * error)
    assert counts.std(axis=0) == pytest.approx([np.sqrt(8 * 0.75 * 0.25)] * 2, rel=0.15)


def test_the_classes_of_the_mix_are_the_positives():
    _, truth = class_mix(X, CLASSES, mix=MIX, n_labeled=8, scenario="single_sample", rng=rng())
    assert torch.equal(truth.y, Y)
    assert torch.equal(truth.classes, CLASSES)
    assert truth.propensity[CLASSES == 0].unique().tolist() == pytest.approx([8 * 0.75 / 10])
    assert truth.propensity[CLASSES == 2].unique().tolist() == pytest.approx([8 * 0.25 / 10])


@pytest.mark.parametrize("mix", [{0: 0.75, 2: 0.35}, {0: 1.25, 2: -0.25}])
def test_refuses_shares_that_are_no_mix(mix):
    with pytest.raises(InvalidInput, match=r"mix must hold shares that sum to 1; got .*, sum 1"):
        class_mix(X, CLASSES, mix=mix, n_labeled=4, rng=rng())


def test_refuses_more_labels_than_a_class_has_rows():
    with pytest.raises(
        InvalidInput, match=r"15 labels of class 0, which has only 10 rows\. Lower n_labeled \(now 20\)"
    ):
        class_mix(X, CLASSES, mix=MIX, n_labeled=20, counts="exact", rng=rng())


def test_refuses_an_unknown_way_to_count():
    with pytest.raises(InvalidInput, match="counts must be 'multinomial' or 'exact'; got 'fixed'"):
        class_mix(X, CLASSES, mix=MIX, n_labeled=4, counts="fixed", rng=rng())


# ------------------------------------------------------------------------------------------ feature SAR


def sar_sample(strength: float | list[float] = 1.5, frequency: float = 0.3, seed: int = 0):
    generator = np.random.default_rng(100 + seed)
    x = torch.from_numpy(generator.normal(loc=3, scale=5, size=(40_000, 3)))
    y = torch.from_numpy((generator.random(40_000) < 0.5).astype(np.int64))
    return x, y, *feature_sar(x, y, features=[0, 2], strength=strength, frequency=frequency, rng=rng(seed))


def test_labels_come_with_the_frequency_that_the_propensity_says():
    _, y, data, truth = sar_sample()
    positive = y == 1
    e, labeled = truth.propensity[positive], data.labeled[positive].double()
    assert e.mean().item() == pytest.approx(0.3, abs=1e-9)
    for low, high in ((0, 0.1), (0.1, 0.3), (0.3, 0.6), (0.6, 1)):
        inside = (e >= low) & (e < high)
        error = (e[inside] * (1 - e[inside])).sum().sqrt() / inside.sum()
        assert inside.sum() > 500
        assert abs(labeled[inside].mean() - e[inside].mean()) < 4 * error


def test_the_propensity_is_the_sigmoid_of_the_standardized_features():
    x, y, _, truth = sar_sample(strength=[1.5, -0.5])
    z = (x - x.mean(0)) / x.std(0, correction=0)
    drive = 1.5 * z[:, 0] - 0.5 * z[:, 2]
    intercept = torch.logit(truth.propensity) - drive
    assert intercept[y == 1].std().item() == pytest.approx(0, abs=1e-9)


def test_no_strength_is_scar():
    _, y, _, truth = sar_sample(strength=0.0)
    torch.testing.assert_close(truth.propensity[y == 1], torch.full((int(y.sum()),), 0.3, dtype=torch.float64))


@pytest.mark.parametrize("frequency", [0.0, 1.0, 2.0])
def test_refuses_an_impossible_frequency(frequency):
    with pytest.raises(InvalidInput, match=r"frequency must lie in \(0, 1\); got .*share of positives to label"):
        feature_sar(X, Y, features=[0], frequency=frequency, rng=rng())


def test_refuses_constant_features():
    with pytest.raises(InvalidInput, match=r"features \[1\] are constant and cannot bias the labels\. Choose others"):
        feature_sar(torch.cat([X[:, :1], torch.ones(40, 1)], dim=1), Y, features=[0, 1], frequency=0.3, rng=rng())
