"""Priors: each formula against its slow twin, right under SCAR; biased labels pull all but the clustered one down."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import torch
import twins_priors as twins

from pue.bench.labeling import class_mix, scar
from pue.core.data import PUData, Scenario
from pue.errors import InvalidInput, PueWarning
from pue.priors import (
    PRIORS,
    Evidence,
    PriorEstimate,
    clustered,
    elkan_noto,
    estimate_prior,
    evidence,
    interval,
    inverse_propensity,
    km2,
)
from pue.priors.bbe import best_bin
from pue.priors.clustered import denoised
from pue.priors.dedpul import _density, fixed_point, kink
from pue.priors.km2 import best_kernel, nearest, onto_simplex, slope_at
from pue.priors.shares import prior_from_unlabeled, unlabeled_from_frequency
from pue.priors.tice import _best_bound, confidence, label_frequency, lower_bound

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


@pytest.mark.filterwarnings("ignore:rates of labels of similar rows:pue.errors.PueWarning")
@pytest.mark.parametrize("scenario", list(Scenario))
@pytest.mark.parametrize("name", sorted(PRIORS))
def test_every_estimator_gives_a_prior_that_the_data_allow(name: str, scenario: Scenario) -> None:
    x, classes = clusters(500, [1 - PI, PI])
    data, _ = scar(x, (classes > 0).long(), n_labeled=60, scenario=scenario, rng=np.random.default_rng(0))
    found = PRIORS[name](data)
    assert isinstance(found, float)
    assert (60 / 500 if scenario is Scenario.SINGLE_SAMPLE else 0) < found < 1


# --------------------------------------------------------------------------------- each formula against its slow twin


def evidence_of(
    labels: np.ndarray,
    q: np.ndarray | None = None,
    z: np.ndarray | None = None,
    mass: np.ndarray | None = None,
    scenario: Scenario = Scenario.CASE_CONTROL,
) -> Evidence:
    n = len(labels)
    return Evidence(
        labels.astype(np.int8),
        scenario,
        np.ones(n) if mass is None else mass,
        np.full(n, 0.5) if q is None else q,
        np.zeros((n, 1)) if z is None else z,
        np.zeros(n, dtype=np.int64),
    )


def small(seed: int, n: int = 30) -> tuple[np.random.Generator, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < 0.4).astype(int)
    labels[:2] = 1, 0
    return rng, labels


@pytest.mark.parametrize("seed", range(8))
def test_the_best_bin_is_the_best_of_all_thresholds(seed: int) -> None:
    rng, labels = small(seed)
    score = rng.integers(0, 12, size=30) / 12.0 + 0.3 * labels  # with ties
    mass = rng.random(30) + 0.5
    found = best_bin(evidence_of(labels, mass=mass), score)
    assert found == pytest.approx(twins.best_bin(score.tolist(), labels.tolist(), mass.tolist()), rel=1e-9)


def test_the_bound_of_tice() -> None:
    found = lower_bound(np.array([3.0, 20.0]), np.array([10.0, 25.0]), 0.4, 0.1)
    assert found == pytest.approx([twins.tice_bound(3, 10, 0.4, 0.1), twins.tice_bound(20, 25, 0.4, 0.1)])
    assert confidence(100) == pytest.approx(1 / 1.4)
    assert confidence(1e9) == 0.025


@pytest.mark.parametrize("seed", range(4))
def test_the_tree_of_tice_node_by_node(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bins = rng.integers(0, 4, size=(600, 3))
    labels = (rng.random(600) < np.where((bins[:, 0] == 2) & (bins[:, 1] > 1), 0.7, 0.1)).astype(int)
    grow = rng.random(600) < 0.3
    found = _best_bound(evidence_of(labels), bins.astype(np.intp), grow, 0.5, 10**6)
    assert found == pytest.approx(twins.tice_tree(bins.tolist(), labels.tolist(), grow.tolist(), 0.5), rel=1e-9)


def test_tice_looks_at_no_more_splits_than_it_may() -> None:
    rng = np.random.default_rng(0)
    z = rng.random((2000, 4))
    rows = evidence_of((rng.random(2000) < 0.8 * (z[:, 0] > 0.5) * (z[:, 1] > 0.5)).astype(int), z=z)
    assert label_frequency(rows, most_splits=0) < label_frequency(rows, most_splits=1) < label_frequency(rows)


@pytest.mark.parametrize("seed", range(3))
def test_the_fixed_point_of_dedpul(seed: int) -> None:
    ratio = np.random.default_rng(seed).gamma(0.5, size=200)
    ratio /= ratio.mean()
    assert fixed_point(ratio) == pytest.approx(twins.dedpul_fixed_point(ratio.tolist()), rel=1e-9)


def test_dedpuls_fixed_point_and_kink_find_a_clean_mixture() -> None:
    ratio = np.sort(np.where(np.arange(1000) < 300, 1 / 0.3, 0.0))  # 30 % of U are positives, and separate
    assert fixed_point(ratio) == pytest.approx(0.3, abs=1e-3)
    assert kink(ratio) == pytest.approx(0.3, abs=2e-3)


def test_a_density_on_the_grid_is_the_sum_of_its_kernels() -> None:
    rng = np.random.default_rng(0)
    points, mass = rng.normal(size=40), rng.random(40)
    grid = np.linspace(-5, 5, 2048)
    found = _density(points, mass, grid, 0.1)
    exact = [twins.kernel_density(points.tolist(), mass.tolist(), at, 0.1) for at in grid[::64]]
    assert found[::64] == pytest.approx(exact, abs=2e-3)


@pytest.mark.parametrize("seed", range(5))
def test_the_projection_onto_the_simplex(seed: int) -> None:
    v = np.random.default_rng(seed).normal(size=9)
    assert onto_simplex(v) == pytest.approx(twins.onto_simplex(v.tolist()), abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("lam", [1.2, 2.0, 4.0])
def test_the_nearest_distribution_of_km2(lam: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(14, 2))
    u, p = np.repeat([1 / 8, 0.0], [8, 6]), np.repeat([0.0, 1 / 6], [8, 6])
    kernel, _ = best_kernel(z, u - p)
    target = lam * u + (1 - lam) * p
    v, squared = nearest(kernel, target, u, steps=20_000)
    assert v.min() >= 0
    assert v.sum() == pytest.approx(1)
    assert squared == pytest.approx(twins.nearest_distribution(kernel.astype(float), target), abs=2e-5)


def test_the_slope_of_km2_is_a_difference_quotient() -> None:
    rng = np.random.default_rng(0)
    z = np.concatenate([rng.normal(size=(30, 1)), rng.normal(3, 1, size=(30, 1))])
    u, p = np.full(60, 1 / 60), np.repeat([0.0, 1 / 30], 30)
    kernel, _ = best_kernel(z, u - p)
    far, near = (np.sqrt(nearest(kernel, lam * u + (1 - lam) * p, u, steps=20_000)[1]) for lam in (3.01, 2.99))
    assert slope_at(kernel, 3.0, u, p, u)[1] == pytest.approx((far - near) / 0.02, rel=0.02)


def test_km2_keeps_one_small_kernel_however_many_rows_there_are() -> None:
    rng = np.random.default_rng(0)
    labels = (np.arange(30_000) < 10_000).astype(int)
    rows = evidence_of(labels, z=rng.normal(size=(30_000, 2)) + labels[:, None])
    tracemalloc.start()
    try:
        km2(rows, max_rows=100)
        assert tracemalloc.get_traced_memory()[1] < 20e6  # the kernel of all rows takes 3.6e9
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("scenario", list(Scenario))
def test_shares_turn_into_each_other_as_counting_says(scenario: Scenario) -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.3).astype(int)
    labels = np.concatenate([np.ones(60, dtype=int), np.zeros(400, dtype=int)])
    rows = evidence_of(labels, scenario=scenario)
    alpha, c = y.mean(), 60 / (60 + y.sum())
    found = prior_from_unlabeled(alpha, rows)
    assert found == pytest.approx(twins.prior(y.tolist(), 60, scenario))
    assert unlabeled_from_frequency(c, rows) == pytest.approx(alpha)
    if scenario is Scenario.SINGLE_SAMPLE:
        assert found == pytest.approx(60 / 460 / c)  # π = s̄ / c


def test_labeled_negatives_are_part_of_a_single_sample() -> None:
    labels = np.repeat([1, 0, -1], [10, 60, 30])
    rows = evidence_of(labels, scenario=Scenario.SINGLE_SAMPLE)
    assert prior_from_unlabeled(0.5, rows) == pytest.approx((10 + 30) / 100)


# ------------------------------------------------------------------------------------------- right under SCAR, or not


def labeled_clusters(labels: str, scenario: Scenario, n: int = 2000, seed: int = 0) -> tuple[PUData, torch.Tensor]:
    """Two positive clusters of the same size; SCAR: propensity .35 in both, biased: .6 and .1."""
    x, classes = clusters(n, [1 - PI, PI / 2, PI / 2], seed)
    mix = {1: 1 / 2, 2: 1 / 2} if labels == "scar" else {1: 6 / 7, 2: 1 / 7}
    n_labeled = round(n * PI * 0.35)
    rng = np.random.default_rng(seed)
    data, truth = class_mix(x, classes, mix=mix, n_labeled=n_labeled, scenario=scenario, rng=rng)
    return data, truth.labeled_propensity(data)


ROWS = {"km2": 800}  # the others are fast
TOLERANCE = {"bbe": 0.03, "clustered": 0.04, "dedpul": 0.06, "elkan_noto": 0.03, "km2": 0.05, "tice": 0.1}


@pytest.mark.parametrize("scenario", list(Scenario))
@pytest.mark.parametrize("name", sorted(TOLERANCE))
def test_every_estimator_is_right_under_scar(name: str, scenario: Scenario) -> None:
    data, _ = labeled_clusters("scar", scenario, ROWS.get(name, 2000))
    assert PRIORS[name](data) == pytest.approx(PI, abs=TOLERANCE[name])


@pytest.mark.parametrize("scenario", list(Scenario))
@pytest.mark.parametrize("name", sorted(set(TOLERANCE) - {"clustered"}))
def test_scar_estimators_are_too_low_under_biased_labels(name: str, scenario: Scenario) -> None:
    data, _ = labeled_clusters("biased", scenario, ROWS.get(name, 2000))
    assert PRIORS[name](data) < 0.9 * PI


@pytest.mark.parametrize("name", ["bbe", "dedpul", "km2"])
def test_estimators_that_look_for_pure_positives_tend_to_the_best_labeled_ones(name: str) -> None:
    # π ē / max e, with ē = 0.35 and max e = 0.6.
    data, _ = labeled_clusters("biased", Scenario.CASE_CONTROL, ROWS.get(name, 2000))
    assert PRIORS[name](data) == pytest.approx(PI * 0.35 / 0.6, abs=0.06)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scenario", list(Scenario))
def test_the_clustered_prior_stands_biased_labels(scenario: Scenario, seed: int) -> None:
    data, _ = labeled_clusters("biased", scenario, seed=seed)
    assert clustered(data) == pytest.approx(PI, abs=0.05)


@pytest.mark.parametrize("scenario", list(Scenario))
def test_known_propensities_give_the_prior_under_biased_labels(scenario: Scenario) -> None:
    data, e = labeled_clusters("biased", scenario, n=6000)
    assert inverse_propensity(data, e) == pytest.approx(PI, abs=0.03)
    with pytest.raises(InvalidInput, match="one entry for each of the"):
        inverse_propensity(data, e[:-1])


def test_estimated_propensities_give_about_the_prior_where_classes_do_not_overlap() -> None:
    # Their noise makes it too high, 1/ê being convex.
    data, _ = labeled_clusters("biased", Scenario.CASE_CONTROL, n=6000)
    assert PI < inverse_propensity(data) < PI + 0.12


# ------------------------------------------------------------------------------------------------------- the evidence


@pytest.mark.filterwarnings("ignore:rates of labels of similar rows:pue.errors.PueWarning")
@pytest.mark.parametrize("name", sorted(PRIORS))
def test_the_order_of_the_evidence_does_not_matter(name: str) -> None:
    data, _ = labeled_clusters("biased", Scenario.CASE_CONTROL, n=400)
    rows = evidence(data)
    shuffled = rows.rows(np.random.default_rng(0).permutation(len(rows.q)))
    assert PRIORS[name](shuffled) == pytest.approx(PRIORS[name](rows), abs=2e-3)


@pytest.mark.parametrize("name", ["bbe", "dedpul", "elkan_noto", "inverse_propensity", "tice"])
def test_a_mass_of_two_is_the_row_twice(name: str) -> None:
    data, _ = labeled_clusters("scar", Scenario.SINGLE_SAMPLE, n=400)
    rows = evidence(data)
    mass = np.arange(len(rows.q)) % 2 + 1
    repeated = rows.rows(np.repeat(np.arange(len(mass)), mass))
    assert PRIORS[name](rows.reweighted(mass.astype(float))) == pytest.approx(PRIORS[name](repeated), rel=1e-6)


def test_scores_are_averaged_inside_their_fold_only() -> None:
    rng = np.random.default_rng(0)
    rows = evidence_of(np.arange(200) % 2, q=rng.random(200), z=rng.normal(size=(200, 2)))
    rows = replace(rows, fold=np.arange(200) % 2)
    other = replace(rows, q=np.where(rows.fold == 1, rng.random(200), rows.q))
    smooth, changed = denoised(rows).q, denoised(other).q
    assert (smooth[rows.fold == 0] == changed[rows.fold == 0]).all()
    assert (smooth[rows.fold == 1] != changed[rows.fold == 1]).all()
    assert smooth.std() < 0.6 * rows.q.std()


# ------------------------------------------------------------------------------------------------------- the interval


def test_an_estimate_says_what_it_is() -> None:
    data, _ = labeled_clusters("biased", Scenario.CASE_CONTROL, n=600)
    found = estimate_prior(data, method="clustered", level=0.99, n_boot=10)
    assert found.low < found.value < found.high
    assert (found.method, found.assumption, found.level) == ("clustered", "SCAR inside clusters", 0.99)
    assert f"{found.value:.3f} (99 % interval {found.low:.3f} to" in str(found)
    assert found == estimate_prior(data, method="clustered", level=0.99, n_boot=10)
    assert found != estimate_prior(data, method="clustered", level=0.99, n_boot=10, seed=1)
    assert float(found) == found.value == clustered(data)


def test_without_a_bootstrap_there_is_no_interval() -> None:
    data, _ = labeled_clusters("scar", Scenario.SINGLE_SAMPLE, n=600)
    found = estimate_prior(data, method="bbe", n_boot=0)
    assert found.low == found.value == found.high
    assert str(found) == f"{found.value:.3f} (bbe, assumes SCAR)"


def test_a_higher_level_gives_a_wider_interval_and_more_data_a_narrower_one() -> None:
    few, _ = labeled_clusters("scar", Scenario.CASE_CONTROL, n=600)
    many, _ = labeled_clusters("scar", Scenario.CASE_CONTROL, n=6000)
    wide, narrow = estimate_prior(few, method="bbe", level=0.99), estimate_prior(few, method="bbe", level=0.8)
    assert wide.low < narrow.low < narrow.high < wide.high
    tight = estimate_prior(many, method="bbe", level=0.99)
    assert tight.high - tight.low < wide.high - wide.low


def test_what_cannot_be_estimated_is_refused() -> None:
    data, _ = labeled_clusters("scar", Scenario.SINGLE_SAMPLE, n=200)
    with pytest.raises(InvalidInput, match=r"unknown prior 'bbee'. Did you mean 'bbe'"):
        estimate_prior(data, method="bbee")
    with pytest.raises(InvalidInput, match=r"level must lie in \(0, 1\)"):
        estimate_prior(data, level=95)
    with pytest.raises(InvalidInput, match="n_boot be 0 or at least 2"):
        estimate_prior(data, n_boot=1)
    few = PUData(torch.arange(50.0)[:, None], (torch.arange(50) < 3).int())
    with pytest.raises(
        InvalidInput, match=r"at least 10 labeled and 10 unlabeled rows; there are 3 and 47. Label more"
    ):
        estimate_prior(few, method="bbe")
    found = estimate_prior(few)
    assert (found.method, found.low, found.high) == ("elkan_noto", 3 / 50, 1.0)
    with pytest.raises(InvalidInput, match="every row is labeled positive"):
        PUData(torch.randn(5, 2), torch.ones(5))


def test_a_vague_estimate_is_the_mean_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of images; tables weigh several clues."""
    images = torch.randint(0, 256, (60, 1, 4, 4), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    data = PUData(images, (torch.arange(60) < 20).int())
    monkeypatch.setattr(interval, "evidence", lambda data, **how: None)
    found = {
        "clustered": PriorEstimate(0.8, 0.4, 1.0, 0.99, "clustered", "", 50),
        "dedpul": PriorEstimate(0.4, 0.3, 0.5, 0.99, "dedpul", "", 50),
    }
    monkeypatch.setattr(interval, "_estimate", lambda rows, method, *how: found[method])
    prior = estimate_prior(data)
    assert (prior.value, prior.low, prior.high) == (pytest.approx(0.6), 0.3, 1.0)
    assert prior.method == "mean of clustered and dedpul"
    found["clustered"] = replace(found["clustered"], low=0.75)
    assert estimate_prior(data) is found["clustered"]
    assert estimate_prior(data, method="dedpul") is found["dedpul"]


@pytest.mark.slow
@pytest.mark.parametrize(("labels", "name", "repeats"), [("scar", "bbe", 50), ("biased", "clustered", 10)])
def test_the_interval_holds_the_prior(labels: str, name: str, repeats: int) -> None:
    # Fifty repetitions of more cases: benchmarks/studies/prior_coverage.py.
    covered = 0
    for seed in range(repeats):
        data, _ = labeled_clusters(labels, Scenario.CASE_CONTROL, n=1000, seed=100 + seed)
        found = estimate_prior(data, method=name, seed=seed)
        covered += found.low <= PI <= found.high
        assert found.high - found.low < 0.25
    assert covered >= 0.9 * repeats
