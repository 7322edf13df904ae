"""Labeled and unlabeled rows must go through the network in ONE forward pass.

In two passes batch norm standardises the labeled rows by their own statistics: in training the network can tell the
two kinds apart by how their batch is spread, and in eval mode, where the running statistics hold, nothing is left of
what it learned. Code that does this trains to a fine risk and scores like a coin.
"""

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from pue.backbones import InputSpec, build
from pue.backbones.dense import mlp
from pue.core.data import PUData, Scenario
from pue.core.risks import nnpu
from pue.core.weights import RowWeights, uniform
from pue.training import Augmentation, Batching, Training, score, train
from pue.training.batches import Batches

PRIOR = 0.4
BATCHING = Batching(128)


class Spy(nn.Module):
    """Remembers the rows of every forward pass in training."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.passes = nn.Linear(2, 1), []

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.passes.append(x[:, 0].tolist())
        return self.layer(x)[:, 0]


@pytest.mark.parametrize("mixup", [0.0, 0.3])
@pytest.mark.parametrize("batching", [Batching(16), Batching(16, "joint"), Batching(1000)])
@pytest.mark.parametrize("scenario", list(Scenario))
def test_a_step_is_one_forward_pass_of_all_rows_of_its_batch(
    scenario: Scenario, batching: Batching, mixup: float
) -> None:
    labels = (torch.arange(90) < 20).to(torch.int8)
    x = torch.arange(90.0)[:, None].expand(90, 2) / 90
    data, spy = PUData(x, labels, scenario), Spy()
    weights = uniform(labels, prior=PRIOR, scenario=scenario)
    training = Training(epochs=2, batching=batching, augmentation=Augmentation(mixup=mixup))
    train(spy, data, weights, nnpu(), training, seed=0)
    sizes = [len(index) for index, _ in Batches(labels, weights.positive, batching).epoch(torch.Generator())]
    assert [len(rows) for rows in spy.passes] == 2 * sizes
    if not mixup:
        kinds = [{row * 90 < 19.5 for row in rows} for rows in spy.passes]
        assert kinds.count({True, False}) > len(kinds) / 2  # both kinds of rows in the same pass


def problem(seed: int) -> tuple[PUData, RowWeights, Tensor, Tensor]:
    """Two Gaussian classes, 200 labeled positives beside 2,000 unlabeled rows."""
    g = torch.Generator().manual_seed(seed)
    y = torch.rand(2000, generator=g) < PRIOR
    x = torch.randn(2000, 10, generator=g)
    x[:, :3] += 2.0 * y[:, None] - 1.0
    labeled = x[y][:200]
    data = PUData(torch.cat([labeled, x]), torch.cat([torch.ones(200), torch.zeros(2000)]), Scenario.CASE_CONTROL)
    return data, uniform(data.labels, prior=PRIOR, scenario=data.scenario), x, y


def train_in_two_passes(network: nn.Module, data: PUData, weights: RowWeights, training: Training, seed: int) -> None:
    """pue's loop but for the one mistake."""
    optimizer = torch.optim.Adam(network.parameters(), lr=training.lr, weight_decay=training.weight_decay)
    batches = Batches(data.labels, weights.positive, training.batching)
    generator, risk = torch.Generator().manual_seed(seed), nnpu()
    network.train()
    for _ in range(training.epochs):
        for index, factor in batches.epoch(generator):
            x, labeled = data.x[index], data.labels[index] == 1
            scores = torch.empty(len(index))
            scores[labeled] = network(x[labeled])
            scores[~labeled] = network(x[~labeled])
            objective = risk(scores, weights.take(index, factor).to(torch.device("cpu"), torch.float32))
            optimizer.zero_grad()
            objective.backward()
            optimizer.step()


@pytest.mark.parametrize("seed", [0, 1])
def test_two_passes_collapse_where_one_does_not(seed: int) -> None:
    data, weights, x, y = problem(seed)
    training = Training(epochs=15, batching=BATCHING, schedule="constant")

    def accuracy(network: nn.Module) -> float:
        return float(((score(network, x) >= 0) == y).double().mean())

    ours, leaky = (build(partial(mlp, width=32), InputSpec((10,)), seed=seed) for _ in range(2))
    train(ours, data, weights, nnpu(), training, seed=seed)
    train_in_two_passes(leaky, data, weights, training, seed)
    # Calling everything negative is right on 60 %; over four seeds ours had 93 to 96 %, two passes 60 to 65 %.
    assert accuracy(ours) > 0.88
    assert accuracy(leaky) < accuracy(ours) - 0.15
