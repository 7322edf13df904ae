"""Are the labels a completely random sample of the positives (SCAR)? A test that needs no class separation.

Teisseyre, Furmańczyk and Mielniczuk (ECAI 2024) rank the rows by a labeled-against-unlabeled score, take the best π n
for the positives, draw artificial SCAR labelings of them and compare a Kolmogorov–Smirnov statistic. Three changes
make the level hold for every pair of classes, however much they overlap:

*One-sided.* SCAR and the prior imply π P(A | labeled) ≤ P(A) for every region A, and nothing else: where it holds,
p₋ = (p − π p_labeled) / (1 − π) is a density that explains the data. So only an excess of labels speaks against SCAR.

*The worst case is known.* The ranks u of the labeled rows (share of the population ranked as high, over π) are
stochastically at least those of a draw from a perfectly ranked positive class. Its artificial labelings need no data.

*No row is judged by a score it helped to fit.* The rows come in blocks, each scored by a model of the blocks before it.
Given the past a block's labels are fresh, so blocks may be pooled; the folds of a cross-validation may not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sklearn
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import gen_batches
from torch import Tensor

from pue.core.data import (
    Features,
    PUData,
    Scenario,
    as_matrix,
    is_bytes,
    labeled_share,
    non_finite_columns,
    population_rows,
    require_prior,
    select,
)
from pue.core.folds import row_hash
from pue.core.inputs import as_problem
from pue.core.randomness import derive
from pue.errors import InvalidInput

Array = NDArray[np.float64]

N_BLOCKS = 5
FEWEST_LABELED = 20
FEWEST_UNLABELED = 50
_TRAINING_ROWS = 10_000
_COLUMNS = 50
_LANDMARKS = 100


@dataclass(frozen=True, eq=False)
class ScarTest:
    """How many more labels than SCAR allows lie where labels are densest, and how often chance does that."""

    statistic: float
    """max over regions of labeled_share − allowed_share: the one-sided Kolmogorov–Smirnov statistic."""
    p_value: float
    level: float
    prior: float
    n_draws: int
    n_tested: int
    """Labeled rows outside the first block, which only trains."""
    labeled_share: float
    """Share of the tested labeled rows in the region with the largest excess …"""
    allowed_share: float
    """… and the largest share that SCAR allows there, P(region) / π."""
    largest_prior: float
    """The largest prior that SCAR could have on these data, at this level (1: any)."""
    null: Tensor = field(repr=False)
    """The statistic of every artificial labeling."""
    depth: Tensor = field(repr=False)
    """u of every row: share of the population ranked at least as high, over π. NaN in the first block."""
    lowest: float | None = None
    """The lower end of the prior's interval where it is an estimate; None: the prior is known."""

    @property
    def speaks(self) -> bool:
        """Does it speak against SCAR *at this prior*? Too large a prior looks the same as a bias."""
        return self.p_value <= self.level

    @property
    def or_fewer(self) -> bool:
        """Does it speak against SCAR at an estimated prior, but not at a lower one of its interval? Then labels are
        biased, or there are fewer positives than estimated: the test cannot tell the two apart."""
        return self.speaks and self.lowest is not None and self.lowest <= self.largest_prior

    @property
    def rejected(self) -> bool:
        """Is SCAR rejected, whatever the prior of its interval?"""
        return self.speaks and not self.or_fewer

    @property
    def positives(self) -> Tensor:
        """Mask of the estimated positive set: the share π of the tested rows that ranks highest."""
        return self.depth <= 1

    @property
    def region(self) -> Tensor:
        """Mask of the tested rows in the region with the largest excess of labels."""
        return self.depth <= self.allowed_share

    def __str__(self) -> str:
        p = f"p = {self.p_value:.2g}"
        if not self.speaks:
            return (
                f"SCAR not rejected ({p}, level {self.level:g}, prior {self.prior:.3g}): {self.n_tested} labeled rows "
                "show no region with more labels than SCAR allows. A bias hidden by overlap with the negatives stays "
                "unseen."
            )
        said = f"SCAR rejected{' at the estimated prior' if self.or_fewer else ''}"
        return (
            f"{said} ({p}, level {self.level:g}): the region where labels are densest holds "
            f"{self.labeled_share:.0%} of {self.n_tested} labeled rows; a random sample of the positives puts at most "
            f"{self.allowed_share:.0%} there. SCAR would need a prior of at most {self.largest_prior:.2g}, "
            f"not {self.prior:.3g}."
        )


