"""The training loop against loops written by hand, and the promises it makes about rows, seeds and failures."""

import copy
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor, nn
from torch.nn import functional

from pue import PUClassifier
from pue.backbones import InputSpec, build
from pue.core.criteria import CRITERIA
from pue.core.data import PUData, Scenario, gather, select
from pue.core.losses import logistic
from pue.core.risks import Risk, dist_pu, nnpu, upu
from pue.core.weights import RowWeights, normalized_inverse_propensity, uniform
from pue.errors import InvalidInput, TrainingDiverged, UnknownName
from pue.training import SCHEDULES, Augmentation, Batching, Checkpointing, EpochRecord, Training, score, train
from pue.training.feeds import restrict, split_rows

PRIOR = 0.6
FULL = Batching(size=10_000)
"""One batch, whole and in order: nothing random is left."""


def table(
    n: int = 60, *, features: int = 3, scenario: str = "single_sample", dtype: torch.dtype = torch.float64
) -> PUData:
    g = torch.Generator().manual_seed(7)
    y = torch.arange(n) % 2
    x = torch.randn(n, features, generator=g, dtype=dtype) + y[:, None]
    labels = y * (torch.rand(n, generator=g) < 0.5)
    if scenario == "case_control":
        x, labels = torch.cat([x[labels == 1], x]), torch.cat([torch.ones(int(labels.sum())), torch.zeros(n)])
    return PUData(x, labels, Scenario(scenario))


def scar(data: PUData) -> RowWeights:
    return uniform(data.labels, prior=PRIOR, scenario=data.scenario, sample_weight=data.sample_weight)


def biased(data: PUData) -> RowWeights:
    propensity = torch.linspace(0.05, 0.95, data.n_labeled, dtype=torch.float64)
    return normalized_inverse_propensity(data.labels, propensity, prior=PRIOR, scenario=data.scenario)


def network(features: int = 3, *extra: nn.Module, dtype: torch.dtype = torch.float64, seed: int = 0) -> nn.Module:
    def make(spec: InputSpec) -> nn.Module:
        return nn.Sequential(nn.Linear(features, 8), *extra, nn.Tanh(), nn.Linear(8, 1))

    return build(make, InputSpec((features,), dtype=dtype), seed=seed)


def state(module: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


class Spy(nn.Module):
    """A network that remembers the first feature of the rows of every training batch."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body, self.seen = body, []

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.seen.append(x[:, 0].tolist())
        return self.body(x)

    def rows(self) -> set[float]:
        return {row for batch in self.seen for row in batch}


class OneScore(nn.Module):
    """The same score for every row, whatever it is."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.tensor(value, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return self.value.expand(len(x))


def risk_of_one_score(value: float) -> float:
    return PRIOR / (1 + math.exp(value)) + (1 - PRIOR) / (1 + math.exp(-value))


# ------------------------------------------------------------------------------------------- loops written by hand

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": lambda parameters, **options: torch.optim.SGD(parameters, momentum=0.9, nesterov=True, **options),
}


def by_hand(
    module: nn.Module, data: PUData, weights: RowWeights, training: Training, after: Callable[[nn.Module], None]
) -> None:
    """Full-batch training on R⁺ + R⁻ of the sigmoid loss, or the nnPU step, spelled out."""
    optimizer = OPTIMIZERS[training.optimizer](module.parameters(), lr=training.lr, weight_decay=training.weight_decay)
    for epoch in range(training.epochs):
        for group in optimizer.param_groups:
            group["lr"] = training.lr * SCHEDULES[training.schedule](epoch, training.epochs, epoch / training.epochs)
        scores = module(data.x)
        positive = (weights.positive * torch.sigmoid(-scores)).sum()
        negative = (weights.negative * torch.sigmoid(scores)).sum()
        objective = positive + negative if negative >= 0 else -negative
        optimizer.zero_grad()
        objective.backward()
        optimizer.step()
        after(module)


