"""A made-up summary for the page, with every section; all numbers are functions of simple formulas, none is random."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

LONG = "days_between_first_contact_and_the_second_telephone_interview_rounded_to_full_weeks"


def full_summary() -> dict[str, Any]:
    grid = [k / 200 for k in range(201)]
    edges = [k / 25 for k in range(26)]
    middles = [(a + b) / 2 for a, b in pairwise(edges)]
    estimates = {
        "f1": (0.781, 0.742, 0.815),
        "precision": (0.812, 0.762, 0.858),
        "recall": (0.753, 0.701, 0.802),
        "accuracy": (0.874, 0.851, 0.893),
        "auc": (0.921, 0.902, 0.938),
        "ap": (0.858, 0.825, 0.889),
        "flagged": (0.279, 0.272, 0.287),
    }
    return {
        "title": "Which applicants would repay?",
        "created": "2026-03-01T09:05:00+00:00",
        "version": "0.1.0",
        "data": {
            "source": "applicants.csv",
            "n_rows": 12_480,
            "n_labeled": 1_204,
            "n_negative": 0,
            "n_unlabeled": 11_276,
            "columns": [
                {"name": "age", "kind": "number"},
                {"name": "income", "kind": "number"},
                {"name": "region", "kind": "category"},
                {"name": LONG, "kind": "number"},
                {"name": "first_seen", "kind": "date"},
            ],
            "dropped": [
                {"name": "applicant_id", "reason": "the identifier"},
                {"name": "country", "reason": "the same value in every row"},
            ],
            "label": "repaid",
            "id": "applicant_id",
            "scenario": "single_sample",
        },
        "method": {
            "name": "nnpu",
            "display": "nnPUe",
            "propensity": "auto",
            "model": "mlp",
            "settings": {"epochs": 60, "lr": 0.001, "batch_size": 256, "schedule": "cosine", "ema": None, "warm": True},
            "seconds": 38.4,
            "seed": 20_260_301,
            "history": [
                {
                    "epoch": k,
                    "risk": 0.11 + 0.31 * math.exp(-k / 9),
                    "validation": 0.14 + 0.28 * math.exp(-k / 8) + k / 3e3,
                }
                for k in range(1, 61)
            ],
        },
        "prior": {
            "value": 0.301,
            "low": 0.268,
            "high": 0.337,
            "level": 0.95,
            "method": "weighted ratio",
            "assumes": "that some region holds positives only",
        },
        "scar": {
            "p_value": 0.0004,
            "rejected": True,
            "statistic": 0.162,
            "text": "41% of the labeled rows lie where a fair labeling could put at most 25%.",
            "null": [0.02 + 0.11 * (((k * 37) % 500) / 500) ** 2 for k in range(500)],
        },
        "drivers": [
            {"name": "income", "difference": 0.84},
            {"name": LONG, "difference": -0.51},
            {"name": "region: north", "difference": 0.33},
            {"name": "age", "difference": -0.12},
            {"name": "first_seen", "difference": 0.02},
        ],
        "propensity": {
            "source": "auto: cross-fitted pool of logistic and forest",
            "mean": 0.47,
            "effective_sample_size": 655.3,
            "largest_weight": 6.23,
            "n_labeled": 1_204,
            "n_clipped": 3,
            "alarm": None,
            "labeled": {"edges": edges, "density": [_bump(m, 0.55, 0.2) for m in middles]},
            "unlabeled": {"edges": edges, "density": [_bump(m, 0.2, 0.15) for m in middles]},
            "weight_curve": [[k / 50, (k / 50) ** 0.55] for k in range(51)],
        },
        "metrics": {
            "level": 0.95,
            "how": "Weighted held-out rows, with a bootstrap over rows.",
            "n_labeled": 301,
            "n_population": 3_120,
            "assumption": "Right if the propensities are.",
            "trivial": None,
            "values": _parts(estimates),
        },
        "scar_metrics": {
            "level": 0.95,
            "how": "The same rows, unweighted.",
            "n_labeled": 301,
            "n_population": 3_120,
            "assumption": "Right if the labels are a fair sample.",
            "trivial": None,
            "values": _parts({name: tuple(min(1.0, v + 0.06) for v in ends) for name, ends in estimates.items()}),
        },
        "bounds": [
            {"gamma": 1.0, "recall": [0.753, 0.753], "precision": [0.812, 0.812]},
            {"gamma": 1.25, "recall": [0.694, 0.806], "precision": [0.748, 0.869]},
            {"gamma": 1.5, "recall": [0.642, 0.845], "precision": [0.692, 0.911]},
            {"gamma": 2.0, "recall": [0.551, 0.893], "precision": [0.594, 0.963]},
        ],
        "threshold": {"value": 0.42, "rule": "the estimated prior’s share of rows is flagged"},
        "curve": [_point(t) for t in grid],
        "n_score_rows": 11_276,
        "scores": {
            "edges": edges,
            "labeled": [_bump(m, 0.78, 0.16) for m in middles],
            "unlabeled": [0.7 * _bump(m, 0.12, 0.1) + 0.3 * _bump(m, 0.72, 0.17) for m in middles],
        },
        "calibration": {
            "method": "Ten groups of equal size; weighted labels against the population.",
            "bins": [
                {
                    "predicted": p,
                    "estimated": p**1.15,
                    "low": max(0.0, p**1.15 - 0.05),
                    "high": min(1.0, p**1.15 + 0.06),
                    "share": 0.3 if p < 0.1 else 0.0778,
                }
                for p in (0.04, 0.13, 0.22, 0.31, 0.42, 0.55, 0.64, 0.76, 0.87, 0.95)
            ],
        },
        "top_rows": {
            "columns": ["applicant_id", "P(positive)", "age", "income", "region", LONG, "first_seen", "remarks"],
            "rows": [
                [
                    104_233 + 17 * k,
                    0.997 - 0.0031 * k,
                    61 - k,
                    91_250.5 - 1_101.25 * k,
                    "north",
                    7.5 * k,
                    "2019-04-02",
                    None,
                ]
                for k in range(12)
            ],
        },
        "warnings": ["The prior’s interval is wide: results change inside it (see the worst case below)."],
        "advice": [
            "Label positives with low income next: they are rare among the labels.",
            "Give the prior from outside the data if you know it.",
        ],
    }


def diagnosis_summary() -> dict[str, Any]:
    """What there is before anything was learnt."""
    names = ("title", "created", "version", "data", "prior", "scar", "drivers", "propensity", "advice")
    return {name: value for name, value in full_summary().items() if name in names}


def _bump(x: float, center: float, width: float) -> float:
    return math.exp(-(((x - center) / width) ** 2) / 2) / (width * math.sqrt(2 * math.pi))


def _parts(estimates: dict[str, tuple[float, ...]]) -> dict[str, dict[str, float]]:
    return {name: dict(zip(("value", "low", "high"), ends, strict=True)) for name, ends in estimates.items()}


def _point(t: float) -> dict[str, float | None]:
    recall, precision = 1 - t**1.612, 0.3 + 0.69 * math.sin(math.pi * t / 2) ** 0.6095
    last = t == 1
    return {
        "threshold": t,
        "precision": None if last else precision,
        "precision_low": None if last else max(0.0, precision - 0.02 - 0.06 * t),
        "precision_high": None if last else min(1.0, precision + 0.02 + 0.03 * t),
        "recall": recall,
        "recall_low": max(0.0, recall - 0.045),
        "recall_high": min(1.0, recall + 0.045),
        "flagged": 0.301 * recall / precision,
        "f1": None if last else 2 * precision * recall / (precision + recall),
    }
