"""JSON from a stranger: bounded in size, nodes, depth and strings before it is parsed; no key twice, no NaN."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from pue.errors import ModelError

MOST_BYTES = 16 * 2**20
MOST_NODES = 10**6
MOST_LEVELS = 100
MOST_STRING = 2**20
"""Bytes of one string."""
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


def parse(data: bytes, name: str) -> Any:
    """The value, or a `ModelError` that names the file.

    >>> parse(b'{"a": [1, 2.5]}', "model.json")
    {'a': [1, 2.5]}
    """
    measure(data, name)
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_once, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ModelError(
            f"{name} is damaged ({error}). Restore the folder from a copy, or save the model again."
        ) from error


def measure(data: bytes, name: str) -> None:
    """Refuse what is too large to be parsed: a parser would build it first, and millions of empty lists take gigabytes.

    Brackets and commas outside of strings say how many nodes there are and how deep they lie.
    """
    if len(data) > MOST_BYTES:
        raise ModelError(f"{name} holds {len(data)} bytes; at most {MOST_BYTES} are read. It is no model of pue's.")
    if max((match.end() - match.start() for match in _STRING.finditer(data)), default=0) > MOST_STRING:
        raise ModelError(f"{name} has a string of more than {MOST_STRING} bytes. It is no model of pue's.")
    text = np.frombuffer(_STRING.sub(b"", data), dtype=np.uint8)
    opening = (text == ord("[")) | (text == ord("{"))
    closing = (text == ord("]")) | (text == ord("}"))
    nodes = int(np.count_nonzero(opening)) + int(np.count_nonzero(text == ord(",")))
    if nodes > MOST_NODES:
        raise ModelError(f"{name} has {nodes} nodes; at most {MOST_NODES} are read. It is no model of pue's.")
    if len(text) and int(np.cumsum(opening.astype(np.int32) - closing).max()) > MOST_LEVELS:
        raise ModelError(f"{name} is nested more than {MOST_LEVELS} levels deep. It is no model of pue's.")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
