"""What a run of the preset `paper` would cost: the time of single training steps × rows × 120 epochs, one thread.

    python benchmarks/paper_cost.py

A forward and a backward pass and Adam's step on random images, least of a few. Dist-PU's second stage has two passes,
PUbN trains two networks and the propensity network comes on top.
"""

from __future__ import annotations

import time

import torch

from pue.backbones import InputSpec, build
from pue.training.scoring import layout

CASES = {  # data set → network, image, rows a step, rows an epoch
    "MNIST": ("mlp", (1, 28, 28), 256, 62_500),
    "CIFAR-10": ("cnn13", (3, 32, 32), 256, 51_000),
    "Alzheimer": ("resnet50", (3, 224, 224), 16, 5_890),
}
EPOCHS = 120


def seconds_a_row(name: str, shape: tuple[int, ...], size: int, steps: int = 3) -> float:
    network = build(name, InputSpec(shape), seed=0).train()
    order = layout(network)
    network = network.to(memory_format=order)
    x = torch.rand(size, *shape).contiguous(memory_format=order)
    optimizer = torch.optim.Adam(network.parameters(), fused=True)
    taken = []
    for _ in range(steps):
        start = time.process_time()
        optimizer.zero_grad()
        network(x).sum().backward()
        optimizer.step()
        taken.append(time.process_time() - start)
    return min(taken) / size


def main() -> None:
    torch.set_num_threads(1)
    for data, (name, shape, size, rows) in CASES.items():
        cost = seconds_a_row(name, shape, size)
        print(f"{data}: {name}, {1000 * cost:.2f} ms a row, {cost * rows * EPOCHS / 3600:.1f} CPU hours a run")


if __name__ == "__main__":
    main()
