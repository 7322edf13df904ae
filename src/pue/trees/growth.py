"""Growing trees level by level, several at once: random splits, of which the one with the smallest risk is taken.

With the squared loss (1 − v)² for positives and v² for negatives, the risk of a leaf with positive weight a = Σ w⁺,
background t = Σ (w⁺ + w⁻) and value v is a (1 − v)² + (t − a) v². It is least at v = a / t, where it is half of
t times Gini's impurity. On labels that are few and heavy a may exceed t: the weight of the negatives falls below zero,
and the risk of ever smaller leaves around labeled rows would fall without end. As in nnPU the negative part counts as
zero there, in every leaf, and the value is one (Wilton et al. 2022).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pue.trees.nodes import LEAF

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

TIE = 1e-13
"""Weights have mass one; smaller differences are rounding, and the order of sums must not decide."""


@dataclass(frozen=True, eq=False)
class Rows:
    """What trees are grown on."""

    x: NDArray[np.float32]
    """(features, rows): the rows of a node stand in order, so that a column of them is read forwards."""
    positive: Floats
    """w⁺."""
    background: Floats
    """w⁺ + w⁻, never negative."""
    mass: Floats
    """How many rows each stands for."""
    groups: Sequence[tuple[Ints, int]]
    """Rows, and how many of them a tree is grown on."""

    @cached_property
    def missing(self) -> bool:
        """Whether some value is not a number."""
        return bool(np.isnan(self.x).any())

    def draw(self, generator: np.random.Generator) -> Ints:
        """The rows of one tree, in order."""
        drawn = [own if count == len(own) else generator.permutation(own)[:count] for own, count in self.groups]
        return np.sort(np.concatenate(drawn))


@dataclass(frozen=True, eq=False)
class Sums:
    """Weights of nodes."""

    positive: Floats
    background: Floats
    mass: Floats

    def __getitem__(self, nodes: Ints | Mask) -> Sums:
        return Sums(self.positive[nodes], self.background[nodes], self.mass[nodes])

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.positive + other.positive, self.background + other.background, self.mass + other.mass)

    def __sub__(self, other: Sums) -> Sums:
        return Sums(self.positive - other.positive, self.background - other.background, self.mass - other.mass)

    @property
    def risk(self) -> Floats:
        """a (1 − v)² + max(t − a, 0) v² at its least."""
        negative = np.maximum(self.background - self.positive, 0)
        both = self.positive + negative
        return np.divide(self.positive * negative, both, out=np.zeros_like(both), where=both > 0)

    @property
    def value(self) -> Floats:
        """The share of positives, at most one; a node without background has labeled rows alone."""
        share = np.divide(self.positive, self.background, out=np.ones_like(self.positive), where=self.background > 0)
        return np.clip(share, 0, 1)


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes of one depth in several trees, and their rows, node after node."""

    tree: Ints
    sizes: Ints
    row: Ints
    positive: Floats
    background: Floats
    mass: Floats

    @classmethod
    def of(cls, rows: Rows, tree: Ints, sizes: Ints, row: Ints) -> Nodes:
        return cls(tree, sizes, row, rows.positive[row], rows.background[row], rows.mass[row])

    def keep(self, nodes: Mask) -> Nodes:
        if nodes.all():
            return self
        own = np.repeat(nodes, self.sizes)
        weights = (column[own] for column in (self.positive, self.background, self.mass))
        return Nodes(self.tree[nodes], self.sizes[nodes], self.row[own], *weights)

    @property
    def starts(self) -> Ints:
        return np.asarray(np.cumsum(self.sizes) - self.sizes)

    def sums(self, chosen: Mask | None = None) -> Sums:
        """Over all rows of each node, or over those that are chosen."""
        starts, columns = self.starts, (self.positive, self.background, self.mass)
        return Sums(*(np.add.reduceat(each if chosen is None else each * chosen, starts) for each in columns))

    def seen(self, x: NDArray[np.float32], feature: Ints) -> NDArray[np.float32]:
        """Of every row the feature that its node asks for."""
        return np.asarray(np.take(x, np.repeat(feature * x.shape[1], self.sizes) + self.row))


@dataclass(frozen=True)
class Limits:
    """How far trees grow."""

    min_leaf: float
    draws: int
    """So many random splits are weighed against each other."""


