"""A prior from several clues, weighed by what each was worth on tables whose truth is known.

No estimator below is right without an assumption: SCAR, classes that are apart somewhere, labels of a known frequency.
Which of them holds on a table nobody can see. So their answers are clues:

    logit π = β₀ + (β₁ + β₂ logit AUC) logit DEDPUL + β₃ logit labeled share + noise,

AUC being that of the held-out scores, labeled against not: the better they tell rows apart, the more DEDPUL is worth.
`benchmarks/studies/prior_clues.py` fitted β and the spread of the noise on development tables: real and generated, five
ways of labeling, π from .01 to .75, from 5 to 70 % of the positives labeled. The interval is what was left unexplained
there, a table at a time: it is as wide as the clues were wrong on tables that had no part in the fit. What it assumes
is a table like those. In particular it leans on the labeled share: where far fewer or far more of the positives are
labeled, π is higher or lower than it says.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit
from scipy.stats import rankdata

from pue.core.data import Scenario
from pue.priors.dedpul import dedpul
from pue.priors.evidence import Evidence, Floats
from pue.priors.shares import lowest_prior

SURE = 1e-3
"""Shares are kept so far from zero and one before their log-odds are taken."""
MOST_LABELED = 0.7
"""Up to such a share of the positives was labeled in the development problems, so that an interval goes down to the
prior at which it would be as many. Where positives are rare, the clues that overlap leaves take them for common."""
FEW_LABELS = 2.0
"""Over the number of labels: what chance adds to the variance of the log-odds. The development problems had 25 labels
and more; twenty among 2,000 rows make DEDPUL miss every second positive even where the classes are far apart."""
ROOM = 1.02
"""A prior is at least so many times the labeled share."""


@dataclass(frozen=True)
class Line:
    """log-odds of the prior as a line in the clues."""

    intercept: float
    slopes: tuple[float, ...]
    spread: float
    """Standard deviation of what the line misses, on tables that had no part in it …"""
    clear: float
    """… and where the scores tell labeled rows from the others well: an AUC of `CLEAR` or more."""


CLEAR = 0.88
APART = 0.98
"""From such an AUC on, hardly a row looks like the labeled ones and is not: DEDPUL is taken at its word. Hardly any of
the development problems is like that, so the study measures the line alone."""
SINGLE = Line(0.943, (-0.076, 0.204, 0.536), 0.763, 0.404)
CASE_CONTROL = Line(-0.315, (0.126, 0.139), 0.684, 0.684)
"""Without the labeled share, which says nothing where the labels were collected beside the population; too few of these
problems were clear for a spread of their own."""


def clues(rows: Evidence) -> Floats:
    """logit DEDPUL, its product with the log-odds of the AUC and, of a single sample, logit labeled share."""
    estimate, told_apart, labeled = logit(np.clip([dedpul(rows), auc(rows), lowest_prior(rows)], SURE, 1 - SURE))
    found = [estimate, estimate * told_apart, labeled]
    return np.array(found if rows.scenario is Scenario.SINGLE_SAMPLE else found[:2])


def from_clues(rows: Evidence, reach: float) -> tuple[float, float, float]:
    """π and the ends of its interval, so many standard deviations away in log-odds; never below the labeled share."""
    line = SINGLE if rows.scenario is Scenario.SINGLE_SAMPLE else CASE_CONTROL
    found, told_apart = clues(rows), auc(rows)
    center = float(found[0]) if told_apart >= APART else line.intercept + float(np.dot(line.slopes, found))
    lowest, missed = lowest_prior(rows), line.clear if told_apart >= CLEAR else line.spread
    spread = float(np.sqrt(missed**2 + FEW_LABELS / rows.labeled.sum()))
    value, low, high = expit(center + reach * spread * np.array([0.0, -1.0, 1.0]))
    value = float(np.clip(value, ROOM * lowest, 0.99))
    if rows.scenario is Scenario.SINGLE_SAMPLE:
        low = min(low, lowest / MOST_LABELED)
    return value, float(np.clip(low, lowest, value)), float(np.clip(high, value, 1.0))


def auc(rows: Evidence) -> float:
    """P(q of a labeled row > q of an unlabeled one), ties as one half; rows count by their mass."""
    order = rankdata(rows.q, method="dense") - 1
    labeled, others = (
        np.bincount(order[side], rows.mass[side], order.max() + 1) for side in (rows.labeled, rows.unlabeled)
    )
    below = others.cumsum() - others / 2
    return float(labeled @ below / (labeled.sum() * others.sum()))
