"""Tables of scalars, lists and one level of sub-tables → TOML that reads back to the very same values."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def dumps(table: Mapping[str, Any]) -> str:
    """
    >>> dumps({"seed": 1, "labels": {"mix": [0.5, 0.5]}}).splitlines()
    ['seed = 1', '', '[labels]', 'mix = [0.5, 0.5]']
    """
    lines = [f"{_key(name)} = {_value(entry)}" for name, entry in table.items() if not isinstance(entry, Mapping)]
    for name, entry in table.items():
        if isinstance(entry, Mapping):
            lines += ["", f"[{_key(name)}]", *(f"{_key(inner)} = {_value(value)}" for inner, value in entry.items())]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


def _text(text: str) -> str:
    """JSON's escapes are TOML's too, but JSON leaves one control character as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
