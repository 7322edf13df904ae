"""Slow twins: every formula of the core once more, in plain loops over Python floats, each with its equation.

They are written from the formulas, not from the code: where the library works with row weights, the twins take means
over P, U and the biased negatives. Section numbers are those of the method notes. At the end stands the strategy for
the samples on which the library and its twins are compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st

Loss = Callable[[float], float]
Numbers = Sequence[float]

# ---------------------------------------------------------------------------------------------- losses


def sigmoid(z: float) -> float:
    """ℓ(z) = σ(−z) = 1 / (1 + eᶻ)."""
    return 1 / (1 + math.exp(z))


def logistic(z: float) -> float:
    """ℓ(z) = log(1 + e⁻ᶻ)."""
    return math.log1p(math.exp(-z))


def zero_one(z: float) -> float:
    """ℓ(z) = 0 for z > 0, 1 for z < 0, one half at zero."""
    if z > 0:
        return 0.0
    return 1.0 if z < 0 else 0.5


def ramp(z: float) -> float:
    """ℓ(z) falls in a straight line from 1 at z = −1 to 0 at z = 1."""
    if z <= -1:
        return 1.0
    return 0.0 if z >= 1 else 0.5 - z / 2


def hinge(z: float) -> float:
    """ℓ(z) = max(0, 1 − z)."""
    return max(0.0, 1 - z)


def double_hinge(z: float) -> float:
    """ℓ(z) = −z below −1, (1 − z)/2 between −1 and 1, 0 above."""
    if z <= -1:
        return -z
    return 0.0 if z >= 1 else (1 - z) / 2


def squared(z: float) -> float:
    """ℓ(z) = (z − 1)² / 4."""
    return (z - 1) * (z - 1) / 4


def savage(z: float) -> float:
    """ℓ(z) = 4 / (1 + eᶻ)²."""
    return 4 / (1 + math.exp(z)) ** 2


LOSSES: dict[str, Loss] = {
    "double_hinge": double_hinge,
    "hinge": hinge,
    "logistic": logistic,
    "ramp": ramp,
    "savage": savage,
    "sigmoid": sigmoid,
    "squared": squared,
    "zero_one": zero_one,
}

# ---------------------------------------------------------------------- weights, row by row: (w⁺, w⁻)


def background(labels: Sequence[int], scenario: str, weight: Numbers | None = None) -> list[float]:
    """§2.1: the rows that are a draw from p(x), with mass one: all rows, or in case-control the unlabeled ones."""
    mass = []
    for i, label in enumerate(labels):
        drawn_from_p = scenario == "single_sample" or label == 0
        mass.append((1.0 if weight is None else weight[i]) if drawn_from_p else 0.0)
    return [m / math.fsum(mass) for m in mass]


def uniform(
    labels: Sequence[int], prior: float, scenario: str, weight: Numbers | None = None
) -> tuple[list[float], list[float]]:
    """§7.1: w⁺ = π / n_P on the labeled rows."""
    n_labeled = sum(1 for label in labels if label == 1)
    return normalized_inverse_propensity(labels, [1.0] * n_labeled, prior, scenario, weight)


def normalized_inverse_propensity(
    labels: Sequence[int], propensity: Numbers, prior: float, scenario: str, weight: Numbers | None = None
) -> tuple[list[float], list[float]]:
    """§5.1: w⁺ᵢ = π ωᵢ, ωᵢ = (1/eᵢ) / Σ_P (1/eⱼ); a sample weight multiplies 1/e."""
    inverse = _inverse_rows(labels, propensity, weight)
    total = math.fsum(inverse)
    return _against([prior * r / total for r in inverse], background(labels, scenario, weight))


def inverse_propensity(
    labels: Sequence[int], propensity: Numbers, scenario: str, weight: Numbers | None = None
) -> tuple[list[float], list[float]]:
    """§8.1: w⁺ᵢ = 1 / (n eᵢ), n the (weighted) number of rows drawn from p(x)."""
    n = 0.0
    for i, label in enumerate(labels):
        if scenario == "single_sample" or label == 0:
            n += 1.0 if weight is None else weight[i]
    inverse = _inverse_rows(labels, propensity, weight)
    return _against([r / n for r in inverse], background(labels, scenario, weight))


def _inverse_rows(labels: Sequence[int], propensity: Numbers, weight: Numbers | None) -> list[float]:
    rows, seen = [], 0
    for i, label in enumerate(labels):
        if label == 1:
            rows.append((1.0 if weight is None else weight[i]) / propensity[seen])
            seen += 1
        else:
            rows.append(0.0)
    return rows


def _against(positive: list[float], whole: list[float]) -> tuple[list[float], list[float]]:
    return positive, [b - w for b, w in zip(whole, positive, strict=True)]


def biased_negatives(labels: Sequence[int], rho: float, propensity: Numbers | None = None) -> list[float]:
    """§7.3: ρ ω on the rows labeled −1, ω normalised over them alone."""
    rows, seen = [], 0
    for label in labels:
        if label == -1:
            rows.append(1.0 if propensity is None else 1 / propensity[seen])
            seen += 1
        else:
            rows.append(0.0)
    return [rho * r / math.fsum(rows) for r in rows]


def kish(weights: Numbers) -> float:
    """§2.2: (Σw)² / Σw²."""
    return math.fsum(weights) ** 2 / math.fsum(w * w for w in weights)


def quantile(values: Numbers, share: float) -> float:
    """The empirical quantile, linear between the order statistics."""
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])


# -------------------------------------------------------------------- risks, from means over P, U and bN


def mean(values: Numbers) -> float:
    return math.fsum(values) / len(values)


def mean_one(propensity: Numbers) -> list[float]:
    """§5.2: v = n_P ω, which has mean one over the labeled rows."""
    total = math.fsum(1 / e for e in propensity)
    return [len(propensity) / (e * total) for e in propensity]


def pu_parts(
    g_p: Numbers, g_u: Numbers, prior: float, loss: Loss, v: Numbers | None = None, *, single: bool = False
) -> tuple[float, float]:
    """§7.1: R⁺ = π A⁺ and R⁻ = U⁻ − π A⁻. In a single sample U⁻ is the mean over P and U together (§2.1)."""
    v = [1.0] * len(g_p) if v is None else v
    a_plus = mean([vi * loss(g) for vi, g in zip(v, g_p, strict=True)])
    a_minus = mean([vi * loss(-g) for vi, g in zip(v, g_p, strict=True)])
    everyone = [*g_p, *g_u] if single else g_u
    u_minus = mean([loss(-g) for g in everyone])
    return prior * a_plus, u_minus - prior * a_minus


def ipw_parts(
    g_p: Numbers, g_u: Numbers, propensity: Numbers, loss: Loss, *, single: bool = False
) -> tuple[float, float]:
    """§8.1: A^± = (1/n) Σ_P ℓ(±g) / e; R⁺ = A⁺, R⁻ = U⁻ − A⁻; no prior."""
    everyone = [*g_p, *g_u] if single else g_u
    n = len(everyone)
    a_plus = math.fsum(loss(g) / e for g, e in zip(g_p, propensity, strict=True)) / n
    a_minus = math.fsum(loss(-g) / e for g, e in zip(g_p, propensity, strict=True)) / n
    return a_plus, mean([loss(-g) for g in everyone]) - a_minus


def nnpu_value(positive: float, negative: float, beta: float = 0.0) -> float:
    """§7.2: R⁺ + R⁻ while R⁻ ≥ −β, else R⁺ − β."""
    return positive + negative if negative >= -beta else positive - beta


def nnpu_followed(positive: float, negative: float, at_negative: float, beta: float, gamma: float) -> float:
    """§7.2: the function whose gradient is followed; its branch is fixed by R⁻ at the current point."""
    return positive + negative if at_negative >= -beta else -gamma * negative


def clamp(positive: float, negative: float) -> float:
    """§7.2, the simplified form: R⁺ + max(0, R⁻)."""
    return positive + max(0.0, negative)


def absolute(positive: float, negative: float) -> float:
    """R⁺ + |R⁻|."""
    return positive + abs(negative)


def imbalanced_parts(
    g_p: Numbers,
    g_u: Numbers,
    prior: float,
    target: float,
    loss: Loss,
    v: Numbers | None = None,
    *,
    single: bool = False,
) -> tuple[float, float]:
    """§8.6: R⁺ = π' mean_P ℓ(g), R⁻ = ((1 − π') / (1 − π)) (mean_U ℓ(−g) − π mean_P ℓ(−g))."""
    v = [1.0] * len(g_p) if v is None else v
    everyone = [*g_p, *g_u] if single else g_u
    on_p = [vi * loss(-g) for vi, g in zip(v, g_p, strict=True)]
    positive = target * mean([vi * loss(g) for vi, g in zip(v, g_p, strict=True)])
    negative = (1 - target) / (1 - prior) * (mean([loss(-g) for g in everyone]) - prior * mean(on_p))
    return positive, negative


def dist_pu(
    g_p: Numbers, g_u: Numbers, prior: float, entropy: float = 0.0, v: Numbers | None = None, *, single: bool = False
) -> float:
    """§7.4: Σ_P (v/b_P)(1 − s) + |m_U − π| / (2π), and μ · mean entropy of scores clamped to ±10."""
    v = [1.0] * len(g_p) if v is None else v
    everyone = [*g_p, *g_u] if single else g_u
    label_term = mean([vi * (1 - 1 / (1 + math.exp(-g))) for vi, g in zip(v, g_p, strict=True)])
    predicted = mean([1 / (1 + math.exp(-g)) for g in everyone])
    spread = mean([binary_entropy(max(-10.0, min(10.0, g))) for g in everyone])
    return label_term + abs(predicted - prior) / (2 * prior) + entropy * spread


def binary_entropy(g: float) -> float:
    """−s log s − (1 − s) log(1 − s), s = 1 / (1 + e⁻ᵍ)."""
    s = 1 / (1 + math.exp(-g))
    return -s * math.log(s) - (1 - s) * math.log(1 - s)


@dataclass(frozen=True)
class Part:
    """The rows of one kind (P, bN or those drawn from p): scores, σ̂, and the mean-one weights v."""

    g: Numbers
    sigma: Numbers
    v: Numbers

    def rows(self) -> Any:
        return zip(self.g, self.sigma, self.v, strict=True)


def pubn(p: Part, drawn: Part, prior: float, eta: float, loss: Loss, bn: Part | None = None, rho: float = 0.0) -> float:
    """§7.3, step 3: three means, over P, over bN and over the rows drawn from p(x), each with its own indicator."""
    on_p = []
    for g, sigma, v in p.rows():
        far = loss(-g) * (1 - sigma) / sigma if sigma > eta else 0.0
        on_p.append(v * (loss(g) + far))
    risk = prior * mean(on_p)
    if bn is not None:
        # The authors' own form: ℓ(−g) / σ̂ above the threshold, ℓ(−g) below.
        risk += rho * mean([v * (loss(-g) / sigma if sigma > eta else loss(-g)) for g, sigma, v in bn.rows()])
    kept = [(1 - sigma) * loss(-g) if sigma <= eta else 0.0 for g, sigma, _ in drawn.rows()]
    return risk + mean(kept)


def pubn_region_parts(
    f_p: Numbers, f_bn: Numbers, f_drawn: Numbers, prior: float, rho: float, loss: Loss
) -> tuple[float, float]:
    """§7.3, step 1: P and bN are both "positive" for σ."""
    positive = prior * mean([loss(f) for f in f_p]) + rho * mean([loss(f) for f in f_bn])
    negative = mean([loss(-f) for f in f_drawn])
    negative -= prior * mean([loss(-f) for f in f_p]) + rho * mean([loss(-f) for f in f_bn])
    return positive, negative


def pn_risk(g: Numbers, y: Sequence[int], loss: Loss) -> float:
    """The supervised risk (1/n) Σ L(g, y), which every PU risk tries to estimate."""
    return mean([loss(gi) if yi == 1 else loss(-gi) for gi, yi in zip(g, y, strict=True)])


def gradient(f: Callable[[list[float]], float], at: Numbers, step: float = 1e-6) -> list[float]:
    """Central finite differences."""
    slopes = []
    for i in range(len(at)):
        up, down = list(at), list(at)
        up[i] += step
        down[i] -= step
        slopes.append((f(up) - f(down)) / (2 * step))
    return slopes


# ------------------------------------------------------------------------------------- theory (§11)


def ipw_bound(n: int, loss_max: float, eta: float) -> float:
    """§11-6: L_max √(ln(2/η) / (2n))."""
    return loss_max * math.sqrt(math.log(2 / eta) / (2 * n))


def common_pu_bound(n_p: int, n_u: int, prior: float, loss_max: float, eta: float) -> float:
    """§11-7, the paper's Theorem 2: 2π L_max n_U / (n_U + n_P) on top of Theorem 1."""
    return 2 * prior * loss_max * n_u / (n_u + n_p) + ipw_bound(n_p + n_u, loss_max, eta)


