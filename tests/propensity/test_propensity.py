"""Propensity estimators against closed forms, and the open step from raw estimates to usable ones."""

import pickle

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor

from pue import PUClassifier
from pue.backbones.inputs import input_spec
from pue.core.data import PUData, Scenario
from pue.errors import InvalidInput
from pue.propensity import PROPENSITIES, Constant, Logistic, PropensityEstimator, clip_propensity
from pue.propensity.logistic import labeled_probability

RATES = (0.05, 0.4)
"""P(labeled | x) of the two groups."""


def two_groups(scenario: Scenario, n: int = 10_000, *, dtype: torch.dtype = torch.float64) -> PUData:
    """x is 0 or 1, n rows of each; exactly a share RATES[x] of them is labeled, or has a labeled copy beside it."""
    labeled = [round(rate * n) for rate in RATES]
    if scenario is Scenario.SINGLE_SAMPLE:
        rows = [(0, 1, labeled[0]), (0, 0, n - labeled[0]), (1, 1, labeled[1]), (1, 0, n - labeled[1])]
    else:
        rows = [(0, 1, labeled[0]), (0, 0, n), (1, 1, labeled[1]), (1, 0, n)]
    x = torch.cat([torch.full((count, 1), float(group)) for group, _, count in rows]).to(dtype)
    labels = torch.cat([torch.full((count,), label) for _, label, count in rows])
    return PUData(x, labels, scenario)


def two_clouds(scenario: Scenario, n: int = 200) -> PUData:
    """The two groups, no two rows equal: what has folds needs rows that can be told apart."""
    data = two_groups(scenario, n)
    jitter = torch.randn(data.x.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return PUData(data.x + 0.05 * jitter, data.labels, scenario)


GROUPS = torch.tensor([[0.0], [1.0]], dtype=torch.float64)


# ------------------------------------------------------------------------------------------------------- logistic


@pytest.mark.parametrize(("C", "tolerance"), [(1.0, 5e-3), (1e6, 1e-7)])
@pytest.mark.parametrize("scenario", list(Scenario))
def test_logistic_finds_the_labeling_rate_of_each_group(scenario: Scenario, C: float, tolerance: float) -> None:
    # Single sample: P(s | x) itself. Case-control: pooled it is r / (1 + r), and the odds of that are r again.
    model = Logistic(C).fit(two_groups(scenario), prior=0.5)
    torch.testing.assert_close(model(GROUPS), torch.tensor(RATES).double(), rtol=tolerance, atol=0)


def test_without_odds_the_pooled_probability_would_be_too_low() -> None:
    # METHODS 6.3: ê = r / (1 + r). The test above can fail.
    data = two_groups(Scenario.CASE_CONTROL)
    pooled = Logistic(1e6).fit(PUData(data.x, data.labels, Scenario.SINGLE_SAMPLE), prior=0.5)(GROUPS)
    torch.testing.assert_close(pooled, torch.tensor([r / (1 + r) for r in RATES]).double(), rtol=1e-6, atol=0)


def test_logistic_is_consistent_on_drawn_labels() -> None:
    # e(x) is a logistic function and every row is positive, so r = e can be found; 40,000 rows, three standard errors.
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40_000, 2))
    e = 1 / (1 + np.exp(1 - x @ [1.0, -0.5]))
    data = PUData(torch.from_numpy(x), torch.from_numpy((rng.random(40_000) < e).astype(int)))
    found = Logistic().fit(data, prior=0.9)(data.x).numpy()
    assert np.abs(found - e).mean() < 0.01


@pytest.mark.parametrize("scenario", list(Scenario))
def test_a_weight_of_three_is_the_row_three_times(scenario: Scenario) -> None:
    data = two_groups(scenario, 40)
    x = data.x + 0.1 * torch.randn(data.x.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weight = torch.arange(data.n_rows).double() % 3 + 1
    times = weight.long()
    weighted = PUData(x, data.labels, scenario, weight)
    repeated = PUData(x.repeat_interleave(times, 0), data.labels.repeat_interleave(times), scenario)
    models = [Logistic().fit(version, prior=0.5) for version in (weighted, repeated)]
    torch.testing.assert_close(models[0](GROUPS), models[1](GROUPS), rtol=1e-9, atol=0)
    constants = [Constant().fit(version, prior=0.5) for version in (weighted, repeated)]
    assert constants[0](GROUPS).tolist() == pytest.approx(constants[1](GROUPS).tolist(), rel=1e-12)


def test_sparse_tables_give_the_estimates_of_dense_ones() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 5)) * (rng.random((400, 5)) < 0.4)
    labels = torch.from_numpy((rng.random(400) < 0.3).astype(int))
    dense = Logistic().fit(PUData(torch.from_numpy(x), labels), prior=0.5)(torch.from_numpy(x))
    matrix = sparse.csr_matrix(x)
    torch.testing.assert_close(Logistic().fit(PUData(matrix, labels), prior=0.5)(matrix), dense, rtol=1e-5, atol=0)


