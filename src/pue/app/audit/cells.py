"""Cells of a sheet that people and spreadsheets write to: answers however spelt, ids however reformatted."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from pue.estimators.vectorizer.columns import cell_text

YES, NO, UNKNOWN = 1.0, 0.0, None
WORDS: dict[str, float | None] = {
    **dict.fromkeys(("yes", "y", "true", "t", "positive", "pos", "+", "ja", "oui", "sí", "si", "1", "x", "✓"), YES),
    **dict.fromkeys(("no", "n", "false", "f", "negative", "neg", "-", "−", "nein", "non", "0", "-1"), NO),
    **dict.fromkeys(
        ("", "?", "??", "unknown", "unsure", "unclear", "maybe", "u", "na", "n/a", "nan", "none", "null", "skip",
         "don't know", "dont know", "do not know", "dk"),
        UNKNOWN,
    ),
}  # fmt: skip
"""In any case, with any space around them."""
RISKY = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""A spreadsheet runs a cell that begins so as a formula."""
_NUMBER = re.compile(r"[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?")


def safe(value: Any) -> str:
    """A value as the text of a cell that no spreadsheet runs: an apostrophe goes before what could be a formula.

    >>> safe("=1+1"), safe(-3.5), safe("-3.5"), safe(None), safe("fine")
    ("'=1+1", '-3.5', '-3.5', '', 'fine')
    """
    if value is None or (not isinstance(value, str) and pd.isna(value)):
        return ""
    text = cell_text(value.item() if hasattr(value, "item") else value)
    risky = text.lstrip(" ").startswith(RISKY) and not _NUMBER.fullmatch(text)
    return f"'{text}" if risky else text


def verdict(text: str) -> tuple[bool, float | None]:
    """Whether an answer could be read, and what it says: 1 yes, 0 no, None unknown or empty.

    >>> verdict(" Yes "), verdict("0.0"), verdict("?"), verdict("perhaps")
    ((True, 1.0), (True, 0.0), (True, None), (False, None))
    """
    word = text.strip().strip("'\"").strip().casefold().rstrip(".!")
    word = {"1.0": "1", "0.0": "0", "1,0": "1", "0,0": "0"}.get(word, word)
    return (True, WORDS[word]) if word in WORDS else (False, None)


def number(text: str) -> float | None:
    """A number with a point or, as some spreadsheets write it, a comma; a percentage too.

    >>> number("0,25"), number("25%"), number("many")
    (0.25, 0.25, None)
    """
    text = text.strip().removeprefix("'")
    try:
        return float(text.removesuffix("%").replace(",", ".")) / (100 if text.endswith("%") else 1)
    except ValueError:
        return None


def plain_id(text: str) -> str:
    """An id without what a spreadsheet may have done to it: space, an apostrophe, ".0", leading zeros.

    >>> [plain_id(text) for text in ("007", "7.0", " 7", "'=a", "c7")]
    ['7', '7', '7', '=a', 'c7']
    """
    text = text.strip().removeprefix("'").strip()
    if re.fullmatch(r"[-+]?\d+([.,]0*)?", text):
        return str(int(re.split("[.,]", text)[0]))
    return text