def weighted_mean(propensity: Numbers, h: Numbers) -> float:
    """μ_e = Σ r h / Σ r, r = 1/e."""
    return math.fsum(hi / e for e, hi in zip(propensity, h, strict=True)) / math.fsum(1 / e for e in propensity)


def normalization_gap(propensity: Numbers, h: Numbers, n_positive: float) -> float:
    """§11-1 by its definition, μ_e − μ_N, without the identity."""
    unnormalized = math.fsum(hi / e for e, hi in zip(propensity, h, strict=True)) / n_positive
    return weighted_mean(propensity, h) - unnormalized


def estimation_gap(propensity: Numbers, estimate: Numbers, h: Numbers) -> float:
    """§11-2 by its definition, μ̂ − μ_e, without the identity."""
    return weighted_mean(estimate, h) - weighted_mean(propensity, h)


def estimation_bound(propensity: Numbers, estimate: Numbers, factor: float, loss_max: float) -> float:
    """§11-2: factor · L_max Σ|1/ê − 1/e| / Σ 1/ê."""
    delta = math.fsum(abs(1 / a - 1 / e) for a, e in zip(estimate, propensity, strict=True))
    return factor * loss_max * delta / math.fsum(1 / a for a in estimate)


def normalization_bound(propensity: Numbers, n_positive: float, loss_max: float, *, safe: bool) -> float:
    """§11-1: 2 L_max |W − N_P| over N_P (safe) or over W (as printed)."""
    total = math.fsum(1 / e for e in propensity)
    return 2 * loss_max * abs(total - n_positive) / (n_positive if safe else total)


