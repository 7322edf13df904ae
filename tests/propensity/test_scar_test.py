"""The SCAR test: its level where it is exact, its power where the bias is plain, and its slow twins."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.stats import kstest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from pue import PUData, Scenario
from pue.bench.labeling import feature_sar, scar
from pue.core.folds import row_hash
from pue.errors import InvalidInput
from pue.propensity.scar import N_BLOCKS, artificial_excess, excess, p_value, scar_test

both = pytest.mark.parametrize("scenario", list(Scenario))


class FirstColumn(ClassifierMixin, BaseEstimator):
    """A score that was known before the labels were seen."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> FirstColumn:
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return X[:, 0]


def gaussians(rng: np.random.Generator, n: int = 400, *, gap: float = 6.0, prior: float = 0.4) -> tuple[Tensor, Tensor]:
    y = rng.random(n) < prior
    x = rng.normal(size=(n, 3))
    x[:, 0] += gap * y
    return torch.from_numpy(x), torch.from_numpy(y).long()


def fair(seed: int, scenario: Scenario = Scenario.SINGLE_SAMPLE, n_labeled: int = 60, **options: float) -> PUData:
    rng = np.random.default_rng(seed)
    x, y = gaussians(rng, **options)
    return scar(x, y, n_labeled=n_labeled, scenario=scenario, rng=rng)[0]


def biased(seed: int, scenario: Scenario = Scenario.SINGLE_SAMPLE, strength: float = 3.0) -> PUData:
    rng = np.random.default_rng(seed)
    x, y = gaussians(rng, 800)
    return feature_sar(x, y, features=[1], strength=strength, frequency=0.3, scenario=scenario, rng=rng)[0]


# ------------------------------------------------------------------------------------------------------------ level


@both
def test_p_values_are_uniform_in_the_worst_case(scenario: Scenario) -> None:
    # A perfect ranking that knows no label: here the guarantee is an equality, up to ties. In case-control the labeled
    # rows are drawn beside the sample, as the artificial ones are. Fixed seeds.
    found = []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        score = rng.random((300, 1))  # a row is positive where it exceeds .6
        if scenario is Scenario.SINGLE_SAMPLE:
            labels = (score[:, 0] > 0.6) & (rng.random(300) < 0.4)
        else:
            score = np.concatenate([1 - 0.4 * rng.random((48, 1)), score])
            labels = np.arange(348) < 48
        data = PUData(torch.from_numpy(score), torch.from_numpy(labels.astype(int)), scenario)
        found.append(scar_test(data, prior=0.4, n_draws=99, seed=seed, score=FirstColumn()).p_value)
    assert kstest(found, "uniform", alternative="greater").pvalue > 0.01  # not too many small ones,
    assert np.mean(found) < 0.58  # nor too few: 0.5 plus 2.5 standard errors
    assert 0 < np.mean(np.array(found) <= 0.05) <= 0.09


@both
@pytest.mark.parametrize("gap", [1.5, 6.0])
def test_false_alarms_are_rare_with_a_fitted_score(scenario: Scenario, gap: float) -> None:
    found = [
        scar_test(fair(seed, scenario, gap=gap), prior=0.4, n_draws=99, seed=seed, score=LogisticRegression()).p_value
        for seed in range(20)
    ]
    # Valid means stochastically above uniform. Twenty sets are few; studies/scar_test_calibration.py has hundreds.
    assert np.mean(np.array(found) <= 0.05) <= 0.15
    assert np.mean(np.array(found) <= 0.50) <= 0.70


def test_repeated_rows_raise_no_alarm() -> None:
    # A table with two binary columns: all rows are repeats, and must not go to one block because they are equal.
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y = rng.random(600) < 0.4
        x = (rng.random((600, 2)) < np.where(y, 0.9, 0.1)[:, None]).astype(float)
        data = scar(torch.from_numpy(x), torch.from_numpy(y).long(), n_labeled=100, rng=rng)[0]
        found.append(scar_test(data, prior=0.4, n_draws=99, seed=seed, score=LogisticRegression()).rejected)
    assert np.mean(found) <= 0.05


