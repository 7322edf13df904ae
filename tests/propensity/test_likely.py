"""Labeled rows against likely positives: kinds of positives are told apart, strays stay harmless."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pue.core.data import PUData, Scenario
from pue.errors import InvalidInput
from pue.propensity.likely import HOPS, Around, Likely, _Problem, smoothed
from pue.propensity.logistic import Logistic

RATES = np.array([0.4, 0.05, 0.0])
PRIOR = 0.5
both = pytest.mark.parametrize("scenario", list(Scenario))


def clouds(scenario: Scenario, seed: int = 0, n: int = 3000, strays: int = 0) -> tuple[PUData, np.ndarray]:
    """Two kinds of positives, one labeled eight times as often, and negatives that touch both; kinds of the rows.

    Strays are labeled rows of the first kind that lie among the negatives.
    """
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, n, p=[0.25, 0.25, 0.5])
    x = rng.normal(size=(n, 4)) + np.array([[3.0, 3, 0, 0], [3, -3, 0, 0], [-1, 0, 0, 0]])[kind]
    s = rng.random(n) < RATES[kind]
    moved = np.flatnonzero(s & (kind == 0))[:strays]
    x[moved] = rng.normal(size=(strays, 4)) + np.array([-6.0, 0, 0, 0])
    rows, labels = np.arange(n), s.astype(int)
    if scenario is Scenario.CASE_CONTROL:
        rows = np.concatenate([np.flatnonzero(s), rows])
        labels = (np.arange(len(rows)) < s.sum()).astype(int)
    return PUData(torch.from_numpy(x[rows]), torch.from_numpy(labels), scenario), kind[rows]


def shares(e: torch.Tensor, kind: np.ndarray) -> np.ndarray:
    """Of the weight 1/e, by kind of the labeled rows."""
    weight = 1 / e.numpy()
    return np.array([weight[kind == k].sum() for k in range(2)]) / weight.sum()


@both
def test_the_weights_are_shared_as_the_positives_are(scenario: Scenario) -> None:
    data, kind = clouds(scenario)
    labeled = data.labeled.numpy()
    model = Likely().fit(data, prior=PRIOR)
    assert model.held_out is not None
    found = shares(model.held_out, kind[labeled])
    plain = np.bincount(kind[labeled], minlength=2)[:2] / labeled.sum()
    assert plain[0] > 0.85  # labels alone: nearly all of the first kind
    assert abs(found[0] - 0.5) < 0.15
    means = [float(model(data.x)[kind == k].mean()) for k in range(2)]
    assert means[0] / means[1] > 3
    assert abs(means[0] - RATES[0]) < 0.1


@both
def test_a_stray_is_not_worth_many_others(scenario: Scenario) -> None:
    """Rows whose class looks negative: P(labeled | x), which divides by nothing, gives them all the weight."""
    data, _ = clouds(scenario, strays=6)
    own = data.x[data.labeled]
    stray = (own[:, 0] < -3).numpy()
    weight = 1 / Likely().fit(data, prior=PRIOR).held_out.numpy()
    plain = 1 / Logistic().fit(data, prior=PRIOR)(own).numpy()
    assert stray.sum() == 6
    assert plain[stray].sum() / plain.sum() > 0.5
    assert weight[stray].sum() / weight.sum() < 0.3


@both
def test_the_order_of_the_rows_changes_nothing(scenario: Scenario) -> None:
    data, _ = clouds(scenario, n=800)
    order = torch.from_numpy(np.random.default_rng(1).permutation(data.n_rows))
    first = Likely().fit(data, prior=PRIOR)
    other = Likely().fit(PUData(data.x[order], data.labels[order], scenario), prior=PRIOR)
    torch.testing.assert_close(first(data.x), other(data.x), rtol=1e-6, atol=0)
    place = torch.full((data.n_rows,), -1).index_put_(
        (torch.nonzero(data.labeled)[:, 0],), torch.arange(int(data.labeled.sum()))
    )
    kept = place[order][data.labels[order] == 1]
    torch.testing.assert_close(first.held_out[kept], other.held_out, rtol=1e-6, atol=0)


def test_scores_are_averaged_over_neighbors_of_all_views() -> None:
    rng = np.random.default_rng(0)
    score, views = rng.normal(size=20), [torch.from_numpy(rng.integers(0, 20, (20, 3))) for _ in range(2)]
    expected = score.tolist()
    for _ in range(HOPS):
        expected = [np.mean([expected[j] for view in views for j in view[i].tolist()]) for i in range(20)]
    np.testing.assert_allclose(smoothed(score, views), expected)


def test_settings_that_make_no_sense_are_refused() -> None:
    for settings in ({"rounds": 0}, {"folds": 1}, {"components": 0}, {"neighbors": 0}, {"counted": 0}):
        with pytest.raises(InvalidInput, match="must be at least 1, folds at least 2"):
            Likely(**settings)


def test_likely_positives_and_labeled_rows_make_up_the_share_of_positives() -> None:
    """Twin: unlabeled rows from the highest score down, until the mass of the positives is reached."""
    rng = np.random.default_rng(0)
    n, prior = 60, 0.4
    mass, score, known = rng.uniform(0.5, 2.0, n), rng.normal(size=n), rng.random(n) < 0.15
    rows, fold = np.zeros((n, 1)), np.zeros(n, dtype=np.int64)
    problem = _Problem(rows[known], mass[known], fold[known], rows, mass, fold, known, prior, odds=False)
    wanted, twin = prior * mass.sum() - mass[known].sum(), set()
    for row in sorted(np.flatnonzero(~known), key=lambda row: -score[row]):
        if wanted <= 0:
            break
        twin.add(int(row))
        wanted -= mass[row]
    found = problem.likely(score)
    assert set(np.flatnonzero(found).tolist()) == twin
    assert prior * mass.sum() <= mass[found | known].sum() <= prior * mass.sum() + mass.max()


@both
def test_e_counts_labeled_rows_per_positive_one_around_a_row(scenario: Scenario) -> None:
    """Twin: sort all distances, count the nearest, add ten rows of the common rate."""
    rng = np.random.default_rng(0)
    odds, points, mass = scenario is Scenario.CASE_CONTROL, rng.normal(size=(30, 2)), rng.uniform(0.5, 2.0, 30)
    around = Around((), (torch.from_numpy(points).float(),), mass, 8, 0.2, odds, 5)
    for i, found in enumerate(around.held_out()):
        others = sorted((j for j in range(30) if j != i), key=lambda j: float(((points[j] - points[i]) ** 2).sum()))[:5]
        labeled = sum(mass[j] for j in others if j < 8)
        positive = sum(mass[j] for j in others if j >= 8 or not odds)
        assert found == pytest.approx(min(1.0, (labeled + 10 * 0.2) / (positive + 10)))


@both
def test_a_new_row_is_counted_among_the_same_rows(scenario: Scenario) -> None:
    data, _ = clouds(scenario, n=800)
    model = Likely().fit(data, prior=PRIOR)
    again = model(data.x[data.labeled])
    assert float((again / model.held_out).log().abs().max()) < 0.7  # there it counts itself
    assert float(np.corrcoef(again.log(), model.held_out.log())[0, 1]) > 0.95


@pytest.mark.parametrize("wrong", [{"mass": np.ones(3)}, {"n_labeled": 9}, {"n_labeled": -1}, {"counted": 0}])
def test_points_without_a_mass_are_refused(wrong: dict[str, object]) -> None:
    fields = {"mass": np.ones(4), "n_labeled": 2, "counted": 2, **wrong}
    with pytest.raises(InvalidInput, match="do not fit their masses"):
        Around((), (torch.zeros(4, 2),), rate=0.1, odds=False, **fields)  # type: ignore[arg-type]
