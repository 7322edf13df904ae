"""Methods of several stages against slow twins: Dist-PU's second stage, PUbN's steps, VPU, Self-PU, thresholds."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pue import PUClassifier
from pue.bench.labeling import class_mix
from pue.core.data import PUData, Scenario, population_rows
from pue.core.decisions import most_informative
from pue.core.losses import logistic
from pue.core.randomness import derive
from pue.core.risks import binary_entropy, nnpu, no_reduction, upu
from pue.core.weights import RowWeights, biased_negatives, normalized_inverse_propensity, pubn, pubn_threshold, uniform
from pue.errors import InvalidInput
from pue.methods import AveragedTeacher, DistPU, PUbN, SelfPU, Task, find_method
from pue.methods.distpu import PseudoLabels
from pue.methods.pubn import sharpened
from pue.methods.selfpu import SelfPaced, Students, _rescaled
from pue.methods.teacher import Lessons, nearest_rows
from pue.methods.thresholds import probabilistic_gap, share_of_population
from pue.methods.vpu import variational
from pue.training import Batch, Batching, Checkpointing, Training, score, train
from pue.training.augment import draw_beta
from pue.training.averages import follow

PRIOR = 0.5


def sample(n: int = 240, *, negatives: bool = False, scenario: Scenario = Scenario.CASE_CONTROL) -> PUData:
    """Two positive clusters, labeled 3 : 1, and a negative one; if asked, 16 of the negatives are labeled too."""
    rng = np.random.default_rng(3)
    group = np.arange(n) % 4  # two of four are negative
    x = torch.from_numpy(np.array([[2.0, 0], [0, 2.0], [-1, -1], [-1, -1]])[group] + 0.8 * rng.normal(size=(n, 2)))
    classes = torch.from_numpy(np.where(group > 1, 9, group))
    data, _ = class_mix(x, classes, mix={0: 0.75, 1: 0.25}, n_labeled=24, scenario=scenario, rng=rng)
    if not negatives:
        return data
    chosen = torch.from_numpy(np.flatnonzero(group == 2)[:16])
    return PUData(torch.cat([data.x, x[chosen]]), torch.cat([data.labels, torch.full((16,), -1)]), data.scenario)


def network(seed: int) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed % 2**31)
        body = nn.Sequential(nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, 1), nn.Flatten(0))
    return body.double()


def task(data: PUData, epochs: int = 4, **options: object) -> Task:
    settings = {"propensity": None, "negative_propensity": None, "progress": False, **options}
    training = Training(epochs=epochs, batching=Batching(64), lr=0.02)
    return Task(data=data, prior=PRIOR, build=network, training=training, seed=5, **settings)  # type: ignore[arg-type]


def batch(data: PUData, module: nn.Module, weights: RowWeights, epoch: int = 1, epochs: int = 4) -> Batch:
    rows = torch.arange(data.n_rows)
    share = torch.full((data.n_rows,), 1 / data.n_rows, dtype=torch.float64)
    generator = torch.Generator().manual_seed(1)
    return Batch(module, data.x, rows, weights, share, epoch, epochs, generator, no_reduction)


def parameters(module: nn.Module) -> Tensor:
    return torch.cat([tensor.detach().flatten() for tensor in module.parameters()])


# --- thresholds


def slow_information(scores: np.ndarray, threshold: float, k: int) -> float:
    """Ross's estimate of I(score; score > t), point by point."""
    digamma = lambda n: float(torch.digamma(torch.tensor(float(n), dtype=torch.float64)))  # noqa: E731
    total, side = len(scores), scores > threshold
    inner = 0.0
    for i in range(total):
        radius = sorted(abs(scores[j] - scores[i]) for j in range(total) if side[j] == side[i])[k]
        inner += digamma(sum(abs(other - scores[i]) <= radius for other in scores) - 1)
    sizes = [int(side.sum()), total - int(side.sum())]
    return digamma(total) + digamma(k) - inner / total - sum(n / total * digamma(n) for n in sizes)


@pytest.mark.parametrize("seed", range(3))
def test_the_most_informative_threshold_is_the_best_of_the_slow_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = np.concatenate([rng.normal(-1.5, 1, 30), rng.normal(1.5, 0.7, 20)])
    found = most_informative(torch.from_numpy(scores), candidates=60)
    grid = np.linspace(*np.sort(scores)[[4, -5]], 60)
    best = max(slow_information(scores, t, 3) for t in grid)
    assert slow_information(scores, found, 3) >= best - 1e-9


