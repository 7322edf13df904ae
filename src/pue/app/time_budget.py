"""How long networks learn: epochs by the size of the images, or as many as fit into a time that was given."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

from pue.app.classifiers import WRAPPED
from pue.app.learn import classifier_of, epochs_in_all, fitted
from pue.app.preparation import Preparation
from pue.app.recipe import Recipe, Say
from pue.app.rows import Rows
from pue.core.data import PUData, is_image
from pue.core.machine import show_seconds
from pue.errors import InvalidInput
from pue.training.processes import place
from pue.trees import LEARNERS

SECONDS = 60.0
"""What networks of images may take together unless said otherwise; more where `LEAST` epochs do."""
PIXELS = 2.4e6
"""Of images that `fast_cnn` learns from in a second, on one core of 2024. It is a number and no measurement, so that
the same rows give the same model on any machine."""
LEAST, MOST = 10, 200


def sized(recipe: Recipe, data: PUData) -> Recipe:
    """The recipe, with a number of epochs where images are learnt from and none was given."""
    if recipe.epochs is not None or recipe.time_budget is not None or not is_image(data.x):
        return recipe
    return replace(recipe, epochs=min(MOST, max(LEAST, round(SECONDS / nominal_seconds(data, recipe.folds)))))


def nominal_seconds(data: PUData, folds: int) -> float:
    """About what an epoch of all networks takes on one core.

    >>> import torch
    >>> images = PUData(torch.zeros((600, 1, 28, 28), dtype=torch.uint8), torch.arange(600) % 2)
    >>> round(SECONDS / nominal_seconds(images, folds=5))
    61
    """
    pixels = data.n_rows * math.prod(map(int, data.x.shape[2:]))
    return pixels * epochs_in_all(data.n_rows, folds) / PIXELS


def timed(rows: Any, recipe: Recipe, prepared: Preparation, elapsed: float, say: Say) -> Recipe:
    """The recipe with a number of epochs, by size or by what is left of its time; `say` announces it."""
    is_network = recipe.method not in WRAPPED and recipe.method not in LEARNERS
    if recipe.time_budget is None:
        chosen = sized(recipe, rows.data) if is_network else recipe
        if chosen.epochs != recipe.epochs:
            seconds = nominal_seconds(rows.data, recipe.folds) * (chosen.epochs or 0)
            say(
                f"{chosen.epochs} epochs a network, about {show_seconds(seconds)} on one core (--time-budget, --epochs)"
            )
        return chosen
    if not is_network or not isinstance(rows, Rows) or place()[1] > 1:
        raise InvalidInput(
            "a time budget is for networks that learn from rows in memory, in one process. Leave out --time-budget; "
            "networks that stream take --epochs."
        )
    epochs = _within(rows.data, recipe, prepared, recipe.time_budget - elapsed)
    say(f"{epochs} epochs, as many as fit into {show_seconds(recipe.time_budget)} here; --epochs {epochs} repeats them")
    return replace(recipe, epochs=epochs, time_budget=None)


def _within(data: PUData, recipe: Recipe, prepared: Preparation, seconds: float) -> int:
    """Epochs that take so long here, by the clock: after one that is timed and thrown away."""
    started = time.perf_counter()
    fitted(classifier_of(replace(recipe, epochs=1, time_budget=None, progress=False), prepared), data, prepared.e)
    one = time.perf_counter() - started
    return max(1, int((seconds - one) / (one * epochs_in_all(data.n_rows, recipe.folds))))
