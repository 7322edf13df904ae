"""Errors of a training whose numbers are no numbers any more."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pue.errors import TrainingDiverged


def not_finite(terms: Sequence[str], sums: Tensor, *, step: int, epoch: int, lr: float) -> TrainingDiverged:
    """The error of a risk that is not finite; it names the terms that are not."""
    bad = [name for name, total in zip(terms, sums.tolist(), strict=True) if not math.isfinite(total)]
    return TrainingDiverged(
        f"the risk is not finite at step {step + 1} of epoch {epoch + 1}; term: "
        f"{', '.join(bad) or 'correction'}. Try a smaller learning rate (now lr={lr:g}), a bounded "
        "loss such as 'sigmoid', or check the features and weights for extreme values."
    )


def require_finite(network: nn.Module, *, step: int, epoch: int, lr: float) -> None:
    """Refuse parameters that are not finite after this step."""
    for name, parameter in network.named_parameters():
        if not bool(torch.isfinite(parameter).all()):
            raise TrainingDiverged(
                f"parameter {name} is not finite after step {step} of epoch {epoch}. Try a "
                f"smaller learning rate (now lr={lr:g})."
            )
