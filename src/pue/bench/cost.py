"""What a run costs: seconds, memory, and floating-point operations."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from pue.backbones import BACKBONES, InputSpec
from pue.core.randomness import seeded


@dataclass
class Clock:
    """Wall and processor seconds since it was started."""

    wall: float = 0.0
    cpu: float = 0.0

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[Clock]:
        clock, wall, cpu = cls(), time.perf_counter(), time.process_time()
        try:
            yield clock
        finally:
            clock.wall, clock.cpu = time.perf_counter() - wall, time.process_time() - cpu


@cache
def warm_up() -> None:
    """Once a process: what the first optimizer step imports should not be charged to the first run."""
    parameter = torch.zeros(1, requires_grad=True)
    parameter.sum().backward()  # type: ignore[no-untyped-call]
    torch.optim.Adam([parameter]).step()


def forget_peak_memory() -> None:
    """Start to measure the peak anew, where the system can (Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory() -> int:
    """Most bytes in memory since `forget_peak_memory`; where that is not known, since the process began."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class CountedBackbone:
    """A backbone whose networks count the rows that pass: with a gradient (there and back) and without.

    Operations are those of matrix products and convolutions of one row, measured once, times the rows: an estimate, but
    one that sees every stage, student and blended batch of a method.
    """

    def __init__(self, backbone: str) -> None:
        self.backbone = backbone
        self.rows = {"trained": 0, "scored": 0}
        self.inputs: InputSpec | None = None

    def __call__(self, inputs: InputSpec) -> nn.Module:
        self.inputs = inputs
        network = self._make(inputs)
        rows = self.rows

        def count(module: nn.Module, arguments: tuple[Any, ...], output: Any) -> None:
            # A plain function: copies of the network (averages, best epochs) go on counting here.
            rows["trained" if torch.is_grad_enabled() else "scored"] += len(arguments[0])

        network.register_forward_hook(count)
        return network

    def flops(self) -> int:
        if self.inputs is None:
            return 0
        there, back = self._of_a_row(self.inputs)
        return self.rows["trained"] * (there + back) + self.rows["scored"] * there

    def _make(self, inputs: InputSpec) -> nn.Module:
        name = self.backbone
        if name == "auto":
            name = "fast_cnn" if len(inputs.shape) == 3 else "tabular"
        return BACKBONES[name](inputs)

    def _of_a_row(self, inputs: InputSpec) -> tuple[int, int]:
        with seeded(0):
            network = self._make(inputs).to(inputs.dtype)
            rows: Tensor = torch.rand(2, *inputs.shape, dtype=inputs.dtype)
        with FlopCounterMode(display=False) as forward:
            total = network(rows).sum()
        with FlopCounterMode(display=False) as backward:
            total.backward()
        return forward.get_total_flops() // 2, backward.get_total_flops() // 2