@pytest.mark.parametrize("schedule", sorted(SCHEDULES))
@pytest.mark.parametrize("scenario", list(Scenario))
def test_adam_equals_a_loop_written_by_hand(scenario: str, schedule: str) -> None:
    # Weight decay is L2 in the gradient (METHODS 7.5), which is what torch.optim.Adam does and AdamW does not.
    data = table(scenario=scenario)
    training = Training(epochs=25, batching=FULL, lr=0.03, weight_decay=0.1, schedule=schedule)
    ours, theirs = network(), network()
    train(ours, data, biased(data), nnpu(), training, seed=0)
    by_hand(theirs, data, biased(data), training, lambda module: None)
    for name, tensor in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], tensor, atol=1e-12, rtol=0)


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_the_other_optimizers_equal_torch_too(optimizer: str) -> None:
    data = table()
    training = Training(epochs=10, batching=FULL, lr=0.03, weight_decay=0.1, optimizer=optimizer)
    ours, theirs = network(), network()
    train(ours, data, biased(data), nnpu(), training, seed=0)
    by_hand(theirs, data, biased(data), training, lambda module: None)
    for name, tensor in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], tensor, atol=1e-12, rtol=0)


def test_the_loops_by_hand_tell_the_optimizers_apart() -> None:
    data, ends = table(), []
    for optimizer in OPTIMIZERS:
        ours = network()
        train(ours, data, scar(data), upu(), Training(epochs=5, weight_decay=0.1, optimizer=optimizer), seed=0)
        ends.append(torch.cat([p.detach().flatten() for p in ours.parameters()]))
    assert min(float((a - b).abs().max()) for i, a in enumerate(ends) for b in ends[:i]) > 1e-6


def test_nnpu_steps_up_where_the_negative_part_is_negative() -> None:
    # Scores of −5 everywhere make R⁻ ≈ 0⁻ in this weighting: labeled rows carry more mass than the background.
    data = PUData(torch.tensor([[1.0], [0.0]], dtype=torch.float64), torch.tensor([1, 0]))
    weights = RowWeights(torch.tensor([0.9, 0.0]).double(), torch.tensor([-0.4, 0.5]).double())
    ours = nn.Sequential(nn.Linear(1, 1, dtype=torch.float64), nn.Flatten(0))
    with torch.no_grad():
        ours[0].weight.fill_(8.0)
        ours[0].bias.fill_(-4.0)
    theirs = copy.deepcopy(ours)
    training = Training(epochs=3, batching=FULL, lr=0.1, optimizer="sgd", weight_decay=0.0)
    history = train(ours, data, weights, nnpu(), training, seed=0)
    by_hand(theirs, data, weights, training, lambda module: None)
    assert [record.corrected for record in history] == [1.0, 1.0, 1.0]
    for name, tensor in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], tensor, atol=1e-12, rtol=0)


def test_ema_equals_an_average_computed_by_hand() -> None:
    data, decay = table(), 0.8
    training = Training(epochs=12, batching=FULL, lr=0.05)
    averaged: dict[str, Tensor] = {}

    def update(module: nn.Module) -> None:
        for name, tensor in module.state_dict().items():
            if name not in averaged or not tensor.is_floating_point():
                averaged[name] = tensor.clone()  # the average starts at the parameters after the first step
            else:
                averaged[name] = decay * averaged[name] + (1 - decay) * tensor

    ours, theirs = (network(3, nn.BatchNorm1d(8)) for _ in range(2))
    train(ours, data, scar(data), nnpu(), replace(training, ema=decay), seed=0)
    by_hand(theirs, data, scar(data), training, update)
    moved = 0.0
    for name, tensor in averaged.items():
        if tensor.is_floating_point():
            torch.testing.assert_close(ours.state_dict()[name], tensor, atol=1e-12, rtol=0)
            moved = max(moved, float((tensor - theirs.state_dict()[name]).abs().max()))
    assert moved > 1e-3


def test_the_first_record_is_the_risk_of_the_network_as_it_came() -> None:
    data, ours = table(), network()
    before = float(upu()(score(ours, data.x), scar(data)))
    history = train(ours, data, scar(data), nnpu(), Training(epochs=3, batching=FULL), seed=0)
    assert history[0].risk == pytest.approx(before, abs=1e-14)
    assert [record.epoch for record in history] == [0, 1, 2]
    assert all(record.validation is None and record.seconds > 0 for record in history)


