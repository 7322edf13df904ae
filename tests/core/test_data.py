"""The door: what PUData accepts, what it refuses and what it says then."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch
from scipy import sparse

from pue.core.data import (
    PUData,
    Scenario,
    Truth,
    as_float,
    as_labels,
    as_matrix,
    gather,
    labeled_share,
    non_finite_columns,
    population_rows,
    require_propensity,
    select,
)
from pue.errors import InvalidInput, UnknownName

X = torch.arange(8.0).reshape(4, 2)

# ----------------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize(
    "labels",
    [[1, 0, 0], [1.0, 0.0, 0.0], [True, False, False], np.array([1, 0, 0]), torch.tensor([1, 0, 0])],
    ids=["list", "floats", "booleans", "array", "tensor"],
)
def test_labels_come_in_many_forms_and_leave_in_one(labels):
    got = as_labels(labels)
    assert got.dtype == torch.int8
    assert got.tolist() == [1, 0, 0]


def test_labeled_negatives_are_welcome():
    assert as_labels([1, 0, -1]).tolist() == [1, 0, -1]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, 0, 2, 7], r"found 2, 7\. Recode them, for example with \(column == 'yes'\)\.astype\(int\)"),
        ([1.0, 0.0, float("nan")], r"found nan\. Recode them"),
        ([0, 0, 0], r"no row is labeled positive: .*Mark known positives with 1"),
        ([0, -1], r"no row is labeled positive"),
        ([], r"no row is labeled positive"),
        ([1, -1, -1], r"only 1 and -1, which is ambiguous.*Recode the unlabeled rows as 0"),
        ([1, 1], r"every row is labeled positive: .*mark them with 0"),
        ([[1], [0]], r"labels must be one-dimensional; got shape \(2, 1\)\. Use labels\.squeeze\(1\) or \.ravel\(\)"),
    ],
    ids=["strange values", "NaN", "no positive", "only negatives", "empty", "ambiguous", "no unlabeled", "column"],
)
def test_refuses_labels_with_a_remedy(labels, message):
    with pytest.raises(InvalidInput, match=message):
        as_labels(labels)


# ----------------------------------------------------------------------------------------------- PUData


def test_counts_and_masks():
    data = PUData(X, [1, 0, -1, 1])
    assert (data.n_rows, data.n_labeled) == (4, 2)
    assert data.labeled.tolist() == [True, False, False, True]
    assert data.unlabeled.tolist() == [False, True, False, False]
    assert data.scenario is Scenario.SINGLE_SAMPLE


def test_is_frozen():
    with pytest.raises(FrozenInstanceError):
        PUData(X, [1, 0, 0, 0]).labels = torch.zeros(4)


def test_the_scenario_is_a_field_and_may_be_named():
    assert PUData(X, [1, 0, 0, 0], "case_control").scenario is Scenario.CASE_CONTROL
    with pytest.raises(UnknownName, match=r"unknown scenario 'case-control'\. Did you mean .*case_control"):
        PUData(X, [1, 0, 0, 0], "case-control")


def test_refuses_a_row_without_a_label():
    with pytest.raises(InvalidInput, match=r"x has 4 rows but labels has 3\. Pass one label for every row"):
        PUData(X, [1, 0, 0])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, -1.0, 1.0, 1.0], r"finite and not negative\. Drop the rows, or give them weight 0"),
        ([1.0, float("nan"), 1.0, 1.0], r"finite and not negative"),
        ([1.0, float("inf"), 1.0, 1.0], r"finite and not negative"),
        ([1.0, 1.0], r"sample_weight must have one entry for each of the 4 rows; got 2"),
        ([[1.0]] * 4, r"sample_weight must be one-dimensional; got shape \(4, 1\)"),
    ],
    ids=["negative", "NaN", "infinite", "too few", "column"],
)
def test_refuses_bad_sample_weights(weight, message):
    with pytest.raises(InvalidInput, match=message):
        PUData(X, [1, 0, 0, 0], sample_weight=torch.tensor(weight))


def test_the_truth_gives_the_propensities_in_the_order_of_the_labeled_rows():
    data = PUData(X, [0, 1, 0, 1])
    truth = Truth(torch.tensor([0, 1, 1, 1]), torch.tensor([torch.nan, 0.1, 0.2, 0.3]))
    assert truth.labeled_propensity(data).tolist() == pytest.approx([0.1, 0.3])


def test_refuses_propensities_of_all_rows_where_those_of_the_labeled_are_meant():
    with pytest.raises(InvalidInput, match=r"one entry for each of the 2 labeled rows \(or for every row"):
        require_propensity(torch.full((4,), 0.5), 2)


# -------------------------------------------------------------------------------------------- scenarios


def test_all_rows_of_a_single_sample_are_a_draw_from_the_population():
    assert population_rows(torch.tensor([1, 0, -1]), Scenario.SINGLE_SAMPLE).tolist() == [True, True, True]


def test_in_case_control_only_the_unlabeled_rows_are():
    assert population_rows(torch.tensor([1, 0, -1]), Scenario.CASE_CONTROL).tolist() == [False, True, False]


def test_labeled_share_counts_weights():
    labels = torch.tensor([1, 0, 0, -1])
    assert labeled_share(labels) == 0.25
    assert labeled_share(labels, torch.tensor([3.0, 1.0, 1.0, 1.0])) == 0.5


# -------------------------------------------------------------------------------------------- features


def test_dense_and_sparse_rows_are_selected_alike():
    rows = torch.tensor([3, 0])
    sparse_x = sparse.csr_matrix(X.numpy())
    assert torch.equal(gather(X, rows), gather(sparse_x, rows))
    assert sparse.issparse(select(sparse_x, rows))
    assert torch.equal(gather(sparse_x, torch.tensor([True, False, False, True])), X[[0, 3]])


def test_bytes_become_shares_and_floats_stay():
    assert as_float(torch.tensor([0, 255], dtype=torch.uint8)).tolist() == [0.0, 1.0]
    assert as_float(torch.tensor([0.0, 255.0])).tolist() == [0.0, 255.0]
    assert as_float(torch.tensor([1.0]), torch.float64).dtype == torch.float64


def test_images_become_a_matrix_and_are_left_alone():
    images = torch.full((2, 1, 2, 2), 51, dtype=torch.uint8)
    matrix = as_matrix(images)
    assert matrix.shape == (2, 4)
    assert matrix == pytest.approx(np.full((2, 4), 0.2))
    assert bool((images == 51).all())


def test_non_finite_columns_are_named():
    x = torch.tensor([[0.0, torch.inf, 1.0], [torch.nan, 1.0, 1.0]])
    assert non_finite_columns(x) == [0, 1]
    assert non_finite_columns(sparse.csr_matrix(x.numpy())) == [0, 1]
    assert non_finite_columns(torch.ones(2, 2)) == non_finite_columns(torch.ones(2, 2).long()) == []
