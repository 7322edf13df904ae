"""Ways that need the share of positives, told as little as `pue fit` is: they take Elkan and Noto's estimate of it."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from answers import Answer, Method
from baselines import BASELINES, elkan_noto_prior
from peers import PEERS
from problems import Problem

TOLD = ("baseline/ranking", "pu-toolbox/nnpu", "pu-toolbox/pusb", "pu-toolbox/lbe")
"""Those that the true prior is given to."""
MOST = 0.99
"""A share that all of them can work with."""
_prior = lru_cache(maxsize=1)(elkan_noto_prior)  # the methods of one problem follow one another


def untold(method: Method) -> Method:
    def answer(problem: Problem) -> Answer:
        return method(replace(problem, prior=min(_prior(problem), MOST)))

    return answer


_ALL = {**BASELINES, **PEERS}
UNTOLD: dict[str, Method] = {f"{name}-untold": untold(_ALL[name]) for name in TOLD}
WITH_PRIOR = list(_ALL)
"""Every baseline and peer; the true prior is given to whoever takes one."""
WITHOUT = [f"{name}-untold" if name in TOLD else name for name in _ALL]
"""The same ones, and nobody is given it."""