def test_the_most_informative_threshold_refuses_what_it_cannot_split() -> None:
    with pytest.raises(InvalidInput, match="16 scores are needed"):
        most_informative(torch.arange(15.0))
    with pytest.raises(InvalidInput, match="nearly equal"):
        most_informative(torch.zeros(100))


@pytest.mark.parametrize("scenario", list(Scenario))
def test_the_anchor_cuts_where_half_the_root_of_the_highest_rate_is_reached(scenario: Scenario) -> None:
    data = sample(scenario=scenario)
    scores = torch.linspace(-6, -1, data.n_rows, dtype=torch.float64)
    cut = torch.tensor(probabilistic_gap(scores, data, PRIOR, quantile=1.0), dtype=torch.float64)
    rate = torch.exp if scenario is Scenario.CASE_CONTROL else torch.sigmoid
    assert math.sqrt(float(rate(cut) / rate(scores[-1]))) == pytest.approx(0.5)


@pytest.mark.parametrize("method", ["pusb", "quantile"])
def test_the_prior_quantile_calls_a_share_of_the_population_positive(method: str) -> None:
    data = sample()
    clf = PUClassifier(method, prior=0.3, scenario="case_control", epochs=3, random_state=0, progress=False)
    clf.fit(data.x, data.labels)
    assert clf.threshold_ == share_of_population(score(clf.network_, data.x).double(), data, 0.3)
    called = clf.predict(data.x)[data.unlabeled.numpy()]
    assert called.mean() == pytest.approx(0.3, abs=1 / len(called))


# --- Dist-PU


def slow_second_stage(
    scores: list[float], mixed: list[float], pseudo: list[float], partner: list[int], share: float, w: RowWeights
) -> float:
    """METHODS 7.4 row by row: label distribution, rising entropy of U, entropy and cross-entropy of the blends."""
    sigmoid = lambda g: 1 / (1 + math.exp(-g))  # noqa: E731
    entropy = lambda g: -sigmoid(g) * math.log(sigmoid(g)) - sigmoid(-g) * math.log(sigmoid(-g))  # noqa: E731
    n = len(scores)
    rising = 0.004 * (1 - math.cos(math.pi * 1 / 8))
    labeled = sum(float(w.positive[i]) / PRIOR * (1 - sigmoid(scores[i])) for i in range(n))
    predicted = sum(float(w.background[i]) * sigmoid(scores[i]) for i in range(n))
    of_u = sum(float(w.background[i]) * entropy(scores[i]) for i in range(n))
    blends = sum(entropy(g) for g in mixed) / n
    loss = 0.0
    for i, g in enumerate(mixed):
        for weight, target in ((share, pseudo[i]), (1 - share, pseudo[partner[i]])):
            loss -= weight * (target * math.log(sigmoid(g)) + (1 - target) * math.log(sigmoid(-g))) / n
    return labeled + abs(predicted - PRIOR) / (2 * PRIOR) + rising * of_u + 0.04 * blends + 5 * loss


def test_dist_pus_second_stage_is_its_slow_twin_and_remembers_scores() -> None:
    data = sample(80)
    weights = uniform(data.labels, prior=PRIOR, scenario=data.scenario)
    module, pseudo = network(0), torch.rand(data.n_rows, dtype=torch.float64)
    objective = PseudoLabels(DistPU(), PRIOR, pseudo, data.labeled)
    before = objective.pseudo.clone()
    assert bool((before[data.labeled] == 1).all())
    assert torch.equal(before[data.unlabeled], pseudo[data.unlabeled])
    found = objective(batch(data, module, weights))
    generator = torch.Generator().manual_seed(1)
    share = draw_beta(6.0, generator)
    partner = torch.randperm(data.n_rows, generator=generator)
    mixed = module(share * data.x + (1 - share) * data.x[partner]).tolist()
    scores = module(data.x)
    expected = slow_second_stage(scores.tolist(), mixed, before.tolist(), partner.tolist(), share, weights)
    assert found.value.item() == pytest.approx(expected, rel=1e-9)
    assert len(found.sums) == len(objective.terms)
    fresh = torch.sigmoid(scores).detach()
    torch.testing.assert_close(objective.pseudo, torch.where(data.labeled, 1.0, fresh))


