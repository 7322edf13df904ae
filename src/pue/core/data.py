"""The data of a PU problem, validated once, here.

`PUData` holds what a learner may see: features, labels (1 labeled positive, 0 unlabeled, −1 labeled negative), the
sampling scenario. `Truth` holds what it may not: only labeling mechanisms, metrics and experiments touch it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from pue.errors import InvalidInput, UnknownName

Features = Any
"""A dense tensor with rows first, or a SciPy CSR matrix (which has no static type)."""


class Scenario(StrEnum):
    """How the rows were collected, which decides which rows are a sample of p(x).

    >>> Scenario.parse("case_control")
    <Scenario.CASE_CONTROL: 'case_control'>
    """

    SINGLE_SAMPLE = "single_sample"
    """One table in which some positives got a label: *all* rows together are a draw from p(x)."""
    CASE_CONTROL = "case_control"
    """The unlabeled rows are a draw from p(x) of their own; the labeled rows were collected beside them."""

    @classmethod
    def parse(cls, name: str | Scenario) -> Scenario:
        try:
            return cls(name)
        except ValueError:
            raise UnknownName("scenario", name, list(cls)) from None


@dataclass(frozen=True, eq=False)
class PUData:
    """Features and PU labels of one problem.

    >>> data = PUData(torch.zeros(4, 2), torch.tensor([1, 0, 0, 0]))
    >>> data.n_rows, data.n_labeled, data.scenario.value
    (4, 1, 'single_sample')
    """

    x: Features
    labels: Tensor
    scenario: Scenario = Scenario.SINGLE_SAMPLE
    sample_weight: Tensor | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scenario", Scenario.parse(self.scenario))
        object.__setattr__(self, "labels", as_labels(self.labels))
        if self.x.shape[0] != self.n_rows:
            raise InvalidInput(
                f"x has {self.x.shape[0]} rows but labels has {self.n_rows}. Pass one label for every row."
            )
        if self.sample_weight is not None:
            require_sample_weight(self.sample_weight, self.n_rows)
            for kind, rows in (("labeled", self.labeled), ("unlabeled", self.unlabeled)):
                if not self.sample_weight[rows].sum() > 0:
                    raise InvalidInput(
                        f"all {kind} rows have sample_weight 0: one class of labels is left. Give some of them weight."
                    )

    @property
    def n_rows(self) -> int:
        return len(self.labels)

    @property
    def n_labeled(self) -> int:
        return int(self.labeled.sum())

    @property
    def mass(self) -> Tensor:
        """How many rows each row stands for: its sample weight, or one."""
        given = self.sample_weight
        return torch.ones(self.n_rows, dtype=torch.float64) if given is None else given.double()

    def take(self, rows: Tensor) -> PUData:
        """The data of some rows, by index or mask."""
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        return PUData(select(self.x, rows), self.labels[rows], self.scenario, weight)

    @property
    def labeled(self) -> Tensor:
        """Mask of the labeled positives."""
        return self.labels == 1

    @property
    def unlabeled(self) -> Tensor:
        return self.labels == 0


@dataclass(frozen=True, eq=False)
class Truth:
    """What a labeling mechanism hid: the class of every row and, for the positives, the true propensity."""

    y: Tensor
    """1 for the positive class, 0 for the negative one."""
    propensity: Tensor
    """e(x) = P(labeled | x, positive); not a number for negatives, which cannot be labeled."""
    classes: Tensor | None = None
    """The finer class (a digit, say) that the labels' bias depends on, where there is one."""

    def labeled_propensity(self, data: PUData) -> Tensor:
        return self.propensity[data.labeled]


def population_rows(labels: Tensor, scenario: Scenario) -> Tensor:
    """Mask of the rows that are a draw from p(x): the only place where the two scenarios differ.

    >>> population_rows(torch.tensor([1, 0]), Scenario.CASE_CONTROL)
    tensor([False,  True])
    """
    if Scenario.parse(scenario) is Scenario.SINGLE_SAMPLE:
        return torch.ones_like(labels, dtype=torch.bool)
    return labels == 0


