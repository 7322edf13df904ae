"""JSON that carries a digest of all of its own content: what was altered or cut off is noticed when it is read back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pue.errors import ModelError
from pue.persistence import strict_json

DIGEST = "digest"


def sealed(body: Mapping[str, Any]) -> dict[str, Any]:
    """The same entries and, last, their digest.

    >>> sorted(sealed({"a": 1}))
    ['a', 'digest']
    >>> opened(json.dumps(sealed({"a": 1})).encode(), "x.json")
    {'a': 1}
    """
    return {**body, DIGEST: digest_of(body)}


def digest_of(body: Mapping[str, Any]) -> str:
    """sha256 of canonical JSON: neither the order of entries nor blanks between them matter."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def opened(data: bytes, name: str) -> dict[str, Any]:
    """The entries without their digest; a `ModelError` where the two do not belong together."""
    body = strict_json.parse(data, name)
    if not isinstance(body, dict) or not isinstance(body.get(DIGEST), str):
        raise ModelError(f"{name} carries no digest of its content")
    found = {key: value for key, value in body.items() if key != DIGEST}
    try:
        same = digest_of(found) == body[DIGEST]
    except ValueError as error:  # a number such as 1e999
        raise ModelError(f"{name} holds a number that is none") from error
    if not same:
        raise ModelError(f"{name} was altered: its digest is not that of its content")
    return found
