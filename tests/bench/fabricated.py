"""A record of no run: whole, with metrics around a given accuracy."""

from __future__ import annotations

from typing import Any

from pue.bench.spec import SCHEMA, digest


def fabricated(spec: dict[str, Any], row: str = "nnPU", accuracy: float = 90.0, **changes: Any) -> dict[str, Any]:
    """As it would be stored; `changes` replace its fields."""
    a, source = accuracy / 100, spec.get("propensity", "none")
    propensity = {"source": source, "effective_sample_size": 900.0 + spec["seed"], "share_distance": 0.03}
    return {
        "schema": SCHEMA,
        "key": digest(spec),
        "spec": spec,
        "row": row,
        "metrics": {
            "accuracy": a,
            "precision": a + 0.01,
            "recall": a - 0.01,
            "f1": a,
            "auc": a + 0.04,
            "ap": a + 0.03,
            "auc_hard": a + 0.002,
            "ap_hard": a - 0.04,
        },
        "history": [{"epoch": 0, "risk": 0.5, "seconds": 1.0}],
        "propensity": None if source == "none" else {**propensity, "alarm": None, "seconds": 21.0, "cpu": 20.0},
        "prior": 0.49,
        "n_labeled": 2500,
        "n_unlabeled": 60000,
        "data": {"name": "mnist", "checksum": "0123456789abcdef"},
        "warnings": [],
        "versions": {"python": "3.12.1", "torch": "2.6.0"},
        "cost": {"wall_seconds": 11.0, "cpu_seconds": 10.0, "flops": 1_500_000_000_000, "peak_memory_bytes": 2**29},
        "finished": "2025-01-01T00:00:00+00:00",
        **changes,
    }