# ------------------------------------------------------------------------------------------------------------ power


@both
def test_a_strong_bias_is_found(scenario: Scenario) -> None:
    found = [scar_test(biased(seed, scenario), prior=0.4, seed=seed) for seed in range(5)]
    assert all(result.p_value <= 0.01 for result in found)
    assert all(result.labeled_share - result.allowed_share == pytest.approx(result.statistic) for result in found)


def test_the_region_is_where_the_labels_are() -> None:
    data = biased(0)
    result = scar_test(data, prior=0.4)
    tested = ~torch.isnan(result.depth)
    assert result.n_tested == int((tested & data.labeled).sum())
    assert float(result.region[tested & data.labeled].double().mean()) == pytest.approx(result.labeled_share)
    # Labels go to large values of column 1, and so does the region.
    assert data.x[result.region, 1].mean() > data.x[result.positives & ~result.region, 1].mean() + 0.5
    # The estimated positive set has the size of the positive class, up to one row a block.
    assert int(result.positives.sum()) == pytest.approx(0.4 * int(tested.sum()), abs=N_BLOCKS)


def test_a_positive_class_that_is_hidden_in_the_negatives_shows_no_bias() -> None:
    # π p(x | labeled) ≤ p(x) everywhere: no test can tell, and this one does not pretend to.
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(1000, 2)))
    y = torch.from_numpy(rng.random(1000) < 0.2).long()
    data = feature_sar(x, y, features=[0], strength=1.0, frequency=0.4, rng=rng)[0]
    assert not scar_test(data, prior=0.2).rejected


def test_the_largest_prior_is_where_the_test_turns() -> None:
    data = fair(1, n=1000, n_labeled=150)
    turn = scar_test(data, prior=0.4).largest_prior
    assert 0.36 < turn < 0.6
    assert not scar_test(data, prior=turn - 0.03).rejected
    assert scar_test(data, prior=turn + 0.03).rejected  # too large a prior looks like a bias
    assert scar_test(data, prior=0.9).largest_prior == pytest.approx(turn, abs=0.01)


# ------------------------------------------------------------------------------------------------------------ twins


def test_excess_equals_its_twin() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 40):
        u = np.round(1.3 * rng.random(n), 1)  # with ties, and beyond one
        best = max(sum(other <= t for other in u) / n - t for t in u)
        assert excess(u)[0] == pytest.approx(best, abs=1e-15)
        assert excess(u)[1] - excess(u)[2] == pytest.approx(best, abs=1e-15)


@both
def test_depths_equal_their_twin(scenario: Scenario) -> None:
    data = fair(3, scenario)
    result = scar_test(data, prior=0.4, score=FirstColumn(), seed=5)
    # Blocks, by hand: a row's number depends on its content and on how many equal rows of its label came before.
    seen: Counter[tuple[int, int]] = Counter()
    keys = []
    for content, label in zip(row_hash(data.x, seed=5).view(np.int64).tolist(), data.labels.tolist(), strict=True):
        pair = torch.tensor([[content, seen[content, label]]])
        seen[content, label] += 1
        keys.append(int(row_hash(pair, seed=5)[0]))
    ordered = sorted(key for key, label in zip(keys, data.labels.tolist(), strict=True) if label == 1)
    cuts = [ordered[round(len(ordered) * k / N_BLOCKS)] for k in range(1, N_BLOCKS)]
    block = [sum(key >= cut for cut in cuts) for key in keys]
    population = [scenario is Scenario.SINGLE_SAMPLE or label == 0 for label in data.labels.tolist()]
    score = data.x[:, 0].tolist()
    for i in range(data.n_rows):
        mates = [j for j in range(data.n_rows) if population[j] and block[j] == block[i]]
        depth = sum(score[j] >= score[i] for j in mates) / len(mates) / 0.4
        expected = np.nan if block[i] == 0 else depth
        assert float(result.depth[i]) == pytest.approx(expected, abs=1e-12, nan_ok=True)
    assert result.p_value == p_value(result.statistic, result.null.numpy())


