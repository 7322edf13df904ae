"""`plan`: rows to look at, drawn with known probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pue.audit.design import (
    DESIGNS,
    LEAST,
    PURPOSES,
    Array,
    Integers,
    Known,
    Stratum,
    allocate,
    edges,
    importance,
    spread_of,
    stakes,
)
from pue.core.data import Scenario
from pue.errors import InvalidInput, UnknownName

FEWEST = 4
"""Answers below which there is nothing to plan."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Rows to look at, in random order, and all that the estimates need to know about the others."""

    rows: Integers
    """Numbers of the rows, as they were given."""
    stratum: Integers
    """Of each of them, its place in `strata`."""
    strata: tuple[Stratum, ...]
    known: Known
    threshold: float
    purpose: str = "all"
    design: str = "stratified"
    seed: int = 0
    parts: tuple[int, ...] = field(default=())
    """How many of the rows came with each plan, where several were joined."""

    @property
    def probability(self) -> Array:
        """The inclusion probability of every row of the plan."""
        if self.design == "random":
            chance = sum(s.drawn + s.before for s in self.strata) / max(sum(s.size for s in self.strata), 1)
            return np.full(len(self.rows), chance)
        return np.array([s.probability for s in self.strata])[self.stratum]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, but for the rows."""
        strata = [{**asdict(s), "low": _finite(s.low), "high": _finite(s.high)} for s in self.strata]
        named = {name: getattr(self, name) for name in ("threshold", "purpose", "design", "seed")}
        return {**named, "known": asdict(self.known), "strata": strata}


def _finite(bound: float) -> float | None:
    return bound if np.isfinite(bound) else None


def plan(
    scores: Any,
    labels: Any = None,
    *,
    n: int = 100,
    threshold: float = 0.5,
    purpose: str = "all",
    expected: Any = None,
    design: str = "stratified",
    scenario: str | Scenario = Scenario.SINGLE_SAMPLE,
    after: Plan | None = None,
    seed: int = 0,
) -> Plan:
    """`n` unlabeled rows to look at, of a population with these scores (probabilities) and PU labels (1, 0, −1).

    Rows labeled already are known and need no answer. The others are stratified by score, and every stratum is drawn
    from at random, in numbers that make the intervals of the `purpose` ("prior", "precision", "recall", "accuracy",
    "model", or "all" of the first four) short if the model is right; no stratum is left out, so that the estimates stay
    unbiased if it is wrong. `expected` is P(positive | x, not labeled), by default the score. design="random": a plain
    random sample. `after`: a plan that this one tops up, with the same strata and none of its rows.

    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(1000)
    >>> drawn = plan(scores, n=50)
    >>> len(drawn.rows), bool((drawn.probability > 0).all()), len(set(drawn.rows.tolist()))
    (50, True, 50)
    """
    p, s = _checked(scores, labels)
    require_asked(purpose, design, n)
    open_rows = np.flatnonzero(s == 0)
    if len(open_rows) == 0:
        raise InvalidInput("every row is labeled already: there is nothing to look at. Pass unlabeled rows too.")
    hoped = p if expected is None else np.asarray(expected, dtype=np.float64)
    if hoped.shape != p.shape:
        raise InvalidInput(
            f"expected has shape {hoped.shape} but scores {p.shape}. Pass one probability for every row."
        )
    threshold = threshold if after is None else after.threshold
    known = _known(p >= threshold, s, Scenario.parse(scenario))
    bounds = _bounds(p[open_rows], hoped[open_rows], threshold, n, design, purpose, known, after)
    place = np.searchsorted(bounds[1:-1], p[open_rows], side="right")
    strata, taken = _strata(bounds, place, hoped[open_rows], threshold), np.zeros(len(p), dtype=bool)
    if after is not None:
        strata = _continued(strata, after, known)
        taken[after.rows] = True
        purpose, design = (after.purpose if purpose == "all" else purpose), after.design
    free = ~taken[open_rows]
    rng = np.random.default_rng(seed)
    if design == "random":
        chosen = rng.permutation(np.flatnonzero(free))[:n]
    else:
        chosen = _stratified(strata, place, free, importance(purpose, known, strata), n, rng)
    drawn = np.bincount(place[chosen], minlength=len(strata))
    strata = [replace(stratum, drawn=int(count)) for stratum, count in zip(strata, drawn, strict=True)]
    chosen = rng.permutation(chosen)  # so that the order does not lead the answers
    return Plan(
        open_rows[chosen], place[chosen], tuple(strata), known, threshold, purpose, design, seed, (len(chosen),)
    )


def require_asked(purpose: str, design: str, n: int) -> None:
    """What is asked of a plan; files ask before they score their rows."""
    if purpose not in PURPOSES:
        raise UnknownName("purpose", purpose, PURPOSES)
    if design not in DESIGNS:
        raise UnknownName("design", design, DESIGNS)
    if n < FEWEST:
        raise InvalidInput(f"n is the number of rows to look at, at least {FEWEST}; got {n}.")


def join(first: Plan, second: Plan) -> Plan:
    """A plan and the one that tops it up, as one; rows of a stratum stay a random sample of it, for neither draw looks
    at answers."""
    if [s.before for s in second.strata] != [s.drawn + s.before for s in first.strata]:
        raise InvalidInput("the second plan does not top up the first: make it with after=first.")
    strata = [
        replace(b, drawn=a.drawn + b.drawn, before=a.before) for a, b in zip(first.strata, second.strata, strict=True)
    ]
    rows = np.concatenate([first.rows, second.rows])
    stratum = np.concatenate([first.stratum, second.stratum])
    return replace(second, rows=rows, stratum=stratum, strata=tuple(strata), parts=(*first.parts, *second.parts))


def _checked(scores: Any, labels: Any) -> tuple[Array, Integers]:
    p = np.asarray(scores, dtype=np.float64)
    if p.ndim != 1 or not len(p) or not bool(((p >= 0) & (p <= 1)).all()):
        raise InvalidInput("scores must be a vector of probabilities in [0, 1], one for every row; use predict_proba.")
    s = np.zeros(len(p), dtype=np.int64) if labels is None else np.asarray(labels).astype(np.int64)
    if s.shape != p.shape or not np.isin(s, (-1, 0, 1)).all():
        raise InvalidInput("labels must hold 1 (positive), 0 (unlabeled) or -1 (negative), one for every score.")
    return p, s


def _known(called: NDArray[np.bool_], s: Integers, scenario: Scenario) -> Known:
    """In case-control the labeled rows were collected beside the population and are no part of it."""
    if scenario is Scenario.CASE_CONTROL:
        called, s = called[s == 0], s[s == 0]
    count: Callable[[NDArray[np.bool_]], int] = lambda mask: int(mask.sum())  # noqa: E731
    return Known(
        len(s), count(called), count(s == 1), count((s == 1) & called), count(s == -1), count((s == -1) & called)
    )


def _bounds(
    p: Array, hoped: Array, threshold: float, n: int, design: str, purpose: str, known: Known, after: Plan | None
) -> Array:
    """A random sample knows two strata, called and not: what it finds is weighted by their sizes."""
    if after is not None:
        return np.array([after.strata[0].low, *(s.high for s in after.strata)])
    called = (p >= threshold).astype(np.int64)
    cuts = [-np.inf, threshold, np.inf]
    if design == "stratified":
        stake = stakes(purpose, known, _strata(np.array(cuts), called, hoped, threshold))
        cuts = edges(p, stake[called] * spread_of(hoped), threshold, n)
    places = np.searchsorted(cuts[1:-1], p, side="right")
    filled = [k for k in range(len(cuts) - 1) if (places == k).any()]  # a stratum without rows is none
    return np.array([cuts[filled[0]], *(cuts[k + 1] for k in filled)])


def _strata(bounds: Array, place: Integers, hoped: Array, threshold: float) -> list[Stratum]:
    size = np.bincount(place, minlength=len(bounds) - 1)
    sums = np.bincount(place, hoped, minlength=len(bounds) - 1)
    pairs = zip(bounds[:-1], bounds[1:], size, sums, strict=True)
    return [Stratum(float(a), float(b), bool(a >= threshold), int(m), float(e)) for a, b, m, e in pairs]


def _continued(strata: list[Stratum], after: Plan, known: Known) -> list[Stratum]:
    if [s.size for s in strata] != [s.size for s in after.strata] or known != after.known:
        raise InvalidInput(
            "these are not the rows or scores of the plan to top up. Pass the same data and model, or make a new plan."
        )
    return [replace(s, before=old.drawn + old.before) for s, old in zip(strata, after.strata, strict=True)]


def _stratified(
    strata: list[Stratum], place: Integers, free: NDArray[np.bool_], matters: Array, n: int, rng: np.random.Generator
) -> Integers:
    """A random sample of each stratum; one that tops up brings the whole nearer to the ideal of the whole."""
    size = np.array([s.size for s in strata])
    before = np.array([s.before for s in strata])
    room = np.array([int((free & (place == k)).sum()) for k in range(len(strata))])
    whole = allocate(size, size * matters, n + int(before.sum()))
    wanted = np.maximum(whole - before, 0).astype(float)
    count = allocate(room, wanted + 1e-9 * size, n, least=0 if before.any() else LEAST)
    return np.concatenate(
        [rng.choice(np.flatnonzero(free & (place == k)), m, replace=False) for k, m in enumerate(count)]
    ).astype(np.int64)
