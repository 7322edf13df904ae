"""What a model remembers of the rows it came from, and whether it meets them again."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from pue.app.model import PUModel
from pue.app.roles import Roles
from pue.app.sources.opening import Source


def facts_of(source: Source, roles: Roles) -> dict[str, Any]:
    """What a model remembers of where it came from."""
    return {
        "title": f"{roles.label} in {source.path.name}",
        "source": source.path.name,
        "checksum": checksum(source.path),
        "label": roles.label,
        "id": roles.id,
        "ignore": list(roles.ignore),
        "truth": roles.truth,
        "positive": roles.positive,
        "propensity": roles.propensity,
    }


def same_rows(model: PUModel, source: Source) -> bool:
    return bool(model.facts.get("checksum")) and model.facts["checksum"] == checksum(source.path)


def checksum(path: Path) -> str:
    """SHA-256 of all bytes."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    found = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            hashlib.file_digest(stream, lambda: found)
    return found.hexdigest()
