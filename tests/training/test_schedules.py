"""Schedules are pure functions; torch's stateful schedulers are their references."""

import pytest
import torch

from pue.training import SCHEDULES, Training
from pue.training.schedules import constant, cosine, one_cycle


def optimizer(lr: float = 1.0) -> torch.optim.Optimizer:
    return torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr, momentum=0.9)


def rates(scheduler: torch.optim.lr_scheduler.LRScheduler, steps: int) -> list[float]:
    found = []
    for _ in range(steps):
        found.append(scheduler.get_last_lr()[0])
        scheduler.optimizer.step()
        scheduler.step()
    return found


@pytest.mark.parametrize("epochs", [1, 2, 7, 120])
def test_cosine_equals_torch_stepped_once_an_epoch(epochs: int) -> None:
    reference = rates(torch.optim.lr_scheduler.CosineAnnealingLR(optimizer(), T_max=epochs, eta_min=0.0), epochs)
    assert [cosine(epoch, epochs, 0.0) for epoch in range(epochs)] == pytest.approx(reference, abs=1e-12)


def test_cosine_does_not_change_within_an_epoch() -> None:
    assert len({cosine(3, 10, progress / 100) for progress in range(30, 40)}) == 1


def one_cycle_of_torch(steps: int) -> list[float]:
    reference = torch.optim.lr_scheduler.OneCycleLR(
        optimizer(), max_lr=1.0, total_steps=steps, pct_start=0.3, div_factor=25.0, final_div_factor=1e4
    )
    found = []
    for step in range(steps):
        found.append(reference.get_last_lr()[0])
        if step < steps - 1:  # one step more is an error
            reference.optimizer.step()
            reference.step()
    return found


@pytest.mark.parametrize("steps", [100, 1000, 5000])
def test_one_cycle_equals_torch_up_to_a_step(steps: int) -> None:
    # torch peaks at step 0.3·T − 1 and ends at T − 1, counting steps from 0; ours are at 0.3·T and T, for `progress`
    # is the share of steps *done*. The curves are thus one step apart, at most 1 / T times the steepest slope π/2/0.3.
    reference = one_cycle_of_torch(steps)
    ours = [one_cycle(0, 1, step / steps) for step in range(steps)]
    assert ours == pytest.approx(reference, abs=5.3 / steps)


def test_one_cycle_is_the_same_curve_as_torch() -> None:
    # With the off-by-one taken out by moving each of torch's two phases onto ours, nothing is left.
    steps = 1000
    peak, last = 0.3 * steps - 1, steps - 1
    progress = [
        0.3 * step / peak if step <= peak else 0.3 + 0.7 * (step - peak) / (last - peak) for step in range(steps)
    ]
    ours = [one_cycle(0, 1, share) for share in progress]
    assert ours == pytest.approx(one_cycle_of_torch(steps), abs=1e-12)


def test_constant_stays_constant() -> None:
    assert {constant(epoch, 10, step / 50) for epoch in range(10) for step in range(50)} == {1.0}


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_every_schedule_is_a_factor_between_zero_and_one(name: str) -> None:
    factors = [SCHEDULES[name](step // 10, 10, step / 100) for step in range(100)]
    assert min(factors) > 0
    assert max(factors) == pytest.approx(1.0, abs=1e-9)


def test_an_unknown_schedule_is_named_with_a_suggestion() -> None:
    with pytest.raises(ValueError, match=r"unknown schedule 'cosin'\. Did you mean 'cosine'\?"):
        Training(schedule="cosin")
