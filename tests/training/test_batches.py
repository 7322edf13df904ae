"""Batches: who is in them, how often, and that their weighted sums estimate those of the whole sample."""

import math

import pytest
import torch
from scipy import stats
from torch import Tensor

from pue.core.weights import RowWeights, biased_negatives, normalized_inverse_propensity, pubn_region
from pue.errors import InvalidInput
from pue.training.batches import Batches, Batching

SCENARIOS = ["single_sample", "case_control"]
MODES = [
    Batching(16),
    Batching(16, labeled=5),
    Batching(16, labeled=3, labeled_rows="drawn"),
    Batching(24, "joint"),
    Batching(24, "pooled"),
]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def labels_of(positive: int, unlabeled: int, negative: int = 0) -> Tensor:
    labels = torch.tensor([1] * positive + [0] * unlabeled + [-1] * negative, dtype=torch.int8)
    return labels[torch.randperm(len(labels), generator=generator(1))]


def biased_weights(labels: Tensor, scenario: str) -> RowWeights:
    """Propensities from 0.1 to 0.9, so that no two labeled rows weigh the same."""
    propensity = torch.linspace(0.1, 0.9, int((labels == 1).sum()), dtype=torch.float64)
    weights = normalized_inverse_propensity(labels, propensity, prior=0.5, scenario=scenario)
    return pubn_region(weights, biased_negatives(labels, rho=0.2)) if (labels == -1).any() else weights


# ---------------------------------------------------------------------------------------------------- stratified


@pytest.mark.parametrize("labeled", [1, 4, 7])
def test_every_stratified_batch_holds_the_fixed_number_of_labeled_rows(labeled: int) -> None:
    labels = labels_of(20, 103)
    batches = Batches(labels, torch.ones(123), Batching(16, labeled=labeled))
    for index, _ in batches.epoch(generator()):
        assert int((labels[index] == 1).sum()) == labeled


def test_without_a_wish_the_labeled_rows_get_their_share_but_at_least_an_eighth() -> None:
    scarce, plenty = labels_of(10, 630), labels_of(200, 440)
    counts = [
        {
            int((labels[index] == 1).sum())
            for index, _ in Batches(labels, torch.ones(640), Batching(64)).epoch(generator())
        }
        for labels in (scarce, plenty)
    ]
    assert counts == [{8}, {20}]


@pytest.mark.parametrize("n_unlabeled", [24, 25, 97, 103])
def test_a_stratified_epoch_visits_every_unlabeled_row_exactly_once(n_unlabeled: int) -> None:
    labels = labels_of(9, n_unlabeled)
    batches = Batches(labels, torch.ones(len(labels)), Batching(16, labeled=4))
    seen = torch.cat([index for index, _ in batches.epoch(generator())])
    visits = torch.bincount(seen, minlength=len(labels))
    assert (visits[labels == 0] == 1).all()


@pytest.mark.parametrize("n_unlabeled", [24, 25, 97, 103])
@pytest.mark.parametrize("batching", [Batching(16, labeled=4), Batching(16, "joint")], ids=["stratified", "joint"])
def test_there_is_no_small_last_batch(batching: Batching, n_unlabeled: int) -> None:
    # 25 unlabeled rows in places of 12 would leave a batch of one row, which batch norm cannot stand.
    labels = labels_of(9, n_unlabeled)
    batches = Batches(labels, torch.ones(len(labels)), batching)
    sizes = [len(index) for index, _ in batches.epoch(generator())]
    assert max(sizes) - min(sizes) <= 1
    assert max(sizes) <= 16
    assert len(sizes) == batches.steps


def test_labeled_rows_are_visited_evenly() -> None:
    # 7 labeled rows on 11 batches × 3 places: 33 visits, four or five each.
    labels = labels_of(7, 143)
    batches = Batches(labels, torch.ones(150), Batching(16, labeled=3))
    seen = torch.cat([index for index, _ in batches.epoch(generator())])
    visits = torch.bincount(seen, minlength=150)[labels == 1]
    assert visits.sum() == 33
    assert visits.max() - visits.min() == 1


