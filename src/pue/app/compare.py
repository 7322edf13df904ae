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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pue.data import PUData
from pue.engines import Cluster
from pue.engines.tasks import Tasks
from pue.errors import EngineError, InvalidInput, PueError, PueWarning, UnknownName
from pue.metrics.estimates import NAMES, estimate_metrics
from pue.model.basis import Basis, prepare, threads
from pue.model.classifiers import choices
from pue.model.fit import classifier_of, score_held_out
from pue.model.model import HeldOut, choose_threshold
from pue.model.recipe import Recipe, Say
from pue.model.rows import Rows
from pue.probabilities import calibrate
from pue.propensity import PROPENSITIES, examine, find_propensity
from pue.randomness import derive
from pue.threads import one_thread

CANDIDATES = ("naive", "nnpu", "nnpu+auto", "distpu+auto", "logistic+auto", "boosting+auto")
CRITERIA = ("auc", "ap", "accuracy", "f1")
KNOWN = "known"
"""The propensities that came with the rows."""


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
        if method not in choices():
            raise UnknownName("method", method, choices())
        if propensity and propensity not in (KNOWN, *PROPENSITIES):
            raise UnknownName("propensity", propensity, [KNOWN, *PROPENSITIES])
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
    cluster: Cluster | None = None,
) -> list[Result]:
    """Results, best first. `folder` keeps them; `done` is told of each, and whether it was found there.

    With a cluster every candidate is a task of its own.
    """
    if by not in CRITERIA:
        raise UnknownName("criterion", by, CRITERIA)
    wanted = [Candidate.parse(text) for text in dict.fromkeys(candidates)]
    if not wanted:
        raise InvalidInput("there is nothing to compare: name candidates such as nnpu+auto.")
    if rows.propensity is None and any(candidate.propensity == KNOWN for candidate in wanted):
        raise InvalidInput("there are no known propensities: name their column with --propensity column:COL.")
    checksum = _checksum(rows)
    names = {candidate: f"{candidate}-{_key(checksum, recipe, candidate)[:12]}.json" for candidate in wanted}
    files = {} if folder is None else {candidate: folder / name for candidate, name in names.items()}
    results: dict[Candidate, Result] = {}
    for candidate, file in files.items():
        if (found := _read(file)) is not None:
            results[candidate] = found
            done(found, True)
    missing = [candidate for candidate in wanted if candidate not in results]
    if missing:
        basis = prepare(rows, recipe, say)
        given = (missing, rows, basis, recipe)
        for candidate, result in _here(*given, say) if cluster is None else _there(*given, cluster):
            if candidate in files:
                _write(files[candidate], result)
            results[candidate] = result
            done(result, False)
    return sorted((results[candidate] for candidate in wanted), key=lambda result: _rank(result, by))


def _here(
    candidates: Sequence[Candidate], rows: Rows, basis: Basis, recipe: Recipe, say: Say
) -> Iterator[tuple[Candidate, Result]]:
    for candidate in candidates:
        say(f"comparing: {candidate}")
        with threads(rows):
            yield candidate, _judge(candidate, rows.data, basis, recipe)


def _there(
    candidates: Sequence[Candidate], rows: Rows, basis: Basis, recipe: Recipe, cluster: Cluster
) -> Iterator[tuple[Candidate, Result]]:
    """In the order in which they end. Rows and basis travel once."""
    tasks, shared = Tasks[Candidate](cluster, _judge_alone), [cluster.ray.put(part) for part in (rows.data, basis)]
    waiting = list(candidates)
    while waiting or len(tasks):
        while waiting and not tasks.full:
            candidate = waiting.pop(0)
            tasks.start(candidate, candidate, *shared, replace(recipe, progress=False))
        for candidate, result in tasks.ended():
            if isinstance(result, EngineError):  # no result of the candidate: the next comparison tries it again
                raise EngineError(f"{candidate}: {result}")
            yield candidate, result


def _judge_alone(candidate: Candidate, data: PUData, basis: Basis, recipe: Recipe) -> Result:
    """In a process that shares its machine with others."""
    with one_thread():
        return _judge(candidate, data, basis, recipe)


def winner(results: Sequence[Result]) -> Candidate | None:
    """The best candidate; None where none tells rows apart."""
    best = next((result for result in results if result.failed is None and result.trivial is None), None)
    return None if best is None else Candidate.parse(best.candidate)


def chosen(candidate: Candidate, rows: Rows, recipe: Recipe) -> tuple[Rows, Recipe]:
    """The rows and the recipe that fit a candidate."""
    known = candidate.propensity == KNOWN
    propensity = None if known else candidate.propensity
    return (
        rows if known else replace(rows, propensity=None),
        replace(recipe, method=candidate.method, propensity=propensity),
    )


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
            classifier = classifier_of(replace(recipe, method=candidate.method), basis)
            scored = score_held_out(classifier, data, basis, own, recipe)
    except PueError as error:
        return Result(str(candidate), time.perf_counter() - started, {}, failed=str(error))
    p, weights = calibrate(scored.scores, scored.weights)(scored.scores), scored.weights
    held_out = HeldOut(p.numpy(), weights.positive.numpy(), weights.background.clamp(min=0).numpy())
    found = estimate_metrics(
        p,
        scored.labels,
        prior=basis.prior.value,
        propensity=scored.e,
        scenario=data.scenario,
        threshold=choose_threshold(held_out, recipe.threshold, precision=recipe.precision)[0],
        seed=recipe.seed,
    )
    metrics = {name: tuple(vars(getattr(found, name)).values()) for name in NAMES}
    return Result(str(candidate), time.perf_counter() - started, metrics, found.trivial)


def _propensities(candidate: Candidate, data: PUData, basis: Basis, recipe: Recipe) -> torch.Tensor | None:
    if candidate.propensity is None:
        return None
    if candidate.propensity in (KNOWN, recipe.propensity):
        return basis.e
    estimator = find_propensity(candidate.propensity)
    model = estimator.fit(data, prior=basis.prior.value, seed=derive(recipe.seed, 1))
    return examine(model, data, estimator=estimator)[0]


def _checksum(rows: Rows) -> str:
    found = hashlib.sha256(repr((rows.data.x.shape, rows.data.scenario.value)).encode())
    for part in (rows.data.labels.numpy(), rows.data.x.numpy(), rows.propensity):
        if part is not None:
            found.update(np.ascontiguousarray(part).data)
    return found.hexdigest()


def _key(checksum: str, recipe: Recipe, candidate: Candidate) -> str:
    everything = {**asdict(recipe), "data": checksum, "candidate": str(candidate), "version": version("pue")}
    for irrelevant in ("jobs", "method", "progress"):
        del everything[irrelevant]
    return hashlib.sha256(json.dumps(everything, sort_keys=True).encode()).hexdigest()


def _read(file: Path) -> Result | None:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        if found["failed"] is None:
            found["metrics"] = {name: tuple(map(float, found["metrics"][name])) for name in NAMES}
        return Result(**found)
    except (OSError, ValueError, TypeError, KeyError):
        return None  # not there, or damaged: computed again


def _write(file: Path, result: Result) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        temporary.write_text(json.dumps(asdict(result)), encoding="utf-8")
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)
