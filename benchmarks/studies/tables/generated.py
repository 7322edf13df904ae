"""Tables that are made up: what the real ones cannot have, any number of rows and classes whose overlap is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import make_classification, make_moons

Made = tuple[pd.DataFrame, NDArray[np.bool_]]


def gauss(rows: int) -> Made:
    """Two Gaussians 1.8 standard deviations apart in two of six columns, two fifths of the rows positive."""
    rng = np.random.default_rng(0)
    y = rng.random(rows) < 0.4
    x = rng.normal(size=(rows, 6))
    x[y, 0] += 1.5
    x[y, 1] += 1
    return _frame(x), y


def mixed(rows: int) -> Made:
    """Three clusters a class on a hypercube of eight columns, fifteen in all, 2 % of the classes turned round."""
    x, y = make_classification(
        rows, 15, n_informative=8, n_redundant=3, n_clusters_per_class=3, class_sep=1.0, weights=[0.65], flip_y=0.02,
        random_state=0,
    )  # fmt: skip
    return _frame(x), y == 1


def moons(rows: int) -> Made:
    """Two half circles with noise, turned into four columns, beside six columns that say nothing."""
    rng = np.random.default_rng(1)
    circle, y = make_moons((rows - int(0.4 * rows), int(0.4 * rows)), noise=0.25, random_state=1)
    x = np.hstack([circle @ rng.normal(size=(2, 4)), rng.normal(size=(rows, 6))])
    return _shuffled(_frame(x), y == 1, rng)


def islands(rows: int) -> Made:
    """Positives in six small clusters of unlike size inside one broad cloud of negatives, eight columns."""
    rng = np.random.default_rng(2)
    y = rng.random(rows) < 0.3
    x = rng.normal(size=(rows, 8))
    centers = rng.normal(size=(6, 8)) * 1.3
    kind = rng.choice(6, int(y.sum()), p=[0.3, 0.25, 0.2, 0.12, 0.08, 0.05])
    x[y] = centers[kind] + 0.45 * x[y]
    return _frame(x), y


def rules(rows: int) -> Made:
    """A product of signs and two thresholds decide, as in a tree; one class in ten is drawn anew. Twelve columns."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(rows, 12))
    y = ((x[:, 0] * x[:, 1] > 0) & (x[:, 2] < 0.7)) | ((x[:, 3] > 1.2) & (x[:, 4] > -0.5))
    again = rng.random(rows) < 0.1
    y[again] = rng.random(int(again.sum())) < 0.4
    return _frame(np.exp(0.5 * x)), y


def survey(rows: int) -> Made:
    """Ages, incomes, regions and answers on scales; a logistic model, much overlap; one income in ten is missing."""
    rng = np.random.default_rng(4)
    age, children = rng.uniform(18, 80, rows), rng.poisson(1.2, rows)
    region = rng.choice(["north", "east", "south", "west", "center"], rows, p=[0.3, 0.25, 0.2, 0.15, 0.1])
    owner = rng.random(rows) < 1 / (1 + np.exp(-(age - 45) / 12))
    income = np.exp(10 + 0.01 * age + 0.3 * (region == "west") + 0.6 * rng.normal(size=rows))
    answers = np.clip(np.round(3 + 0.02 * (age - 49)[:, None] + rng.normal(size=(rows, 5))), 1, 5)
    z = (
        1.2 * (np.log(income) - 10.5)
        + 0.8 * (answers[:, 0] - 3)
        - 0.5 * (answers[:, 1] - 3)
        + 0.7 * (region == "north")
    )
    z += np.where(owner, 0.8, -0.4) - 0.3 * children - 0.6
    y = rng.random(rows) < 1 / (1 + np.exp(-z))
    columns: dict[str, Any] = {"age": age.round(), "children": children, "region": region, "owner": owner}
    columns["income"] = np.where(rng.random(rows) < 0.1, np.nan, income.round())
    columns |= {f"answer {number + 1}": answers[:, number] for number in range(5)}
    return pd.DataFrame(columns), y


def _frame(x: NDArray[np.float64]) -> pd.DataFrame:
    return pd.DataFrame(x.astype(np.float32), columns=[f"x{number + 1}" for number in range(x.shape[1])])


def _shuffled(frame: pd.DataFrame, y: NDArray[np.bool_], rng: np.random.Generator) -> Made:
    order = rng.permutation(len(y))
    return frame.iloc[order].reset_index(drop=True), y[order]
