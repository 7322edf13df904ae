"""How good are these scores? With true classes (`truth`), and without a single negative (`estimates`)."""

from __future__ import annotations

from pue.metrics.estimates import Estimate, EstimatedMetrics, estimate_metrics
from pue.metrics.scorers import SCORERS, make_scorer
from pue.metrics.truth import Metrics, ap_hard, calibration_error, evaluate

__all__ = [
    "SCORERS",
    "Estimate",
    "EstimatedMetrics",
    "Metrics",
    "ap_hard",
    "calibration_error",
    "estimate_metrics",
    "evaluate",
    "make_scorer",
]