def test_the_risk_of_an_epoch_is_the_mean_of_its_batches() -> None:
    # With one score for all rows every stratified batch has the risk π ℓ(g) + (1 − π) ℓ(−g).
    data = table(60, scenario="case_control")
    [record] = train(
        OneScore(0.3), data, scar(data), upu(), Training(epochs=1, lr=1e-30, batching=Batching(16)), seed=0
    )
    assert record.risk == pytest.approx(risk_of_one_score(0.3), abs=1e-12)


def test_the_correction_sees_the_reduced_sums() -> None:
    # In a process group the sums are added up before nnPU's switch: reduce stands between sums and combine.
    data, calls = table(), []

    def double(sums: Tensor) -> Tensor:
        calls.append(sums.shape)
        return 2 * sums

    plain = train(network(), data, scar(data), upu(), Training(epochs=1, batching=FULL), seed=0)
    doubled = train(network(), data, scar(data), upu(), Training(epochs=1, batching=FULL), seed=0, reduce=double)
    assert calls == [(2,)]
    assert doubled[0].risk == pytest.approx(2 * plain[0].risk, rel=1e-14)


def test_training_ends_in_eval_mode() -> None:
    data, ours = table(), network(3, nn.Dropout(0.5))
    train(ours, data, scar(data), nnpu(), Training(epochs=1), seed=0)
    assert not any(module.training for module in ours.modules())


def test_training_separates_the_classes() -> None:
    # The loop does learn: with half of the labels it comes near the best rule, which is right on Φ(√3 / 2) = 81 %.
    data, ours = table(800), network()
    train(ours, data, scar(data), nnpu(), Training(epochs=30, lr=0.01), seed=0)
    truth = torch.arange(800) % 2
    assert ((score(ours, data.x) >= 0) == truth).double().mean() > 0.75


# ---------------------------------------------------------------------------------------------- held-out rows


def identified(n: int, scenario: str) -> PUData:
    """A table whose first feature is a number of the row's own; copies of a row share it."""
    data = table(n, scenario="single_sample")
    data.x[:, 0] = torch.arange(n)
    if scenario == "single_sample":
        return data
    labeled = data.x[data.labeled]
    return PUData(
        torch.cat([labeled, data.x]), torch.cat([torch.ones(len(labeled)), torch.zeros(n)]), Scenario.CASE_CONTROL
    )


def rows_seen(data: PUData, training: Training) -> set[int]:
    spy = Spy(network())
    train(spy, data, scar(data), upu(), training, seed=3)
    return {int(row) for row in spy.rows()}


@pytest.mark.parametrize("mode", ["stratified", "joint"])
@pytest.mark.parametrize("scenario", list(Scenario))
def test_held_out_rows_and_their_copies_never_enter_a_batch(scenario: str, mode: str) -> None:
    # Those kept back are kept back from every epoch, and a labeled row together with its copy: it is the same number.
    data = identified(200, scenario)
    seen = [rows_seen(data, Training(epochs=n, batching=Batching(32, mode), validation=0.2)) for n in (1, 4)]
    assert seen[0] == seen[1]
    held_out = torch.tensor([int(row) not in seen[0] for row in data.x[:, 0]])
    assert held_out.double().mean() == pytest.approx(0.2, abs=0.02)
    for label in (0, 1):  # both kinds are held out, so that there is a risk to compute
        assert held_out[data.labels == label].double().mean() == pytest.approx(0.2, abs=0.05)


# What is documented is "share of the rows held out".
@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5])
def test_the_share_held_out_is_the_one_asked_for(share: float) -> None:
    seen = rows_seen(identified(400, "single_sample"), Training(epochs=1, validation=share))
    assert 1 - len(seen) / 400 == pytest.approx(share, abs=0.02)


def test_without_validation_every_row_is_used() -> None:
    assert rows_seen(identified(200, "case_control"), Training(epochs=1)) == set(range(200))