def test_dist_pu_splits_its_epochs_and_slows_down() -> None:
    data = sample()
    rates: list[tuple[int, float]] = []

    class Spy(Task):
        def train(self, network, weights, risk, *, stage=0, **changes):  # type: ignore[no-untyped-def]
            rates.append((changes["epochs"], changes.get("lr", self.training.lr)))
            return super().train(network, weights, risk, stage=stage, **changes)

    fitted = DistPU().fit(Spy(**vars(task(data, epochs=5))))
    assert rates == [(2, 0.02), (3, 0.002)]
    assert len(fitted.history) == 5
    rates.clear()
    find_method("distpu_warmup").fit(Spy(**vars(task(data, epochs=5))))
    assert rates == [(5, 0.02)]


# --- PUbN


@pytest.mark.parametrize("negatives", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_pubn_is_its_three_steps(negatives: bool, weighted: bool) -> None:
    data = sample(negatives=negatives)
    e = torch.linspace(0.1, 0.9, data.n_labeled, dtype=torch.float64) if weighted else None
    negative_e = torch.linspace(0.2, 0.6, 16, dtype=torch.float64) if weighted and negatives else None
    method, rho = PUbN(rho=0.2 if negatives else None, tau=0.7), 0.2 if negatives else 0.0
    found = method.fit(task(data, propensity=e, negative_propensity=negative_e))
    kind = {"prior": PRIOR, "scenario": data.scenario}
    w = uniform(data.labels, **kind) if e is None else normalized_inverse_propensity(data.labels, e, **kind)
    of_negatives = biased_negatives(data.labels, rho=rho, propensity=negative_e) if negatives else None
    positive = w.positive if of_negatives is None else w.positive + of_negatives
    first, training = network(5), Training(epochs=4, batching=Batching(64), lr=0.02)
    region = RowWeights(positive, w.background - positive)
    train(first, data, region, nnpu(logistic), training, seed=5, progress=False)
    sigma = torch.sigmoid(score(first, data.x))
    eta = pubn_threshold(sigma[population_rows(data.labels, data.scenario)], prior=PRIOR, rho=rho, tau=0.7)
    last = network(5)
    final = pubn(w, sigma, eta=eta, negatives=of_negatives)
    train(last, data, final, upu(logistic), training, seed=derive(5, 101), progress=False)
    torch.testing.assert_close(parameters(found.model), parameters(last), rtol=0, atol=1e-12)


def test_pubn_may_leave_the_first_step_unweighted() -> None:
    data = sample()
    e = torch.linspace(0.1, 0.9, data.n_labeled, dtype=torch.float64)
    both = PUbN().fit(task(data, propensity=e)).model
    last_only = PUbN(weight_sigma=False).fit(task(data, propensity=e)).model
    assert float((parameters(both) - parameters(last_only)).abs().max()) > 1e-3


def test_pubn_with_negatives_asks_for_their_share() -> None:
    with pytest.raises(InvalidInput, match=r"needs their share of the population: method=PUbN\(rho=0\.2\)"):
        PUbN().fit(task(sample(negatives=True)))


@pytest.mark.parametrize("estimated", [False, True])
@pytest.mark.parametrize("scenario", ["case_control", "single_sample"])
def test_labeled_negatives_get_weights_of_their_own(estimated: bool, scenario: str) -> None:
    data = sample(negatives=True)
    e = np.full(data.n_rows, np.nan)
    e[data.labeled.numpy()] = np.linspace(0.1, 0.9, data.n_labeled)
    negative = data.labels.numpy() == -1

    def fit(estimator: str | None, **known: object) -> np.ndarray:
        clf = PUClassifier(
            PUbN(rho=0.2),
            prior=PRIOR,
            scenario=scenario,
            propensity=estimator,
            epochs=2,
            random_state=0,
            progress=False,
        )
        return clf.fit(data.x, data.labels, **known).decision_function(data.x)

    if estimated:
        assert np.abs(fit("logistic") - fit("constant")).max() > 1e-3
        return
    alike, unlike = np.where(negative, 0.25, np.nan), np.where(negative, np.linspace(0.01, 0.9, data.n_rows), np.nan)
    one = fit(None, propensity=e, negative_propensity=alike)
    two = fit(None, propensity=e, negative_propensity=unlike)
    assert np.abs(one - two).max() > 1e-3
    np.testing.assert_array_equal(one, fit(None, propensity=e, negative_propensity=np.full(16, 0.25)))
    with pytest.raises(InvalidInput, match="pass their negative_propensity"):
        fit(None, propensity=e)
    with pytest.raises(InvalidInput, match="pass both"):
        fit(None, negative_propensity=alike)


# --- VPU


def test_the_variational_risk_is_its_formula_and_needs_no_prior() -> None:
    data = sample(80)
    scores = torch.linspace(-2, 3, data.n_rows, dtype=torch.float64)
    values = []
    for prior in (0.2, 0.6):
        weights = uniform(data.labels, prior=prior, scenario=data.scenario)
        values.append(float(variational(prior)(scores, weights)))
    sigma = torch.sigmoid(scores)
    expected = math.log(float(sigma[data.unlabeled].mean())) - float(sigma[data.labeled].log().mean())
    assert values == pytest.approx([expected, expected], rel=1e-12)


# --- Self-PU


def students() -> Students:
    return Students(network(1), network(2))


def test_a_student_trusts_the_surest_rows_at_both_ends_and_more_of_them_later() -> None:
    data = sample()
    objective = SelfPaced(SelfPU(), data, nnpu(), seed=0)
    pair = students()
    objective.start_epoch(0, 40, pair)
    assert not bool(objective.trusted.any())
    counts = []
    for epoch in (2, 4, 8):
        objective.start_epoch(epoch, 40, pair)
        counts.append(objective.trusted.sum(1).tolist())
        for student, share in enumerate((0.4, 0.6)):
            each = int(240 * 0.5 * epoch / 20 * share)
            assert counts[-1][student] == 2 * each
            found = score(pair.students[student], data.x)
            trusted, rest = objective.trusted[student], ~objective.trusted[student] & data.unlabeled
            high = trusted & (found > found[rest].max())
            low = trusted & (found < found[rest].min())
            assert int(high.sum()) == int(low.sum()) == each
            assert not bool(trusted[data.labeled].any())
    assert counts[0] < counts[1] < counts[2]


def test_rows_that_leave_the_pool_are_stood_in_for() -> None:
    negative = torch.tensor([-0.25, 0.1, 0.2, 0.3], dtype=torch.float64)
    kept = _rescaled(negative, torch.tensor([1.0, 1.0, 0.0, 1.0], dtype=torch.float64))
    torch.testing.assert_close(kept, torch.tensor([-0.25, 0.15, 0.0, 0.45], dtype=torch.float64))


def test_calibration_asks_which_rows_would_lower_the_entropy_of_others() -> None:
    data = sample(80)
    objective = SelfPaced(SelfPU(most_entropy=1.0), data, nnpu(), seed=0)
    module, rows = network(1), batch(data, students(), uniform(data.labels, prior=PRIOR, scenario=data.scenario))
    trusted = data.unlabeled.double()
    to_risk, to_entropy = objective._calibrated(module, rows, trusted)
    pick = torch.randint(len(objective.held), (data.n_rows,), generator=torch.Generator().manual_seed(1))
    held = data.x[objective.held[pick]]

    def after_a_step(row: int, kind: int, weight: float) -> float:
        """Entropy of the held-out rows after a step of size `weight` on one loss of one row: finite differences."""
        own = network(1)
        scores = own(data.x[row : row + 1])
        loss = torch.sigmoid(scores) if kind == 0 else binary_entropy(scores)
        gradients = torch.autograd.grad(loss.sum(), list(own.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(own.parameters(), gradients, strict=True):
                parameter -= weight * gradient
            return float(binary_entropy(own(held)).mean())

    for row in range(24, 60):
        gains = [max(0.0, (after_a_step(row, kind, -1e-5) - after_a_step(row, kind, 1e-5)) / 2e-5) for kind in (0, 1)]
        expected = gains[0] / sum(gains) if sum(gains) > 1e-12 else 1.0
        assert float(to_risk[row]) == pytest.approx(expected, abs=1e-4)
    assert torch.equal(to_risk + to_entropy, torch.ones(data.n_rows, dtype=torch.float64))
    assert bool((to_risk[data.labeled] == 1).all())


def test_self_pu_scores_with_the_teachers_who_learn_only_from_students() -> None:
    pair = students()
    pair.train()
    assert not any(module.training for module in pair.teachers.modules())
    x = torch.randn(5, 2, dtype=torch.float64)
    with torch.no_grad():
        for parameter in pair.students.parameters():
            parameter.add_(1.0)
        before = [teacher(x) for teacher in pair.teachers]
        torch.testing.assert_close(pair(x), torch.stack(before).mean(0))
    slow = parameters(pair.teachers).clone()
    follow(pair.teachers, pair.students, 0.75)
    torch.testing.assert_close(parameters(pair.teachers), slow + 0.25)
    assert not any(parameter.requires_grad for parameter in pair.teachers.parameters())


# --- an averaged teacher


def slow_nearest(data: PUData, k: int) -> list[list[int]]:
    """The k rows of the population nearest to each row, by sorting all distances."""
    population = population_rows(data.labels, data.scenario)
    rows, of_all = torch.nonzero(population)[:, 0].tolist(), data.x[population]
    scaled = ((data.x - of_all.mean(0)) / of_all.std(0, correction=0)).tolist()
    found = []
    for i in range(data.n_rows):
        others = [j for j in rows if j != i]
        found.append(
            sorted(others, key=lambda j: sum((a - b) ** 2 for a, b in zip(scaled[i], scaled[j], strict=True)))[:k]
        )
    return found


@pytest.mark.parametrize("scenario", list(Scenario))
def test_nearest_rows_are_those_of_the_population(scenario: Scenario) -> None:
    data = sample(80, scenario=scenario)
    for found, expected in zip(nearest_rows(data, 3).tolist(), slow_nearest(data, 3), strict=True):
        distances = [float((data.x[found] - data.x[expected]).abs().max())]
        assert set(found) == set(expected) or max(distances) < 1e-6  # labeled rows have copies in the population


@pytest.mark.parametrize("neighbors", [0, 3])
def test_what_is_heard_is_the_mean_over_neighbors_shifted_to_the_prior(neighbors: int) -> None:
    data, module = sample(80), network(0)
    lessons = Lessons(AveragedTeacher(neighbors=neighbors), data, PRIOR, nnpu(), module)
    lessons.start_epoch(1, 2, module)
    said = [1 / (1 + math.exp(-g)) for g in score(module, data.x).tolist()]
    if neighbors:
        said = [(said[i] + sum(said[j] for j in near)) / 4 for i, near in enumerate(nearest_rows(data, 3).tolist())]
    odds = [math.log(p / (1 - p)) for p in said]
    low, high = -50.0, 50.0
    unlabeled = [i for i in range(data.n_rows) if not data.labeled[i]]  # the population of case-control data
    for _ in range(100):
        shift = (low + high) / 2
        mean = sum(1 / (1 + math.exp(-odds[i] - shift)) for i in unlabeled) / len(unlabeled)
        low, high = (shift, high) if mean < PRIOR else (low, shift)
    expected = [1.0 if data.labeled[i] else 1 / (1 + math.exp(-g - shift)) for i, g in enumerate(odds)]
    assert lessons.heard.tolist() == pytest.approx(expected, abs=1e-6)


def test_lessons_are_their_slow_twin() -> None:
    data, module, quick = sample(80), network(0), network(1)
    weights = uniform(data.labels, prior=PRIOR, scenario=data.scenario)
    lessons = Lessons(AveragedTeacher(neighbors=3, weight=0.7, decay=0.75), data, PRIOR, nnpu(), module)
    lessons.start_epoch(1, 2, module)
    before = parameters(lessons.teacher)
    found = lessons(batch(data, quick, weights))
    torch.testing.assert_close(parameters(lessons.teacher), 0.75 * before + 0.25 * parameters(quick))
    scores, loss = quick(data.x), 0.0
    for g, heard in zip(scores.tolist(), lessons.heard.tolist(), strict=True):
        chance = 1 / (1 + math.exp(-g))
        loss -= (heard * math.log(chance) + (1 - heard) * math.log(1 - chance)) / data.n_rows
    assert found.value.item() == pytest.approx(nnpu()(scores, weights).item() + 0.7 * loss, rel=1e-9)
    assert len(found.sums) == len(lessons.terms)
    found.value.backward()
    assert all(tensor.grad is None for tensor in lessons.teacher.parameters())


def test_the_teacher_is_the_result_and_without_lessons_there_is_none() -> None:
    data = sample()
    made = []

    class Spy(Task):
        def train(self, network, weights, risk, *, stage=0, **changes):  # type: ignore[no-untyped-def]
            made.append((changes["epochs"], risk))
            return super().train(network, weights, risk, stage=stage, **changes)

    fitted = AveragedTeacher(neighbors=3).fit(Spy(**vars(task(data, epochs=5))))
    assert [epochs for epochs, _ in made] == [2, 3]
    torch.testing.assert_close(parameters(fitted.model), parameters(made[1][1].teacher), rtol=0, atol=0)
    made.clear()
    alone = AveragedTeacher(warm_up=1.0).fit(Spy(**vars(task(data, epochs=5))))
    plain = find_method("nnpu").fit(task(data, epochs=5))
    torch.testing.assert_close(parameters(alone.model), parameters(plain.model), rtol=0, atol=0)


@pytest.mark.parametrize("wrong", [{"warm_up": 0.0}, {"decay": 1.0}, {"neighbors": -1}, {"weight": 0.0}])
def test_a_teacher_refuses_settings_that_cannot_be(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="warm_up must lie in"):
        AveragedTeacher(**wrong)  # type: ignore[arg-type]


# --- all of them


@pytest.mark.parametrize(
    ("method", "stage"), [(DistPU(), 1), (PUbN(), 1), (SelfPU(), 0), (AveragedTeacher(neighbors=3), 1)]
)
def test_a_method_stopped_in_any_stage_goes_on_to_the_same_parameters(
    method: DistPU | PUbN | SelfPU | AveragedTeacher, stage: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = sample()
    whole = method.fit(task(data, epochs=6)).model
    seen = []

    def stopping(*arguments: object, **options: object) -> object:
        seen.append(options["stage"])
        if options["stage"] == stage:
            original = options.pop("stage")
            monkeypatch.setattr("pue.methods.protocol.train", interrupted)
            return Task.train(*arguments, stage=original, **options)  # type: ignore[arg-type]
        return Task.train(*arguments, **options)  # type: ignore[arg-type]

    def interrupted(*arguments: object, **options: object) -> object:
        def stop(record: object, network: object) -> None:
            if record.epoch == 1:  # type: ignore[attr-defined]
                raise KeyboardInterrupt

        return train(*arguments, on_epoch=stop, **options)  # type: ignore[arg-type]

    class Fragile(Task):
        def train(self, *arguments, stage=0, **options):  # type: ignore[no-untyped-def]
            return stopping(self, *arguments, stage=stage, **options)

    checkpointing = Checkpointing(tmp_path, 1)
    with pytest.raises(KeyboardInterrupt):
        method.fit(Fragile(**vars(task(data, epochs=6, checkpointing=checkpointing))))
    monkeypatch.undo()
    assert seen[-1] == stage
    resumed = method.fit(task(data, epochs=6, checkpointing=checkpointing)).model
    torch.testing.assert_close(parameters(resumed), parameters(whole), rtol=0, atol=0)


@pytest.mark.parametrize("method", ["sarem", "lbe"])
def test_methods_that_learn_both_refuse_known_propensities(method: str) -> None:
    data = sample()
    with pytest.raises(InvalidInput, match="learns class and propensity together has no use for propensities"):
        find_method(method).fit(task(data, propensity=torch.full((data.n_labeled,), 0.5, dtype=torch.float64)))


def test_a_method_is_a_name_or_a_value() -> None:
    assert find_method(PUbN(tau=0.5)) == PUbN(tau=0.5)
    with pytest.raises(InvalidInput, match="must be a name"):
        find_method(3)


def test_a_sharp_sigma_has_the_share_as_its_mean_and_the_same_order() -> None:
    scores = torch.randn(200, generator=torch.Generator().manual_seed(0))
    mass = torch.rand(200, generator=torch.Generator().manual_seed(1))
    mass[:50] = 0  # rows that are no draw of the population
    found = sharpened(scores, 10.0, 0.3, mass)
    assert float(found @ mass.double() / mass.sum()) == pytest.approx(0.3, abs=1e-6)
    assert torch.equal(found.argsort(), scores.argsort())
    assert float(((found > 0.1) & (found < 0.9)).double().mean()) < 0.3  # of the scores themselves two thirds lie there
    with pytest.raises(InvalidInput, match="sharpness must be at least 1"):
        PUbN(sharpness=0.5)
