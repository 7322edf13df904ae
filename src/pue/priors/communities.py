"""The prior from structure: how many rows lie in groups that have labels, told from groups that have none by the gap
between their rates."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, fields

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import poisson

from pue.core.data import PUData, Scenario, select
from pue.errors import PueWarning, require
from pue.priors.evidence import Evidence, Floats, as_evidence
from pue.priors.shares import held_inside
from pue.propensity.structure import graph_rows, joined, network_of
from pue.propensity.tally import counted

NEIGHBORS, RESOLUTION = 10, 1.0
STRANGERS = 0.01
"""Of a group's core, at most such a share belongs elsewhere."""
SURE = 0.02
APART = 3.0
"""Rates on both sides of a gap differ by this factor at least."""
UNDECIDED = 0.2
"""Beyond such a share of rows in groups that are neither, there is no gap."""


@dataclass(frozen=True, eq=False)
class Grouped(Evidence):
    """Evidence whose rows know their group, and whether their neighbors all belong to it (`core`)."""

    member: NDArray[np.int64] = field(kw_only=True)
    core: NDArray[np.bool_] = field(kw_only=True)


@dataclass(frozen=True)
class Gap:
    """π̂ from a gap in the rates of labels and the range that is left; `found`: there is a gap."""

    low: float
    value: float
    high: float
    found: bool


def communities(data: PUData | Evidence) -> float:
    """π̂ = share of the rows in groups above the gap between rates of labels. See `gap_in_rates`."""
    return from_groups(grouped(as_evidence(data)))


def from_groups(rows: Evidence) -> float:
    """The estimate of rows that are grouped; warns where no gap is."""
    gap = gap_of(rows)
    if not gap.found:
        warnings.warn(
            "rates of labels of similar rows show no gap between groups with and without positives: this prior is "
            f"chance, and may lie anywhere between {gap.low:.2f} and {gap.high:.2f}. Pass the prior if you know it.",
            PueWarning,
            stacklevel=3,
        )
    return held_inside(gap.value, rows, "the communities'")


def span(rows: Evidence) -> tuple[float, float]:
    """The range that undecided groups leave possible."""
    gap = gap_of(rows)
    return gap.low, gap.high


def gap_of(rows: Evidence) -> Gap:
    grouping = rows if isinstance(rows, Grouped) else grouped(rows)
    population = _population(grouping)
    n = int(grouping.member.max()) + 1
    size, inner, labels = (
        counted(grouping.member, grouping.mass * chosen, n)
        for chosen in (population, population & grouping.core, grouping.labeled & grouping.core)
    )
    return gap_in_rates(labels, inner, size)


def gap_in_rates(labels: Floats, inner: Floats, size: Floats) -> Gap:
    """Which groups have positives: labels and rows of their cores, and their sizes.

    Only cores are counted: a label in a group without positives belongs to a row at its rim that lies in the wrong
    group. Even a core holds strangers, at most a share `STRANGERS` of it: a group has positives if it has more labels
    than strangers could bring, and none if it has fewer than the least labeled group with positives would have. Others
    are undecided: they are the range, and half of them are counted.

    >>> gap_in_rates(np.array([40.0, 19, 0, 1]), np.array([90.0, 95, 80, 400]), np.array([100.0, 100, 100, 700]))
    Gap(low=0.2, value=0.2, high=0.2, found=True)
    """
    common = labels.sum() / max(inner.sum(), 1e-12)
    rate = (labels + 0.5) / (inner + 0.5 / max(common, 1e-12))
    strangers = STRANGERS * rate.max()
    positive = poisson.sf(labels - 1, inner * strangers) < SURE
    if not positive.any():
        return Gap(0.0, 0.5, 1.0, False)
    negative = ~positive & (poisson.cdf(labels, inner * rate[positive].min()) < SURE)
    low, high = (float(size[groups].sum() / size.sum()) for groups in (positive, ~negative))
    apart = negative.any() and rate[positive].min() >= APART * labels[negative].sum() / inner[negative].sum()
    found = bool(apart) and high - low <= UNDECIDED
    return Gap(low, (low + high) / 2, high, True) if found else Gap(0.0, (low + high) / 2, 1.0, False)


def grouped(rows: Evidence) -> Grouped:
    """The rows with their groups: communities of a graph of nearest neighbors, found without labels."""
    require("communities")
    x = torch.from_numpy(np.ascontiguousarray(rows.z)) if rows.x is None else rows.x
    nodes = graph_rows(x, torch.from_numpy(_population(rows)))
    network = network_of(select(x, nodes), NEIGHBORS)
    structure = network.structure(RESOLUTION, 1)
    others = torch.ones(len(rows.labels), dtype=torch.bool)
    others[nodes] = False
    near = torch.empty(len(others), sum(view.shape[1] for view in network.near), dtype=torch.int64)
    near[nodes] = torch.cat(network.near, dim=1)
    if bool(others.any()):
        near[others] = structure.near(select(x, others))
    own = joined(structure.member, near)[:, 0]
    own[nodes] = structure.member[:, 0]
    core = (structure.member[near, 0] == own[:, None]).all(dim=1)
    given = {one.name: getattr(rows, one.name) for one in fields(Evidence)}
    return Grouped(**given, member=own.numpy(), core=core.numpy())


def _population(rows: Evidence) -> NDArray[np.bool_]:
    single = rows.scenario is Scenario.SINGLE_SAMPLE
    return np.ones(len(rows.labels), dtype=bool) if single else np.asarray(rows.labels == 0)