def scar_test(
    X: Any,
    s: Any = None,
    *,
    prior: float,
    scenario: str = "single_sample",
    n_draws: int = 999,
    level: float = 0.05,
    seed: int = 0,
    embedding: Any = None,
    score: Any = None,
) -> ScarTest:
    """Test SCAR on features `X` and PU labels `s`, or on a `PUData`, given the prior; P(p_value ≤ a) ≤ a under SCAR.

    `embedding` (one row of numbers for every row, learned without these labels) replaces the features; `score` is a
    scikit-learn classifier of labeled against unlabeled, by default a logistic regression on linear and radial terms.
    Any choice keeps the level; a better one finds more. A prior that is too large is rejected like a bias, and one
    estimated under SCAR from the same data is about the largest that cannot be: use a prior from elsewhere.

    >>> x = torch.linspace(0, 1, 400, dtype=torch.float64)[:, None]
    >>> fair, biased = (torch.arange(400) % 4 == 0).int(), (torch.arange(400) >= 300).int()
    >>> scar_test(PUData(x, fair), prior=0.9).rejected, scar_test(PUData(x, biased), prior=0.9).rejected
    (False, True)
    """
    data = as_problem(X, s, scenario)
    _require(data, prior, n_draws, level)
    ranks = _rank(data, data.x if embedding is None else _checked(embedding, data.n_rows), score, seed)
    observed = ranks.share[data.labeled.numpy() & ranks.tested] / prior
    statistic, labeled_at, allowed_at = excess(observed)
    null = artificial_excess(ranks.sizes, prior, nested=ranks.nested, n_draws=n_draws, seed=derive(seed, 1))
    return ScarTest(
        statistic=statistic,
        p_value=p_value(statistic, null),
        level=level,
        prior=prior,
        n_draws=n_draws,
        n_tested=len(observed),
        labeled_share=labeled_at,
        allowed_share=allowed_at,
        largest_prior=_largest_prior(data, ranks, level, min(n_draws, 199), derive(seed, 2)),
        null=torch.from_numpy(null),
        depth=torch.from_numpy(ranks.share / prior),
    )


@dataclass(frozen=True)
class _Ranks:
    share: Array
    """Share of its block's population that scores at least as high as the row; NaN in the first block."""
    sizes: list[tuple[int, int]]
    """Labeled rows and population rows of every tested block."""
    nested: bool
    """Are the labeled rows among the population rows?"""

    @property
    def tested(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.share)


def excess(u: Array) -> tuple[float, float, float]:
    """The largest F(t) − t over t, F the distribution function of the depths u, with its F(t) and its t.

    >>> excess(np.array([0.9, 0.1, 0.2]))
    (0.46..., 0.66..., 0.2)
    """
    u = np.sort(u)
    share = np.arange(1, len(u) + 1) / len(u)
    best = int(np.argmax(share - u))
    return float(share[best] - u[best]), float(share[best]), float(u[best])