def held_out_risk(spy: Spy, data: PUData) -> float:
    """The uncorrected sigmoid risk of the rows never trained on: means over their labeled and their unlabeled rows."""
    held_out = torch.tensor([row not in spy.rows() for row in gather(data.x, torch.arange(data.n_rows))[:, 0].tolist()])
    labels, scores = data.labels[held_out], score(spy, select(data.x, held_out))
    labeled, rest = scores[labels == 1], scores[labels == 0]
    # Each part keeps its mass: π on the labeled rows; the background has n_P / n and n_U / n in a single sample.
    share = data.n_labeled / data.n_rows if data.scenario is Scenario.SINGLE_SAMPLE else 0.0
    risk = PRIOR * torch.sigmoid(-labeled).mean() - (PRIOR - share) * torch.sigmoid(labeled).mean()
    return float(risk + (1 - share) * torch.sigmoid(rest).mean())


@pytest.mark.parametrize("ema", [None, 0.5])
@pytest.mark.parametrize("scenario", list(Scenario))
def test_by_default_validation_is_minus_the_sigmoid_risk_of_the_held_out_rows(scenario: str, ema: float | None) -> None:
    data = table(200, scenario=scenario)
    ours = Spy(network())
    history = train(ours, data, scar(data), nnpu(), Training(epochs=2, validation=0.2, ema=ema), seed=3)
    assert history[-1].validation == pytest.approx(-held_out_risk(ours, data), abs=1e-12)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("scenario", list(Scenario))
def test_validation_is_the_criterion_of_the_held_out_rows_with_their_weights(scenario: str, criterion: str) -> None:
    data, ours = table(200, scenario=scenario), network()
    data.x.sub_(1)  # so that scores lie on both sides of zero
    [record] = train(ours, data, biased(data), nnpu(), Training(1, validation=0.2, criterion=criterion), seed=3)
    _, held_out = split_rows(data, 0.2, 3)
    scores = score(ours, data.x, held_out)
    expected, plain = (
        CRITERIA[criterion](scores, restrict(weights(data), data.labels, held_out)) for weights in (biased, scar)
    )
    assert record.validation == pytest.approx(expected, abs=1e-12)
    assert record.validation != pytest.approx(plain, abs=1e-3)


@pytest.mark.parametrize("scenario", list(Scenario))
def test_weights_restricted_to_a_split_keep_the_mass_of_each_part(scenario: str) -> None:
    # With one score for all rows a risk is π ℓ(g) + (1 − π) ℓ(−g), whichever rows it is taken over: if the weights of
    # a split kept only their *number* of rows, the prior of the split would depend on which propensities it got.
    data = table(120, scenario=scenario)
    training = Training(epochs=1, lr=1e-30, validation=0.2, batching=FULL)
    [record] = train(OneScore(2.0), data, biased(data), upu(), training, seed=0)
    assert record.risk == pytest.approx(risk_of_one_score(2.0), abs=1e-12)
    assert record.validation == pytest.approx(-risk_of_one_score(2.0), abs=1e-12)


# --------------------------------------------------------------------------------------------- early stopping