def weighting_gap_bound(weights: Numbers, other: Numbers, prior: float, h_max: float) -> float:
    """§11-7, the bound that can be proved: π max|h| Σ |ω − ω'|."""
    total, other_total = math.fsum(weights), math.fsum(other)
    return prior * h_max * math.fsum(abs(a / total - b / other_total) for a, b in zip(weights, other, strict=True))


def bekker_bias(propensity: Numbers, estimate: Numbers, h: Numbers, n: int) -> float:
    """(1/n) Σ_{positives} (1 − e/ê) h: true minus expected risk of unnormalised IPW (Bekker et al. 2019)."""
    return math.fsum((1 - e / a) * hi for e, a, hi in zip(propensity, estimate, h, strict=True)) / n


def estimation_bias(
    propensity: Numbers, estimate: Numbers, h: Numbers, n: int, labeled: Sequence[bool] | None = None
) -> float:
    """§11-4: (1/n) Σ_{positives} (1 − ω̂/ω) h with ω = 1/(eW), ω̂ = 1/(êŴ)."""
    if labeled is None:  # each sum replaced by its expectation
        total = math.fsum(e * (1 / e) for e in propensity)
        estimated = math.fsum(e * (1 / a) for e, a in zip(propensity, estimate, strict=True))
    else:
        total = math.fsum(1 / e for e, s in zip(propensity, labeled, strict=True) if s)
        estimated = math.fsum(1 / a for a, s in zip(estimate, labeled, strict=True) if s)
    bias = 0.0
    for e, a, hi in zip(propensity, estimate, h, strict=True):
        omega, omega_hat = 1 / (e * total), 1 / (a * estimated)
        bias += (1 - omega_hat / omega) * hi / n
    return bias


