"""How good are these scores? With true classes (`truth`), and without a single negative (`estimates`)."""

from __future__ import annotations

from pue.judging.estimates import Estimate, EstimatedMetrics, estimate_metrics
from pue.judging.scorers import SCORERS, make_scorer
from pue.judging.truth import METRICS, Metrics, ap_hard, calibration_error, evaluate

__all__ = [
    "METRICS", "SCORERS", "Estimate", "EstimatedMetrics", "Metrics", "ap_hard", "calibration_error",
    "estimate_metrics", "evaluate", "make_scorer",
]  # fmt: skip
