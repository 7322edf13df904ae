"""Slow twins of the propensity estimators: the formulas in plain loops, and SAR-EM that refits from scratch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from sklearn.linear_model import LogisticRegression

Numbers = Sequence[float]


def sigmoid(z: float) -> float:
    return 1 / (1 + math.exp(-z))


def posterior(f: float, e: float, s: int) -> float:
    """§8.5: q = s + (1 − s) f(1 − e) / (1 − f e)."""
    return s + (1 - s) * f * (1 - e) / (1 - f * e)


def log_likelihood(f: float, e: float, s: int) -> float:
    """log P(s | x) with P(s = 1 | x) = f e."""
    return math.log(f * e) if s == 1 else math.log(1 - f * e)


def penalized_log_likelihood(
    beta: Numbers, rows: Sequence[Numbers], s: Sequence[int], mass: Numbers, C: float
) -> float:
    """Σ m log P(s | x) − (|w_f|² + |w_e|²) / (2C); a row ends with a one, whose coefficient is not penalised."""
    d = len(rows[0])
    total = 0.0
    for row, label, m in zip(rows, s, mass, strict=True):
        f = sigmoid(math.fsum(b * v for b, v in zip(beta[:d], row, strict=True)))
        e = sigmoid(math.fsum(b * v for b, v in zip(beta[d:], row, strict=True)))
        total += m * log_likelihood(f, e, label)
    for j, b in enumerate(beta):
        total -= 0 if j % d == d - 1 else b * b / (2 * C)
    return total


def sar_em(x: np.ndarray, s: np.ndarray, *, C: float = 1.0, most: int = 500) -> tuple[np.ndarray, int]:
    """§8.5: ê of all rows and the number of iterations; every regression from scratch, targets as weighted copies."""

    def fit(rows: np.ndarray, target: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, float]:
        model = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10, max_iter=1000).fit(rows, target, weight)
        return model.predict_proba(x)[:, 1], float((model.coef_**2).sum()) / (2 * C)

    share = s.mean()
    f, f_penalty = fit(x, s, np.array([1 - share if label else share for label in s]))
    e, e_penalty = fit(x, s, np.array([1.0 if label else fi for label, fi in zip(s, f, strict=True)]))
    history, past = [], []
    for iteration in range(most + 1):
        terms = [log_likelihood(fi, ei, int(si)) for fi, ei, si in zip(f, e, s, strict=True)]
        history.append((math.fsum(terms) - f_penalty - e_penalty) / len(s))
        past.append(e[s == 0])
        if iteration > 11 and max(history[-10:]) - history[-10] < 1e-4:
            slopes = np.polyfit(range(10), np.array(past[-10:]), 1)[0]
            if np.mean(np.abs(slopes)) < 1e-4:
                break
        if iteration == most:
            break
        q = np.array([posterior(fi, ei, int(si)) for fi, ei, si in zip(f, e, s, strict=True)])
        e, e_penalty = fit(x, s, q)
        f, f_penalty = fit(np.concatenate([x, x]), np.repeat([1, 0], len(s)), np.concatenate([q, 1 - q]))
    return e, iteration


def group_propensity(groups: Sequence[int], labels: Sequence[int], priors: dict[int, float], scenario: str) -> dict:
    """ê_g = n_P,g / (π_g n_g), n_g all rows of the group or, in case-control, its unlabeled ones."""
    found = {}
    for group in set(groups):
        labeled = sum(1 for g, s in zip(groups, labels, strict=True) if g == group and s == 1)
        rows = sum(
            1 for g, s in zip(groups, labels, strict=True) if g == group and (scenario != "case_control" or s == 0)
        )
        found[group] = labeled / (priors[group] * rows)
    return found


def platt_loss(slope: float, intercept: float, margin: Numbers, s: Sequence[int]) -> float:
    """Platt's cross-entropy, with targets (n₊ + 1) / (n₊ + 2) and 1 / (n₋ + 2)."""
    n_labeled = sum(s)
    total = 0.0
    for m, label in zip(margin, s, strict=True):
        target = (n_labeled + 1) / (n_labeled + 2) if label else 1 / (len(s) - n_labeled + 2)
        p = sigmoid(slope * m + intercept)
        total -= target * math.log(p) + (1 - target) * math.log(1 - p)
    return total