# -------------------------------------------------------------------------- metrics and decisions (§10.1)


def confusion(y: Sequence[int], called: Sequence[int]) -> tuple[int, int, int, int]:
    """True positives, false positives, false negatives, true negatives."""
    counts = [0, 0, 0, 0]
    for truth, call in zip(y, called, strict=True):
        if truth == 1:
            counts[0 if call else 2] += 1
        else:
            counts[1 if call else 3] += 1
    return counts[0], counts[1], counts[2], counts[3]


def auc(y: Sequence[int], scores: Numbers) -> float:
    """The share of (positive, negative) pairs in the right order; a tie counts one half."""
    right, pairs = 0.0, 0
    for yi, gi in zip(y, scores, strict=True):
        for yj, gj in zip(y, scores, strict=True):
            if yi == 1 and yj != 1:
                pairs += 1
                right += 1.0 if gi > gj else 0.5 if gi == gj else 0.0
    return right / pairs


def average_precision(y: Sequence[int], scores: Numbers) -> float:
    """AP = Σ_k (R_k − R_{k−1}) P_k over the distinct thresholds, from the highest down."""
    total, last_recall = 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        hits, false_alarms, misses, _ = confusion(y, [int(g >= threshold) for g in scores])
        recall = hits / (hits + misses)
        total += (recall - last_recall) * hits / (hits + false_alarms)
        last_recall = recall
    return total


