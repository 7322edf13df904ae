"""LBE, labeling bias estimation (Gong et al. 2021): the likelihood of SAR-EM, from another start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from pue.propensity.em import NetworkEM, Pair


@dataclass(frozen=True)
class LBE(NetworkEM):
    """h = P(positive | x) and η = P(labeled | x, positive) by EM with gradient steps, both linear by default.

    It starts from h trained on the labels as if they were classes, and an untrained η (a half, where linear). Published
    code also lets likely negatives teach η, whose target then is P(labeled | x); we follow the likelihood, where they
    say nothing about η. The start is far off where labels are rare, and prefers neither reading of the two curves, so
    η can end up as the class: `SAREM` and `DeepSAREM` are safer.
    """

    backbone: str | nn.Module | Callable[..., Any] = "linear"
    lr: float = 1e-2

    def _start(self, pair: Pair) -> None:
        pair.teach(pair.f, pair.mass * pair.s, pair.mass * (1 - pair.s), self.steps)
