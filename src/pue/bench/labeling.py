"""Labeling mechanisms: hide the classes of a fully labeled set and keep the truth apart.

Each returns `(PUData, Truth)`. In a single sample the chosen positives get label 1 where they stand. In
case-control the whole set is the unlabeled sample and *copies* of the chosen positives are put in front of it, as the
benchmarks of the field do. Either way the propensity of a positive is its chance to be chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.special import expit
from torch import Tensor

from pue.core.data import PUData, Scenario, Truth, require_vector
from pue.errors import InvalidInput

Counts = Literal["multinomial", "exact"]


def scar(
    x: Tensor, y: Tensor, *, n_labeled: int, scenario: Scenario = Scenario.SINGLE_SAMPLE, rng: np.random.Generator
) -> tuple[PUData, Truth]:
    """Selected completely at random: `n_labeled` positives, all with the same chance.

    >>> data, truth = scar(torch.zeros(6, 1), torch.tensor([1, 1, 1, 1, 0, 0]), n_labeled=2,
    ...                    rng=np.random.default_rng(0))
    >>> data.n_labeled, truth.propensity
    (2, tensor([0.5000, 0.5000, 0.5000, 0.5000,    nan,    nan], dtype=torch.float64))
    """
    positives = _positives(x, y)
    _require_count(n_labeled, len(positives))
    propensity = _on_positives(y, np.full(len(positives), n_labeled / len(positives)))
    return _hide(x, y, rng.choice(positives, n_labeled, replace=False), propensity, scenario)


def class_mix(
    x: Tensor,
    classes: Tensor,
    *,
    mix: Mapping[int, float],
    n_labeled: int,
    counts: Counts = "multinomial",
    scenario: Scenario = Scenario.CASE_CONTROL,
    rng: np.random.Generator,
) -> tuple[PUData, Truth]:
    """The paper's bias: a share `mix[c]` of the labels goes to class c, and the classes in `mix` are the positives.

    `counts="multinomial"` draws the number of labels of each class, `"exact"` rounds n_P·p_c (largest remainders).
    The propensity of class c with N_c members is e_c = n_P p_c / N_c (the count over N_c where counts are exact): the
    printed vectors are shares, not propensities.

    >>> data, truth = class_mix(torch.zeros(8, 1), torch.tensor([0, 0, 0, 0, 2, 2, 1, 1]), mix={0: 0.75, 2: 0.25},
    ...                         n_labeled=4, counts="exact", rng=np.random.default_rng(0))
    >>> data.n_rows, data.labels[:5].tolist(), truth.classes[:4].tolist(), truth.propensity[[0, 3]].tolist()
    (12, [1, 1, 1, 1, 0], [0, 0, 0, 2], [0.75, 0.5])
    """
    require_vector("classes", classes)
    _require_rows(x, len(classes))
    names, shares = list(mix), np.array(list(mix.values()), dtype=float)
    if (shares < 0).any() or not np.isclose(shares.sum(), 1):
        raise InvalidInput(f"mix must hold shares that sum to 1; got {dict(mix)}, sum {shares.sum():g}.")
    members = [np.flatnonzero(classes.numpy() == name) for name in names]
    sizes = np.array([len(rows) for rows in members])
    _require_count(n_labeled, int(sizes.sum()))
    if counts == "exact":
        wanted = _largest_remainders(n_labeled, shares)
    elif counts == "multinomial":
        wanted = rng.multinomial(n_labeled, shares)
    else:
        raise InvalidInput(f"counts must be 'multinomial' or 'exact'; got {counts!r}.")
    for name, size, want in zip(names, sizes, wanted, strict=True):
        if want > size:
            raise InvalidInput(
                f"the mix asks for {want} labels of class {name}, which has only {size} rows. Lower n_labeled "
                f"(now {n_labeled}) or the share of that class."
            )
    chosen = np.concatenate([rng.choice(rows, want, replace=False) for rows, want in zip(members, wanted, strict=True)])
    y = torch.isin(classes, torch.tensor(names)).long()
    propensity = np.full(len(classes), np.nan)
    expected = wanted if counts == "exact" else n_labeled * shares
    for rows, number, size in zip(members, expected, sizes, strict=True):
        propensity[rows] = min(1.0, number / max(size, 1))
    return _hide(x, y, chosen, torch.from_numpy(propensity), scenario, classes)


def feature_sar(
    x: Tensor,
    y: Tensor,
    *,
    features: Sequence[int],
    strength: float | Sequence[float] = 1.0,
    frequency: float,
    scenario: Scenario = Scenario.SINGLE_SAMPLE,
    rng: np.random.Generator,
) -> tuple[PUData, Truth]:
    """Selected at random given features: e(x) = sigmoid(b + Σ strength_j z_j), z the chosen columns standardised.

    The intercept b makes the mean propensity of the positives equal to `frequency`; each positive is then labeled by a
    coin of its own.

    >>> x = torch.linspace(-1, 1, 200)[:, None]
    >>> data, truth = feature_sar(x, torch.ones(200), features=[0], strength=3.0, frequency=0.3,
    ...                           rng=np.random.default_rng(0))
    >>> round(float(truth.propensity.mean()), 6), bool((truth.propensity.diff() > 0).all())
    (0.3, True)
    """
    if not 0 < frequency < 1:
        raise InvalidInput(f"frequency must lie in (0, 1); got {frequency}. It is the share of positives to label.")
    positives = _positives(x, y)
    width = x.flatten(1).shape[1]
    if not features or not all(-width <= feature < width for feature in features):
        raise InvalidInput(f"features must be column numbers below {width}; got {list(features)}.")
    if np.ndim(strength) and np.shape(strength) != (len(features),):
        raise InvalidInput(
            f"strength must be one number or one for each of the {len(features)} features; got {strength}."
        )
    columns = x.flatten(1)[:, list(features)].double().numpy()
    if not np.isfinite(columns).all():
        raise InvalidInput(f"features {list(features)} hold NaN or infinity. Impute them first.")
    spread = columns.std(axis=0)
    if (spread == 0).any():
        constant = [feature for feature, width in zip(features, spread, strict=True) if width == 0]
        raise InvalidInput(f"features {constant} are constant and cannot bias the labels. Choose others.")
    slope = np.broadcast_to(np.asarray(strength, dtype=float), (len(features),))
    drive = ((columns - columns.mean(axis=0)) / spread @ slope)[positives]
    reach = np.abs(drive).max() + 50
    intercept = brentq(lambda b: expit(b + drive).mean() - frequency, -reach, reach)
    propensity = expit(intercept + drive)
    chosen = positives[rng.random(len(positives)) < propensity]
    return _hide(x, y, chosen, _on_positives(y, propensity), scenario)


def _hide(
    x: Tensor, y: Tensor, chosen: np.ndarray, propensity: Tensor, scenario: Scenario, classes: Tensor | None = None
) -> tuple[PUData, Truth]:
    index = torch.from_numpy(np.sort(chosen))
    y = (y == 1).long()
    if Scenario.parse(scenario) is Scenario.SINGLE_SAMPLE:
        labels = torch.zeros(len(y), dtype=torch.int8)
        labels[index] = 1
        return PUData(x, labels, scenario), Truth(y, propensity, classes)
    rows = torch.cat([index, torch.arange(len(y))])
    labels = (torch.arange(len(rows)) < len(index)).to(torch.int8)
    hidden = Truth(y[rows], propensity[rows], None if classes is None else classes[rows])
    return PUData(x[rows], labels, scenario), hidden


def _positives(x: Tensor, y: Tensor) -> np.ndarray:
    require_vector("y", y)
    positives: np.ndarray = np.flatnonzero(y.numpy() == 1)
    if len(positives) == 0:
        raise InvalidInput("y holds no positive row (1). There is nothing to label.")
    _require_rows(x, len(y))
    return positives


def _on_positives(y: Tensor, values: np.ndarray) -> Tensor:
    propensity = torch.full((len(y),), torch.nan, dtype=torch.float64)
    propensity[y == 1] = torch.from_numpy(values)
    return propensity


def _require_rows(x: Tensor, n_rows: int) -> None:
    if x.shape[0] != n_rows:
        raise InvalidInput(f"x has {x.shape[0]} rows but there are classes for {n_rows}. Pass one class for every row.")


def _require_count(n_labeled: int, n_positive: int) -> None:
    if not 1 <= n_labeled <= n_positive:
        raise InvalidInput(f"n_labeled must lie between 1 and the number of positives, {n_positive}; got {n_labeled}.")


def _largest_remainders(total: int, shares: np.ndarray) -> np.ndarray:
    exact = total * shares
    counts = np.floor(exact + 1e-9).astype(int)
    for index in np.argsort(counts - exact, kind="stable")[: total - counts.sum()]:
        counts[index] += 1
    return counts
