"""A plain random sample, drawn and read without any design: what `audit_coverage.py` compares with.

Two of them. `table`: n rows of the whole table are looked at, and every quantity is a share among them, with Wilson's
interval: the positives among all rows, among the called, the called among the positives, the rows called rightly.
`unlabeled`: n rows of those that are not labeled, the labeled ones being known; the same shares, but for recall, which
is a ratio of two totals with a score interval (the likeliest three shares, called positives, other positives and the
rest, that fulfil the statement, as `pue.audit.score_test` does with strata).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pue.audit.design import Known
from pue.audit.score_test import effective

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ends = tuple[Floats, Floats]

STEPS, FINE = 32, 18


def wilson(yes: Floats, n: Floats, size: float, z: float) -> Ends:
    """Of many samples at once; from 0 to 1 where nothing was drawn."""
    worth = np.maximum(effective(n, np.full(n.shape, size)), 1e-300)
    p = np.where(n > 0, yes / np.maximum(n, 1e-300), 0.5)
    center, half = p + z * z / (2 * worth), z * np.sqrt(p * (1 - p) / worth + z * z / (4 * worth * worth))
    scale = 1 + z * z / worth
    return np.where(n > 0, (center - half) / scale, 0), np.where(n > 0, (center + half) / scale, 1)


def of_the_table(called: Bools, y: Bools, n: int, audits: int, z: float, rng: np.random.Generator) -> dict[str, Ends]:
    """Ends of every quantity, audit by audit: n rows of all."""
    counts = _counts(called, y)
    hits, missed, false, rest = rng.multivariate_hypergeometric(counts, n, audits).T.astype(float)
    all_n, size = np.full(audits, float(n)), float(len(y))
    return {
        "prior": wilson(hits + missed, all_n, size, z),
        "precision": wilson(hits, hits + false, float(called.sum()), z),
        "recall": wilson(hits, hits + missed, float(y.sum()), z),
        "accuracy": wilson(hits + rest, all_n, size, z),
    }


def of_the_unlabeled(
    called: Bools, y: Bools, known: Known, n: int, audits: int, z: float, rng: np.random.Generator
) -> dict[str, Ends]:
    """The same with n rows of those that are not labeled; `called` and `y` are theirs."""
    hits, missed, false, rest = rng.multivariate_hypergeometric(_counts(called, y), n, audits).T.astype(float)
    all_n, size, calls = np.full(audits, float(n)), float(len(y)), float(called.sum())
    right = known.positives_called + known.negatives - known.negatives_called
    return {
        "prior": _whole(wilson(hits + missed, all_n, size, z), size, known.positives, known.rows),
        "precision": _whole(wilson(hits, hits + false, calls, z), calls, known.positives_called, known.called),
        "recall": recall(hits, missed, n, size, known, z),
        "accuracy": _whole(wilson(hits + rest, all_n, size, z), size, right, known.rows),
    }


def recall(hits: Floats, missed: Floats, n: int, size: float, known: Known, z: float) -> Ends:
    """All θ that the score test of Σ aⱼ qⱼ = t keeps, a = N (1 − θ), −N θ and 0, t = θ d₀ − n₀."""
    found = np.stack([hits, missed, n - hits - missed], -1)
    total = size / n * (hits + missed) + known.positives
    value = (size / n * hits + known.positives_called) / np.maximum(total, 1e-300)
    worth = float(effective(np.array(float(n)), np.array(size)))

    def kept(theta: Floats) -> Bools:
        a = np.stack([size * (1 - theta), -size * theta, 0 * theta], -1)
        t = theta * known.positives - known.positives_called
        surplus = (a * found).sum(-1) / n - t
        q = _fulfilling(a - t[:, None], found, n)
        variance = np.maximum((a * a * q).sum(-1) - t * t, 1e-300) / worth
        possible = (a.max(-1) >= t) & (a.min(-1) <= t)
        return np.asarray(possible & (np.abs(surplus) <= z * np.sqrt(variance)))

    ends = []
    for extreme in (np.zeros(len(hits)), np.ones(len(hits))):
        inside, outside = value.copy(), extreme.copy()
        for _ in range(FINE):
            middle = (inside + outside) / 2
            inner = kept(middle)
            inside, outside = np.where(inner, middle, inside), np.where(inner, outside, middle)
        ends.append(inside)
    return ends[0], ends[1]


def _fulfilling(b: Floats, found: Floats, n: int) -> Floats:
    """The likeliest shares q with Σ b q = 0: qⱼ ∝ foundⱼ / (n + λ bⱼ)."""
    some = found + 1e-9
    low, high = (-n / np.where(end == 0, 1e-300, end) * (1 - 1e-12) for end in (b.max(-1), b.min(-1)))
    for _ in range(STEPS):
        middle = (low + high) / 2
        above = (some * b / (n + middle[:, None] * b)).sum(-1) > 0
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    q = some / (n + ((low + high) / 2)[:, None] * b)
    return np.asarray(q / q.sum(-1, keepdims=True))


def _whole(ends: Ends, size: float, known: float, of: float) -> Ends:
    """From a share of the unlabeled rows to one of all rows."""
    return (known + size * ends[0]) / of, (known + size * ends[1]) / of


def _counts(called: Bools, y: Bools) -> NDArray[np.int64]:
    return np.array([(y & called).sum(), (y & ~called).sum(), (~y & called).sum(), (~y & ~called).sum()])