def select(x: Features, rows: Tensor) -> Features:
    """Some rows, by index or mask, in `x`'s own storage."""
    return x[rows.numpy()] if sparse.issparse(x) else x[rows]


def gather(x: Features, index: Tensor) -> Tensor:
    """Some rows, by index, as a dense tensor of their own type."""
    # index_select copies whole rows; x[index] moves element by element, ten times slower on bytes.
    return x.index_select(0, index) if isinstance(x, Tensor) else torch.from_numpy(select(x, index).toarray())


def is_image(x: Features) -> bool:
    """Whether a row is more than a row of numbers: channels, height and width."""
    return len(x.shape) > 2


def is_bytes(x: Features) -> bool:
    """Whether the values are bytes, 0…255, which share one scale; pixels mostly are, as images or as rows."""
    return isinstance(x, Tensor) and x.dtype == torch.uint8


def as_matrix(x: Features) -> Any:
    """All rows as a two-dimensional NumPy array (or CSR matrix) of floats, for scikit-learn's linear models."""
    if sparse.issparse(x):
        return x
    dtype = x.dtype if x.is_floating_point() else torch.float32
    return as_float(x.flatten(1), dtype).numpy()


def as_float(rows: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Rows as floating-point numbers; uint8 means 0…255 and becomes [0, 1].

    >>> as_float(torch.tensor([0, 51, 255], dtype=torch.uint8))
    tensor([0.0000, 0.2000, 1.0000])
    """
    return rows.to(dtype).div_(255) if rows.dtype == torch.uint8 else rows.to(dtype)


def as_labels(labels: Any) -> Tensor:
    """Labels as an int8 vector of 1, 0 and −1, or an error that says what is wrong with them.

    >>> as_labels([True, False, False])
    tensor([1, 0, 0], dtype=torch.int8)
    """
    try:
        values = torch.as_tensor(labels)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            "labels must be the numbers 1, 0 and -1. Recode them, for example with (column == 'yes').astype(int)."
        ) from error
    require_vector("labels", values)
    found = torch.unique(values).tolist()
    strange = [value for value in found if value not in (1, 0, -1)]
    if strange:
        shown = ", ".join(f"{value:g}" for value in strange[:5])
        raise InvalidInput(
            f"labels must be 1 (labeled positive), 0 (unlabeled) or -1 (labeled negative); found {shown}. "
            "Recode them, for example with (column == 'yes').astype(int)."
        )
    if 1 not in found:
        raise InvalidInput("no row is labeled positive: the labels hold only one class. Mark known positives with 1.")
    if found == [-1, 1]:
        raise InvalidInput(
            "labels hold only 1 and -1, which is ambiguous: -1 means a labeled negative here, but unlabeled in "
            "many libraries. Recode the unlabeled rows as 0, for example with (labels == 1).astype(int)."
        )
    if 0 not in found:
        raise InvalidInput(
            "every row is labeled positive: the labels hold only one class. PU learning needs unlabeled rows too; "
            "mark them with 0."
        )
    return values.to(torch.int8, copy=True)


def require_vector(name: str, values: Tensor, length: int | None = None) -> None:
    """Refuse anything that is not one-dimensional: (n, 1) against (n,) would broadcast to n × n in silence."""
    if values.ndim != 1:
        raise InvalidInput(
            f"{name} must be one-dimensional; got shape {tuple(values.shape)}. Use {name}.squeeze(1) or .ravel()."
        )
    if length is not None and len(values) != length:
        raise InvalidInput(f"{name} must have one entry for each of the {length} rows; got {len(values)}.")


def require_scores(scores: Tensor, length: int) -> None:
    """Finite scores, one for each row: comparisons with NaN are false, and a diverged model would get a number."""
    require_vector("scores", scores, length)
    if not bool(torch.isfinite(scores).all()):
        raise InvalidInput("scores hold NaN or infinity. Check the model and its inputs.")


def require_prior(prior: float, labels: Tensor, scenario: Scenario, sample_weight: Tensor | None = None) -> None:
    """π lies in (0, 1) and, in a single sample, is at least the share of rows already known to be positive."""
    if not 0 < prior < 1:
        raise InvalidInput(f'prior must lie in (0, 1); got {prior}. Pass the share of positives, or prior="estimate".')
    if Scenario.parse(scenario) is Scenario.SINGLE_SAMPLE:
        share = labeled_share(labels, sample_weight)
        if prior < share - 1e-9:
            raise InvalidInput(
                f"prior={prior:g} is below the share of labeled rows, {share:g}, which are all positive. Pass a "
                'larger prior, or scenario="case_control" if the labeled rows were collected separately.'
            )


def possible_prior(prior: float, labels: Tensor, scenario: Scenario, sample_weight: Tensor | None = None) -> float:
    """π, or the share of labeled rows where it is larger: a part of a single sample may by chance hold more labels than
    π allows. They then count as all its positives.

    >>> possible_prior(0.2, torch.tensor([1, 0, 1, 0]), Scenario.SINGLE_SAMPLE)
    0.5
    """
    return prior if scenario is Scenario.CASE_CONTROL else max(prior, labeled_share(labels, sample_weight))


def labeled_share(labels: Tensor, sample_weight: Tensor | None = None) -> float:
    if sample_weight is None:
        return float((labels == 1).double().mean())
    return float(sample_weight[labels == 1].sum() / sample_weight.sum())


def require_propensity(propensity: Tensor, n_labeled: int, *, trimmed: bool = False) -> None:
    """Propensities: one for each labeled row, each a probability above zero; `trimmed` ones may be infinite."""
    require_vector("propensity", propensity)
    if len(propensity) != n_labeled:
        raise InvalidInput(
            f"propensity must have one entry for each of the {n_labeled} labeled rows (or for every row of the "
            f"data); got {len(propensity)}."
        )
    bad = ~((propensity > 0) & (propensity <= 1)) & ~(torch.isposinf(propensity) & trimmed)
    if bad.any():
        first = int(torch.nonzero(bad)[0, 0])
        raise InvalidInput(
            f"propensity must lie in (0, 1]; {int(bad.sum())} of {n_labeled} labeled rows do not, the first is "
            f"labeled row {first} with {float(propensity[first]):g}. A row that could never be labeled cannot be "
            "labeled: clip the estimates, for example to at least 1e-4."
        )


def require_sample_weight(sample_weight: Tensor, n_rows: int) -> None:
    require_vector("sample_weight", sample_weight, n_rows)
    if not bool(torch.isfinite(sample_weight).all()) or bool((sample_weight < 0).any()):
        raise InvalidInput("sample_weight must be finite and not negative. Drop the rows, or give them weight 0.")


def non_finite_columns(x: Features) -> list[int]:
    """Columns of a two-dimensional table that hold NaN or an infinite value.

    >>> non_finite_columns(torch.tensor([[0.0, 1.0], [0.0, float("nan")]]))
    [1]
    """
    if sparse.issparse(x):
        columns: list[int] = np.unique(x.indices[~np.isfinite(x.data)]).tolist()
        return columns
    if not x.is_floating_point() or bool(torch.isfinite(x.sum())):
        return []
    bad = ~torch.isfinite(x).flatten(1).all(dim=0)
    return [int(column) for column in torch.nonzero(bad)[:, 0]]


def infinite_columns(x: Features) -> list[int]:
    """Columns of a two-dimensional table that hold an infinite value.

    >>> infinite_columns(torch.tensor([[0.0, float("inf")], [float("nan"), 1.0]]))
    [1]
    """
    suspects = non_finite_columns(x)
    if sparse.issparse(x):
        return [column for column in suspects if np.isinf(x[:, [column]].data).any()]
    rows = x.flatten(1) if suspects else x
    return [column for column in suspects if bool(torch.isinf(rows[:, column]).any())]
