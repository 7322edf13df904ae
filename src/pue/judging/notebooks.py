"""A small table in HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape


def as_html(title: str, facts: Mapping[str, object]) -> str:
    """Names and values, nothing of them read as markup.

    >>> as_html("Found", {"a<b": 1})
    '<table><caption>Found</caption><tr><th>a&lt;b</th><td>1</td></tr></table>'
    """
    rows = "".join(
        f"<tr><th>{escape(str(name))}</th><td>{escape(str(value))}</td></tr>" for name, value in facts.items()
    )
    return f"<table><caption>{escape(title)}</caption>{rows}</table>"
