"""The prior says where trees start, and where they decide."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from pue.core.weights import RowWeights


def prior_threshold(log_odds: NDArray[np.float64], weights: RowWeights) -> float:
    """The threshold τ with Σ background · sigmoid(log-odds − τ) = Σ w⁺.

    The leaves' values stop at one, so that their mean falls short of the prior where labels are heavy; log-odds − τ has
    the right mean.

    >>> import torch
    >>> half = RowWeights(torch.tensor([0.5, 0.0]).double(), torch.tensor([0.0, 0.5]).double())
    >>> round(prior_threshold(np.array([0.0, 2.0]), half), 6)
    1.0
    """
    background, prior = weights.background.numpy() / float(weights.background.sum()), _prior(weights)
    low, high = float(log_odds.min()) - 40, float(log_odds.max()) + 40
    return float(brentq(lambda tau: background @ expit(log_odds - tau) - prior, low, high))


def start_of(weights: RowWeights) -> float:
    """The log-odds of the prior: of all constant scores it has the least risk.

    >>> import torch
    >>> start_of(RowWeights(torch.tensor([0.5, 0.0]).double(), torch.tensor([0.0, 0.5]).double()))
    0.0
    """
    prior = _prior(weights)
    return math.log(prior / (1 - prior))


def _prior(weights: RowWeights) -> float:
    """The share of w⁺, kept off one, which weights that are not normalised may exceed."""
    return float(np.clip(float(weights.positive.sum()) / float(weights.background.sum()), 1e-3, 1 - 1e-3))