@pytest.mark.parametrize("nested", [True, False])
def test_artificial_labelings_equal_their_twin(nested: bool) -> None:
    # The twin draws every row of two blocks and ranks it.
    sizes, prior = [(8, 40), (6, 30)], 0.4
    fast = artificial_excess(sizes, prior, nested=nested, n_draws=2000, seed=0)
    rng = np.random.default_rng(1)
    slow = []
    for _ in range(2000):
        u: list[float] = []
        for n_labeled, n_rows in sizes:
            rows = rng.random(n_rows)
            positives = np.sort(rows[rows < prior]) if nested else prior * rng.random(n_labeled)
            if len(positives) < n_labeled:  # rarer than once in a hundred
                positives = np.concatenate([positives, np.sort(rows[rows >= prior])[: n_labeled - len(positives)]])
            chosen = rng.permutation(positives)[:n_labeled]
            u += [sum(row <= place for row in rows) / (prior * n_rows) for place in chosen]
        slow.append(excess(np.array(u))[0])
    # The statistic is discrete: compare quantiles, with their sampling error.
    for share in (0.25, 0.5, 0.75, 0.9, 0.95):
        assert np.quantile(fast, share) == pytest.approx(np.quantile(slow, share), abs=0.03)


def test_many_draws_come_in_pieces_of_bounded_size() -> None:
    null = artificial_excess([(1000, 3000)], 0.5, nested=True, n_draws=2500, seed=0)
    assert null.shape == (2500,)
    # One-sided Kolmogorov–Smirnov, two samples nested: the median is a few hundredths and no draw is wild.
    assert 0 < np.median(null) < 0.05
    assert null.max() < 0.15


# ------------------------------------------------------------------------------------------------- what does not matter


def test_a_seed_decides_everything() -> None:
    data = fair(0)
    first, again, other = (scar_test(data, prior=0.4, seed=seed) for seed in (0, 0, 1))
    assert first.p_value == again.p_value
    assert torch.equal(first.null, again.null)
    assert torch.equal(first.depth.nan_to_num(), again.depth.nan_to_num())
    assert not torch.equal(first.depth.nan_to_num(), other.depth.nan_to_num())


@both
def test_the_order_of_rows_does_not_matter(scenario: Scenario) -> None:
    data = fair(2, scenario)
    shuffle = torch.from_numpy(np.random.default_rng(0).permutation(data.n_rows))
    straight = scar_test(data, prior=0.4)
    shuffled = scar_test(PUData(data.x[shuffle], data.labels[shuffle], scenario), prior=0.4)
    assert shuffled.p_value == straight.p_value
    assert torch.equal(shuffled.depth.nan_to_num(), straight.depth[shuffle].nan_to_num())


def test_a_labeled_row_and_its_copy_share_a_block() -> None:
    data = fair(0, Scenario.CASE_CONTROL)
    depth = scar_test(data, prior=0.4).depth
    for row in torch.nonzero(data.labeled)[:, 0]:
        copy = (data.x == data.x[row]).all(dim=1) & data.unlabeled
        assert int(copy.sum()) == 1
        assert float(depth[copy].nan_to_num(-1)) == float(depth[row].nan_to_num(-1))


def test_sparse_and_dense_tables_agree() -> None:
    data = fair(4)
    dense = scar_test(data, prior=0.4)
    thin = scar_test(PUData(sparse.csr_matrix(data.x.numpy()), data.labels), prior=0.4)
    # Blocks go by the hash, which differs between the two kinds of storage; the verdict does not.
    assert dense.rejected == thin.rejected
    wide = sparse.random(300, 200, density=0.1, format="csr", rng=np.random.default_rng(0))
    assert scar_test(PUData(wide, torch.arange(300) < 60), prior=0.4).p_value > 0


