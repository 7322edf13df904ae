"""The machine: how much memory there is, how many threads compute, and where; how amounts and times are written."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from threadpoolctl import threadpool_limits

from pue.errors import InvalidInput, UnknownName

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_CONTROL_GROUP = Path("/sys/fs/cgroup/memory.max")


def parse_bytes(text: str) -> int:
    """
    >>> parse_bytes("1GB"), parse_bytes("500 MB"), parse_bytes("1.5g")
    (1000000000, 500000000, 1500000000)
    """
    found = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,15})?)\s*([kmgt]?)b?\s*", text.lower())
    if found is None or float(found[1]) == 0:
        shown = text if len(text) <= 40 else f"{text[:40]}…"
        raise InvalidInput(f"{shown!r} is no amount of memory. Write it as 500MB or 2GB.")
    return int(float(found[1]) * UNITS[found[2]])


def show_bytes(n: float) -> str:
    """
    >>> show_bytes(4_300_000_000)
    '4.3 GB'
    """
    unit = next((unit for unit in ("t", "g", "m") if n >= UNITS[unit]), "k")
    return f"{n / UNITS[unit]:.3g} {unit.upper()}B"


def parse_seconds(text: str) -> float:
    """
    >>> parse_seconds("90"), parse_seconds("90 s"), parse_seconds("1.5m"), parse_seconds("2h")
    (90.0, 90.0, 90.0, 7200.0)
    """
    found = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*(s|m|h|)(?:ec|in)?\s*", text.lower())
    if found is None or float(found[1]) == 0:
        raise InvalidInput(f"{text[:40]!r} is no length of time. Write it as 90s, 10m or 2h.")
    return float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]]


def show_seconds(seconds: float) -> str:
    """
    >>> show_seconds(7), show_seconds(60), show_seconds(150), show_seconds(5400)
    ('7 s', '1 min', '2.5 min', '1.5 h')
    """
    for length, unit in ((3600, "h"), (60, "min")):
        if seconds >= 0.99 * length:
            return f"{seconds / length:.2g} {unit}"
    return f"{seconds:.0f} s"


def available_memory() -> int:
    """What this process may still take: of the machine, or of the container that holds it."""
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        free = 1024 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        pass  # not Linux: all there is
    try:
        return min(free, int(_CONTROL_GROUP.read_text()))
    except (OSError, ValueError):
        return free


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for everything numerical: runs are parallel, not what they compute, and sums have one order.

    For small networks one thread also beats several, which wait for each other longer than they work.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


def as_device(name: str) -> torch.device:
    """The device of that name, or an error when this machine has none."""
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UnknownName("device", name, ["cpu", "cuda", "mps"]) from None
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not available.get(device.type, False):
        raise InvalidInput(f'device "{name}" is not available on this machine. Use device="cpu".')
    return device