@dataclass(frozen=True, eq=False)
class Splits:
    """One split of each node."""

    feature: Ints
    """`LEAF`: none."""
    threshold: Floats
    risk: Floats
    missing_left: Mask
    """Where a row goes whose feature is not a number: where the risk of those seen is smallest; where none was seen,
    where most rows go."""

    @classmethod
    def none(cls, nodes: int) -> Splits:
        return cls(np.full(nodes, LEAF), np.zeros(nodes), np.full(nodes, np.inf), np.zeros(nodes, dtype=bool))

    def put(self, nodes: Ints, other: Splits) -> None:
        """Take the splits of `other` for these nodes."""
        self.feature[nodes], self.threshold[nodes] = other.feature, other.threshold
        self.risk[nodes], self.missing_left[nodes] = other.risk, other.missing_left

    def __getitem__(self, nodes: Ints | Mask) -> Splits:
        return Splits(self.feature[nodes], self.threshold[nodes], self.risk[nodes], self.missing_left[nodes])


@dataclass(frozen=True, eq=False)
class Level:
    """Finished nodes of one depth: those with a split have two children each on the next level, in order."""

    tree: Ints
    split: Splits
    value: Floats


@dataclass(frozen=True, eq=False)
class Dice:
    """Random numbers of nodes as a function of tree, level, node and draw: no tree waits for the others, and all nodes
    of all trees throw at once."""

    order: Ints
    """(trees, columns): a random order of the columns for each tree."""
    key: NDArray[np.uint64]
    """Of each tree."""

    @classmethod
    def of(cls, generators: list[np.random.Generator], n_columns: int) -> Dice:
        order = np.stack([generator.permutation(n_columns) for generator in generators])
        return cls(order, np.array([generator.integers(2**64, dtype=np.uint64) for generator in generators]))

    def at(self, level: int, tree: Ints) -> NDArray[np.uint64]:
        """A number for each node of a level; nodes stand in the order of their trees."""
        counts = np.bincount(tree, minlength=len(self.key))
        place = np.arange(len(tree)) - np.repeat(np.cumsum(counts) - counts, counts)
        return scrambled(scrambled(self.key[tree] + np.uint64(level)) + place.astype(np.uint64))


