"""JSON from a stranger: bounded in size and depth, no key twice, no NaN."""

from __future__ import annotations

import json
from typing import Any

from pue.errors import ModelError

MOST_BYTES = 64 * 2**20
MOST_LEVELS = 100


def parse(data: bytes, name: str, *, most_bytes: int = MOST_BYTES, most_levels: int = MOST_LEVELS) -> Any:
    """The value, or a `ModelError` that names the file.

    >>> parse(b'{"a": [1, 2.5]}', "model.json")
    {'a': [1, 2.5]}
    """
    if len(data) > most_bytes:
        raise ModelError(f"{name} holds {len(data)} bytes; at most {most_bytes} are read. It is no model of pue's.")
    try:
        tree = json.loads(data.decode("utf-8"), object_pairs_hook=_once, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ModelError(
            f"{name} is damaged ({error}). Restore the folder from a copy, or save the model again."
        ) from error
    if levels(tree) > most_levels:
        raise ModelError(f"{name} is nested more than {most_levels} levels deep. It is no model of pue's.")
    return tree


def levels(tree: Any) -> int:
    """How deep lists and objects are nested, counted without recursion.

    >>> levels({"a": [[], 1]})
    3
    """
    found, level = 0, [tree]
    while level := [node for node in level if isinstance(node, dict | list)]:
        found += 1
        level = [child for node in level for child in (node.values() if isinstance(node, dict) else node)]
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
