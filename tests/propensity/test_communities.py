"""Structure first: the graph, its communities, their labels counted, and what is made of them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
import twins
from sklearn.metrics import adjusted_rand_score

from pue import PUClassifier
from pue.core.data import PUData, Scenario
from pue.errors import InvalidInput, MissingExtra, PueWarning
from pue.priors.communities import Gap, communities, gap_in_rates
from pue.propensity.communities import Communities
from pue.propensity.duplicates import families
from pue.propensity.graph import agreement, nearest, neighbor_graph
from pue.propensity.naming import first_groups
from pue.propensity.structure import find_structure
from pue.propensity.tally import fit_strength, shrunk
from pue.propensity.views import edges, fit_views

PI = 0.5
RATES = (0.5, 0.2)


def clouds(scenario: Scenario, seed: int = 0, each: int = 300) -> tuple[PUData, np.ndarray]:
    """Four clouds far apart: two of positives, labeled with different rates, and two of negatives."""
    rng = np.random.default_rng(seed)
    kind = np.repeat(np.arange(4), each)
    centers = 8 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    x = torch.from_numpy(rng.normal(size=(4 * each, 2)) + centers[kind])
    chosen = np.concatenate([np.flatnonzero(kind == k)[: round(rate * each)] for k, rate in enumerate(RATES)])
    if scenario is Scenario.SINGLE_SAMPLE:
        labels = torch.zeros(len(x), dtype=torch.int8)
        labels[chosen] = 1
        return PUData(x, labels), kind
    rows = np.concatenate([chosen, np.arange(len(x))])
    return PUData(x[rows], (torch.arange(len(rows)) < len(chosen)).to(torch.int8), scenario), kind[rows]


def test_nearest_and_the_graph_are_those_of_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pue.propensity.graph.BLOCK", 70)  # several blocks
    points = torch.from_numpy(np.random.default_rng(0).normal(size=(30, 3)))
    near = nearest(points, points, 4, themselves=True)
    assert near.tolist() == twins.nearest_others(points.tolist(), 4)
    np.testing.assert_allclose(neighbor_graph([near]).toarray(), twins.shared_neighbors(near.tolist()))
    np.testing.assert_allclose(
        neighbor_graph([near, near]).toarray(), 2 * np.array(twins.shared_neighbors(near.tolist()))
    )


def test_agreement_is_the_adjusted_rand_index() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 4, 200), rng.integers(0, 6, 200)
    other[:120] = one[:120]
    assert agreement(one, other) == pytest.approx(adjusted_rand_score(one, other), abs=1e-12)
    assert agreement(np.zeros(5, int), np.zeros(5, int)) == 1


def test_the_strength_is_the_likeliest_and_noise_is_shrunk_away() -> None:
    rng = np.random.default_rng(0)
    rows = np.full(200, 30.0)
    differing = rng.poisson(rows * rng.gamma(4, 0.1 / 4, 200)).astype(float)
    strength, gain = fit_strength(differing, rows)
    tried = [(twins.gamma_poisson(differing, rows, value), value) for value in (strength / 2, strength, strength * 2)]
    assert max(tried)[1] == strength
    assert gain > 5
    alike = rng.poisson(rows * 0.1).astype(float)
    strength, gain = fit_strength(alike, rows)
    assert gain < 2
    assert shrunk(alike, rows, strength, 0.1).std() < 0.3 * (alike / rows).std()


@pytest.mark.parametrize("scenario", list(Scenario))
def test_the_rates_of_the_communities_are_the_propensities(scenario: Scenario) -> None:
    data, kind = clouds(scenario)
    model = Communities().fit(data, prior=PI)
    for k, rate in enumerate(RATES):
        own = torch.from_numpy(kind[data.labeled.numpy()] == k)
        assert model.held_out[own].mean() == pytest.approx(rate, rel=0.25)
        assert model(data.x[torch.from_numpy(kind == k)]).mean() == pytest.approx(rate, rel=0.25)
    assert "communities" in model.description or "families" in model.description


def test_a_label_does_not_count_for_its_own_row() -> None:
    # One label in a cloud of its own: without it the cloud has none.
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(300, 2)))
    x[200:] += 12
    labels = torch.zeros(300, dtype=torch.int8)
    labels[:60] = 1
    labels[250] = 1
    structure, counted = find_structure(PUData(x, labels), resolution=0.2)
    assert structure.member.shape[1] == counted.held_out.shape[1]
    alone = counted.held_out[-1].max()
    with_own = max(counted.rates(run)[counted.own[-1, run]] for run in range(len(counted.rows)))
    assert alone < 0.7 * with_own


def test_strays_among_negatives_get_the_mean_of_all_positives() -> None:
    data, kind = clouds(Scenario.SINGLE_SAMPLE)
    labels = data.labels.clone()
    stray = int(np.flatnonzero(kind == 3)[0])
    labels[stray] = 1
    data = PUData(data.x, labels)
    model = Communities().fit(data, prior=PI)
    place = int(data.labeled[:stray].sum())
    assert model.held_out[place] == pytest.approx(data.n_labeled / (PI * data.n_rows))


@pytest.mark.parametrize("scenario", list(Scenario))
def test_groups_are_accepted_until_the_prior_is_reached(scenario: Scenario) -> None:
    data, kind = clouds(scenario)
    fitted = PUClassifier("communities", prior=PI, scenario=scenario.value, random_state=0).fit(data.x, data.labels)
    assert (fitted.predict(data.x) == (kind < 2)).mean() > 0.99
    chosen, clear = first_groups(np.array([0.4, 0.0, 0.1]), np.array([8.0, 0, 5]), np.array([20.0, 60, 50]), 0.2)
    assert chosen.tolist() == [True, False, False]
    assert clear  # 8 of 20 against 5 of 50


def test_a_cut_between_groups_that_do_not_differ_is_told() -> None:
    data, _ = clouds(Scenario.SINGLE_SAMPLE)
    with pytest.warns(PueWarning, match="just inside and just outside do not differ"):
        PUClassifier("communities", prior=0.75, random_state=0).fit(data.x, data.labels)


def test_even_labels_are_told_and_propensities_refused() -> None:
    data, _ = clouds(Scenario.SINGLE_SAMPLE)
    even = torch.zeros(data.n_rows, dtype=torch.int8)
    even[::10] = 1
    with pytest.warns(PueWarning, match="do not differ in their rate of labels"):
        Communities().fit(PUData(data.x, even), prior=0.5)
    with pytest.raises(InvalidInput, match="no use for propensities"):
        PUClassifier("communities", prior=PI, propensity="constant").fit(data.x, data.labels)
    with pytest.raises(InvalidInput, match="resolution above 0"):
        Communities(resolution=0.0)


def test_the_order_of_the_rows_does_not_matter() -> None:
    data, _ = clouds(Scenario.SINGLE_SAMPLE)
    order = torch.from_numpy(np.random.default_rng(0).permutation(data.n_rows))
    one = Communities().fit(data, prior=PI)(data.x)
    other = Communities().fit(PUData(data.x[order], data.labels[order]), prior=PI)(data.x)
    assert torch.equal(one, other)


@pytest.mark.parametrize("scenario", list(Scenario))
def test_the_prior_is_the_size_of_the_groups_that_have_labels(scenario: Scenario) -> None:
    data, _ = clouds(scenario)
    assert communities(data) == pytest.approx(PI, abs=0.06)


def test_without_a_gap_no_prior_is_pretended() -> None:
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(600, 2)))
    labels = (torch.arange(600) % 6 == 0).to(torch.int8)
    with pytest.warns(PueWarning, match="no gap between groups"):
        communities(PUData(x, labels))
    rates = np.array([30.0, 4, 0, 0]), np.array([100.0, 100, 100, 5]), np.array([110.0, 110, 110, 40])
    found = gap_in_rates(*rates)
    assert (found.low, found.high) == pytest.approx((220 / 370, 260 / 370))  # five rows without a label say nothing
    assert found.found
    assert gap_in_rates(np.zeros(2), np.ones(2), np.ones(2)) == Gap(0.0, 0.5, 1.0, False)


def test_edges_do_not_see_brightness_and_images_have_two_views() -> None:
    images = torch.rand(12, 3, 16, 12, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(edges(images), edges(0.5 * images + 0.25))
    np.testing.assert_allclose(edges(images)[0].numpy(), twins.edges(images[0].mean(0).tolist()), atol=1e-5)
    assert [view.of for view in fit_views(images)] == ["values", "edges"]
    assert len(fit_views(torch.rand(12, 1, 6, 6))) == 1


def test_families_are_found_where_there_are_some_and_only_there() -> None:
    rng = torch.Generator().manual_seed(0)
    people = torch.rand(120, 1, 1, 8, 8, generator=rng)
    scans = (people + 0.02 * torch.rand(120, 5, 1, 8, 8, generator=rng)).flatten(0, 1)
    found = families(scans)
    person = np.repeat(np.arange(120), 5)
    assert found.found
    assert agreement(found.family, person) == pytest.approx(1)
    assert not families(torch.rand(600, 1, 8, 8, generator=rng)).found


def test_people_are_named_by_the_labels_of_their_other_scans() -> None:
    # Every second person is positive, whatever they look like, and half of their scans are labeled.
    rng = torch.Generator().manual_seed(1)
    people = torch.rand(130, 1, 1, 10, 10, generator=rng)
    scans = (people + 0.02 * torch.rand(130, 11, 1, 10, 10, generator=rng)).flatten(0, 1)
    person = np.repeat(np.arange(130), 11)
    train = torch.from_numpy(np.arange(len(person)) % 11 < 10)
    labels = torch.from_numpy((person % 2 == 0) & (np.arange(len(person)) % 2 == 0)).to(torch.int8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PueWarning)
        fitted = PUClassifier("communities", prior=0.5, random_state=0).fit(scans[train], labels[train])
    truth = person[~train.numpy()] % 2 == 0
    assert (fitted.predict(scans[~train]) == truth).mean() > 0.97


def test_the_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str, *rest: Any) -> None:
        return None

    monkeypatch.setattr("pue.errors.find_spec", nothing)
    with pytest.raises(MissingExtra, match=r'sknetwork is not installed.*pip install "pue\[communities\]"'):
        Communities().fit(clouds(Scenario.SINGLE_SAMPLE)[0], prior=PI)