def artificial_excess(
    sizes: list[tuple[int, int]], prior: float, *, nested: bool, n_draws: int, seed: int
) -> NDArray[np.float64]:
    """The statistic of artificial SCAR labelings when the score ranks every positive above every negative.

    `sizes` holds the labeled and the population rows of every block. A block has Binomial(n, π) positives; where the
    labeled rows are `nested` in the population they are some of these, else they fall between them at random.
    """
    rng = np.random.default_rng(seed)
    total = sum(n_labeled for n_labeled, _ in sizes)
    share = np.arange(1, total + 1) / total
    found = []
    for draws in gen_batches(n_draws, max(1, 2_000_000 // total)):  # bounded memory
        n = draws.stop - draws.start
        u = []
        for n_labeled, n_rows in sizes:
            place = np.sort(rng.random((n, n_labeled)), axis=1)
            others = np.maximum(rng.binomial(n_rows, prior, n) - nested * n_labeled, 0)
            gaps = np.diff(place, axis=1, prepend=0.0, append=1.0)
            rank = rng.multinomial(others, gaps)[:, :-1].cumsum(axis=1) + nested * np.arange(1, n_labeled + 1)
            u.append(rank / (prior * n_rows))
        found.append((share - np.sort(np.concatenate(u, axis=1), axis=1)).max(axis=1))
    return np.concatenate(found)


def p_value(statistic: float, null: Array) -> float:
    """(1 + draws at least as extreme) / (1 + draws), which is exact for any number of draws."""
    return float((1 + (null >= statistic - 1e-12).sum()) / (1 + len(null)))


def _largest_prior(data: PUData, ranks: _Ranks, level: float, n_draws: int, seed: int) -> float:
    """Where the test turns, by bisection; all steps share their draws, so that they differ by the prior alone."""
    labeled = ranks.share[data.labeled.numpy() & ranks.tested]

    def compatible(prior: float) -> bool:
        null = artificial_excess(ranks.sizes, prior, nested=ranks.nested, n_draws=n_draws, seed=seed)
        return p_value(excess(labeled / prior)[0], null) > level

    low, high = labeled_share(data.labels) if ranks.nested else 0.0, 1.0
    if compatible(high):
        return high
    for _ in range(9):
        middle = (low + high) / 2
        low, high = (middle, high) if compatible(middle) else (low, middle)
    return high


def _rank(data: PUData, x: Features, score: Any, seed: int) -> _Ranks:
    """The rank of every row in its block, by a score fitted on the blocks before."""
    keys = _keys(data, seed)
    order = np.lexsort((data.labels.numpy(), keys))  # from here on nothing depends on where a row stands
    keys, labeled = keys[order], data.labeled.numpy()[order]
    population = population_rows(data.labels, data.scenario).numpy()[order]
    unlabeled = population & ~labeled
    cuts = keys[labeled][[round(labeled.sum() * k / N_BLOCKS) for k in range(1, N_BLOCKS)]]
    block = np.searchsorted(cuts, keys, side="right")
    z = _embed(x, order[population], seed)[order]
    share, sizes = np.full(len(order), np.nan), []
    for current in range(1, N_BLOCKS):
        past, now = block < current, block == current
        if not ((past & unlabeled).any() and (now & population).any()):
            raise InvalidInput("there are too few unlabeled rows for the SCAR test. Collect more, or try another seed.")
        # A matrix product may differ in the last digit between equal rows; a row and its copy must stay ties.
        scores = np.round(_fit_score(z, past & labeled, past & unlabeled, score, seed)(z[now]), 9)
        background = np.sort(scores[population[now]])
        # Ties count as ranked higher: they can only hide an excess.
        share[order[now]] = 1 - np.searchsorted(background, scores, side="left") / len(background)
        sizes.append((int(labeled[now].sum()), len(background)))
    return _Ranks(share, sizes, nested=data.scenario is Scenario.SINGLE_SAMPLE)


def _keys(data: PUData, seed: int) -> NDArray[np.uint64]:
    """A random number for every row, from its content and how often that came before among rows of its label.

    A labeled row and its unlabeled copy share the number and so the block; rows that merely repeat do not.
    """
    content, labels = row_hash(data.x, seed=seed).view(np.int64), data.labels.numpy()
    order = np.lexsort((content, labels))
    pairs = np.stack([content, labels], axis=1)[order]
    new = np.r_[True, (pairs[1:] != pairs[:-1]).any(axis=1)]
    position = np.arange(len(order))
    repeat = np.empty_like(content)
    repeat[order] = position - np.maximum.accumulate(np.where(new, position, 0))
    return row_hash(torch.from_numpy(np.stack([content, repeat], axis=1)), seed=seed)


def _embed(x: Features, population: NDArray[np.int64], seed: int) -> Array:
    """At most 50 columns of a common scale. Fitted on rows of the population alone: it knows no label."""
    is_sparse = sparse.issparse(x)
    sample = as_matrix(select(x, torch.from_numpy(population[:_TRAINING_ROWS])))
    # Pixels share one scale; standardising those that are almost always black would make noise loud.
    steps: list[Any] = [sklearn.preprocessing.StandardScaler(with_mean=not is_sparse, with_std=not is_bytes(x))]
    if sample.shape[1] > _COLUMNS:
        width = min(_COLUMNS, sample.shape[0] - 1)
        truncated = sklearn.decomposition.TruncatedSVD(width, random_state=derive(seed, 3) % 2**32)
        steps.append(truncated if is_sparse else sklearn.decomposition.PCA(width, svd_solver="covariance_eigh"))
    reduce = sklearn.pipeline.make_pipeline(*steps).fit(sample)
    pieces = [reduce.transform(as_matrix(x[rows])) for rows in gen_batches(x.shape[0], 4096)]
    if is_sparse and len(steps) == 1:
        pieces = [piece.toarray() for piece in pieces]
    z: Array = np.concatenate(pieces).astype(np.float64)
    return z / (np.sqrt(z[population].var(axis=0).mean()) or 1.0)


def _fit_score(z: Array, labeled: NDArray[np.bool_], unlabeled: NDArray[np.bool_], score: Any, seed: int) -> Any:
    """The score as a function of rows, from at most 10,000 labeled and 10,000 unlabeled ones."""
    rows = np.concatenate([np.flatnonzero(mask)[:_TRAINING_ROWS] for mask in (labeled, unlabeled)])
    if score is None:
        n_components, random_state = min(_LANDMARKS, len(rows)), derive(seed, 4) % 2**32
        radial = sklearn.kernel_approximation.Nystroem(
            gamma=1 / z.shape[1], n_components=n_components, random_state=random_state
        )
        linear = sklearn.linear_model.LogisticRegression(solver="newton-cholesky", max_iter=1000)
        score = sklearn.pipeline.make_pipeline(
            sklearn.pipeline.make_union(sklearn.preprocessing.FunctionTransformer(), radial), linear
        )
    model = clone(score)
    model.fit(z[rows], labeled[rows].astype(int))
    if hasattr(model, "decision_function"):
        return model.decision_function
    return lambda new: model.predict_proba(new)[:, 1]


def without_gaps(x: Features) -> Features:
    """A table whose missing values are the means of their columns; the test then sees all rows.

    >>> without_gaps(torch.tensor([[1.0], [float("nan")], [3.0]]))[:, 0]
    tensor([1., 2., 3.])
    """
    if not isinstance(x, Tensor) or not x.is_floating_point() or not bool(x.isnan().any()):
        return x
    return torch.where(x.isnan(), x.nanmean(0).nan_to_num(0.0), x)


def _checked(embedding: Any, n_rows: int) -> Tensor:
    z = torch.as_tensor(embedding)
    if z.ndim != 2 or len(z) != n_rows:
        raise InvalidInput(f"embedding must have one row for each of the {n_rows} rows; got shape {tuple(z.shape)}.")
    return z


def _require(data: PUData, prior: float, n_draws: int, level: float) -> None:
    require_prior(prior, data.labels, data.scenario)
    if data.sample_weight is not None:
        raise InvalidInput(
            "the SCAR test counts rows and cannot use sample_weight: a row of weight 2 is not two independent rows. "
            "Leave the weights out, or repeat rows that were seen more than once."
        )
    if non_finite_columns(data.x):
        raise InvalidInput(f"column(s) {non_finite_columns(data.x)[:5]} hold NaN or infinity. Impute them first.")
    for kind, found, fewest in (
        ("labeled", data.n_labeled, FEWEST_LABELED),
        ("unlabeled", int(data.unlabeled.sum()), FEWEST_UNLABELED),
    ):
        if found < fewest:
            raise InvalidInput(f"the SCAR test needs at least {fewest} {kind} rows; got {found}. Collect more.")
    if not 0 < level < 1 or n_draws < 1 / level - 1:
        raise InvalidInput(
            f"level must lie in (0, 1) and n_draws be at least 1/level − 1, else nothing can be rejected; got "
            f"level={level}, n_draws={n_draws}."
        )
