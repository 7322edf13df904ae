"""(e) SAR-EM with Newton steps that go on from the last solution / SAR-EM that fits both regressions anew each time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from measure import Result, in_turn, pairwise_ratios
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from pue.propensity.sarem import SAREM

Array = NDArray[np.float64]
COLUMNS = 50


@dataclass(frozen=True)
class Twin:
    """scikit-learn's regression as the twin uses it. liblinear is what the authors use; it penalises the intercept."""

    solver: str
    tol: float
    target: str = ""

    def fit(self, x: Array, y: Array, weight: Array) -> Callable[[Array], Array]:
        model = LogisticRegression(C=1.0, solver=self.solver, tol=self.tol, max_iter=1000).fit(x, y, weight)
        return lambda rows: model.predict_proba(rows)[:, 1]


TWINS = (Twin("newton-cholesky", 1e-8, "≤ 0.1"), Twin("lbfgs", 1e-4), Twin("liblinear", 1e-4, "≤ 0.1"))


def results(quick: bool) -> Iterator[Result]:
    rows, iterations, repeats = (6_250, 10, 2) if quick else (62_500, 25, 3)
    x, s = problem(rows)
    for twin in TWINS:
        with threadpool_limits(1):  # as torch: one thread, for both sides
            yield compare(x, s, iterations, twin, repeats)


def compare(x: Array, s: Array, iterations: int, twin: Twin, repeats: int) -> Result:
    found: dict[str, Array] = {}

    def pue() -> None:
        found["pue"] = ours(x, s, iterations)

    def scikit_learn() -> None:
        found["twin"] = theirs(x, s, iterations, twin)

    a, b = in_turn(lambda: pue, lambda: scikit_learn, repeats)
    gap = np.abs(found["pue"] - found["twin"]).max()
    detail = f"fastest: pue {min(a):.2f} s, {twin.solver} {min(b):.2f} s; estimates differ by at most {gap:.0e}"
    case = f"{iterations} iterations, {len(x):,} × {COLUMNS}, {twin.solver}"
    return Result("sarem", case, pairwise_ratios(a, b), detail, twin.target)


def problem(n: int) -> tuple[Array, Array]:
    """Both curves logistic, in columns that partly coincide; about a fifth of the rows is labeled."""
    rng = np.random.default_rng(0)
    x = StandardScaler().fit_transform(rng.standard_normal((n, COLUMNS)))
    positive = rng.random(n) < 1 / (1 + np.exp(-x[:, :10].sum(1)))
    labeled = positive & (rng.random(n) < 1 / (1 + np.exp(0.5 - x[:, 8:14].sum(1) / 2)))
    return x, labeled.astype(np.float64)


def ours(x: Array, s: Array, iterations: int) -> Array:
    """ê after so many iterations: no early stop, so that both sides do the same."""
    z = np.asfortranarray(np.column_stack([x, np.ones(len(x))]))
    found = SAREM(iterations=iterations, gain=-np.inf).maximize(z, s, np.ones(len(x)))
    return 1 / (1 + np.exp(-found.e.margin))


def theirs(x: Array, s: Array, iterations: int, twin: Twin) -> Array:
    """The authors' loop: every M-step from scratch, and the soft target as two weighted copies of every row."""
    share = s.mean()
    f = twin.fit(x, s, np.where(s > 0, 1 - share, share))(x)
    e = twin.fit(x, s, np.where(s > 0, 1.0, f))(x)
    both, classes = np.concatenate([x, x]), np.repeat([1.0, 0.0], len(x))
    for _ in range(iterations):
        q = np.where(s > 0, 1.0, f * (1 - e) / (1 - f * e))
        e = twin.fit(x, s, q)(x)
        f = twin.fit(both, classes, np.concatenate([q, 1 - q]))(x)
    return e
