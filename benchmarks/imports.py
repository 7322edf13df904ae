"""(f) What `pue` adds to the time its two large libraries take to be imported, each time in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator

from measure import Result, pairwise_ratios, python

OURS, THEIRS = "import pue; pue.PUClassifier", "import torch, sklearn"


def results(quick: bool) -> Iterator[Result]:
    _seconds(OURS), _seconds(THEIRS)  # the first does not count: it compiles, and fills the system's cache of files
    pairs = [(_seconds(OURS), _seconds(THEIRS)) for _ in range(3 if quick else 11)]
    ours, theirs = zip(*pairs, strict=True)
    detail = f"fastest: pue {min(ours):.2f} s, torch and scikit-learn {min(theirs):.2f} s"
    yield Result("imports", "PUClassifier / torch and scikit-learn", pairwise_ratios(ours, theirs), detail, "≤ 1.1")


def _seconds(code: str) -> float:
    return python("-c", code)["cpu_seconds"]