def test_images_of_bytes_are_taken_as_shares_of_255() -> None:
    pixels = torch.randint(0, 256, (300, 1, 3, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    labels = (pixels[:, 0, 1, 1] > 128).int() * (torch.arange(300) % 2)
    model = Logistic().fit(PUData(pixels, labels), prior=0.6)
    estimates = model(pixels)
    assert estimates.shape == (300,)
    assert estimates[labels == 1].mean() > 2 * estimates[pixels[:, 0, 1, 1] < 64].mean()


def test_labeled_negatives_count_as_unlabeled() -> None:
    data = two_groups(Scenario.SINGLE_SAMPLE, 1000)
    labels = data.labels.clone()
    labels[torch.nonzero(labels == 0)[::7, 0]] = -1
    before, after = (Logistic().fit(PUData(data.x, version), prior=0.5)(GROUPS) for version in (data.labels, labels))
    assert torch.equal(before, after)


def test_a_row_that_is_surely_labeled_is_clipped_and_not_refused() -> None:
    # Far out p rounds to 1 and its odds are infinite. That is a propensity to be clipped to one, not an error: an
    # outlier among new rows must not stop a fitted model.
    model = Logistic().fit(two_groups(Scenario.CASE_CONTROL, 500), prior=0.5)
    clipped, report = clip_propensity(model(torch.tensor([[0.0], [1e4]], dtype=torch.float64)))
    assert clipped[1] == 1
    assert report.n_clipped == 1


# ------------------------------------------------------------------------------------------------------- constant


@pytest.mark.parametrize(
    ("scenario", "positives"), [(Scenario.SINGLE_SAMPLE, 0.4 * 10), (Scenario.CASE_CONTROL, 0.4 * 8)]
)
def test_constant_is_labeled_rows_over_expected_positives(scenario: Scenario, positives: float) -> None:
    data = PUData(torch.zeros(10, 1), torch.tensor([1] * 2 + [0] * 8), scenario)
    found = Constant().fit(data, prior=0.4)(torch.zeros(3, 1))
    assert found.tolist() == pytest.approx([2 / positives] * 3, rel=1e-14)
    assert found.dtype == torch.float64


def test_constant_stays_a_probability() -> None:
    data = PUData(torch.zeros(10, 1), torch.tensor([1] * 6 + [0] * 4), Scenario.CASE_CONTROL)
    assert Constant().fit(data, prior=0.2)(torch.zeros(1, 1)).item() == 1.0


# -------------------------------------------------------------------------------------------------- every estimator


@pytest.mark.parametrize("scenario", list(Scenario))
@pytest.mark.parametrize("name", sorted(PROPENSITIES))
def test_every_estimator_gives_a_positive_number_a_row_and_leaves_the_data_alone(name: str, scenario: Scenario) -> None:
    data = two_clouds(scenario)
    before = data.x.clone(), data.labels.clone()
    estimator = PROPENSITIES[name]
    assert isinstance(estimator, PropensityEstimator)
    found = estimator.fit(data, prior=0.5)(data.x)
    assert found.shape == (data.n_rows,)
    assert found.dtype == torch.float64
    assert ((found > 0) & torch.isfinite(found)).all()
    assert torch.equal(data.x, before[0])
    assert torch.equal(data.labels, before[1])


@pytest.mark.parametrize("name", sorted(PROPENSITIES))
def test_fitted_models_can_be_pickled(name: str) -> None:
    # joblib sends fitted classifiers between processes.
    model = PROPENSITIES[name].fit(two_clouds(Scenario.SINGLE_SAMPLE), prior=0.5)
    again = pickle.loads(pickle.dumps(model))
    assert torch.equal(again(GROUPS), model(GROUPS))


def test_estimation_draws_nothing_from_the_global_generators() -> None:
    before = np.random.get_state()[1].copy(), torch.get_rng_state()
    for estimator in PROPENSITIES.values():
        estimator.fit(two_clouds(Scenario.SINGLE_SAMPLE), prior=0.5)
    assert np.array_equal(np.random.get_state()[1], before[0])
    assert torch.equal(torch.get_rng_state(), before[1])


def test_the_users_own_estimator_is_used() -> None:
    class Half:
        def fit(self, data: PUData, *, prior: float, seed: int = 0):
            return lambda x: torch.full((x.shape[0],), 0.5, dtype=torch.float64)

    data = two_groups(Scenario.SINGLE_SAMPLE, 100)
    classifier = PUClassifier(propensity=Half(), prior=0.5, epochs=1, random_state=0).fit(data.x, data.labels)
    assert (classifier.propensity_ == 0.5).all()


# ------------------------------------------------------------------------------------------------------- clipping


def test_process_clips_and_says_so() -> None:
    raw = torch.tensor([0.5, 0.25, 0.0, 1e-5, 1.7])
    clipped, report = clip_propensity(raw, floor=0.01)
    assert clipped.tolist() == [0.5, 0.25, 0.01, 0.01, 1.0]
    inverse = [2.0, 4.0, 100.0, 100.0, 1.0]
    assert (report.n_labeled, report.n_clipped, report.floor) == (5, 3, 0.01)
    assert report.mean == pytest.approx(sum(clipped.tolist()) / 5, rel=1e-14)
    assert report.effective_sample_size == pytest.approx(sum(inverse) ** 2 / sum(i * i for i in inverse), rel=1e-12)
    assert report.largest_weight == pytest.approx(100 * 5 / sum(inverse), rel=1e-12)


def test_equal_propensities_are_as_good_as_no_weights() -> None:
    _, report = clip_propensity(torch.full((40,), 0.2))
    assert report.effective_sample_size == pytest.approx(40, rel=1e-12)
    assert report.largest_weight == pytest.approx(1, rel=1e-12)
    assert report.n_clipped == 0


@pytest.mark.parametrize(
    ("counts", "effective", "largest"),
    [((720, 150, 100, 30), 311, 8.33), ((100, 100, 300, 500), 632, 2.5), ((80, 860, 20, 40), 180, 12.5)],
)
def test_the_papers_cifar_mixes_have_the_known_effective_sample_sizes(
    counts: tuple[int, ...], effective: int, largest: float
) -> None:
    # METHODS 2.2: 1000 labels over four classes of 5000 images.
    labeled = torch.tensor(counts)
    _, report = clip_propensity((labeled.double() / 5000).repeat_interleave(labeled))
    assert report.effective_sample_size == pytest.approx(effective, abs=1)
    assert report.largest_weight == pytest.approx(largest, abs=0.01)


@pytest.mark.parametrize("floor", [0.0, 1.0, -0.1])
def test_a_floor_outside_the_open_unit_interval_is_refused(floor: float) -> None:
    with pytest.raises(InvalidInput, match=rf"floor must lie in \(0, 1\); got {floor}"):
        clip_propensity(torch.tensor([0.5]), floor=floor)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_estimates_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(InvalidInput, match=r"values that are not finite\. Check the features"):
        clip_propensity(torch.tensor([0.5, bad]))


def test_process_leaves_its_input_alone() -> None:
    raw: Tensor = torch.tensor([0.5, 0.0, 1.5], dtype=torch.float64)
    clip_propensity(raw)
    assert raw.tolist() == [0.5, 0.0, 1.5]


def test_weights_do_not_make_the_variance_of_a_constant_negative() -> None:
    """Weighted variances of constants come out as −1e-33 in about one case of ten; their roots are not numbers."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(20, 60))
        x = torch.from_numpy(np.column_stack([rng.normal(size=n), np.full(n, rng.normal())]))
        labels = torch.arange(n) % 3 == 0
        weight = torch.from_numpy(rng.random(n))
        spec = input_spec(PUData(x, labels.long(), sample_weight=weight), "auto", torch.device("cpu"))
        assert spec.std is not None
        assert bool((spec.std >= 0).all())
        assert bool(torch.isfinite(labeled_probability(x, labels, weight, C=1.0)(x)).all())
