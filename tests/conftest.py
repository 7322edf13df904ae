"""What the whole suite shares: one thread, reproducible examples, and the slow twins within reach."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import Phase, settings

import pue

# With --import-mode=importlib the tests' folders are not on the path; `import twins` and its like need them.
sys.path[:0] = [str(folder) for folder in (Path(__file__).parent, *sorted(Path(__file__).parent.glob("[a-z]*/")))]

# Shells start background jobs deaf to Ctrl-C, and children inherit that: tests that interrupt a command would hang.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The machines that run this have few cores, and a test's tensors are too small to share.
torch.set_num_threads(1)

settings.register_profile("pue", deadline=None, max_examples=50, derandomize=True, database=None)
# A mutant must fail, not explain itself: no search for the smallest example.
settings.register_profile("mutant", settings.get_profile("pue"), phases=[Phase.explicit, Phase.generate])

MUTATED_FOLDER = os.environ.get("PUE_MUTATED_FOLDER")
settings.load_profile("mutant" if MUTATED_FOLDER else "pue")


def pytest_configure(config: pytest.Config) -> None:
    """A run on a mutated copy (tests/mutants.py) must never look at the installed library by accident."""
    if MUTATED_FOLDER and Path(pue.__file__).parent != Path(MUTATED_FOLDER):
        raise pytest.UsageError(f"pue was imported from {pue.__file__}, not from {MUTATED_FOLDER}.")
