"""One training over several processes: each has a part of every batch, and sums are added up before they are corrected.

Every process draws the same batches from the same seed and takes every k-th row. The weighted sums of the parts add up
to those of the batch (`total`), so nnPU's switch and Dist-PU's |mean − π| see the whole of it; the gradients of the
parts add up to the gradient of the batch (`add_gradients`). k processes therefore take the steps of one, but for
rounding. Batch norm is the exception: it looks at the rows a process has, unless it is synchronised (on GPUs).

The group is whatever `torch.distributed` was initialised with: by `process_group` under `torchrun`, by Ray, or by the
caller. Work that is no training is done by one of them (`on_first`) or shared out (`share_out`); both look to the code
they call as if there were no group (`alone`).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
from joblib import Parallel, delayed
from torch import Tensor, distributed, nn

from pue.errors import PueWarning

Item = TypeVar("Item")
Found = TypeVar("Found")
PATIENCE = timedelta(hours=2)
"""How long processes wait for one that works alone before they give up."""
_ALONE: ContextVar[bool] = ContextVar("_ALONE", default=False)


@dataclass(frozen=True)
class Part:
    """Which rows of a batch this process has: every `size`-th from the `rank`-th on. Alone it has them all.

    >>> Part(rank=1, size=2, n=5).of(torch.arange(5) * 10)
    tensor([10, 30])
    >>> Part().of(torch.arange(3))
    tensor([0, 1, 2])
    """

    rank: int = 0
    size: int = 1
    n: int = 0
    """Rows of the whole batch; not used alone."""

    def total(self, own: int) -> int:
        """How many rows the whole batch has, if this process has `own` of them: so many random numbers are drawn."""
        return own if self.size == 1 else self.n

    def of(self, values: Tensor) -> Tensor:
        """Values of the whole batch → those of this process's rows."""
        return values if self.size == 1 else values[self.rank :: self.size]

    def whole(self, values: Tensor) -> Tensor:
        """Values of this process's rows → those of the whole batch, without a gradient."""
        if self.size == 1:
            return values
        most = -(-self.n // self.size)
        padded = values.new_zeros((most, *values.shape[1:]))
        padded[: len(values)] = values.detach()
        parts = [torch.empty_like(padded) for _ in range(self.size)]
        distributed.all_gather(parts, padded)
        return torch.stack(parts, dim=1).flatten(0, 1)[: self.n]


def place() -> tuple[int, int]:
    """The rank of this process and how many there are; (0, 1) where there is no group, or it is left aside."""
    if _ALONE.get() or not (distributed.is_available() and distributed.is_initialized()):
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


@contextmanager
def process_group() -> Iterator[None]:
    """The group that `torchrun` started this process for, if it did; it ends with the context."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or distributed.is_initialized():
        yield
        return
    distributed.init_process_group("gloo", timeout=PATIENCE)
    try:
        yield
    finally:
        distributed.destroy_process_group()


@contextmanager
def alone() -> Iterator[None]:
    """What happens inside is this process's own affair."""
    token = _ALONE.set(True)
    try:
        yield
    finally:
        _ALONE.reset(token)


def on_first(make: Callable[[], Found]) -> Found:
    """What the first process makes, for all of them; so is an error it ends in."""
    rank, size = place()
    if size == 1:
        return make()
    box: list[tuple[Found | None, Exception | None]] = [(None, None)]
    if rank == 0:
        box = [_attempt(make)]
    distributed.broadcast_object_list(box, 0)
    return _outcome(*box[0])


def share_out(
    work: Callable[[Item], Found], items: Sequence[Item], *, jobs: int = 1, even_if_few: bool = False
) -> list[Found]:
    """The work on every item, in order; each is done by one process of the group.

    Where there are fewer items than processes, all of them work on each, unless some may be idle (`even_if_few`).
    Without a group so many `jobs` are done at once, by processes of their own.
    """
    rank, size = place()
    if size == 1 or (len(items) < size and not even_if_few):
        found: list[Found] = Parallel(n_jobs=jobs)(delayed(work)(item) for item in items)
        return found
    own = [_attempt(lambda item=item: work(item)) for item in items[rank::size]]  # type: ignore[misc]
    parts: list[list[tuple[Found | None, Exception | None]]] = [[] for _ in range(size)]
    distributed.all_gather_object(parts, own)
    return [_outcome(*parts[number % size][number // size]) for number in range(len(items))]


def _attempt(make: Callable[[], Found]) -> tuple[Found | None, Exception | None]:
    try:
        with alone():
            return make(), None
    except Exception as error:
        return None, error


def _outcome(found: Found | None, error: Exception | None) -> Found:
    if error is not None:
        raise error
    return found  # type: ignore[return-value]


class _Total(torch.autograd.Function):
    """The sum over all processes. Every process follows the same value, and each adds its own share of the gradient."""

    @staticmethod
    def forward(ctx: Any, sums: Tensor) -> Tensor:
        total = sums.clone()
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0]


def total(sums: Tensor) -> Tensor:
    """Σ over the processes; its gradient is that of the own part, to be added up by `add_gradients`."""
    found: Tensor = _Total.apply(sums)  # type: ignore[no-untyped-call]
    return found


def add_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Every gradient ← its sum over the processes, in one message."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    distributed.all_reduce(flat)
    for gradient, summed in zip(gradients, torch.split(flat, [g.numel() for g in gradients]), strict=True):
        gradient.copy_(summed.view_as(gradient))


def join(network: nn.Module, device: torch.device) -> nn.Module:
    """The network with the parameters of the first process, ready for a group."""
    if any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in network.modules()):
        if device.type == "cuda":
            network = nn.SyncBatchNorm.convert_sync_batchnorm(network)  # type: ignore[no-untyped-call]
        else:
            warnings.warn(
                "batch norm sees only the rows of its own process: the result depends on how many there are. Use a "
                'network without it (backbone="tabular"), or GPUs, where it is synchronised.',
                PueWarning,
                stacklevel=2,
            )
    for tensor in (*network.parameters(), *network.buffers()):
        distributed.broadcast(tensor.data, 0)
    return network