def test_labeled_negatives_are_a_stratum_of_their_own() -> None:
    labels = labels_of(20, 100, 30)
    batches = Batches(labels, torch.ones(150), Batching(30))
    epoch = list(batches.epoch(generator()))
    assert {int((labels[index] == -1).sum()) for index, _ in epoch} == {6}
    assert {int((labels[index] == 1).sum()) for index, _ in epoch} == {4}
    for index, factor in epoch:
        assert torch.equal(factor[labels[index] == -1], torch.full((6,), 30 / 6, dtype=torch.float64))


def test_the_batch_size_is_kept_when_labeled_negatives_take_places_too() -> None:
    # 12 labeled places and 5 for the negatives would not fit into 16.
    labels = labels_of(40, 100, 40)
    batches = Batches(labels, torch.ones(180), Batching(16, labeled=12))
    assert max(len(index) for index, _ in batches.epoch(generator())) <= 16


# --------------------------------------------------------------------------------------------------------- joint


def test_a_joint_epoch_visits_every_row_exactly_once() -> None:
    labels = labels_of(13, 90, 6)
    seen = torch.cat([index for index, _ in Batches(labels, torch.ones(109), Batching(16, "joint")).epoch(generator())])
    assert torch.equal(seen.sort().values, torch.arange(109))


def test_a_joint_batch_scales_each_stratum_from_its_rows_in_the_batch_to_all_of_them() -> None:
    labels = labels_of(13, 90, 6)
    for index, factor in Batches(labels, torch.ones(109), Batching(16, "joint")).epoch(generator()):
        for row, share in zip(index, factor, strict=True):
            stratum = labels[row]
            n, b = int((labels == stratum).sum()), int((labels[index] == stratum).sum())
            assert share == pytest.approx(n / b, rel=1e-15)


def test_a_joint_batch_without_a_labeled_row_is_fine() -> None:
    labels = labels_of(1, 63)
    epoch = list(Batches(labels, torch.ones(64), Batching(16, "joint")).epoch(generator()))
    empty = [(index, factor) for index, factor in epoch if not (labels[index] == 1).any()]
    assert len(empty) == 3
    for _, factor in empty:
        assert torch.equal(factor, torch.full((16,), 63 / 16, dtype=torch.float64))


# --------------------------------------------------------------------------------------------------------- drawn


def test_drawn_rows_come_in_proportion_to_their_weight() -> None:
    labels = labels_of(6, 60)
    weight = torch.tensor([1.0, 2.0, 3.0, 6.0, 8.0, 0.0], dtype=torch.float64)
    positive = torch.zeros(66, dtype=torch.float64)
    positive[labels == 1] = weight
    batches = Batches(labels, positive, Batching(8, labeled=4, labeled_rows="drawn"))
    visits = torch.zeros(66)
    for seed in range(200):
        for index, _ in batches.epoch(generator(seed)):
            visits += torch.bincount(index, minlength=66)
    counts = visits[labels == 1].numpy()
    assert counts.sum() == 200 * 15 * 4
    assert counts[5] == 0  # a weight of zero is never drawn, its factor would be infinite
    assert stats.chisquare(counts[:5], counts.sum() * weight[:5].numpy() / 20).pvalue > 0.01


def test_drawn_rows_all_weigh_the_same_in_the_positive_part() -> None:
    labels = labels_of(20, 100)
    weights = biased_weights(labels, "case_control")
    for index, factor in Batches(labels, weights.positive, Batching(16, labeled=4, labeled_rows="drawn")).epoch(
        generator()
    ):
        batch = weights.take(index, factor).positive[labels[index] == 1]
        torch.testing.assert_close(batch, torch.full((4,), 0.5 / 4, dtype=torch.float64), rtol=1e-12, atol=0)


# ---------------------------------------------------------------------------------------- expectation of the sums


