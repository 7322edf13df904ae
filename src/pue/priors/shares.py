"""From one share to another, in the open: what was estimated is rarely π itself.

α is the share of positives among the *unlabeled* rows, c the share of labeled rows among all positives at hand, π the
share of positives in the population. m_P and m_U are the masses of labeled and unlabeled rows.
"""

from __future__ import annotations

import warnings

from pue.core.data import Scenario
from pue.errors import PueWarning
from pue.priors.evidence import Evidence


def prior_from_unlabeled(alpha: float, rows: Evidence) -> float:
    """Case-control: π = α. Single sample: π = s̄ + ū α, with the shares s̄ and ū of labeled and unlabeled rows.

    Without labeled negatives ū = 1 − s̄.
    """
    if rows.scenario is Scenario.CASE_CONTROL:
        return alpha
    return float((rows.labeled_mass + alpha * rows.unlabeled_mass) / rows.mass.sum())


def unlabeled_from_frequency(c: float, rows: Evidence) -> float:
    """α = (m_P / m_U) (1 − c) / c: the positives left among the unlabeled rows are m_P (1 − c) / c, in both scenarios.

    With γ = m_U / (m_U + m_P) this is ((1 − γ) / γ) (1 − c) / c; in a single sample it makes π = s̄ / c.
    """
    return rows.labeled_mass / rows.unlabeled_mass * (1 - c) / c


def lowest_prior(rows: Evidence) -> float:
    """Rows already known to be positive bound π in a single sample; in case-control they say nothing."""
    return float(rows.labeled_mass / rows.mass.sum()) if rows.scenario is Scenario.SINGLE_SAMPLE else 0.0


def held_inside(estimate: float, rows: Evidence, name: str) -> float:
    """The estimate, or the nearest prior the data allow and a warning."""
    lowest = lowest_prior(rows)
    if not lowest < estimate < 1:
        warnings.warn(
            f"{name}'s prior came out as {estimate:.3g}; it is held inside ({lowest:.3g}, 0.99). Labeled rows are "
            "hard to recognise here: pass the prior if you know it.",
            PueWarning,
            stacklevel=3,
        )
    return min(max(estimate, lowest + 1e-6), 0.99)
