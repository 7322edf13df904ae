"""Metrics with truth: accuracy, precision, recall, F1, AUC and average precision (AP).

AUC and AP exist in two flavours that must never be compared with each other: from **scores**, and from **hard** 0/1
predictions, as several published tables (the MNIST rows of the PUe paper among them) print them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import sklearn
import torch
from torch import Tensor

from pue.core.data import require_scores, require_vector
from pue.core.decisions import ZERO, decide
from pue.errors import InvalidInput

METRICS = {
    "accuracy": "accuracy",
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "auc": "AUC",
    "ap": "average precision",
}
"""Name → title of the metrics people are shown, in the order in which they are shown."""
BRIEF = {**METRICS, "ap": "AP"}
"""The same for narrow columns."""
RANKING = ("auc", "ap")
"""Those that look at the order of the scores only; with "_hard" behind it, the name of the flavor of hard labels."""


@dataclass(frozen=True)
class Metrics:
    """Six metrics from scores and the two hard-label flavours, each in [0, 1]."""

    accuracy: float
    precision: float
    recall: float
    f1: float
    auc: float
    """Area under the ROC curve of the scores."""
    ap: float
    """Average precision of the scores, Σ (R_k − R_{k−1}) P_k."""
    auc_hard: float
    """The same from hard predictions: balanced accuracy, (TPR + TNR) / 2."""
    ap_hard: float
    """The same from hard predictions: P·R + (1 − R)·π_test."""

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


def evaluate(y: Tensor, scores: Tensor, *, threshold: float = ZERO) -> Metrics:
    """All metrics of `scores` against the true classes `y` (1 positive; 0 or −1 negative).

    Precision, recall and F1 are 0 where they are 0/0.

    >>> m = evaluate(torch.tensor([1, 1, 0, 0]), torch.tensor([2.0, -0.5, 0.5, -1.0]))
    >>> m.accuracy, m.precision, m.recall, m.auc, m.auc_hard
    (0.5, 0.5, 0.5, 0.75, 0.5)
    """
    require_vector("y", y)
    require_scores(scores, len(y))
    scores, y = scores.detach().cpu(), y.cpu()
    if not bool(torch.isin(y, torch.tensor([1, 0, -1], dtype=y.dtype)).all()):
        raise InvalidInput("y must hold true classes: 1 for positive, 0 or -1 for negative.")
    truth = (y == 1).numpy()
    if truth.all() or not truth.any():
        raise InvalidInput("metrics with truth need rows of both classes in y; found one class only.")
    called = decide(scores, threshold).numpy() == 1
    hits = float(np.mean(truth & called))
    share, flagged = float(truth.mean()), float(called.mean())
    precision = hits / flagged if flagged else 0.0
    recall = hits / share
    specificity = 1 - (flagged - hits) / (1 - share)
    return Metrics(
        accuracy=float(np.mean(truth == called)),
        precision=precision,
        recall=recall,
        f1=2 * hits / (share + flagged),
        auc=float(sklearn.metrics.roc_auc_score(truth, scores.numpy())),
        ap=float(sklearn.metrics.average_precision_score(truth, scores.numpy())),
        auc_hard=(recall + specificity) / 2,
        ap_hard=ap_hard(precision, recall, share),
    )


def ap_hard(precision: float, recall: float, prior: float) -> float:
    """Average precision of hard predictions: P·R + (1 − R)·π.

    >>> round(ap_hard(0.7838, 0.9669, 0.4926), 4)
    0.7742
    """
    return precision * recall + (1 - recall) * prior


def calibration_error(y: Tensor, probabilities: Tensor, *, bins: int = 15) -> float:
    """Expected calibration error against true classes: Σ share of the bin · |mean probability − share of positives|.

    Bins hold equally many rows, so that none is empty however the probabilities lie.

    >>> calibration_error(torch.tensor([1, 0, 1, 1]), torch.tensor([0.5, 0.5, 1.0, 1.0]), bins=2)
    0.0
    """
    require_vector("y", y)
    require_vector("probabilities", probabilities, len(y))
    if not 1 <= bins <= len(y):
        raise InvalidInput(f"bins must lie between 1 and the number of rows, {len(y)}; got {bins}.")
    ordered, order = probabilities.double().sort(stable=True)
    gap = ordered - (y[order] == 1).double()
    return float(sum(part.sum().abs() for part in gap.tensor_split(bins)) / len(y))
