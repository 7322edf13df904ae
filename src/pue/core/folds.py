"""Folds that depend on what a row *is*, not on where it stands.

Equal rows always share a fold: a labeled row and its unlabeled copy (case-control), or a row repeated k times. So a
held-out row has truly not been seen, and shuffling the table or replacing repeats by weights changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import gen_batches
from torch import Tensor

from pue.core.data import Features
from pue.errors import InvalidInput

_GOLDEN = 0x9E3779B97F4A7C15
Run = Callable[[Callable[[int], Tensor], Sequence[int]], Sequence[Tensor]]
"""The work on every item, in their order."""


def content_folds(
    x: Features, labels: Tensor, k: int, *, groups: NDArray[np.int64] | None = None, seed: int = 0
) -> NDArray[np.int64]:
    """A fold 0…k−1 for every row: distinct rows are dealt out in the order of their hash, stratum by stratum.

    Rows of one of `groups` share a fold as equal rows do: the same patient, or a family of near-identical images
    (`propensity.duplicates.families`). A group with a labeled row counts as labeled.

    >>> import torch
    >>> x = torch.tensor([[1.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> folds = content_folds(x, torch.tensor([1, 0, 1, 0, 0, 0]), 2)
    >>> bool(folds[0] == folds[1]), sorted(folds[[0, 2]].tolist())
    (True, [0, 1])
    """
    stratum, inverse = _distinct(x, labels, seed, groups)
    most = _scarcest(stratum)
    if not 2 <= k <= most:
        raise InvalidInput(
            f"{k} folds need at least {max(k, 2)} distinct labeled and as many distinct unlabeled rows; the scarcer of "
            f"the two has {most}. Use fewer folds or label more rows."
        )
    folds = np.empty(len(stratum), dtype=np.int64)
    for value in np.unique(stratum):
        members = np.flatnonzero(stratum == value)  # already in the order of their hash
        folds[members] = np.arange(len(members)) % k
    return folds[inverse]


def content_holdout(x: Features, labels: Tensor, share: float, *, seed: int = 0) -> NDArray[np.bool_]:
    """Mask of a held-out share of the distinct rows of every stratum: the first in the order of their hash."""
    stratum, inverse = _distinct(x, labels, seed)
    if _scarcest(stratum) < 2:
        raise InvalidInput(
            "holding rows out needs at least 2 distinct labeled and 2 distinct unlabeled rows. Set validation=0."
        )
    held_out = np.zeros(len(stratum), dtype=bool)
    for value in np.unique(stratum):
        members = np.flatnonzero(stratum == value)
        held_out[members[: min(len(members) - 1, max(1, round(share * len(members))))]] = True
    return held_out[inverse]


def held_out_values(
    fold: Tensor, values: Callable[[int], Tensor], folds: int, *, run: Run = lambda work, items: list(map(work, items))
) -> Tensor:
    """`values(k)` are those of the rows of fold k, in order, from a model that has not seen them; here, of all rows.

    Folds from `folds` on are left out: their rows get NaN. `run` does the work on each fold, one after the other unless
    it knows better.

    >>> import torch
    >>> held_out_values(torch.tensor([0, 1, 0, 2]), lambda k: torch.full((2 - k,), 10.0 * k), 2)
    tensor([ 0., 10.,  0., nan])
    """
    parts = run(values, range(folds))
    found = parts[0].new_full((len(fold), *parts[0].shape[1:]), math.nan)
    for k, part in enumerate(parts):
        found[fold == k] = part
    return found


def most_folds(x: Features, labels: Tensor, *, groups: NDArray[np.int64] | None = None) -> int:
    """The largest k for which every fold gets a labeled and an unlabeled row, or group."""
    return _scarcest(_distinct(x, labels, 0, groups)[0])


def _scarcest(stratum: NDArray[np.int64]) -> int:
    return int(min((stratum == 1).sum(), (stratum == 0).sum()))


def _distinct(
    x: Features, labels: Tensor, seed: int, groups: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Label of each distinct row, or group, in the order of their hash, and which of them each row is."""
    hashes = row_hash(x, seed=seed)
    if groups is not None:
        hashes = _joint_hash(hashes, groups)
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    # A labeled row and its unlabeled copy are one row, and it counts as labeled.
    stratum = np.full(len(first), -1, dtype=np.int64)
    np.maximum.at(stratum, inverse, labels.numpy().astype(np.int64))
    return stratum, inverse


def _joint_hash(hashes: NDArray[np.uint64], groups: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Of each row the smallest hash in its group: the names of groups do not matter."""
    if groups.shape != hashes.shape:
        raise InvalidInput(f"groups must name the group of each of the {len(hashes)} rows; got shape {groups.shape}.")
    member = np.unique(groups, return_inverse=True)[1]
    least = np.full(int(member.max()) + 1, np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(least, member, hashes)
    return least[member]


def row_hash(x: Features, *, seed: int = 0) -> NDArray[np.uint64]:
    """A 64-bit hash of every row's content: a random linear form over the row's words, then scrambled."""
    rng = np.random.default_rng(seed)
    with np.errstate(over="ignore"):
        if sparse.issparse(x):
            x = x.tocsr().copy()
            x.sum_duplicates()
            x.eliminate_zeros()
            slots = rng.integers(1, 2**63, size=x.shape[1], dtype=np.uint64) | np.uint64(1)
            words = _scramble(x.data.astype(np.float64).view(np.uint64)) * slots[x.indices]
            total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(words, dtype=np.uint64)])
            return _scramble(total[x.indptr[1:]] - total[x.indptr[:-1]])
        flat = x.flatten(1).contiguous().numpy()
        n_words = -(-flat[:1].nbytes // 8)
        slots = rng.integers(1, 2**63, size=n_words, dtype=np.uint64) | np.uint64(1)
        # Piece by piece: the words of the whole table, scrambled, would take three times its size.
        return np.concatenate([_hash_dense(flat[rows], slots) for rows in gen_batches(len(flat), 4096)])


def _hash_dense(flat: NDArray[Any], slots: NDArray[np.uint64]) -> NDArray[np.uint64]:
    if flat.dtype.kind == "f":
        flat = flat + np.zeros((), flat.dtype)  # −0.0 and 0.0 are the same value
    raw = np.ascontiguousarray(flat).view(np.uint8).reshape(len(flat), -1)
    raw = np.pad(raw, ((0, 0), (0, -raw.shape[1] % 8)))
    with np.errstate(over="ignore"):
        return _scramble((_scramble(raw.view(np.uint64)) * slots).sum(axis=1, dtype=np.uint64))


def _scramble(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64."""
    z = z + np.uint64(_GOLDEN)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
