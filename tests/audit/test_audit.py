"""Plans and what answers prove: twins in plain loops, unbiasedness by enumeration, coverage, growing audits."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from pue import audit
from pue.audit import design
from pue.audit.answers import _quantile, asked_of
from pue.audit.design import LEAST, Known, Stratum, allocate, importance, ratios, slopes
from pue.audit.score_test import CENSUS, Ratio, constrained, effective, interval, statistic, wilson
from pue.errors import InvalidInput, UnknownName

Z = 1.959964
SIZE = np.array([40.0, 25.0, 12.0])
N = np.array([5.0, 4.0, 6.0])
YES = np.array([0.0, 1.0, 5.0])
KNOWN = Known(rows=90, called=40, positives=10, positives_called=7, negatives=3, negatives_called=1)
CALLED = np.array([False, True, True])


def population(seed: int = 0, n: int = 600) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, PU labels and true classes of rows whose model is fair but no more."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    scores = 1 / (1 + np.exp(-(2.5 * y - 1.6 + rng.normal(size=n))))
    labels = (y & (rng.random(n) < 0.3 * scores)).astype(int)
    return scores, labels, y


# ------------------------------------------------------------------------------------------------ twins


def twin_quantities(positives: list[float]) -> dict[str, float]:
    """Counts of a table of two by two, row by row."""
    hits = KNOWN.positives_called + sum(p for p, c in zip(positives, CALLED, strict=True) if c)
    total = KNOWN.positives + sum(positives)
    rejected = KNOWN.negatives - KNOWN.negatives_called
    rejected += sum(m - p for m, p, c in zip(SIZE, positives, CALLED, strict=True) if not c)
    return {
        "prior": total / KNOWN.rows,
        "precision": hits / KNOWN.called,
        "recall": hits / total,
        "accuracy": (hits + rejected) / KNOWN.rows,
        "f1": 2 * hits / (KNOWN.called + total),
    }


def twin_shares(a: list[float], t: float, n: list[float], yes: list[float]) -> list[float]:
    """The likeliest shares with Σ a p = t, by brute force on two strata: the first share runs, the second follows."""
    best, found = -math.inf, [math.nan] * 2
    for first in np.linspace(0, 1, 20001):
        second = (t - a[0] * first) / a[1]
        if not 0 <= second <= 1:
            continue
        likelihood = 0.0
        for p, m, y in zip((first, second), n, yes, strict=True):
            for count, chance in ((y, p), (m - y, 1 - p)):
                if count:
                    likelihood += count * math.log(chance) if chance > 0 else -math.inf
        if likelihood > best:
            best, found = likelihood, [float(first), float(second)]
    return found


@pytest.mark.parametrize("positives", [[0, 0, 0], [3, 20, 11], [40, 25, 12]])
def test_quantities_are_those_of_a_two_by_two_table(positives):
    found = {name: float(ratio.of(np.array(positives, float))) for name, ratio in ratios(KNOWN, CALLED, SIZE).items()}
    assert found == pytest.approx(twin_quantities(positives))


@pytest.mark.parametrize(("a", "t", "n", "yes"), [
    ([3.0, 2.0], 1.5, [5, 7], [0, 3]),
    ([3.0, -2.0], 0.4, [5, 7], [2, 7]),
    ([1.0, 4.0], 3.0, [4, 9], [0, 0]),
])  # fmt: skip
def test_the_statistic_is_that_of_the_likeliest_shares(a, t, n, yes):
    p = twin_shares(a, t, n, yes)
    sd = math.sqrt(sum(w * w * q * (1 - q) / m for w, q, m in zip(a, p, n, strict=True)))
    z = (sum(w * y / m for w, y, m in zip(a, yes, n, strict=True)) - t) / sd
    found = statistic(*(np.array(v, float) for v in (a, t, n, yes)))
    assert float(found) == pytest.approx(z, rel=2e-3)


def test_the_shares_of_a_multiplier_solve_their_equation():
    n, yes, pull = np.array([6.0, 6.0, 6.0, 6.0]), np.array([1.0, 5.0, 0.0, 6.0]), np.array([3.0, -8.0, -9.0, 7.0])
    p = constrained(n, yes, pull)
    assert ((p > 0) & (p < 1)).all()
    with np.errstate(invalid="ignore"):
        slope = np.where(yes > 0, yes / p, 0) - np.where(n > yes, (n - yes) / (1 - p), 0)
    np.testing.assert_allclose(slope, pull)


def test_the_interval_holds_what_the_test_does_not_reject():
    ratio = ratios(KNOWN, CALLED, SIZE)["recall"]
    value, low, high = (float(v) for v in interval(ratio, SIZE, N, YES, Z))
    drawn = effective(N, SIZE)
    kept = []
    for theta in np.linspace(0, 1, 801):
        z = statistic(*ratio.statement(np.array(theta), SIZE), drawn, drawn * YES / N, drawn * (N - 1 / 3) / N)
        if abs(z) <= Z:
            kept.append(theta)
    assert (low, high) == pytest.approx((kept[0], kept[-1]), abs=1.3e-3)
    assert low < value < high
    assert value == pytest.approx(twin_quantities((SIZE * YES / N).tolist())["recall"])


def test_one_large_stratum_gives_wilsons_interval():
    n, yes = 30, 4
    p, scale = yes / n, 1 + Z * Z / n
    center, half = (p + Z * Z / (2 * n)) / scale, Z / scale * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
    assert wilson(1e12, n, yes, Z)[1:] == pytest.approx((center - half, center + half))
    share = Ratio(np.ones(1), np.zeros(1), 0.0, 1e12)
    found = interval(share, np.array([1e12]), np.array([30.0]), np.array([4.0]), Z)
    assert [float(v) for v in found[1:]] == pytest.approx((center - half, center + half), abs=1e-5)


def test_rows_that_were_all_looked_at_leave_no_doubt():
    ratio = ratios(KNOWN, CALLED, SIZE)["prior"]
    value, low, high = interval(ratio, SIZE, SIZE, np.array([4.0, 10.0, 11.0]), Z)
    assert low == pytest.approx(value, abs=1e-4)
    assert high == pytest.approx(value, abs=1e-4)
    assert effective(SIZE, SIZE).tolist() == [CENSUS] * 3


def test_a_stratum_nobody_looked_at_may_hold_anything():
    prior = ratios(KNOWN, CALLED, SIZE)["prior"]
    _, low, high = interval(prior, SIZE, np.array([0.0, 25.0, 12.0]), np.array([0.0, 10.0, 12.0]), Z)
    assert float(low) == pytest.approx((10 + 22) / 90, abs=1e-4)
    assert float(high) == pytest.approx((10 + 22 + 40) / 90, abs=1e-4)


def test_slopes_are_derivatives():
    quantities, totals, step = ratios(KNOWN, CALLED, SIZE), np.array([5.0, 12.0, 9.0]), 1e-6
    for name, slope in slopes(quantities, totals).items():
        for k in range(3):
            moved = totals + step * np.eye(3)[k]
            change = float(quantities[name].of(moved) - quantities[name].of(totals)) / step
            assert slope[k] == pytest.approx(change, abs=1e-6)


# ------------------------------------------------------------------------------------------------ unbiasedness


def test_the_estimates_are_unbiased_over_all_samples():
    scores = np.array([0.1, 0.2, 0.3, 0.35, 0.4, 0.7, 0.8, 0.9])
    labels, y = np.array([0, 0, 0, 0, 0, 0, 0, 1]), np.array([0, 1, 0, 0, 1, 1, 0, 1])
    drawn = audit.plan(scores, labels, n=4)
    strata = [[r for r in range(8) if labels[r] == 0 and s.low <= scores[r] < s.high] for s in drawn.strata]
    assert [len(rows) for rows in strata] == [s.size for s in drawn.strata]
    assert len({s.probability for s in drawn.strata}) > 1  # else nothing could be forgotten
    samples = [
        sum(parts, ())
        for parts in itertools.product(
            *(itertools.combinations(r, s.drawn) for r, s in zip(strata, drawn.strata, strict=True))
        )
    ]
    place = {row: k for k, rows in enumerate(strata) for row in rows}
    found: dict[str, list[float]] = {"prior": [], "precision": [], "accuracy": []}
    weighted = []
    for sample in samples:
        part = audit.Plan(np.array(sample), np.array([place[r] for r in sample]), drawn.strata, drawn.known, 0.5)
        read = audit.read(part, y[list(sample)])
        for name, values in found.items():
            values.append(getattr(read, name).value)
        weighted.append(float((y[list(sample)] / part.probability).sum()))
    called = scores >= 0.5
    assert np.mean(found["prior"]) == pytest.approx(y.mean())
    assert np.mean(found["precision"]) == pytest.approx(y[called].mean())
    assert np.mean(found["accuracy"]) == pytest.approx((called == y).mean())
    assert np.mean(weighted) == pytest.approx(y[labels == 0].sum())  # Horvitz and Thompson's, by the file's column


def test_every_row_is_drawn_as_often_as_its_probability_says():
    scores, labels, _ = population(n=60)
    times, chance = np.zeros(60), np.zeros(60)
    for seed in range(300):
        drawn = audit.plan(scores, labels, n=20, seed=seed)
        times[drawn.rows] += 1
        chance[drawn.rows] = drawn.probability
    assert np.abs(times[chance > 0] / 300 - chance[chance > 0]).max() < 0.12
    assert set(np.flatnonzero(times)) == set(np.flatnonzero(labels == 0))


# ------------------------------------------------------------------------------------------------ coverage


@pytest.mark.parametrize("turned", [False, True], ids=["fair model", "wrong model"])
@pytest.mark.parametrize("n", [50, 100])
def test_intervals_hold_the_truth_whatever_the_model(turned, n):
    scores, labels, y = population(n=4000)
    scores = 1 - scores if turned else scores
    drawn = audit.plan(scores, labels, n=n)
    u = labels == 0
    place = np.searchsorted([s.high for s in drawn.strata[:-1]], scores[u], side="right")
    size = np.array([s.size for s in drawn.strata])
    positives = np.bincount(place, y[u], minlength=len(size)).astype(int)
    counts = np.array([s.drawn for s in drawn.strata])
    yes = np.random.default_rng(n).hypergeometric(positives, size - positives, counts, (600, len(size)))
    held = []
    for ratio in asked_of(drawn, size.astype(float)).values():
        truth = float(ratio.of(positives.astype(float)))
        _, low, high = interval(ratio, size.astype(float), counts.astype(float), yes.astype(float), Z)
        held.append(float(((low <= truth) & (truth <= high)).mean()))
    assert min(held) >= 0.92  # counts are whole numbers: single cells lie around .95
    assert 0.93 <= np.mean(held) <= 0.98


# ------------------------------------------------------------------------------------------------ plans


def test_a_plan_covers_every_stratum_and_leaves_the_labeled_alone():
    scores, labels, _ = population()
    drawn = audit.plan(scores, labels, n=60)
    assert (labels[drawn.rows] == 0).all()
    assert len(set(drawn.rows.tolist())) == 60
    assert min(s.drawn for s in drawn.strata) >= LEAST
    assert sum(s.size for s in drawn.strata) == (labels == 0).sum()
    np.testing.assert_allclose(drawn.probability, [drawn.strata[k].drawn / drawn.strata[k].size for k in drawn.stratum])
    assert (np.diff(scores[drawn.rows]) < 0).any(), "rows in order of their scores would lead the answers"


def test_the_same_seed_gives_the_same_plan():
    scores, labels, _ = population()
    first, again, other = (audit.plan(scores, labels, n=30, seed=seed) for seed in (1, 1, 2))
    assert first.rows.tolist() == again.rows.tolist()
    assert first.rows.tolist() != other.rows.tolist()


def test_neyman_beats_an_even_allocation_where_the_model_is_right(monkeypatch):
    monkeypatch.setattr(design, "DOUBT", 0.0)
    strata = [Stratum(-np.inf, 0.5, False, 800, 20.0), Stratum(0.5, np.inf, True, 200, 100.0)]
    known = Known(1000, 200, 0, 0, 0, 0)
    for purpose in ("prior", "precision", "recall", "accuracy"):
        size, share = np.array([800.0, 200.0]), np.array([20 / 800, 0.5])
        slope = slopes(ratios(known, np.array([False, True]), size), size * share)[purpose]
        even = np.array([80.0, 20.0])
        ours = allocate(size.astype(int), size * importance(purpose, known, strata), 100).astype(float)
        variance = [float((slope**2 * size**2 * share * (1 - share) / n).sum()) for n in (ours, even)]
        assert variance[0] < variance[1], purpose
        assert ours.sum() == 100


def test_a_purpose_moves_rows_to_where_they_tell_most():
    scores, labels, _ = population(n=3000)
    called = {
        purpose: sum(s.drawn for s in audit.plan(scores, labels, n=100, purpose=purpose).strata if s.called)
        for purpose in audit.PURPOSES
    }
    assert called["precision"] > called["all"] > 100 * (scores[labels == 0] >= 0.5).mean()
    assert called["recall"] < called["precision"]
    drawn = audit.plan(scores, labels, n=100, purpose="model")
    assert np.abs(scores[drawn.rows] - 0.5).mean() < np.abs(scores[labels == 0] - 0.5).mean()


def test_a_plan_for_all_quantities_is_shorter_than_a_random_sample_in_each():
    """Expected variances where the model is right, rows called being few."""
    rng = np.random.default_rng(0)
    scores = rng.beta(0.4, 1.6, 4000)
    drawn = {kind: audit.plan(scores, n=100, design=kind) for kind in ("stratified", "random")}
    found = {}
    for kind, plan in drawn.items():
        size = np.array([s.size for s in plan.strata], float)
        share = np.array([s.expected for s in plan.strata]) / size
        slope = slopes(ratios(plan.known, np.array([s.called for s in plan.strata]), size), size * share)
        n = np.array([s.drawn for s in plan.strata]) if kind == "stratified" else 100 * size / size.sum()
        found[kind] = {q: float((c**2 * size**2 * share * (1 - share) / n).sum()) ** 0.5 for q, c in slope.items()}
    shorter = {name: found["stratified"][name] / found["random"][name] for name in ("prior", "precision", "recall")}
    assert max(shorter.values()) < 0.9, shorter
    assert shorter["precision"] < 0.8


def test_a_plain_random_sample_is_a_design_too():
    scores, labels, y = population(n=2000)
    drawn = audit.plan(scores, labels, n=200, design="random")
    assert len(set(drawn.probability.tolist())) == 1
    found = audit.read(drawn, y[drawn.rows])
    assert found.prior.low < y.mean() < found.prior.high


def test_labeled_rows_of_case_control_are_no_part_of_the_population():
    scores, labels, _ = population()
    drawn = audit.plan(scores, labels, n=40, scenario="case_control")
    assert drawn.known.rows == (labels == 0).sum()
    assert drawn.known.positives == 0


def test_all_rows_may_be_asked_for():
    scores, labels, y = population(n=40)
    drawn = audit.plan(scores, labels, n=1000)
    assert len(drawn.rows) == (labels == 0).sum()
    found = audit.read(drawn, y[drawn.rows])
    assert found.prior.low == pytest.approx(y.mean(), abs=1e-4)
    assert found.prior.high == pytest.approx(y.mean(), abs=1e-4)


def test_a_second_plan_tops_up_the_first():
    scores, labels, y = population(n=2000)
    first = audit.plan(scores, labels, n=40, seed=0)
    second = audit.plan(scores, labels, n=60, seed=1, after=first)
    assert not set(first.rows.tolist()) & set(second.rows.tolist())
    both = audit.join(first, second)
    assert len(both.rows) == 100
    assert both.parts == (40, 60)
    counts = np.bincount(both.stratum, minlength=len(both.strata))
    assert counts.tolist() == [s.drawn for s in both.strata]
    ends = [audit.read(p, y[p.rows]).prior for p in (first, both)]
    assert ends[1].high - ends[1].low < ends[0].high - ends[0].low


def test_a_top_up_stays_a_random_sample_of_its_stratum():
    scores, labels, _ = population(n=60)
    times = np.zeros(60)
    for seed in range(200):
        first = audit.plan(scores, labels, n=12, seed=seed)
        second = audit.plan(scores, labels, n=12, seed=seed + 1, after=first)
        times[audit.join(first, second).rows] += 1
    both = np.array([s.probability for s in second.strata])
    place = np.searchsorted([s.high for s in second.strata[:-1]], scores, side="right")
    u = labels == 0
    assert np.abs(times[u] / 200 - both[place[u]]).max() < 0.15


def test_only_a_plan_of_the_same_rows_is_topped_up():
    scores, labels, _ = population()
    first = audit.plan(scores, labels, n=40)
    with pytest.raises(InvalidInput, match="not the rows or scores of the plan"):
        audit.plan(scores[:-1], labels[:-1], n=40, after=first)
    with pytest.raises(InvalidInput, match="does not top up the first"):
        audit.join(first, audit.plan(scores, labels, n=40))


@pytest.mark.parametrize(("change", "text"), [
    ({"n": 3}, "at least 4"),
    ({"scores": [0.1, 1.2]}, "probabilities in"),
    ({"scores": [[0.1], [0.2]]}, "a vector of probabilities"),
    ({"labels": [1, 1]}, "nothing to look at"),
    ({"labels": [0, 2]}, "must hold 1"),
    ({"expected": [0.5]}, "one probability for every row"),
])  # fmt: skip
def test_what_cannot_be_planned_is_refused(change, text):
    given = {"scores": [0.1, 0.9], "labels": [0, 0], "n": 10, **change}
    with pytest.raises(InvalidInput, match=text):
        audit.plan(given.pop("scores"), given.pop("labels"), **given)


@pytest.mark.parametrize("given", [{"purpose": "precison"}, {"design": "rndom"}])
def test_names_are_checked(given):
    with pytest.raises(UnknownName, match="Did you mean"):
        audit.plan([0.1, 0.9], n=10, **given)


# ------------------------------------------------------------------------------------------------ answers


def test_missing_answers_are_bounded():
    scores, labels, y = population(n=2000)
    drawn = audit.plan(scores, labels, n=100)
    whole = audit.read(drawn, y[drawn.rows])
    answers = y[drawn.rows].astype(float)
    answers[::5] = np.nan
    found = audit.read(drawn, answers)
    assert (found.n_answered, found.n_unknown) == (80, 20)
    assert whole.bounds == {}
    for name, (low, high) in found.bounds.items():
        estimate = getattr(found, name)
        assert low <= estimate.low <= estimate.high <= high
        assert low <= getattr(whole, name).low
        assert getattr(whole, name).high <= high


@pytest.mark.parametrize("verdict", [0.0, 1.0])
def test_one_verdict_for_all_still_leaves_an_interval(verdict):
    scores, labels, _ = population(n=2000)
    drawn = audit.plan(scores, labels, n=40)
    found = audit.read(drawn, np.full(40, verdict))
    assert found.prior.low < found.prior.high
    assert found.n_yes == 40 * verdict
    share = found.calibration.value + sum(s.expected for s in drawn.strata) / (labels == 0).sum()
    assert share == pytest.approx(verdict)


def test_nothing_called_positive_leaves_no_precision():
    drawn = audit.plan(np.linspace(0, 0.4, 100), n=20)
    found = audit.read(drawn, np.zeros(20))
    assert found.precision is None
    assert "precision" not in found.quantities()


def test_a_later_look_pays_for_the_earlier_ones():
    scores, labels, y = population(n=2000)
    drawn = audit.plan(scores, labels, n=100)
    found = [audit.read(drawn, y[drawn.rows], look=look).prior for look in (None, 1, 2, 3)]
    widths = [estimate.high - estimate.low for estimate in found]
    assert widths == sorted(widths)
    alone = audit.read(drawn, y[drawn.rows], level=1 - 0.05 / 6).prior  # the second look has a sixth of the error
    assert (found[2].low, found[2].high) == (alone.low, alone.high)
    assert sum(1 / (k * (k + 1)) for k in range(1, 10_000)) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(("answers", "text"), [
    ([np.nan] * 20, "no row is answered"),
    ([1.0] * 19, "one for each of the plan's 20 rows"),
    ([2.0] * 20, "1 yes, 0 no"),
])  # fmt: skip
def test_answers_that_cannot_be_read_are_refused(answers, text):
    with pytest.raises(InvalidInput, match=text):
        audit.read(audit.plan(np.linspace(0, 1, 100), n=20), answers)


def test_power_falls_with_the_root_of_n_and_is_what_comes_true():
    rng = np.random.default_rng(0)
    scores = rng.beta(0.5, 1, 5000)
    y = rng.random(5000) < scores
    promised = audit.power(scores, sizes=(50, 200, 10**6))
    assert list(promised) == [50, 200]
    for name in ("prior", "precision", "recall", "accuracy"):
        assert promised[50][name] / promised[200][name] == pytest.approx(2, rel=0.2)
    drawn = audit.plan(scores, n=200)
    found = audit.read(drawn, y[drawn.rows])
    for name, estimate in found.quantities().items():
        assert (estimate.high - estimate.low) / 2 == pytest.approx(promised[200][name], rel=0.25)


def test_stopping_when_it_is_narrow_enough_keeps_the_promise():
    """Rounds of 24 rows until the prior is known to ±0.09: the looks' intervals hold the truth where one stops."""
    rng = np.random.default_rng(0)
    size, positives = np.array([1500.0, 600.0]), np.array([90, 330])
    share, paths = Ratio(np.ones(2), np.zeros(2), 0.0, 2100.0), 500
    each, yes = np.array([12, 12]), np.zeros((paths, 2), dtype=int)
    truth, open_, held = positives.sum() / size.sum(), np.ones(paths, dtype=bool), np.zeros(paths, dtype=bool)
    for look in range(1, 13):
        left = positives - yes
        yes = yes + rng.hypergeometric(left, size.astype(int) - each * (look - 1) - left, each)
        _, low, high = interval(share, size, each * float(look), yes.astype(float), _quantile(0.95, look))
        stops = open_ & (((high - low) / 2 <= 0.09) | (look == 12))
        held |= stops & (low <= truth) & (truth <= high)
        open_ &= ~stops
    assert not open_.any()
    assert held.mean() >= 0.95
