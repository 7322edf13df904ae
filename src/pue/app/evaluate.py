"""How good is a model on other rows: exactly where true classes are known, else estimated from PU labels."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from pue.app.model import PUModel, special_columns
from pue.app.roles import propensities
from pue.app.rows import feature_batches, warn_drifted, warn_unknown
from pue.app.sources.labels import meanings, parse_labels
from pue.app.sources.opening import Source
from pue.app.sources.problems import require_columns
from pue.errors import InvalidInput
from pue.judging import EstimatedMetrics, Metrics, calibration_error, estimate_metrics, evaluate
from pue.judging.sensitivity import GAMMAS
from pue.priors import PriorEstimate

FEWEST = 10


@dataclass(frozen=True, eq=False)
class Evaluation:
    """With truth, with PU labels, or both."""

    n_rows: int
    truth: Metrics | None = None
    calibration_error: float | None = None
    estimated: EstimatedMetrics | None = None
    scar: EstimatedMetrics | None = None
    """The same, labels taken as a random sample of the positives."""
    labels: tuple[int, float, float] | None = None
    """Labeled rows, how many the model expects, and the standard deviation of that by chance."""

    @property
    def labeling_changed(self) -> bool:
        """Far more or fewer labels than expected: by four standard deviations and by half."""
        if self.labels is None:
            return False
        seen, expected, spread = self.labels
        return abs(seen - expected) > 4 * spread and not 1 / 1.5 <= seen / max(expected, 1e-9) <= 1.5

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def evaluate_source(
    model: PUModel,
    source: Source,
    *,
    label: str | None = None,
    truth: str | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Evaluation:
    """Metrics of the model on a source; `label` defaults to the model's own label column where the source has it."""
    if label is None:
        label = model.facts.get("label")
        if truth is not None and (label == truth or label not in source.columns):
            label = None
    others = require_columns([name for name in (label, truth) if name is not None], source.columns)
    if not others:
        raise InvalidInput(
            "there is nothing to compare with: name the label column (--label) or true classes (--truth)."
        )
    if label == truth:
        raise InvalidInput(f"column {label!r} cannot hold both PU labels and true classes: name one of them.")
    known = model.facts.get("propensity")
    if label is not None and known in source.columns and known not in others:
        others.append(known)
    warn_unknown(source, model.vectorizer, [*others, *special_columns(model)])
    warn_drifted(source, model)
    scores, e, columns = [], [], []
    for features, frame in feature_batches(source, model.vectorizer, others):
        scores.append(model.probabilities(features))
        if label is not None:
            e.append(propensities(frame[known])[:, None] if known in others else model.readings(features))
        columns.append(frame)
    p, table = np.concatenate(scores), pd.concat(columns, ignore_index=True)
    estimated = scar = labels = None
    if label is not None:
        biased = known in others or model.propensity_model is not None
        propensity = np.concatenate(e) if biased else None
        if model.summary["data"]["scenario"] == "single_sample":
            labels = _expected_labels(table[label], label, p, np.concatenate(e)[:, 0])
        estimated, scar = _estimates(model, p, parse_labels(table[label], label), propensity, level=level, seed=seed)
    exact = error = None
    if truth is not None:
        y = torch.from_numpy((_classes(table[truth], truth) == 1).astype(np.int64))
        exact = evaluate(y, torch.from_numpy(p), threshold=model.threshold)
        error = calibration_error(y, torch.from_numpy(p), bins=min(15, len(y)))
    return Evaluation(len(p), exact, error, estimated, scar, labels)


def _expected_labels(
    column: pd.Series, name: str, p: NDArray[np.float64], e: NDArray[np.float64]
) -> tuple[int, float, float]:
    """Labels there are, and Σ p e with its standard deviation; rows of unknown e count with the mean of the others."""
    chance = p * np.where(np.isnan(e), np.nanmean(e) if not np.isnan(e).all() else 0.0, e)
    return int((meanings(column, name) == 1).sum()), float(chance.sum()), float(np.sqrt((chance * (1 - chance)).sum()))


def _estimates(
    model: PUModel, p: NDArray[np.float64], labels: NDArray[np.int8], e: NDArray[np.float64] | None, **intervals: Any
) -> tuple[EstimatedMetrics, EstimatedMetrics]:
    """With the propensities, a column for each reading of the labels (the first is the model's own), and without."""
    labeled = labels == 1
    if labeled.sum() < FEWEST:
        raise InvalidInput(
            f"{int(labeled.sum())} labeled rows are too few to estimate anything from; at least {FEWEST} are needed. "
            "Name true classes instead (--truth)."
        )
    prior, scenario = prior_of(model.summary["prior"]), model.summary["data"]["scenario"]
    metrics = partial(
        estimate_metrics, p, labels, prior=prior.value, scenario=scenario, threshold=model.threshold,
        prior_interval=None if prior.is_given else prior.interval(0.95), **intervals,
    )  # fmt: skip
    if e is None:
        return metrics(gammas=GAMMAS), metrics()
    hidden = (0.0, 0.0) if model.propensity_model is None else model.propensity_model.hidden_bias
    doubt: dict[str, Any] = {"readings": list(e[labeled, 1:].T), "hidden": hidden, "gammas": GAMMAS}
    return metrics(propensity=e[labeled, 0], **doubt), metrics()


def prior_of(said: dict[str, Any]) -> PriorEstimate:
    """The prior of a model, from what its summary says of it."""
    named = {name: said[name] for name in ("value", "low", "high", "level", "method")}
    return PriorEstimate(**named, assumption=said["assumes"], n_boot=0)


def _classes(column: pd.Series, name: str) -> NDArray[np.int8]:
    """True classes: here an empty cell is an error, not "unlabeled"."""
    if empty := int(column.isna().sum()):
        raise InvalidInput(f"column {name!r} has {empty} empty cells; true classes must be complete.")
    return meanings(column, name)
