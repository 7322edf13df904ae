"""What must be equal in two records of one spec."""

from __future__ import annotations

from typing import Any

from pue.bench.record import Record


def comparable(record: Record | dict[str, Any]) -> dict[str, Any]:
    """Everything but times, versions and memory, and the digest of all that."""
    body = record.to_dict() if isinstance(record, Record) else record
    kept = {name: value for name, value in body.items() if name not in ("cost", "versions", "finished", "digest")}
    kept["history"] = [{name: value for name, value in epoch.items() if name != "seconds"} for epoch in body["history"]]
    kept["warnings"] = list(body["warnings"])
    if body["propensity"] is not None:
        kept["propensity"] = {**body["propensity"], "seconds": None, "cpu": None}
    return kept
