"""Several methods and propensity estimators on the same rows, judged by criteria that need no negatives.

Every candidate is scored out of fold, calibrated, and judged with the same prior and the same propensities, those of
the recipe: no candidate is judged by its own. A finished candidate is a file; a second call computes what is
missing.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pue.app.classifiers import choices
from pue.app.learn import classifier_of, score_held_out
from pue.app.preparation import Preparation, prepare, threads
from pue.app.recipe import Recipe, Say
from pue.app.rows import Rows
from pue.app.threshold import HeldOut, as_unseen, choose_threshold
from pue.app.time_budget import sized
from pue.basis import KNOWN, Wishes, settle_propensities
from pue.core.data import PUData
from pue.core.machine import one_thread
from pue.engines import Cluster
from pue.engines.tasks import Tasks
from pue.errors import EngineError, InvalidInput, PueError, PueWarning, UnknownName
from pue.files import making, write_text
from pue.judging.calibration import calibrate
from pue.judging.estimates import ESTIMATED, estimate_metrics
from pue.persistence.sealed import opened, sealed
from pue.propensity import PROPENSITIES

CANDIDATES = ("naive", "blend", "blend+auto", "forest+auto", "boosting+auto", "logistic+auto", "nnpu+auto")
IMAGE_CANDIDATES = ("naive", "nnpu", "nnpu+auto", "distpu+auto")
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
    recipe, checksum = sized(recipe, rows.data), _checksum(rows)
    files = {} if folder is None else {each: folder / _name(checksum, recipe, each) for each in wanted}
    results: dict[Candidate, Result] = {}
    for candidate, file in files.items():
        if (found := _read(file, say)) is not None:
            results[candidate] = found
            done(found, True)
    missing = [candidate for candidate in wanted if candidate not in results]
    if missing:
        prepared = prepare(rows, recipe, say)
        given = (missing, rows, prepared, recipe)
        for candidate, result in _here(*given, say) if cluster is None else _there(*given, cluster):
            if candidate in files:
                with making(files[candidate], wait=True):  # and what a killed one left of it is removed
                    write_text(files[candidate], json.dumps(sealed(_plain(result))))
            results[candidate] = result
            done(result, False)
    return sorted((results[candidate] for candidate in wanted), key=lambda result: _rank(result, by))


def _here(
    candidates: Sequence[Candidate], rows: Rows, prepared: Preparation, recipe: Recipe, say: Say
) -> Iterator[tuple[Candidate, Result]]:
    for candidate in candidates:
        say(f"comparing: {candidate}")
        with threads(rows):
            yield candidate, _judge(candidate, rows.data, prepared, recipe)


def _there(
    candidates: Sequence[Candidate], rows: Rows, prepared: Preparation, recipe: Recipe, cluster: Cluster
) -> Iterator[tuple[Candidate, Result]]:
    """In the order in which they end. Rows and prepared travel once."""
    tasks, shared = Tasks[Candidate](cluster, _judge_alone), [cluster.ray.put(part) for part in (rows.data, prepared)]
    waiting = list(candidates)
    while waiting or len(tasks):
        while waiting and not tasks.full:
            candidate = waiting.pop(0)
            tasks.start(candidate, candidate, *shared, replace(recipe, progress=False))
        for candidate, result in tasks.ended():
            if isinstance(result, EngineError):  # no result of the candidate: the next comparison tries it again
                raise EngineError(f"{candidate}: {result}")
            yield candidate, result


def _judge_alone(candidate: Candidate, data: PUData, prepared: Preparation, recipe: Recipe) -> Result:
    """In a process that shares its machine with others."""
    with one_thread():
        return _judge(candidate, data, prepared, recipe)


def winner(results: Sequence[Result]) -> Candidate | None:
    """The best candidate; None where none tells rows apart."""
    best = next((result for result in results if result.failed is None and result.trivial is None), None)
    return None if best is None else Candidate.parse(best.candidate)


def alike(results: Sequence[Result], by: str) -> list[str]:
    """Candidates that the labels do not tell from the best one: its interval holds their value. The best is first."""
    useful = [result for result in results if result.failed is None and result.trivial is None]
    return [result.candidate for result in useful if result.metrics[by][0] >= useful[0].metrics[by][1]]


def chosen(candidate: Candidate, rows: Rows, recipe: Recipe) -> tuple[Rows, Recipe]:
    """The rows and the recipe that fit a candidate."""
    if candidate.propensity == KNOWN:
        return rows, replace(recipe, method=candidate.method, propensity=None)
    return replace(rows, propensity=None), replace(recipe, **vars(candidate))


def _rank(result: Result, by: str) -> tuple[bool, float]:
    """Failed and trivial candidates last."""
    useless = result.failed is not None or result.trivial is not None
    return useless, -result.metrics.get(by, (0.0, 0.0, 0.0))[0]


def _judge(candidate: Candidate, data: PUData, prepared: Preparation, recipe: Recipe) -> Result:
    started = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PueWarning)  # what they say of the data was said by `prepare`
            own = _propensities(candidate, data, prepared, recipe)
            classifier = classifier_of(replace(recipe, method=candidate.method), prepared)
            scored = score_held_out(classifier, data, prepared, own, recipe)
    except PueError as error:
        return Result(str(candidate), time.perf_counter() - started, {}, failed=str(error))
    p, weights = calibrate(scored.scores, scored.weights)(scored.scores), scored.weights
    held_out = HeldOut(p.numpy(), weights.positive.numpy(), weights.background.clamp(min=0).numpy())
    at, _ = choose_threshold(held_out, recipe.threshold, precision=recipe.precision)
    prior, judged = prepared.prior.value, as_unseen(p, weights, scored.fold, at, recipe.threshold, recipe.precision)
    found = estimate_metrics(
        p, scored.labels, prior=prior, propensity=scored.e, scenario=data.scenario, threshold=at, seed=recipe.seed,
        deciding=judged,
    )  # fmt: skip
    metrics = {name: tuple(vars(getattr(found, name)).values()) for name in ESTIMATED}
    return Result(str(candidate), time.perf_counter() - started, metrics, found.trivial)


def _propensities(candidate: Candidate, data: PUData, prepared: Preparation, recipe: Recipe) -> torch.Tensor | None:
    if candidate.propensity is None:
        return None
    if candidate.propensity in (KNOWN, recipe.propensity):
        return prepared.e
    wishes = Wishes(propensity=candidate.propensity)
    found = settle_propensities(data, wishes, prepared.prior.value, seed=recipe.seed)
    return None if found is None else found.e


def _checksum(rows: Rows) -> str:
    found = hashlib.sha256(repr((rows.data.x.shape, rows.data.scenario.value)).encode())
    for part in (rows.data.labels.numpy(), rows.data.x.numpy(), rows.propensity):
        if part is not None:
            found.update(np.ascontiguousarray(part).data)
    return found.hexdigest()


def _name(checksum: str, recipe: Recipe, candidate: Candidate) -> str:
    """Of the file of a result, by all that it depends on."""
    everything = {**asdict(recipe), "data": checksum, "candidate": str(candidate), "version": version("pue")}
    for irrelevant in ("jobs", "method", "progress"):
        del everything[irrelevant]
    return f"{candidate}-{hashlib.sha256(json.dumps(everything, sort_keys=True).encode()).hexdigest()[:12]}.json"


def _plain(result: Result) -> dict[str, Any]:
    """As JSON has it: None for a number that is none."""
    metrics = {name: [None if math.isnan(v) else v for v in values] for name, values in result.metrics.items()}
    return {**asdict(result), "metrics": metrics}


def _read(file: Path, say: Say = lambda text: None) -> Result | None:
    """What was found before; None where it is not there, or is not what was written: it is then computed anew."""
    try:
        return _result(opened(file.read_bytes(), file.name))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        say(f"{file.name} is not used, and computed anew: {error}")
        return None


def _result(found: dict[str, Any]) -> Result:
    """A result of the right types, or an error."""
    failed, trivial = found["failed"], found["trivial"]
    if not all(isinstance(text, str | None) for text in (failed, trivial)):
        raise TypeError("it holds values that no result has")
    metrics = {} if failed is not None else {name: _triple(found["metrics"][name]) for name in ESTIMATED}
    return Result(str(found["candidate"]), float(found["seconds"]), metrics, trivial, failed)


def _triple(values: Sequence[float | None]) -> tuple[float, float, float]:
    value, low, high = (math.nan if number is None else float(number) for number in values)
    return value, low, high
