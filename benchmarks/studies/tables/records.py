"""Records of a run: lines of JSON in one file, appended whole, the last one of a key being the one that counts."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

Record = dict[str, Any]


@dataclass(frozen=True, order=True)
class Key:
    """What a record is about."""

    table: str
    labeling: str
    seed: int
    method: str


def key_of(record: Record) -> Key:
    return Key(record["table"], record["labeling"], record["seed"], record["method"])


def read(path: Path) -> dict[Key, Record]:
    """A line that a killed process left unfinished is not a record."""
    if not path.exists():
        return {}
    lines = path.read_text().split("\n")[:-1]
    return {key_of(record): record for record in map(json.loads, lines)}


def append(path: Path, key: Key, found: Record) -> None:
    """One write at the end of the file, which the system does not mix with those of other processes."""
    line = json.dumps(_plain({**asdict(key), **found}), allow_nan=False) + "\n"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def mend(path: Path) -> None:
    """Cut off an unfinished last line, so that the next one does not grow from it."""
    if path.exists():
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(path, whole)


def _plain(value: Any) -> Any:
    """Six digits are enough, and JSON has no NaN."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
