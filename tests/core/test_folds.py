"""Folds depend on what a row is: copies stay together, order is irrelevant, and every fold gets its share."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from torch import Tensor

from pue.core.folds import content_folds, most_folds, row_hash
from pue.errors import InvalidInput


def rows(n: int, features: int = 3, *, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(n, features, generator=torch.Generator().manual_seed(seed)).to(dtype)


def labels_of(n: int, labeled: int) -> Tensor:
    return (torch.arange(n) < labeled).to(torch.int8)


def with_copies(n: int = 100, labeled: int = 30) -> tuple[Tensor, Tensor]:
    """Case-control: the first rows are copies of the first rows of U."""
    x = rows(n)
    return torch.cat([x[:labeled], x]), torch.cat([torch.ones(labeled), torch.zeros(n)]).to(torch.int8)


@pytest.mark.parametrize("k", [2, 3, 10])
def test_a_labeled_row_and_its_unlabeled_copy_share_a_fold(k: int) -> None:
    folds = content_folds(*with_copies(), k)
    assert (folds[:30] == folds[30:60]).all()


def test_repeated_rows_share_a_fold_and_change_no_other() -> None:
    x, labels = rows(60), labels_of(60, 20)
    folds = content_folds(x, labels, 5)
    repeated = content_folds(torch.cat([x, x[[3, 3, 40]]]), torch.cat([labels, labels[[3, 3, 40]]]), 5)
    assert repeated.tolist() == [*folds.tolist(), folds[3], folds[3], folds[40]]


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_rows_does_not_matter(seed: int) -> None:
    x, labels = with_copies()
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    np.testing.assert_array_equal(content_folds(x[order], labels[order], 5), content_folds(x, labels, 5)[order.numpy()])


@pytest.mark.parametrize("k", [2, 3, 7])
def test_every_fold_gets_its_share_of_every_kind_of_rows(k: int) -> None:
    x = rows(130)
    labels = torch.tensor([1] * 40 + [0] * 70 + [-1] * 20)
    folds = content_folds(x, labels, k)
    for value in (1, 0, -1):
        counts = np.bincount(folds[(labels == value).numpy()], minlength=k)
        assert counts.max() - counts.min() <= 1


def test_the_seed_changes_the_folds_and_nothing_else_does() -> None:
    x, labels = rows(60), labels_of(60, 20)
    assert (content_folds(x, labels, 2, seed=1) == content_folds(x, labels, 2, seed=1)).all()
    assert (content_folds(x, labels, 2, seed=1) != content_folds(x, labels, 2, seed=2)).any()


def test_the_fold_of_a_row_does_not_betray_its_features() -> None:
    # The hash scrambles: neighbours in feature space land in folds as a coin does.
    x = torch.arange(2000.0)[:, None]
    folds = content_folds(x, (torch.arange(2000) % 2).to(torch.int8), 2)
    runs = int((np.diff(folds[::2]) != 0).sum())
    assert 420 < runs < 580


def test_too_many_folds_are_refused_with_a_remedy() -> None:
    with pytest.raises(
        InvalidInput, match=r"6 folds need at least 6 distinct .* the scarcer of the two has 5\. Use fewer"
    ):
        content_folds(rows(40), labels_of(40, 5), 6)


def test_copies_do_not_count_as_distinct_rows() -> None:
    # Ten labeled rows that are all the same row leave one distinct labeled row.
    x = torch.cat([rows(1).expand(10, 3), rows(30, seed=1)])
    assert most_folds(x, labels_of(40, 10)) == 1
    with pytest.raises(InvalidInput, match="the scarcer of the two has 1"):
        content_folds(x, labels_of(40, 10), 2)


def test_a_single_fold_is_refused() -> None:
    with pytest.raises(InvalidInput, match="1 folds need at least 2 distinct"):
        content_folds(rows(40), labels_of(40, 5), 1)


@pytest.mark.parametrize(("labeled", "expected"), [(5, 5), (30, 10)])
def test_most_folds_counts_the_scarcer_kind(labeled: int, expected: int) -> None:
    assert most_folds(rows(40), labels_of(40, labeled)) == expected


# ------------------------------------------------------------------------------------------------------ the hash


def groups(hashes: np.ndarray) -> list[int]:
    """Each row's group, numbered in the order in which the groups appear."""
    first: dict[int, int] = {}
    return [first.setdefault(int(value), len(first)) for value in hashes]


SMALL = st.lists(
    st.lists(st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5]), min_size=3, max_size=3), min_size=1, max_size=20
)


@settings(max_examples=60, deadline=None)
@given(SMALL, st.sampled_from([torch.float32, torch.float64]))
def test_dense_and_sparse_hashes_group_the_rows_by_their_values(values: list[list[float]], dtype: torch.dtype) -> None:
    x = torch.tensor(values, dtype=dtype)
    equal = groups(np.unique(x.numpy() + 0.0, axis=0, return_inverse=True)[1].ravel())
    assert groups(row_hash(x)) == equal
    assert groups(row_hash(sparse.csr_matrix(x.numpy()))) == equal


def test_a_sparse_matrix_is_read_by_its_values_not_by_its_storage() -> None:
    # An explicit zero, unsorted indices and an entry in two parts are the same row as the plain one.
    plain = sparse.csr_matrix(np.array([[0.0, 2.0, 3.0]]))
    odd = sparse.csr_matrix((np.array([3.0, 1.0, 0.0, 1.0]), np.array([2, 1, 0, 1]), np.array([0, 4])), shape=(1, 3))
    assert row_hash(plain) == row_hash(odd)
    assert odd.nnz == 4  # and the caller's matrix is left as it was


def test_minus_zero_is_zero() -> None:
    assert row_hash(torch.tensor([[0.0, 1.0]])) == row_hash(torch.tensor([[-0.0, 1.0]]))


def test_the_hash_knows_where_a_value_stands() -> None:
    assert len(set(row_hash(torch.tensor([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0], [2.0, 2.0]])))) == 4


def test_images_of_bytes_are_hashed_by_their_pixels() -> None:
    images = torch.randint(0, 256, (20, 1, 5, 5), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    again = torch.cat([images, images.clone()])
    assert groups(row_hash(again)) == [*range(20), *range(20)]
    images[3, 0, 4, 4] ^= 1
    assert groups(row_hash(torch.cat([again[:20], images])))[23] == 20


def test_a_hundred_thousand_rows_do_not_collide() -> None:
    assert len(np.unique(row_hash(torch.arange(100_000.0)[:, None]))) == 100_000


def test_rows_of_a_group_share_a_fold_whatever_the_group_is_called() -> None:
    x = torch.arange(60.0)[:, None]
    labels = (torch.arange(60) % 4 == 0).int()
    groups = np.repeat(np.arange(20), 3)
    fold = content_folds(x, labels, 4, groups=groups)
    assert all(len(set(fold[groups == group])) == 1 for group in range(20))
    np.testing.assert_array_equal(content_folds(x, labels, 4, groups=100 - groups), fold)
    assert set(fold) == {0, 1, 2, 3}
    assert most_folds(x, labels, groups=np.arange(60) // 30) == 0  # both groups hold a labeled row
    with pytest.raises(InvalidInput, match="group of each of the 60 rows"):
        content_folds(x, labels, 2, groups=groups[:-1])
