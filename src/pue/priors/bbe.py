"""Best bin estimation (Garg et al. 2021): somewhere at the top of the scores there should be positives only."""

from __future__ import annotations

import math

import numpy as np

from pue.core.data import PUData
from pue.priors.evidence import Evidence, Floats, as_evidence
from pue.priors.shares import held_inside, prior_from_unlabeled

DELTA, GAMMA = 0.1, 0.01
"""Confidence of the bound and its slack, as in the authors' code."""


def bbe(data: PUData | Evidence) -> float:
    """α = F̄_U(t) / F̄_P(t), the ratio of the shares of U and P above the threshold t that minimises

        F̄_U(t) / F̄_P(t) + ((1 + γ) / F̄_P(t)) (√(ln(4/δ) / 2n_U) + √(ln(4/δ) / 2n_P)).

    It assumes SCAR and a top bin without negatives. Under biased labeling it tends to at least π·ē / max e.
    """
    rows = as_evidence(data)
    return held_inside(prior_from_unlabeled(best_bin(rows, rows.q), rows), rows, "BBE")


def best_bin(rows: Evidence, score: Floats) -> float:
    """α from any score that ranks rows by how likely they are labeled."""
    above_p, above_u = tails(rows, score)
    n_p, n_u = rows.labeled_mass, rows.unlabeled_mass
    slack = (1 + GAMMA) * math.sqrt(math.log(4 / DELTA) / 2) * (1 / math.sqrt(n_u) + 1 / math.sqrt(n_p))
    best = np.argmin((above_u + slack) / above_p)
    return float(above_u[best] / above_p[best])


def tails(rows: Evidence, score: Floats) -> tuple[Floats, Floats]:
    """F̄_P(t) and F̄_U(t): shares of the labeled and unlabeled mass at or above t, at each labeled row's score t."""
    # Between two labeled scores F̄_P stands still and F̄_U only grows, so no other threshold can be the best.
    at = np.unique(score[rows.labeled])
    shares = []
    for mask in (rows.labeled, rows.unlabeled):
        order = np.argsort(score[mask], kind="stable")
        below = np.concatenate([[0.0], np.cumsum(rows.mass[mask][order])])
        shares.append(1 - below[np.searchsorted(score[mask][order], at, side="left")] / below[-1])
    above_p, above_u = shares
    return above_p, above_u
