"""Several methods and propensity estimators on the same rows, judged by criteria that need no negatives.

Every candidate is scored out of fold, calibrated, and judged with the same prior and the same propensities, those of
the recipe: no candidate is judged by its own. A finished candidate is a file; a second call computes what is
missing.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

import pue
from pue.crossval import out_of_fold
from pue.data import PUData
from pue.errors import InvalidInput, PueWarning, UnknownName
from pue.metrics.estimates import NAMES, estimate_metrics, pu_row_weights
from pue.model.classifiers import CHOICES
from pue.model.fit import WHOLE, Basis, Recipe, Say, classifier_of, prepare
from pue.model.model import HeldOut, choose_threshold
from pue.model.rows import Rows
from pue.probabilities import calibrate
from pue.propensity import PROPENSITIES, examine, find_propensity
from pue.randomness import derive

CANDIDATES = ("naive", "nnpu", "nnpu+auto", "distpu+auto", "logistic+auto", "boosting+auto")
CRITERIA = ("auc", "ap", "accuracy", "f1")


@dataclass(frozen=True)
class Candidate:
    """A method and where its propensities come from; None: labels are taken as unbiased."""

    method: str
    propensity: str | None = None

    @classmethod
    def parse(cls, text: str) -> Candidate:
        """
        >>> Candidate.parse("nnpu+auto")
        Candidate(method='nnpu', propensity='auto')
        """
        method, _, propensity = text.partition("+")
        if method not in CHOICES:
            raise UnknownName("method", method, CHOICES)
        if propensity and propensity not in PROPENSITIES:
            raise UnknownName("propensity", propensity, PROPENSITIES)
        return cls(method, propensity or None)

    def __str__(self) -> str:
        return self.method if self.propensity is None else f"{self.method}+{self.propensity}"


@dataclass(frozen=True)
class Result:
    """How a candidate did; metrics are (value, low, high)."""

    candidate: str
    seconds: float
    metrics: dict[str, tuple[float, float, float]]
    trivial: str | None = None
    failed: str | None = None


def compare(
    rows: Rows,
    recipe: Recipe,
    candidates: Sequence[str] = CANDIDATES,
    *,
    by: str = "auc",
    folder: Path | None = None,
    say: Say = lambda text: None,
    done: Callable[[Result, bool], Any] = lambda result, found: None,
) -> list[Result]:
    """Results, best first. `folder` keeps them; `done` is told of each, and whether it was found there."""
    if by not in CRITERIA:
        raise UnknownName("criterion", by, CRITERIA)
    wanted = [Candidate.parse(text) for text in dict.fromkeys(candidates)]
    if not wanted:
        raise InvalidInput("there is nothing to compare: name candidates such as nnpu+auto.")
    checksum = _checksum(rows.data)
    basis: Basis | None = None
    results = []
    for candidate in wanted:
        file = None if folder is None else folder / f"{candidate}-{_key(checksum, recipe, candidate)[:12]}.json"
        found = None if file is None else _read(file)
        if found is None:
            basis = basis or prepare(rows, recipe, say)
            say(f"comparing: {candidate}")
            result = _judge(candidate, rows.data, basis, recipe)
            if file is not None:
                _write(file, result)
        else:
            result = found
        done(result, found is not None)
        results.append(result)
    return sorted(results, key=lambda result: _rank(result, by))


def winner(results: Sequence[Result], recipe: Recipe) -> Recipe:
    """The recipe that fits the best candidate."""
    best = next((result for result in results if result.failed is None and result.trivial is None), None)
    if best is None:
        raise InvalidInput("no candidate tells rows apart; there is nothing worth fitting.")
    chosen = Candidate.parse(best.candidate)
    return replace(recipe, method=chosen.method, propensity=chosen.propensity)


def _rank(result: Result, by: str) -> tuple[bool, float]:
    """Failed and trivial candidates last."""
    useless = result.failed is not None or result.trivial is not None
    return useless, -result.metrics.get(by, (0.0, 0.0, 0.0))[0]


def _judge(candidate: Candidate, data: PUData, basis: Basis, recipe: Recipe) -> Result:
    started = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PueWarning)  # what they say of the data was said by `prepare`
            own = _propensities(candidate, data, basis, recipe)
            large = data.n_rows > WHOLE
            scores = out_of_fold(
                classifier_of(recipe, basis, data, candidate.method),
                data,
                prior=basis.prior.value,
                propensity=own,
                folds=5 if large else recipe.folds,
                scored=1 if large else None,
                jobs=recipe.jobs,
                seed=derive(recipe.seed, 7),
            )
    except InvalidInput as error:
        return Result(str(candidate), time.perf_counter() - started, {}, failed=str(error))
    kept = ~torch.isnan(scores)
    labels, scores = data.labels[kept], scores[kept]
    e = None if basis.e is None else basis.e[kept[data.labeled]]
    weights = pu_row_weights(labels, basis.prior.value, e, data.scenario)
    p = calibrate(scores, weights)(scores)
    held_out = HeldOut(p.numpy(), weights.positive.numpy(), weights.background.clamp(min=0).numpy())
    threshold, _ = choose_threshold(held_out, recipe.threshold, precision=recipe.precision)
    found = estimate_metrics(
        p, labels, prior=basis.prior.value, propensity=e, scenario=data.scenario, threshold=threshold, seed=recipe.seed
    )
    metrics = {name: tuple(vars(getattr(found, name)).values()) for name in NAMES}
    return Result(str(candidate), time.perf_counter() - started, metrics, found.trivial)


def _propensities(candidate: Candidate, data: PUData, basis: Basis, recipe: Recipe) -> torch.Tensor | None:
    if candidate.propensity is None:
        return None
    if candidate.propensity == recipe.propensity:
        return basis.e
    estimator = find_propensity(candidate.propensity)
    model = estimator.fit(data, prior=basis.prior.value, seed=derive(recipe.seed, 1))
    return examine(model, data, estimator=estimator)[0]


def _checksum(data: PUData) -> str:
    found = hashlib.sha256(data.labels.numpy().tobytes())
    x = data.x.data if sparse.issparse(data.x) else data.x.numpy()
    found.update(repr((data.x.shape, data.scenario.value)).encode())
    found.update(np.ascontiguousarray(x).data)
    return found.hexdigest()


def _key(checksum: str, recipe: Recipe, candidate: Candidate) -> str:
    everything = {**asdict(recipe), "jobs": None, "method": None, "data": checksum, "candidate": str(candidate)}
    everything["version"] = pue.__version__
    return hashlib.sha256(json.dumps(everything, sort_keys=True).encode()).hexdigest()


def _read(file: Path) -> Result | None:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return Result(**{**found, "metrics": {name: tuple(value) for name, value in found["metrics"].items()}})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None  # not there, or cut short: computed again


def _write(file: Path, result: Result) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        temporary.write_text(json.dumps(asdict(result)), encoding="utf-8")
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)