def estimated_f1(scores: Numbers, positive: Numbers, negative: Numbers, threshold: float) -> float:
    """F1(t) = 2 P(positive, called) / (P(positive) + P(called)), each estimated from the row weights."""
    hits = math.fsum(w for g, w in zip(scores, positive, strict=True) if g >= threshold)
    called = math.fsum(p + m for g, p, m in zip(scores, positive, negative, strict=True) if g >= threshold)
    return 2 * hits / (math.fsum(positive) + called)


# ----------------------------------------------------------------------------------- samples to try them on


def numbers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_nan=False, allow_subnormal=False)


@dataclass(frozen=True)
class Sample:
    """A small PU sample as plain lists: what the twins eat. `tensor` gives the library's food."""

    labels: list[int]
    scores: list[float]
    propensity: list[float]
    """Of the labeled rows, in order."""
    prior: float
    scenario: str
    weight: list[float] | None

    @property
    def single(self) -> bool:
        return self.scenario == "single_sample"

    def scores_of(self, label: int) -> list[float]:
        return self.of(self.scores, label)

    def of(self, values: Numbers, label: int) -> list[float]:
        return [value for value, own in zip(values, self.labels, strict=True) if own == label]

    def drawn(self, values: Numbers) -> list[float]:
        """The values of the rows that are a draw from p(x)."""
        return list(values) if self.single else self.of(values, 0)


def tensor(values: Numbers, **options: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64, **options)


@st.composite
def pu_samples(
    draw: st.DrawFn, *, weighted: bool = False, negatives: bool = False, scenario: str | None = None
) -> Sample:
    """Samples of up to a dozen rows in any order; the prior is possible, that is, not below the labeled share."""
    labels = [1] * draw(st.integers(1, 4)) + [0] * draw(st.integers(1, 5))
    if negatives:
        labels += [-1] * draw(st.integers(1, 3))
    labels = list(draw(st.permutations(labels)))
    n = len(labels)
    weight = draw(st.lists(numbers(0.1, 3), min_size=n, max_size=n)) if weighted else None
    scenario = scenario or draw(st.sampled_from(["single_sample", "case_control"]))
    mass = weight or [1.0] * n
    share = math.fsum(m for m, label in zip(mass, labels, strict=True) if label == 1) / math.fsum(mass)
    lowest = share if scenario == "single_sample" else 0.0
    return Sample(
        labels=labels,
        scores=draw(st.lists(numbers(-4, 4), min_size=n, max_size=n)),
        propensity=draw(st.lists(numbers(0.02, 1), min_size=labels.count(1), max_size=labels.count(1))),
        prior=lowest + draw(numbers(0.05, 0.95)) * (1 - lowest),
        scenario=scenario,
        weight=weight,
    )


