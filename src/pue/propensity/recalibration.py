"""Answers are an unbiased look at e: ê is brought to agree with them."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from pue.core.data import Features, select
from pue.core.lesson import Lesson
from pue.propensity.clipping import FLOOR
from pue.propensity.protocol import PropensityModel

Array = NDArray[np.float64]

STIFF = 4.0
"""How firmly the recalibration of ê holds to "no change", in answers."""


def agreement(e: Tensor | None, model: PropensityModel | None, x: Features, lesson: Lesson) -> tuple[float, float]:
    """Level and slope for `recalibrated`, by the answers about some rows of `x`; known propensities need none. `e` is
    that of the labeled rows, and `model` says it of others."""
    if model is None or e is None:
        return 0.0, 1.0
    seen = model(select(x, torch.from_numpy(lesson.rows[lesson.yes])))
    others = seen.double().clamp(FLOOR, 1.0).numpy()
    return recalibrate(e.double().numpy(), others, 1 / lesson.chance[lesson.yes])


def recalibrate(labeled: Array, answered: Array, lesson_weight: Array) -> tuple[float, float]:
    """(a, b) of logit e = a + b logit ê, so that ê agrees with the audit.

    Labeled rows and answered positives, each of these standing for 1/d rows, are all positives there are: among them e
    is the plain chance of a label, and its logistic regression on logit ê sees it without bias. `labeled` and
    `answered` are ê of either kind. The likelihood is scaled to the number of answers, and b is held to one by a few of
    them.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.uniform(0.05, 0.9, 4000)
    >>> label = rng.random(4000) < truth
    >>> flat = 1 / (1 + np.exp(-0.5 * np.log(truth / (1 - truth))))
    >>> a, b = recalibrate(flat[label], flat[~label], np.ones((~label).sum()))
    >>> bool(abs(a) < 0.1 and abs(b - 2) < 0.1)
    True
    """
    x = _logit(np.concatenate([labeled, answered]))
    s = np.concatenate([np.ones(len(labeled)), np.zeros(len(answered))])
    weight = np.concatenate([np.ones(len(labeled)), lesson_weight])
    if not len(labeled) or not len(answered):
        return 0.0, 1.0
    worth = len(answered) + 1 / (1 / len(labeled) + 1 / len(answered))
    weight = weight * worth / weight.sum()
    center = float(weight @ x / weight.sum())

    def loss(parameters: Array) -> float:
        margin = parameters[0] + parameters[1] * (x - center)
        return float(weight @ (np.logaddexp(0, margin) - s * margin) + STIFF / 2 * (parameters[1] - 1) ** 2)

    found = minimize(loss, np.array([center, 1.0]), method="BFGS").x
    return float(found[0] - found[1] * center), float(found[1])


def recalibrated(e: Array, a: float, b: float) -> Array:
    """ê with the slope and the level found by `recalibrate`."""
    return np.asarray(1 / (1 + np.exp(-(a + b * _logit(e)))))


def _logit(e: Array) -> Array:
    e = np.clip(e, 1e-4, 1 - 1e-4)
    return np.asarray(np.log(e / (1 - e)))