class Shifted(nn.Module):
    """g(x) = 3 x₀ + b."""

    def __init__(self) -> None:
        super().__init__()
        self.b = nn.Parameter(torch.tensor(-4.0, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return 3 * x[:, 0] + self.b


DRIFT = Risk(("drift",), lambda scores, weights: -scores.mean()[None], lambda sums: sums[0])
"""Pushes b up at a constant speed, so that the held-out risk falls to the best b and rises ever after."""


def crossing() -> tuple[PUData, Training]:
    data = table(200)
    truth = torch.arange(200) % 2
    data.x[:, 0] = 2 * truth - 1 + 0.2 * data.x[:, 0]
    training = Training(epochs=40, lr=0.005, optimizer="sgd", weight_decay=0.0, schedule="constant", validation=0.25)
    return data, replace(training, batching=Batching(32))


@pytest.mark.parametrize("ema", [None, 0.9])
@pytest.mark.parametrize("patience", [1, 4])
def test_early_stopping_returns_the_best_epoch_and_stops_after_patience(patience: int, ema: float | None) -> None:
    data, training = crossing()
    training = replace(training, ema=ema)
    stopped, short = Shifted(), Shifted()
    history = train(stopped, data, scar(data), DRIFT, replace(training, patience=patience), seed=1)
    best = int(np.argmax([record.validation for record in history]))
    assert best > 0
    assert len(history) == best + 1 + patience < training.epochs
    # All randomness is a function of (seed, epoch), so a run that ends at the best epoch has its parameters.
    train(short, data, scar(data), DRIFT, replace(training, epochs=best + 1), seed=1)
    assert same(state(stopped), state(short))


def test_the_best_epoch_is_returned_even_if_patience_never_ran_out() -> None:
    data, training = crossing()
    ours, short = Shifted(), Shifted()
    history = train(ours, data, scar(data), DRIFT, replace(training, patience=40), seed=1)
    best = int(np.argmax([record.validation for record in history]))
    assert best < len(history) - 1 == 39
    train(short, data, scar(data), DRIFT, replace(training, epochs=best + 1), seed=1)
    assert same(state(ours), state(short))


def test_without_patience_the_last_epoch_is_the_result() -> None:
    data, training = crossing()
    ours = Spy(Shifted())
    held_out = [record.validation for record in train(ours, data, scar(data), DRIFT, training, seed=1)]
    assert len(held_out) == 40
    assert held_out[-1] < max(held_out)
    assert held_out[-1] == pytest.approx(-held_out_risk(ours, data), abs=1e-12)


@pytest.mark.parametrize("criterion", ["risk", "pa"])
def test_the_best_epoch_can_be_kept_without_stopping_early(criterion: str) -> None:
    data, training = crossing()
    training = replace(training, criterion=criterion)
    ours, short = Shifted(), Shifted()
    history = train(ours, data, scar(data), DRIFT, replace(training, keep="best"), seed=1)
    best = int(np.argmax([record.validation for record in history]))  # the first of equals
    assert 0 < best < len(history) - 1 == 39
    train(short, data, scar(data), DRIFT, replace(training, epochs=best + 1), seed=1)
    assert same(state(ours), state(short))


def test_the_last_epoch_can_be_kept_although_the_run_stopped_early() -> None:
    data, training = crossing()
    ours, short = Shifted(), Shifted()
    history = train(ours, data, scar(data), DRIFT, replace(training, patience=4, keep="last"), seed=1)
    assert len(history) < 40
    train(short, data, scar(data), DRIFT, replace(training, epochs=len(history)), seed=1)
    assert same(state(ours), state(short))


def test_a_ranking_does_not_stop_a_run_that_only_moves_the_threshold() -> None:
    # b moves all scores alike: PAUC never rises above that of the first epoch, and patience runs out at once.
    data, training = crossing()
    history = train(Shifted(), data, scar(data), DRIFT, replace(training, criterion="pauc", patience=3), seed=1)
    assert len({record.validation for record in history}) == 1
    assert len(history) == 4


@pytest.mark.parametrize("ema", [None, 0.5])
def test_whoever_looks_after_every_epoch_sees_what_would_be_the_result(ema: float | None) -> None:
    data, seen = table(), []
    training = Training(epochs=4, batching=Batching(16), schedule="constant", ema=ema)

    def look(record: EpochRecord, module: nn.Module) -> None:
        seen.append((record, state(module)))
        score(module, data.x)  # leaves it in eval mode, which is none of the loop's concern

    history = train(network(3, nn.Dropout(0.5)), data, scar(data), nnpu(), training, seed=0, on_epoch=look)
    assert [record for record, _ in seen] == history
    for epochs in (1, 4):
        short = network(3, nn.Dropout(0.5))
        train(short, data, scar(data), nnpu(), replace(training, epochs=epochs), seed=0)
        assert same(seen[epochs - 1][1], state(short))


def test_the_classifier_hands_criterion_and_keep_on() -> None:
    data, fitted = table(200), {}
    for keep in ("best", "last"):
        options = {"validation": 0.2, "criterion": "pauc", "keep": keep, "epochs": 12, "lr": 0.3, "batch_size": 32}
        fitted[keep] = PUClassifier(prior=PRIOR, random_state=0, **options).fit(data.x, data.labels)
    history = [record.validation for record in fitted["last"].history_]
    assert history == [record.validation for record in fitted["best"].history_]
    assert 0.5 < max(history) <= 1
    assert max(history) > history[-1]
    assert not same(state(fitted["best"].network_), state(fitted["last"].network_))


# -------------------------------------------------------------------------------------------------- randomness

SMALL = Training(epochs=3, batching=Batching(16))


def trained(
    training: Training = SMALL, *, seed: int = 0, data: PUData | None = None, module: nn.Module | None = None
) -> dict[str, Tensor]:
    data = table() if data is None else data
    module = network(data.x.shape[1]) if module is None else module
    train(module, data, scar(data), nnpu(), training, seed=seed)
    return state(module)


@pytest.mark.parametrize(
    "training",
    [
        SMALL,
        replace(SMALL, batching=Batching(16, "joint")),
        replace(SMALL, batching=Batching(16, labeled_rows="drawn")),
        replace(SMALL, augmentation=Augmentation(mixup=0.5)),
    ],
    ids=["stratified", "joint", "drawn", "mixup"],
)
def test_the_seed_alone_decides_the_parameters(training: Training) -> None:
    assert same(trained(training, seed=1), trained(training, seed=1))
    assert not same(trained(training, seed=1), trained(training, seed=2))


@pytest.mark.parametrize("mode", ["stratified", "joint"])
def test_every_epoch_shuffles_anew(mode: str) -> None:
    spy, data = Spy(network()), table()
    train(spy, data, scar(data), nnpu(), Training(epochs=2, batching=Batching(16, mode)), seed=0)
    half = len(spy.seen) // 2
    assert spy.seen[:half] != spy.seen[half:]


def test_dropout_is_reproducible_whatever_the_global_seed() -> None:
    ends = []
    for global_seed, seed in ((1, 0), (2, 0), (1, 5)):
        torch.manual_seed(global_seed)
        ends.append(trained(replace(SMALL, batching=FULL), seed=seed, module=network(3, nn.Dropout(0.5))))
    assert same(ends[0], ends[1])
    assert not same(ends[0], ends[2])  # the data are used whole, so only dropout can differ


def test_dropout_differs_from_epoch_to_epoch() -> None:
    masks = []

    class Watch(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            masks.append((x == 0).tolist())
            return x

    data = table()
    train(
        network(3, nn.Dropout(0.5), Watch()),
        data,
        scar(data),
        nnpu(),
        Training(epochs=2, batching=FULL, lr=1e-9),
        seed=0,
    )
    assert masks[-1] != masks[-2]


def test_building_and_training_leave_the_global_generators_alone() -> None:
    before, numpy_before = torch.get_rng_state(), np.random.get_state()
    data = table(80, scenario="case_control")
    module = network(3, nn.Dropout(0.5), nn.BatchNorm1d(8))
    training = Training(epochs=2, batching=Batching(16), validation=0.2, augmentation=Augmentation(mixup=0.5))
    train(module, data, scar(data), nnpu(), training, seed=0)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(np.array_equal(a, b) for a, b in zip(numpy_before, np.random.get_state(), strict=True))


def test_validation_of_a_network_that_is_random_in_eval_mode_is_reproducible() -> None:
    class Noisy(nn.Linear):
        """Monte Carlo dropout: works in eval mode too."""

        def forward(self, x: Tensor) -> Tensor:
            return functional.dropout(super().forward(x), 0.5)[:, 0]

    data, found = table(80), []
    for global_seed in (1, 2):
        torch.manual_seed(0)
        module = Noisy(3, 1, dtype=torch.float64)
        torch.manual_seed(global_seed)
        before = torch.get_rng_state()
        history = train(module, data, scar(data), nnpu(), Training(epochs=2, validation=0.2), seed=0)
        assert torch.equal(torch.get_rng_state(), before)
        found.append([record.validation for record in history])
    assert found[0] == found[1]


def test_a_failed_run_leaves_the_global_generator_alone_too() -> None:
    class Broken(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            functional.dropout(x)
            raise RuntimeError("out of memory")

    module, data = Broken(3, 1, dtype=torch.float64), table()
    before = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="out of memory"):
        train(module, data, scar(data), nnpu(), SMALL, seed=0)
    assert torch.equal(torch.get_rng_state(), before)


# ----------------------------------------------------------------------------------------------- kinds of inputs


def test_images_of_bytes_train_as_floats_divided_by_255() -> None:
    g = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (48, 1, 8, 8), generator=g, dtype=torch.uint8)
    labels = (torch.arange(48) % 3 == 0).int()
    ends = []
    for x in (pixels, pixels.float() / 255):
        module = build("fast_cnn", InputSpec((1, 8, 8)), seed=0)
        data = PUData(x, labels)
        train(module, data, scar(data), nnpu(), Training(epochs=2, batching=Batching(16)), seed=0)
        ends.append(state(module) | {"scores": score(module, x)})
    assert same(*ends)


def test_a_sparse_table_trains_as_the_dense_one() -> None:
    data = table()
    dense = data.x * (data.x > 0.5)
    matrix = sparse.csr_matrix(dense.numpy())
    ends = []
    for x in (dense, matrix):
        module = network()
        same_labels = PUData(x, data.labels)
        train(module, same_labels, scar(data), nnpu(), SMALL, seed=0)
        ends.append(state(module) | {"scores": score(module, x)})
    assert same(*ends)


def test_held_out_rows_of_a_sparse_table_give_the_risk_of_those_rows() -> None:
    dense = identified(100, "single_sample")
    dense.x[:, 1:] *= dense.x[:, 1:] > 0.5
    data, spy = PUData(sparse.csr_matrix(dense.x.numpy()), dense.labels), Spy(network())
    [record] = train(spy, data, scar(data), nnpu(), Training(epochs=1, validation=0.2), seed=0)
    assert record.validation == pytest.approx(-held_out_risk(spy, data), abs=1e-12)


def test_the_score_of_a_row_does_not_depend_on_which_rows_are_scored() -> None:
    # 5,000 rows are more than one batch; batch norm and dropout are in eval mode, although the network was training.
    module, x = network(3, nn.BatchNorm1d(8), nn.Dropout(0.5)).train(), table(5000).x
    rows = torch.tensor([4999, 0, 17, 4096])
    torch.testing.assert_close(score(module, x, rows), score(module, x)[rows], rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(score(module, x[rows]), score(module, x)[rows], rtol=1e-12, atol=1e-14)


def test_wide_rows_are_scored_in_small_batches() -> None:
    sizes = []
    module = nn.Sequential(nn.Linear(2**13, 1), nn.Flatten(0))
    module.register_forward_pre_hook(lambda hooked, inputs: sizes.append(inputs[0].numel()))
    scores = score(module, torch.zeros(1, 2**13).expand(2100, 2**13))  # no more memory than one row before the batches
    assert scores.shape == (2100,)
    assert max(sizes) <= 2**24
    assert len(sizes) == 2


def test_mixup_trains_on_tables_and_keeps_the_mass() -> None:
    data = table(60, scenario="case_control")
    training = Training(epochs=2, lr=1e-30, batching=FULL, augmentation=Augmentation(mixup=1.0))
    history = train(OneScore(0.0), data, scar(data), upu(), training, seed=0)
    assert [record.risk for record in history] == pytest.approx([0.5, 0.5], abs=1e-14)


def test_shifting_a_table_is_refused() -> None:
    data = table()
    with pytest.raises(InvalidInput, match="For tables only mixup applies"):
        train(network(), data, scar(data), upu(), replace(SMALL, augmentation=Augmentation(shift=1)), seed=0)


# ---------------------------------------------------------------------------------------------------- divergence


class Explodes(nn.Module):
    """Becomes `value` on the rows of `where` from the k-th training step on."""

    def __init__(
        self, at: int, value: float, where: Callable[[Tensor], Tensor] = lambda x: x[:, 0] > -math.inf
    ) -> None:
        super().__init__()
        self.body, self.at, self.value, self.where, self.calls = network(), at, value, where, 0

    def forward(self, x: Tensor) -> Tensor:
        scores = self.body(x)
        self.calls += self.training
        return torch.where(self.where(x), self.value, scores) if self.calls >= self.at else scores


@pytest.mark.parametrize(
    ("value", "term"), [(math.nan, "positive, negative"), (math.inf, "negative"), (-math.inf, "positive")]
)
def test_a_risk_that_is_not_finite_stops_the_run_and_says_where(value: float, term: str) -> None:
    # The logistic loss of a score of +∞ is zero, that of −∞ infinite; so each names the part that exploded.
    data, training = table(), Training(epochs=3, batching=Batching(16))
    spy = Spy(network())
    train(spy, data, scar(data), upu(logistic), replace(training, epochs=1), seed=0)
    module = Explodes(len(spy.seen) + 2, value)
    with pytest.raises(
        TrainingDiverged,
        match=rf"not finite at step 2 of epoch 2; term: {term}\. Try a smaller learning rate .*lr=0.001.*'sigmoid'",
    ):
        train(module, data, scar(data), upu(logistic), training, seed=0)
    assert len(spy.seen) > 2


def test_terms_of_other_risks_are_named_too() -> None:
    data = table()
    with pytest.raises(TrainingDiverged, match="term: labeled, predicted positives, entropy"):
        train(Explodes(1, math.nan), data, scar(data), dist_pu(PRIOR, entropy=0.1), Training(epochs=1), seed=0)


def test_parameters_that_are_not_finite_after_the_last_step_are_no_result() -> None:
    # The risk of the only step is finite; what the step makes of the parameters is not.
    data = table(dtype=torch.float32)
    data.x.mul_(100)
    module = build("linear", InputSpec((3,)), seed=0)
    training = Training(epochs=1, lr=3e38, optimizer="sgd", batching=FULL)
    with pytest.raises(
        TrainingDiverged, match=r"parameter \S+weight is not finite after step 1 of epoch 1\. Try a smaller"
    ):
        train(module, data, scar(data), upu(logistic), training, seed=0)


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_held_out_scores_that_are_not_finite_are_no_criterion(criterion: str, value: float) -> None:
    # Training rows are fine here, and a comparison with NaN would be false, not an error.
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = network()

        def forward(self, x: Tensor) -> Tensor:
            scores = self.body(x)
            return scores if self.training else torch.where(x[:, 0] > 0, value, scores)

    data = table(100)
    with pytest.raises(TrainingDiverged, match="scores of held-out rows are not finite after epoch 1"):
        train(Odd(), data, scar(data), nnpu(), Training(2, validation=0.2, criterion=criterion), seed=0)


def test_nothing_half_written_is_left_by_a_run_that_diverged(tmp_path) -> None:
    data = table()
    with pytest.raises(TrainingDiverged):
        train(
            Explodes(3, math.nan),
            data,
            scar(data),
            upu(),
            Training(epochs=5, batching=FULL),
            seed=0,
            checkpointing=Checkpointing(tmp_path),
        )
    # Two epochs were good; of the third nothing is left.
    assert [folder.name for folder in tmp_path.iterdir()] == ["epoch-00002"]
    assert sorted(file.name for file in (tmp_path / "epoch-00002").iterdir()) == [
        *("state.json", "state.safetensors", "state.sha256")
    ]


# ------------------------------------------------------------------------------------------------------ settings


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"epochs": 0}, "epochs must be at least 1; got 0"),
        ({"lr": 0.0}, "lr must be positive and weight_decay not negative; got 0.0"),
        ({"lr": math.nan}, "lr must be positive"),
        ({"weight_decay": -1.0}, "weight_decay not negative"),
        ({"ema": 1.0}, r"ema must lie in \(0, 1\); got 1.0. 0.999 is common"),
        ({"validation": 0.6}, r"validation must lie in \[0, 0.5\]; got 0.6"),
        ({"patience": 3}, "early stopping needs .* held-out rows: set validation=0.1"),
        ({"patience": 0, "validation": 0.1}, "patience of at least 1"),
        ({"keep": "best"}, "best epoch is chosen by held-out rows: set validation=0.1"),
    ],
)
def test_wrong_settings_are_refused_with_a_remedy(options: dict[str, float], text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        Training(**options)


def test_an_unknown_optimizer_is_named_with_a_suggestion() -> None:
    with pytest.raises(UnknownName, match=r"unknown optimizer 'adan'\. Did you mean 'adam'\?"):
        Training(optimizer="adan")


def test_an_unknown_criterion_is_named_with_a_suggestion() -> None:
    with pytest.raises(UnknownName, match=r"unknown criterion 'pau'\. Did you mean 'pauc'\? Available: auc, "):
        Training(criterion="pau")


def test_an_unknown_epoch_to_keep_is_refused() -> None:
    with pytest.raises(UnknownName, match=r"unknown keep 'first'.*Available: auto, best, last"):
        Training(keep="first")
