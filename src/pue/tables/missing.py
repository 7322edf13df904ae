"""How people write that a value is missing."""

from __future__ import annotations

MISSING = frozenset({"", "?", "na", "n/a", "#n/a", "#na", "<na>", "nan", "nat", "null", "none"})
"""In lower case, without the space around them."""