# ------------------------------------------------------------------------------------------------------- communities


def nearest_others(points: list[list[float]], k: int) -> list[list[int]]:
    """Of every point the k nearest others."""
    return [
        sorted((j for j in range(len(points)) if j != i), key=lambda j, i=i: math.dist(points[i], points[j]))[:k]
        for i in range(len(points))
    ]


def shared_neighbors(near: list[list[int]]) -> list[list[float]]:
    """Edges between neighbors, weighted by how many neighbors both have; a row is its own neighbor."""
    around = [{i, *row} for i, row in enumerate(near)]
    return [
        [
            float(len(around[i] & around[j])) if i != j and (i in near[j] or j in near[i]) else 0.0
            for j in range(len(near))
        ]
        for i in range(len(near))
    ]


def gamma_poisson(labels: Any, rows: Any, strength: float) -> float:
    """log P(counts) if rates follow a Gamma law of this strength around the common rate, but for what does not depend
    on the strength."""
    common = sum(labels) / sum(rows)
    total = 0.0
    for count, n in zip(labels, rows, strict=True):
        a = strength * common
        total += math.lgamma(count + a) - math.lgamma(a) + a * math.log(strength) - (count + a) * math.log(n + strength)
    return total


def edges(gray: list[list[float]]) -> list[float]:
    """Strength of the edges in eight directions, averaged over overlapping cells, of length one."""
    height, width = len(gray), len(gray[0])

    def at(i: int, j: int) -> float:
        return gray[min(max(i, 0), height - 1)][min(max(j, 0), width - 1)]

    down, across = max(1, round(height / 7)), max(1, round(width / 7))
    found = []
    for k in range(8):
        angle = 2 * math.pi * k / 8
        strong = [
            [
                max(
                    0.0,
                    (at(i, j + 1) - at(i, j - 1)) * math.cos(angle) + (at(i + 1, j) - at(i - 1, j)) * math.sin(angle),
                )
                for j in range(width)
            ]
            for i in range(height)
        ]
        for top in range(-(down // 2), height + down // 2 - 2 * down + 1, down):
            for left in range(-(across // 2), width + across // 2 - 2 * across + 1, across):
                cell = [
                    strong[i][j]
                    for i in range(max(0, top), min(height, top + 2 * down))
                    for j in range(max(0, left), min(width, left + 2 * across))
                ]
                found.append(sum(cell) / len(cell))
    length = math.sqrt(sum(value**2 for value in found))
    return [value / length for value in found]


# ---------------------------------------------------------------------------------------------- agreement of views


def simclr(one: Sequence[Numbers], other: Sequence[Numbers], temperature: float) -> float:
    """−mean log [exp(cos(z, z⁺)/τ) / Σ_{z' ≠ z} exp(cos(z, z')/τ)] over all 2n views (Chen et al. 2020, Eq. 1)."""
    views = [*one, *other]
    n, total = len(one), 0.0

    def likeness(a: Numbers, b: Numbers) -> float:
        dot = sum(x * y for x, y in zip(a, b, strict=True))
        return dot / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b)) / temperature

    for place, view in enumerate(views):
        others = [math.exp(likeness(view, views[k])) for k in range(2 * n) if k != place]
        total -= likeness(view, views[(place + n) % (2 * n)]) - math.log(sum(others))
    return total / (2 * n)


def vicreg(one: Sequence[Numbers], other: Sequence[Numbers]) -> float:
    """25 · mean (z − z')² + Σ over both of [25/2 · mean max(0, 1 − √(var + 1e-4)) + Σ_{i≠j} cov² / d]."""
    n, d = len(one), len(one[0])
    total = 25 * sum((one[i][j] - other[i][j]) ** 2 for i in range(n) for j in range(d)) / (n * d)
    for found in (one, other):
        mean = [sum(row[j] for row in found) / n for j in range(d)]
        for i in range(d):
            for j in range(d):
                cov = sum((row[i] - mean[i]) * (row[j] - mean[j]) for row in found) / (n - 1)
                total += 12.5 * max(0.0, 1 - math.sqrt(cov + 1e-4)) / d if i == j else cov**2 / d
    return total