@pytest.mark.parametrize("negatives", [0, 12])
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("batching", MODES, ids=lambda b: f"{b.mode}-{b.labeled}-{b.labeled_rows}")
def test_the_sums_of_a_batch_have_those_of_the_sample_as_expectation(
    batching: Batching, scenario: str, negatives: int
) -> None:
    labels = labels_of(30, 40, negatives)  # so many labeled rows that no joint batch is without one
    weights = biased_weights(labels, scenario)
    loss = torch.rand(len(labels), generator=generator(2), dtype=torch.float64)
    batches = Batches(labels, weights.positive, batching)
    means = []
    for seed in range(600):
        steps = []
        for index, factor in batches.epoch(generator(seed)):
            part = weights.take(index, factor)
            steps.append(torch.stack([part.positive @ loss[index], part.negative @ loss[index]]))
        means.append(torch.stack(steps).mean(0))
    found = torch.stack(means)
    whole = torch.stack([weights.positive @ loss, weights.negative @ loss])
    # Five standard errors, which the number of epochs makes smaller than two percent of the sums.
    error = 5 * found.std(0) / math.sqrt(len(found)) + 1e-12
    assert ((found.mean(0) - whole).abs() < error).all()
    assert (error < 0.02).all()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_whole_stratified_epoch_gives_the_sums_exactly(scenario: str) -> None:
    # Equal pieces (5 × 12 unlabeled rows) and whole passes over the labeled rows (5 × 4 = 2 × 10).
    labels = labels_of(10, 60)
    weights = biased_weights(labels, scenario)
    loss = torch.rand(70, generator=generator(2), dtype=torch.float64)
    batches = Batches(labels, weights.positive, Batching(16, labeled=4))
    found = torch.zeros(2, dtype=torch.float64)
    for index, factor in batches.epoch(generator()):
        part = weights.take(index, factor)
        found += torch.stack([part.positive @ loss[index], part.negative @ loss[index]]) / batches.steps
    whole = torch.stack([weights.positive @ loss, weights.negative @ loss])
    torch.testing.assert_close(found, whole, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_expectation_test_can_fail(scenario: str) -> None:
    # Without the factors (every row stands for itself, scaled by n/b) the labeled rows are over-represented.
    labels = labels_of(10, 60)
    weights = biased_weights(labels, scenario)
    index, _ = next(iter(Batches(labels, weights.positive, Batching(16, labeled=4)).epoch(generator())))
    naive = weights.take(index, torch.full((16,), 70 / 16, dtype=torch.float64))
    assert abs(float(naive.positive.sum()) - 0.5) > 0.1


# -------------------------------------------------------------------------------------------------- whole and order


@pytest.mark.parametrize("mode", ["stratified", "joint"])
def test_data_that_fit_into_one_batch_are_used_whole_and_in_order(mode: str) -> None:
    labels = labels_of(5, 27)
    batches = Batches(labels, torch.ones(32), Batching(32, mode))
    for seed in range(3):
        [(index, factor)] = list(batches.epoch(generator(seed)))
        assert torch.equal(index, torch.arange(32))
        assert torch.equal(factor, torch.ones(32, dtype=torch.float64))
    assert batches.steps == 1


def test_one_row_more_than_a_batch_is_not_used_whole() -> None:
    assert Batches(labels_of(5, 28), torch.ones(33), Batching(32)).steps == 2


@pytest.mark.parametrize("batching", MODES, ids=lambda b: f"{b.mode}-{b.labeled}-{b.labeled_rows}")
def test_the_generator_alone_decides_an_epoch(batching: Batching) -> None:
    labels = labels_of(20, 100)
    batches = Batches(labels, biased_weights(labels, "case_control").positive, batching)
    first, again, other = (
        torch.cat([index for index, _ in batches.epoch(generator(seed))]).tolist() for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other


# --------------------------------------------------------------------------------------------------------- errors


def test_more_labeled_places_than_labeled_rows_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"needs 6 labeled rows but there are only 5\. Lower labeled_per_batch"):
        Batches(labels_of(5, 50), torch.ones(55), Batching(16, labeled=6))


@pytest.mark.parametrize("labeled", [0, 16, 20])
def test_labeled_places_must_leave_room_for_unlabeled_rows(labeled: int) -> None:
    with pytest.raises(InvalidInput, match=rf"between 1 and batch_size - 1, 15; got {labeled}"):
        Batches(labels_of(30, 50), torch.ones(80), Batching(16, labeled=labeled))


@pytest.mark.parametrize("options", [{"labeled_rows": "drawn"}, {"labeled": 4}])
def test_joint_batches_can_neither_draw_nor_fix_the_labeled_rows(options: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match=r"joint batches cannot fix or draw .* Use batching='stratified'"):
        Batching(16, "joint", **options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"size": 1}, "batch_size must be at least 2; got 1"),
        ({"mode": "mixed"}, "'stratified', 'joint' or 'pooled'; got 'mixed'"),
        ({"labeled_rows": "all"}, "'weighted' or 'drawn'; got 'all'"),
    ],
)
def test_wrong_settings_are_refused(options: dict[str, object], text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        Batching(**options)
