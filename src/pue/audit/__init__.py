"""Which rows to look at, and what the answers prove."""

from pue.audit.answers import Findings, Group, read
from pue.audit.design import DESIGNS, PURPOSES, QUANTITIES, Known, Stratum
from pue.audit.plans import Plan, join, plan
from pue.audit.widths import power
from pue.core.lesson import Combined, Lesson, combine

__all__ = [
    "DESIGNS",
    "PURPOSES",
    "QUANTITIES",
    "Combined",
    "Findings",
    "Group",
    "Known",
    "Lesson",
    "Plan",
    "Stratum",
    "combine",
    "join",
    "plan",
    "power",
    "read",
]
