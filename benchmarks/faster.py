"""What might make training faster, each against the same work without it: kept where it wins, written down where not.

One training step is forward, nnPU's risk, backward, Adam. Compiling is not counted: it takes 10 to 60 s once, which a
short training does not win back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from measure import Result, Work, in_turn, pairwise_ratios
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from pue.backbones import InputSpec, build
from pue.core.risks import nnpu
from pue.core.weights import RowWeights

PRIOR, LABELED = 0.5, 32
SHAPES = {"tabular": (50,), "mlp": (784,), "fast_cnn": (1, 28, 28)}
STACKED = 6


@dataclass(frozen=True)
class Way:
    """How a step is taken."""

    compiled: bool = False
    bf16: bool = False
    fused: bool = True
    channels_last: bool = False
    batch: int = 256


def results(quick: bool) -> Iterator[Result]:
    repeats, scale = (3, 0.2) if quick else (9, 1.0)
    plain = Way()
    cases: list[tuple[str, str, Way, Way, int]] = [
        ("fused Adam", "tabular", plain, Way(fused=False), 200),
        ("fused Adam", "mlp", plain, Way(fused=False), 20),
        ("pixels' channels side by side", "fast_cnn", Way(channels_last=True), plain, 2),
        ("torch.compile", "tabular", Way(compiled=True), plain, 200),
        ("torch.compile", "mlp", Way(compiled=True), plain, 20),
        ("torch.compile", "fast_cnn", Way(compiled=True, channels_last=True), Way(channels_last=True), 2),
        ("bf16", "mlp", Way(bf16=True), plain, 20),
        ("bf16", "fast_cnn", Way(bf16=True, channels_last=True), Way(channels_last=True), 2),
        ("batches of 4,096, a row", "tabular", Way(batch=4096), plain, 320),
    ]
    for name, backbone, ours, theirs, steps in cases:
        count = max(1, round(steps * scale))
        sides = (_stepping(backbone, way, max(1, count * plain.batch // way.batch)) for way in (ours, theirs))
        yield _result(name, backbone, *sides, repeats=repeats)
    for backbone, steps in (("tabular", 40), ("mlp", 4)):
        count = max(1, round(steps * scale))
        together, apart = _stacked(backbone, count), _one_by_one(backbone, count)
        yield _result(f"{STACKED} seeds as one network", backbone, together, apart, repeats=repeats)


def _result(name: str, backbone: str, ours: Work, theirs: Work, *, repeats: int) -> Result:
    a, b = in_turn(lambda: ours, lambda: theirs, repeats)
    detail = f"fastest: with {1e3 * min(a):.1f} ms, without {1e3 * min(b):.1f} ms"
    return Result("faster", f"{name}, {backbone}", pairwise_ratios(a, b), detail)


def _rows(backbone: str, n: int) -> tuple[Tensor, RowWeights]:
    labeled = torch.arange(n) < n * LABELED // 256
    positive = torch.where(labeled, PRIOR / labeled.sum(), 0.0)
    negative = torch.where(labeled, -PRIOR / labeled.sum(), 1 / (~labeled).sum())
    return torch.randn(n, *SHAPES[backbone]), RowWeights(positive, negative)


def _stepping(backbone: str, way: Way, steps: int) -> Work:
    """So many steps; network and rows are there already, and the first call, which compiles, does not count."""
    network: Callable[[Tensor], Tensor] = build(backbone, InputSpec(SHAPES[backbone]), seed=0).train()
    x, weights = _rows(backbone, way.batch)
    if way.channels_last:
        network, x = network.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)  # type: ignore[attr-defined]
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=way.fused)  # type: ignore[attr-defined]
    network = torch.compile(network) if way.compiled else network
    risk = nnpu()

    def cast() -> AbstractContextManager[object]:
        return torch.autocast("cpu", torch.bfloat16) if way.bf16 else nullcontext()

    def work() -> None:
        for _ in range(steps):
            with cast():
                scores = network(x)
            optimizer.zero_grad(set_to_none=True)
            risk(scores.float(), weights).backward()
            optimizer.step()

    return work


def _networks(backbone: str) -> list[nn.Module]:
    return [build(backbone, InputSpec(SHAPES[backbone]), seed=seed).train() for seed in range(STACKED)]


def _stacked(backbone: str, steps: int) -> Work:
    """All seeds in one step: their parameters are stacked, every seed has rows of its own."""
    networks, (x, weights) = _networks(backbone), _rows(backbone, 256)
    parameters, buffers = stack_module_state(networks)
    rows = torch.stack([x] * STACKED)
    optimizer = torch.optim.Adam(parameters.values(), lr=1e-3, fused=True)
    risk, skeleton = nnpu(), networks[0]

    def scores(parameters: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor) -> Tensor:
        return functional_call(skeleton, (parameters, buffers), (x,))  # type: ignore[no-any-return]

    def work() -> None:
        for _ in range(steps):
            found = vmap(scores)(parameters, buffers, rows)
            optimizer.zero_grad(set_to_none=True)
            # nnPU's branch is one of values, which vmap cannot take: the risks are summed one by one.
            torch.stack([risk(row, weights) for row in found]).sum().backward()
            optimizer.step()

    return work


def _one_by_one(backbone: str, steps: int) -> Work:
    works = [_stepping(backbone, Way(), steps) for _ in range(STACKED)]

    def work() -> None:
        for each in works:
            each()

    return work
