"""Numbers computed by hand or printed in a paper, which the library must reproduce (§15, §2.2 and §11 of the notes)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import twins

from pue import labeling, weights
from pue.backbones import BACKBONES, InputSpec
from pue.core.data import Scenario
from pue.core.losses import logistic
from pue.core.risks import dist_pu, nnpu, upu
from pue.core.theory import weighting_gap_bound
from pue.judging import ap_hard, evaluate

PRIOR = 0.4
LABELS = torch.tensor([1, 1, 0, 0, 0, 0])
SCORES = twins.tensor([2, -1, 1, -2, 0.5, -0.5])
UNIFORM = weights.uniform(LABELS, prior=PRIOR, scenario=Scenario.CASE_CONTROL)
WEIGHTED = weights.normalized_inverse_propensity(
    LABELS, twins.tensor([0.3, 0.1]), prior=PRIOR, scenario=Scenario.CASE_CONTROL
)


def printed(value: float):
    """Equal to all six printed digits."""
    return pytest.approx(value, abs=1e-6)


# ------------------------------------------------------------------------------------------------- §15


def test_upu_uniform():
    positive, negative = upu().sums(SCORES, UNIFORM)
    unlabeled = (UNIFORM.negative[2:] @ torch.sigmoid(SCORES[2:])).item()
    assert positive.item() == printed(0.170052)
    assert unlabeled - negative.item() == printed(0.229948)
    assert unlabeled == printed(0.462565)
    assert upu()(SCORES, UNIFORM).item() == printed(0.402670)
    assert negative.item() == printed(0.232618)


def test_upu_with_propensities():
    assert (WEIGHTED.positive[:2] / PRIOR).tolist() == pytest.approx([0.25, 0.75])
    positive, negative = upu().sums(SCORES, WEIGHTED)
    on_labeled = -(WEIGHTED.negative[:2] @ torch.sigmoid(SCORES[:2])).item()
    assert positive.item() == printed(0.231238)
    assert on_labeled == printed(0.168762)
    assert upu()(SCORES, WEIGHTED).item() == printed(0.525041)
    assert negative.item() == printed(0.293803)


def test_upu_logistic():
    positive, negative = upu(logistic).sums(SCORES, UNIFORM)
    unlabeled = (UNIFORM.negative[2:] @ logistic(-SCORES[2:])).item()
    assert positive.item() == printed(0.288038)
    assert unlabeled - negative.item() == printed(0.488038)
    assert unlabeled == printed(0.722086)
    assert upu(logistic)(SCORES, UNIFORM).item() == printed(0.522086)


def test_nnpu_in_the_branch_of_ascent():
    scores = twins.tensor([2, 2, -3, -3, -3, -3], requires_grad=True)
    positive, negative = nnpu().sums(scores, UNIFORM)
    assert positive.item() == printed(0.047681)
    assert negative.item() == printed(-0.304893)
    risk = nnpu()(scores, UNIFORM)
    assert risk.item() == printed(0.047681)
    # What is followed is the gradient of +.304893, that is of −R⁻.
    (slope,) = torch.autograd.grad(risk, scores, retain_graph=True)
    (ascent,) = torch.autograd.grad(-negative, scores)
    torch.testing.assert_close(slope, ascent)


def test_dist_pu_uniform():
    labeled, predicted = dist_pu(PRIOR).sums(SCORES, UNIFORM)
    assert labeled.item() == printed(0.425131)
    assert abs(predicted.item() - PRIOR) == printed(0.062565)
    assert dist_pu(PRIOR)(SCORES, UNIFORM).item() == printed(0.503337)


def test_dist_pu_with_propensities():
    assert dist_pu(PRIOR).sums(SCORES, WEIGHTED)[0].item() == printed(0.578095)
    assert dist_pu(PRIOR)(SCORES, WEIGHTED).item() == printed(0.656301)


@pytest.mark.parametrize(
    ("backbone", "shape", "parameters"),
    [("mlp", (784,), 507_901), ("cnn13", (3, 32, 32), 3_015_255), ("resnet50", (3, 224, 224), 23_510_081)],
)
def test_parameters_of_the_papers_backbones(backbone, shape, parameters):
    with torch.device("meta"):  # shapes without memory
        network = BACKBONES[backbone](InputSpec(shape))
    assert sum(parameter.numel() for parameter in network.parameters()) == parameters


def test_hard_average_precision():
    assert ap_hard(0.7838, 0.9669, 0.4926) == pytest.approx(0.7742, abs=5e-5)


def test_hard_metrics_reproduce_the_papers_mnist_upu_row():
    # 10,000 test digits, 4,926 of them even: P = .7838, R = .9669 give the printed 85.4 and 77.4 as hard metrics only.
    hits, flagged, positives, n = 4763, 6077, 4926, 10_000
    y = torch.cat([torch.ones(positives), torch.zeros(n - positives)])
    scores = -torch.ones(n)
    scores[:hits] = 1
    scores[positives : positives + flagged - hits] = 1
    metrics = evaluate(y, scores)
    assert metrics.precision == pytest.approx(0.7838, abs=5e-5)
    assert metrics.recall == pytest.approx(0.9669, abs=5e-5)
    assert metrics.auc_hard == pytest.approx(0.8540, abs=1e-4)
    assert metrics.ap_hard == pytest.approx(0.7742, abs=1e-4)


# ------------------------------------------------------------------------------------------------ §2.2

MNIST_SIZES = [5923, 5958, 5842, 5918, 5851]
CIFAR_SIZES = [5000] * 4
MAIN_MNIST = [0.65, 0.15, 0.10, 0.07, 0.03]
MAIN_CIFAR = [0.72, 0.15, 0.10, 0.03]

# labeled mix, class sizes, n_P, implied propensities, largest and smallest mean-one weight, Kish size
TABLE = [
    (MAIN_MNIST, MNIST_SIZES, 2500, [0.2744, 0.0629, 0.0428, 0.0296, 0.0128], 6.67, 0.31, 949),
    (MAIN_CIFAR, CIFAR_SIZES, 1000, [0.144, 0.030, 0.020, 0.006], 8.33, 0.35, 311),
    ([0.25] * 4, CIFAR_SIZES, 1000, [0.05] * 4, 1, 1, 1000),
    ([0.10, 0.10, 0.30, 0.50], CIFAR_SIZES, 1000, [0.02, 0.02, 0.06, 0.10], 2.5, 0.5, 632),
    ([0.08, 0.86, 0.02, 0.04], CIFAR_SIZES, 1000, [0.016, 0.172, 0.004, 0.008], 12.5, 0.29, 180),
]
TABLE_NAMES = ["MNIST main", "CIFAR main", "CIFAR uniform", "CIFAR .10 .10 .30 .50", "CIFAR .08 .86 .02 .04"]


def labeled_set(mix: list[float], sizes: list[int], n_labeled: int):
    """The benchmark's labels on rows of the right class sizes, and as many negatives as positives."""
    classes = torch.repeat_interleave(torch.arange(len(sizes) + 1), torch.tensor([*sizes, sum(sizes)]))
    return labeling.class_mix(
        torch.zeros(len(classes), 1),
        classes,
        mix=dict(enumerate(mix)),
        n_labeled=n_labeled,
        counts="exact",
        rng=np.random.default_rng(0),
    )


