"""What a method gives back, and what the true classes say about it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from labelings import Bools, Floats
from problems import Problem
from sklearn.metrics import average_precision_score, roc_auc_score

JUDGED = ("accuracy", "precision", "recall", "f1", "auc")
"""What `pue fit` and `pue evaluate` estimate and the study checks."""


@dataclass(frozen=True, eq=False)
class Answer:
    """Scores of the test rows, which rank them, and which rows are called positive. None: an estimate of π alone."""

    scores: Floats | None = None
    called: Bools | None = None
    found: dict[str, Any] = field(default_factory=dict)
    """What else came out of the fit."""
    more: Callable[[], dict[str, Any]] = dict
    """What is only asked for by the study: outside the clock."""


Method = Callable[[Problem], Answer]


def measure(method: Method, problem: Problem) -> dict[str, Any]:
    """Seconds of the processor for learning and for scoring the test rows; what was found; how good it is."""
    started = time.process_time()
    answer = method(problem)
    seconds = time.process_time() - started
    rows = {"rows": len(problem.train.y) + len(problem.test.y), "columns": problem.train.frame.shape[1]}
    record = {"seconds": seconds, **rows, **answer.found, **answer.more()}
    if answer.scores is not None and answer.called is not None:
        record |= judge(problem.test.y, answer.scores, answer.called)
        record["constant"] = bool(np.ptp(answer.scores) == 0)
    return record


def judge(y: Bools, scores: Floats, called: Bools) -> dict[str, float | None]:
    """By the true classes; None where nothing was called, so that there is no precision."""
    hits, calls, positives = int((called & y).sum()), int(called.sum()), int(y.sum())
    return {
        "accuracy": float(np.mean(called == y)),
        "precision": hits / calls if calls else None,
        "recall": hits / positives,
        "f1": 2 * hits / (calls + positives),
        "auc": float(roc_auc_score(y, scores)),
        "ap": float(average_precision_score(y, scores)),
        "called": calls / len(y),
    }