def test_images_are_reduced_to_their_components() -> None:
    rng = np.random.default_rng(0)
    classes = rng.integers(3, size=600)  # 0 and 1 are positive
    patterns = rng.integers(0, 200, size=(3, 1, 10, 10))
    x = torch.from_numpy((patterns[classes] + rng.integers(0, 55, size=(600, 1, 10, 10))).astype(np.uint8))
    labels = (classes == 0) & (rng.random(600) < 0.5)
    assert scar_test(PUData(x, torch.from_numpy(labels)), prior=0.66).rejected
    labels = (classes < 2) & (rng.random(600) < 0.25)
    assert not scar_test(PUData(x, torch.from_numpy(labels)), prior=0.66).rejected


def test_another_embedding_and_another_score() -> None:
    data = biased(1)
    noise = np.random.default_rng(0).normal(size=(data.n_rows, 2))
    assert not scar_test(data, prior=0.4, embedding=noise).rejected  # knows nothing of the bias
    assert scar_test(data, prior=0.4, embedding=data.x[:, :2]).rejected
    forest = RandomForestClassifier(30, min_samples_leaf=5, random_state=0)
    assert scar_test(data, prior=0.4, score=forest).rejected
    assert not hasattr(forest, "estimators_")  # a copy was fitted


def test_known_negatives_belong_to_a_single_sample() -> None:
    data = fair(0)
    labels = data.labels.clone()
    labels[torch.nonzero((data.x[:, 0] < 0) & data.unlabeled)[:20, 0]] = -1
    result = scar_test(PUData(data.x, labels), prior=0.4)
    assert not result.rejected
    assert not torch.isnan(result.depth[labels == -1]).all()


def test_the_data_and_the_global_generators_are_left_alone() -> None:
    data = fair(0)
    before = data.x.clone(), data.labels.clone(), np.random.get_state()[1].copy(), torch.get_rng_state()
    scar_test(data, prior=0.4)
    assert torch.equal(data.x, before[0])
    assert torch.equal(data.labels, before[1])
    assert np.array_equal(np.random.get_state()[1], before[2])
    assert torch.equal(torch.get_rng_state(), before[3])


# ----------------------------------------------------------------------------------------------------- words and errors


def test_the_result_reads_as_a_sentence() -> None:
    assert "SCAR not rejected (p = " in str(scar_test(fair(0), prior=0.4))
    result = scar_test(biased(0), prior=0.4)
    assert str(result).startswith("SCAR rejected (p = 0.001, level 0.05): the region where labels are densest holds ")
    assert f"{result.labeled_share:.0%} of {result.n_tested} labeled rows" in str(result)
    assert f"at most {result.largest_prior:.2g}, not 0.4." in str(result)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prior": 0.0}, r"prior must lie in \(0, 1\)"),
        ({"prior": 0.1}, r"below the share of labeled rows"),
        ({"level": 0.0}, r"level must lie in \(0, 1\)"),
        ({"n_draws": 10}, r"n_draws be at least 1/level"),
        ({"embedding": np.zeros((3, 2))}, r"one row for each of the 400 rows; got shape \(3, 2\)"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        scar_test(fair(0), **{"prior": 0.4, **change})  # type: ignore[arg-type]


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at least 20 labeled rows; got 19"):
        scar_test(fair(0, n_labeled=19), prior=0.4)
    with pytest.raises(InvalidInput, match="at least 50 unlabeled rows; got 40"):
        scar_test(PUData(torch.rand(80, 1), torch.arange(80) < 40), prior=0.6)


def test_weights_are_refused_with_the_reason() -> None:
    data = fair(0)
    weighted = PUData(data.x, data.labels, data.scenario, torch.ones(data.n_rows, dtype=torch.float64))
    with pytest.raises(InvalidInput, match="a row of weight 2 is not two independent rows"):
        scar_test(weighted, prior=0.4)


def test_missing_values_are_refused() -> None:
    x = fair(0).x.clone()
    x[3, 1] = torch.nan
    with pytest.raises(InvalidInput, match=r"column\(s\) \[1\] hold NaN or infinity"):
        scar_test(PUData(x, fair(0).labels), prior=0.4)