@pytest.mark.parametrize(
    ("mix", "sizes", "n_labeled", "implied", "largest", "smallest", "kish"), TABLE, ids=TABLE_NAMES
)
def test_implied_propensities_and_the_weights_they_give(mix, sizes, n_labeled, implied, largest, smallest, kish):
    data, truth = labeled_set(mix, sizes, n_labeled)
    e = truth.labeled_propensity(data)
    of_class = [e[truth.classes[data.labeled] == c].unique().item() for c in range(len(mix))]
    assert of_class == pytest.approx(implied, abs=6e-5)

    # The printed weights take the mix itself for e. Only ratios matter: on CIFAR that is the same …
    share = twins.tensor(mix)[truth.classes[data.labeled]]
    omega = weights.normalized_inverse_propensity(data.labels, share, prior=0.5, scenario=data.scenario).positive / 0.5
    v = n_labeled * omega[data.labeled]
    assert v.max().item() == pytest.approx(largest, abs=5e-3)
    assert v.min().item() == pytest.approx(smallest, abs=5e-3)
    assert weights.effective_sample_size(v) == pytest.approx(kish, abs=1)
    # … and on MNIST, whose classes differ in size, it differs by less than two percent.
    exact = weights.normalized_inverse_propensity(data.labels, e, prior=0.5, scenario=data.scenario).positive / 0.5
    torch.testing.assert_close(exact, omega, rtol=0.02, atol=0)
    if len(set(sizes)) == 1:
        torch.testing.assert_close(exact, omega)


def test_the_counts_of_the_benchmarks():
    mnist, truth = labeled_set(MAIN_MNIST, MNIST_SIZES, 2500)
    assert torch.bincount(truth.classes[mnist.labeled]).tolist() == [1625, 375, 250, 175, 75]
    cifar, truth = labeled_set(MAIN_CIFAR, CIFAR_SIZES, 1000)
    assert torch.bincount(truth.classes[cifar.labeled]).tolist() == [720, 150, 100, 30]


# ------------------------------------------------------------------------------------------------ §11-7


@pytest.mark.parametrize(
    ("mix", "sizes", "n_labeled", "distance"),
    [(MAIN_CIFAR, CIFAR_SIZES, 1000, 0.94), (MAIN_MNIST, MNIST_SIZES, 2500, 0.90)],
    ids=["CIFAR", "MNIST"],
)
def test_how_far_the_papers_mixes_are_from_uniform(mix, sizes, n_labeled, distance):
    data, truth = labeled_set(mix, sizes, n_labeled)
    inverse = 1 / twins.tensor(mix)[truth.classes[data.labeled]]
    bound = weighting_gap_bound(inverse, torch.ones(n_labeled), PRIOR)
    assert bound / PRIOR == pytest.approx(distance, abs=1e-9)