def scrambled(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The steps of splitmix64 (Steele et al. 2014): what differs in one bit differs in about half of them after it."""
    z = values + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


@dataclass(frozen=True, eq=False)
class Grown:
    """Trees, and what each says of the rows that it was grown on."""

    levels: list[Level]
    said: Floats
    """(trees, rows): the value of a row's leaf, if that was asked for; NaN where the tree did not get the row."""


def grow(rows: Rows, limits: Limits, seeds: list[int], *, say: bool = False) -> Grown:
    """One tree for each seed, level by level. Which trees grow together changes none of them."""
    generators = [np.random.default_rng(seed) for seed in seeds]
    own = [rows.draw(generator) for generator in generators]
    dice = Dice.of(generators, len(rows.x))
    nodes = Nodes.of(rows, np.arange(len(own)), np.array([len(each) for each in own]), np.concatenate(own))
    levels: list[Level] = []
    said = np.full((len(own), rows.x.shape[1] if say else 0), np.nan)
    while len(nodes.tree):
        sums = nodes.sums()
        mixed = (sums.positive > 0) & (sums.background - sums.positive > TIE) & (sums.mass >= 2 * limits.min_leaf)
        split, thrown = Splits.none(len(nodes.tree)), dice.at(len(levels), nodes.tree)[mixed]
        found = _best_splits(rows, nodes.keep(mixed), sums[mixed], limits, dice, thrown)
        split.put(np.flatnonzero(mixed), found)
        levels.append(Level(nodes.tree, split, sums.value))
        if say:
            _note(said, nodes, split.feature == LEAF, sums.value)
        nodes = _children(rows, nodes, split)
    return Grown(levels, said)


def _note(said: Floats, nodes: Nodes, leaf: Mask, value: Floats) -> None:
    """Note the value of the leaves for their rows."""
    sizes = nodes.sizes[leaf]
    own = np.repeat(leaf, nodes.sizes)
    said[np.repeat(nodes.tree[leaf], sizes), nodes.row[own]] = np.repeat(value[leaf], sizes)


def _best_splits(
    rows: Rows, nodes: Nodes, sums: Sums, limits: Limits, dice: Dice, thrown: NDArray[np.uint64]
) -> Splits:
    """Of each node the best of some random splits; features that do not vary in it do not count."""
    best, weighed = Splits.none(len(nodes.tree)), np.zeros(len(nodes.tree), dtype=np.int64)
    columns, todo = _columns(dice.order, nodes.tree, thrown), np.arange(len(nodes.tree))
    for draw in range(len(rows.x)):
        lacking = weighed[todo] < limits.draws
        nodes, todo = nodes.keep(lacking), todo[lacking]
        if len(todo) == 0:
            break
        place = (scrambled(thrown[todo] + np.uint64(draw)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        split, varies = _weigh(rows, nodes, sums[todo], columns(todo, draw), place, limits.min_leaf)
        better = split.risk < best.risk[todo] - TIE
        best.put(todo[better], split[better])
        weighed[todo] += varies
    return best


def _columns(order: Ints, tree: Ints, thrown: NDArray[np.uint64]) -> Callable[[Ints, int], Ints]:
    """(nodes, draw) → columns: each node goes through all of them once, from a random one on and in random steps, in
    the tree's order."""
    n = order.shape[1]
    steps = np.array([step for step in range(1, n + 1) if math.gcd(step, n) == 1])
    starts = (scrambled(~thrown) % np.uint64(n)).astype(np.int64)
    strides = steps[(scrambled(scrambled(~thrown)) % np.uint64(len(steps))).astype(np.int64)]
    return lambda nodes, draw: order[tree[nodes], (starts[nodes] + draw * strides[nodes]) % n]


def _weigh(rows: Rows, nodes: Nodes, sums: Sums, feature: Ints, place: Floats, min_leaf: float) -> tuple[Splits, Mask]:
    """This split of each node, its risk infinite where it is not allowed, and whether the feature varies there."""
    seen = nodes.seen(rows.x, feature)
    least, most = (np.fmin, np.fmax) if rows.missing else (np.minimum, np.maximum)  # the first two pass NaN over
    low = least.reduceat(seen, nodes.starts).astype(np.float64)
    high = most.reduceat(seen, nodes.starts).astype(np.float64)
    threshold = low + place * (high - low)
    threshold = np.where(threshold >= high, low, threshold)  # rounded up
    left = nodes.sums(seen <= np.repeat(threshold, nodes.sizes))
    right = sums - left
    split = Splits(feature, threshold, _risk(left, right, min_leaf), left.mass > right.mass)
    varies = high > low
    if rows.missing:
        lost = nodes.sums(np.isnan(seen))
        varies |= (lost.mass > 0) & (high == low)
        split = _with_missing(split, left, right, lost, high, min_leaf)
    return replace(split, risk=np.where(varies, split.risk, np.inf)), varies


def _with_missing(split: Splits, left: Sums, right: Sums, lost: Sums, high: Floats, min_leaf: float) -> Splits:
    """Rows without the feature, `lost`, stand on the right so far: the split with the smallest risk of those that leave
    them there, take them to the left, or set them apart from all others."""
    moved = _risk(left + lost, right - lost, min_leaf)
    apart = _risk(left + right - lost, lost, min_leaf)
    risk = np.minimum(np.minimum(split.risk, moved), apart)
    alone, some = apart < np.minimum(split.risk, moved) - TIE, lost.mass > 0
    goes_left = ~alone & (moved < split.risk - TIE)
    threshold = np.where(alone, high, split.threshold)
    return Splits(split.feature, threshold, risk, np.where(some, goes_left, split.missing_left))


def _risk(left: Sums, right: Sums, min_leaf: float) -> Floats:
    """Of both children; infinite where one has too few rows."""
    allowed = (left.mass >= min_leaf) & (right.mass >= min_leaf)
    return np.where(allowed, left.risk + right.risk, np.inf)


def _children(rows: Rows, nodes: Nodes, split: Splits) -> Nodes:
    """The children of all nodes that were split, left before right."""
    divided = split.feature != LEAF
    nodes, split = nodes.keep(divided), split[divided]
    seen = nodes.seen(rows.x, split.feature)
    goes_right = seen > np.repeat(split.threshold, nodes.sizes)
    if rows.missing:
        goes_right |= np.isnan(seen) & ~np.repeat(split.missing_left, nodes.sizes)
    child = 2 * np.repeat(np.arange(len(nodes.tree)), nodes.sizes) + goes_right
    sizes = np.bincount(child, minlength=2 * len(nodes.tree))
    # NumPy sorts short integers by their digits, in a third of the time.
    key = child.astype(np.uint16) if len(sizes) <= 2**16 else child
    return Nodes.of(rows, np.repeat(nodes.tree, 2), sizes, nodes.row[np.argsort(key, kind="stable")])
