"""Randomness as an argument: seeds derived from seeds, and torch's global generator borrowed, never changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def derive(seed: int, *path: int) -> int:
    """A new seed for each place in a run.

    >>> derive(0, 1) != derive(0, 2), derive(0, 1) == derive(0, 1)
    (True, True)
    """
    return int(np.random.SeedSequence([seed, *path]).generate_state(1, np.uint64)[0] >> 1)


@contextmanager
def seeded(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Inside, the global generators start at `seed` (initial weights, dropout); outside they go on as if untouched."""
    cuda = device is not None and device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if cuda else []):
        # torch.manual_seed would also queue a call for every GPU library not yet loaded, which is slow.
        torch.default_generator.manual_seed(seed)
        if cuda:
            torch.cuda.manual_seed(seed)
        yield
